"""
Learning rates
==============

The learning rate of each update with every schedule, and the effect of the schedule on the same training.
`learning_rate` takes the name of a schedule, an instance, or any function of the update's number.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression

from skort import OrtSGDRegressor
from skort.schedules import Adaptive, Constant, Cosine, InvScaling, Optimal, Warmup

X, y = load_diabetes(return_X_y=True, scaled=False)
n_epochs, batch_size = 60, 10
n_updates = n_epochs * -(-len(X) // batch_size)

# %%
# `simulate` returns the first rates. The rate of `Adaptive` falls only in `fit`, when the objective no longer does.
# `Optimal` depends only on the strength of the penalty, and begins so high that it gets its own axes.

eta0 = 0.1
schedules = {
    "Constant": Constant(eta0),
    "InvScaling": InvScaling(eta0, power_t=0.25),
    "Adaptive": Adaptive(eta0),
    "Cosine": Cosine(n_updates, eta0),
    "Warmup(Cosine)": Warmup(Cosine(n_updates, eta0), n_updates=300),
    "Warmup(lambda t: ...)": Warmup(lambda t: 0.05 if t < 1500 else 0.005, n_updates=300),
}
rates = {name: schedule.simulate(n_updates) for name, schedule in schedules.items()}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, eta in rates.items():
    left.plot(range(1, n_updates + 1), eta, label=name, linestyle="--" if name == "Adaptive" else "-")
left.set(xlabel="update", ylabel="learning rate", title=f"eta0={eta0}", ylim=(0, None))
left.legend(fontsize="small")
for alpha in (1e-4, 1e-3, 1e-2):
    right.plot(range(1, n_updates + 1), Optimal(alpha).simulate(n_updates), label=f"Optimal(alpha={alpha:g})")
right.set(xlabel="update", title="Optimal", yscale="log")
right.legend(fontsize="small")

# %%
# Batches of ten rows disagree about the best weights. At a constant rate the weights keep moving around them, and the
# loss stays above that of `LinearRegression`. With a falling rate they come closer.

best = 0.5 * np.mean((LinearRegression().fit(X, y).predict(X) - y) ** 2)
excess = {}
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for name, schedule in schedules.items():
    model = OrtSGDRegressor(
        penalty=None, learning_rate=schedule, batch_size=batch_size, max_iter=n_epochs, random_state=0,
        tol=1e-4 if name == "Adaptive" else None,
    ).fit(X, y)  # fmt: skip
    excess[name] = 0.5 * np.mean((model.predict(X) - y) ** 2) / best - 1
    curve = np.array(model.loss_curve_) / best - 1
    axes.plot(range(1, len(curve) + 1), curve, label=name, linestyle="--" if name == "Adaptive" else "-")
    print(f"{name:<22} {model.n_iter_:3} epochs, loss {excess[name]:8.3%} above the smallest one")
axes.set(xlabel="epoch", ylabel="loss of the epoch / smallest one - 1", yscale="log")
axes.legend(fontsize="small")

plt.show()
