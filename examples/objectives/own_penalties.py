"""
Custom penalties
================

A penalty is an ONNX function of a weight. This page writes two. The first one pulls weights towards
those of a fitted model, for fine-tuning on few rows. The second one is a group lasso, which drops
whole features of a model with several outputs.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.objective import Penalty

# %%
# A model was fitted on 2,000 rows. Then three of its 30 coefficients changed. There are 20 new
# rows: too few for a model of their own. The penalty is :math:`\frac{\alpha}{2} \lVert w - w_0
# \rVert^2`. Its second input, `start`, is the weight before the first update.

pull = """
pull (weight, start) => (penalty) {
    half = Constant <value = float {0.5}> ()
    distance = Sub (weight, start)
    square = Mul (distance, distance)
    sum = ReduceSum <keepdims = 0> (square)
    penalty = Mul (half, sum)
}"""

rng = np.random.default_rng(0)
coef = rng.normal(size=30)
X = rng.normal(size=(2000, 30))
fitted = LinearRegression().fit(X, X @ coef + rng.normal(size=2000))

coef[:3] += [2.0, -2.0, 1.5]
X_new, X_test = rng.normal(size=(20, 30)), rng.normal(size=(1000, 30))
y_new, y_test = (rows @ coef + rng.normal(size=len(rows)) for rows in (X_new, X_test))

options = {
    "eta0": 0.05,
    "learning_rate": "constant",
    "max_iter": 1000,
    "tol": None,
    "random_state": 0,
}
alphas = np.logspace(-3, 1, 9)
errors = []
for alpha in alphas:
    model = OrtSGDRegressor(
        FrozenEstimator(fitted), penalty=Penalty(pull, alpha=alpha), **options
    ).fit(X_new, y_new)
    errors.append(np.mean((model.predict(X_test) - y_test) ** 2))

old = np.mean((fitted.predict(X_test) - y_test) ** 2)
alone = OrtSGDRegressor(LinearRegression(), **options).fit(X_new, y_new)
new = np.mean((alone.predict(X_test) - y_test) ** 2)
print(
    f"mean squared error: as it was {old:.2f}, the new rows alone {new:.2f}, "
    f"with a pull {min(errors):.2f}"
)

# %%
# With a strong pull (right) the model stays as it was; with a weak one (left) it follows the few
# new rows. In between it is better than both.

plt.figure(figsize=(6.4, 4), layout="constrained")
plt.semilogx(alphas, errors, "o-", label="pulled towards the fitted weights")
plt.axhline(old, color="grey", linestyle="--", label="the fitted model as it was")
plt.axhline(new, color="grey", linestyle=":", label="the new rows alone")
plt.xlabel("alpha")
plt.ylabel("mean squared error of 1,000 other rows")
plt.legend()
plt.show()

# %%
# The group lasso is :math:`\alpha \sum_j \sqrt{\lVert w_j \rVert^2 + \epsilon}`. A group has the
# three weights of one feature, one for each output. Four of twelve features matter. The small
# :math:`\epsilon` gives the gradient a value where a whole group is zero. Groups become small, but
# not exactly zero.

group_lasso = """
group_lasso (weight) => (penalty) {
    little = Constant <value = float {0.0001}> ()
    columns = Constant <value = int64[1] {1}> ()
    square = Mul (weight, weight)
    sums = ReduceSum <keepdims = 0> (square, columns)
    positive = Add (sums, little)
    norms = Sqrt (positive)
    penalty = ReduceSum <keepdims = 0> (norms)
}"""

X = rng.normal(size=(100, 12))
coefs = np.zeros((12, 3))
coefs[:4] = rng.normal(size=(4, 3))
Y = X @ coefs + 2 * rng.normal(size=(100, 3))

strengths = np.logspace(-2, 0, 9)
norms = []
for alpha in strengths:
    penalty = Penalty(group_lasso, alpha=alpha)
    # The steeper the kink, the smaller the steps.
    grouped = OrtSGDRegressor(LinearRegression(), penalty=penalty, **options).set_params(
        eta0=0.01, batch_size=100
    )
    norms.append(np.linalg.norm(grouped.fit(X, Y).coef_, axis=0))
norms = np.array(norms)

# %%
# The eight features that do not matter (grey) go to zero before the four that do.

plt.figure(figsize=(6.4, 4), layout="constrained")
plt.semilogx(strengths, norms[:, 4:], color="lightgrey")
plt.semilogx(strengths, norms[:, :4], linewidth=3)
plt.xlabel("alpha")
plt.ylabel("norm of the weights of a feature")
plt.show()
