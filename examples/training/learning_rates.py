"""
Learning rates
==============

The learning rate of each update with every schedule, and the effect of the schedule on the same
training. `learning_rate` takes the name of a schedule, an instance, or any function of the update's
number.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.plotting import ScheduleDisplay
from skort.schedules import Adaptive, Constant, Cosine, InvScaling, Optimal, Warmup

X, y = load_diabetes(return_X_y=True, scaled=False)
n_epochs, batch_size = 60, 10
n_updates = n_epochs * -(-len(X) // batch_size)

# %%
# `ScheduleDisplay` draws the first rates. The rate of `Adaptive` falls only in `fit`, when the
# objective no longer does. `Optimal` depends only on the strength of the penalty, and begins so
# high that it gets its own axes.

eta0 = 0.1
schedules = {
    "Constant": Constant(eta0),
    "InvScaling": InvScaling(eta0, power_t=0.25),
    "Adaptive": Adaptive(eta0),
    "Cosine": Cosine(n_updates, eta0),
    "Warmup(Cosine)": Warmup(Cosine(n_updates, eta0), n_updates=300),
    "Warmup(lambda t: ...)": Warmup(lambda t: 0.05 if t < 1500 else 0.005, n_updates=300),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
display = ScheduleDisplay.from_schedule(schedules, n_updates, ax=left)
left.set(title=f"eta0={eta0}", yscale="linear")
optimal = {f"Optimal(alpha={alpha:g})": Optimal(alpha) for alpha in (1e-4, 1e-3, 1e-2)}
ScheduleDisplay.from_schedule(optimal, n_updates, ax=right)
right.set(title="Optimal", yscale="log")
plt.show()

# %%
# Batches of ten rows disagree about the best weights. At a constant rate the weights keep moving
# around them, and the loss stays above that of `LinearRegression`. With a falling rate they come
# closer.

best = 0.5 * np.mean((LinearRegression().fit(X, y).predict(X) - y) ** 2)
excess = {}
plt.figure(figsize=(6.4, 4), layout="constrained")
for name, schedule in schedules.items():
    model = OrtSGDRegressor(
        penalty=None,
        learning_rate=schedule,
        batch_size=batch_size,
        max_iter=n_epochs,
        random_state=0,
        tol=1e-3 if name == "Adaptive" else None,
        n_iter_no_change=3,
    ).fit(X, y)
    excess[name] = 0.5 * np.mean((model.predict(X) - y) ** 2) / best - 1
    plt.semilogy(np.array(model.loss_curve_) / best - 1, label=name)
    print(f"{name:<22} {model.n_iter_:3} epochs, loss {excess[name]:8.3%} above the smallest one")

plt.xlabel("epoch")
plt.ylabel("loss of the epoch / smallest one - 1")
plt.legend()
plt.show()
