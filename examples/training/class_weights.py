"""
Class weights: a rare class
===========================

One row in fifty is of the class that matters, and the classes overlap. A classifier that counts all
rows alike finds few of them. Class weights count a row of the rare class more, and move the balance
between precision and recall.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import PrecisionRecallDisplay, precision_score, recall_score
from sklearn.model_selection import train_test_split

from skort import OrtSGDClassifier

rng = np.random.default_rng(0)
y = (rng.random(10_000) < 0.02).astype(int)
X = rng.normal(size=(10_000, 4)) + 1.2 * y[:, None]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
print(f"{y_train.sum()} of {len(y_train)} rows are of the rare class")

# %%
# `class_weight` is that of scikit-learn: None, a weight for each label, or "balanced", which gives
# both classes the same total weight. Precision is the share of the alarms that are right. Recall is
# the share of the rare rows that are found.

weights = {"None": None, "{1: 5}": {1: 5}, "{1: 15}": {1: 15}, "'balanced'": "balanced"}
models, precision, recall = {}, {}, {}
for name, class_weight in weights.items():
    model = OrtSGDClassifier(class_weight=class_weight, random_state=0).fit(X_train, y_train)
    predicted = model.predict(X_test)
    models[name] = model
    precision[name], recall[name] = (
        precision_score(y_test, predicted),
        recall_score(y_test, predicted),
    )
    print(f"class_weight={name:<11} precision {precision[name]:.2f}, recall {recall[name]:.2f}")

# %%
# scikit-learn weighs the same way: the coefficients of `LogisticRegression` agree to less than 1 % of the
# largest.

model = OrtSGDClassifier(LogisticRegression(class_weight="balanced"), random_state=0)
model.fit(X_train, y_train)
reference = clone(model.estimator).fit(X_train, y_train)
difference = np.abs(model.coef_ - reference.coef_).max() / np.abs(reference.coef_).max()
print(f"largest difference of a coefficient, as a part of the largest: {difference:.1%}")

# %%
# A line is what one model gives at all thresholds of its probability; the point is its `predict`,
# at one half. The lines are close to each other: the weights mainly choose the point. Choose them
# by what a missed row costs.

figure, axis = plt.subplots(figsize=(6.4, 4.5), layout="constrained")
for name, model in models.items():
    label = f"class_weight={name}"
    PrecisionRecallDisplay.from_estimator(model, X_test, y_test, ax=axis, name=label)
    axis.plot(recall[name], precision[name], "o", color=axis.lines[-1].get_color(), markersize=9)
axis.set(title="", aspect="auto")
plt.show()
