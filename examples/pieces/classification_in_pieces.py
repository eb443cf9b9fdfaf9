r"""
A classification with forward and backward
==========================================

A model gives a raw score; the sigmoid makes a probability of it. The log-loss has a simple
derivative by the raw score: the probability minus the label. So the sigmoid need not be in the
graph, and the gradient needs one line.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from skort.gradients import ForwardBackward, initial_model

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(scale(X).astype(np.float32), y, random_state=0)
n_rows, C = len(X_train), 0.1
target = y_train[:, None].astype(np.float32)

# %%
# The derivative, compared with finite differences: the loss of one row is :math:`\log(1 + e^s) - y
# s`.

scores = np.linspace(-6, 6, 121)
derivative, differences = {}, {}
for label in (0, 1):
    derivative[label] = expit(scores) - label
    above, below = (np.logaddexp(0, s) - label * s for s in (scores + 1e-4, scores - 1e-4))
    differences[label] = (above - below) / 2e-4
print(
    "largest difference:",
    max(np.abs(derivative[label] - differences[label]).max() for label in (0, 1)),
)

# %%
# `LogisticRegression(C)` minimises the sum of the losses plus :math:`\lVert w \rVert^2 / (2 C)`.
# Here all is divided by the number of rows. A step takes all rows, with momentum.

layer = ForwardBackward(initial_model(LogisticRegression(), n_features=30))
coef = layer.views()["coef"]
velocity, losses = np.zeros_like(layer.weights), []
for _ in range(300):
    score, saved = layer.forward(X_train)
    probability = expit(score)
    losses.append(
        log_loss(y_train, probability.ravel()) + float((coef**2).sum()) / (2 * C * n_rows)
    )
    gradient = layer.backward(saved, (probability - target) / n_rows).weights
    layer.views(gradient)["coef"][:] += coef / (C * n_rows)
    velocity = 0.9 * velocity - 0.2 * gradient
    layer.weights += velocity

# %%
# The weights are those of scikit-learn.

reference = LogisticRegression(C=C, tol=1e-8, max_iter=1000).fit(X_train, y_train)
their_loss = log_loss(y_train, reference.predict_proba(X_train)) + (reference.coef_**2).sum() / (
    2 * C * n_rows
)
score, _ = layer.forward(X_test, training=False)
accuracy = ((score.ravel() > 0) == y_test).mean()
print(f"objective {losses[-1]:.6f}; scikit-learn {their_loss:.6f}")
print("largest difference of a coefficient:", np.abs(coef.ravel() - reference.coef_[0]).max())
print(f"accuracy on test rows: {accuracy:.3f}; scikit-learn {reference.score(X_test, y_test):.3f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for label in (0, 1):
    loss = np.logaddexp(0, scores) - label * scores
    left.plot(scores, loss, color=f"C{label}", label=f"loss, y = {label}")
    left.plot(scores, derivative[label], "--", color=f"C{label}", label="its derivative")
left.set(xlabel="raw score")
left.legend()
# The weights are float32: below 1e-8 the differences are rounding errors.
right.semilogy(range(1, 301), np.maximum(np.array(losses) - their_loss, 1e-8))
right.set(xlabel="step", ylabel="objective above that of scikit-learn")
plt.show()
