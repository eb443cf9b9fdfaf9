"""
A custom loss
=============

A shop bakes bread for a day. A missing loaf costs four times what a left-over one costs, and the
cost grows with the square of the error. No loss in the library says so, but an ONNX function does.
skort derives its gradient.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.objective import Loss

# %%
# The function takes `score`, the prediction, and `target`. With the error r = target - score, the
# cost of a row is :math:`r^2` where loaves are left over, and :math:`4 r^2` where they are missing.

cost_of_errors = """
cost (score, target) => (loss) {
    four = Constant <value = float {4}> ()
    error = Sub (target, score)
    missing = Relu (error)
    left_over = Sub (missing, error)
    missing_squared = Mul (missing, missing)
    left_over_squared = Mul (left_over, left_over)
    cost_of_missing = Mul (four, missing_squared)
    loss = Add (cost_of_missing, left_over_squared)
}"""


def cost(score, target):
    """The same in numpy, to compare."""
    error = target - score
    return np.where(error > 0, 4, 1) * error**2


# %%
# Demand depends on the temperature, with a long tail of busy days, which is longer in warm weather.

rng = np.random.default_rng(0)
temperature = rng.uniform(0, 30, size=1000)
demand = 100 - 2 * temperature + rng.gamma(2, 2 + 0.5 * temperature)
X = temperature[:, None]

options = {"penalty": None, "max_iter": 300, "random_state": 0}
models = {
    "squared_error": OrtSGDRegressor(LinearRegression(), **options).fit(X, demand),
    "custom": OrtSGDRegressor(LinearRegression(), loss=Loss(cost_of_errors), **options).fit(
        X, demand
    ),
}
costs = {name: float(cost(model.predict(X), demand).mean()) for name, model in models.items()}
for name, model in models.items():
    print(
        f"{name:<14} mean cost {costs[name]:6.1f}; {model.intercept_[0]:.1f} loaves at 0 °C, "
        f"{model.coef_[0]:.2f} per °C"
    )

# %%
# Is that the minimum? Shift the line of the squared error up until its cost is least. The custom
# loss, which may change the slope too, is cheaper still.

plain = models["squared_error"].predict(X)
shift = minimize_scalar(lambda loaves: cost(plain + loaves, demand).mean())
print(f"squared error, {shift.x:.1f} loaves more: mean cost {shift.fun:.1f}")

# %%
# The left figure shows the loss of a row, the right one the lines that were fitted.

errors, line = np.linspace(-20, 20, 200), np.array([[0.0], [30.0]])
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(errors, 0.5 * errors**2, label="squared_error")
left.plot(errors, cost(0, errors), label="custom")
left.set(xlabel="demand - prediction, loaves", ylabel="loss of a row")
right.plot(temperature, demand, ".", color="lightgrey", markersize=4)
for name, model in models.items():
    right.plot(line[:, 0], model.predict(line), label=f"{name}: mean cost {costs[name]:.0f}")
right.set(xlabel="temperature, °C", ylabel="loaves")
right.legend()
plt.show()
