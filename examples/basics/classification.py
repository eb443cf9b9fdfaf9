"""
A linear and a nonlinear classifier
===================================

Two half moons: a straight line separates most of the points, a small neural network nearly all.
Both models are those of scikit-learn, and both are trained by `OrtSGDClassifier`.
"""

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier

X, y = make_moons(800, noise=0.2, random_state=0)
labels = np.array(["lower", "upper"])[1 - y]
X_train, X_test, y_train, y_test = train_test_split(X, labels, random_state=0)

# %%
# The labels may be numbers or text. `penalty=None` leaves the weights free, as
# `LogisticRegression(C=np.inf)` does.

models = {
    "LogisticRegression": OrtSGDClassifier(LogisticRegression(), penalty=None, random_state=0),
    "MLPClassifier": OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(30,)),
        penalty=None,
        optimizer="adam",
        batch_size=50,
        random_state=0,
    ),
}
scores = {}
for name, model in models.items():
    scores[name] = model.fit(X_train, y_train).score(X_test, y_test)
    print(f"{name:<21} {model.n_iter_:3} epochs, accuracy on other points {scores[name]:.3f}")

# %%
# A linear model ends at the coefficients of scikit-learn's own solver, which minimises the same
# objective.

reference = LogisticRegression(C=np.inf).fit(X_train, y_train)
print("scikit-learn", reference.coef_, reference.intercept_)
print("skort       ", models["LogisticRegression"].coef_, models["LogisticRegression"].intercept_)

# %%
# `predict_proba` gives the probability of each label. The shades show that of "upper",
# whose points are circles.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict_proba", alpha=0.6, cmap="RdBu", ax=axis
    )
    for label, marker in (("lower", "v"), ("upper", "o")):
        axis.scatter(*X_test[y_test == label].T, marker=marker, color="black", edgecolor="white")
    axis.set(title=f"{name}: accuracy {scores[name]:.2f}")
plt.show()

# %%
# The ONNX file gives the labels and the same probabilities. Any onnxruntime runs it, without skort
# or scikit-learn.

network = models["MLPClassifier"]
session = onnxruntime.InferenceSession(
    network.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"]
)
served, probabilities = session.run(["label", "probabilities"], {"X": X_test.astype(np.float32)})
print("the same labels:", (served == network.predict(X_test)).all())
print(
    "largest difference of a probability:",
    np.abs(probabilities - network.predict_proba(X_test)).max(),
)
