"""Pictures of optimizers and learning rates, from the objects themselves."""

import numpy as np
from figures.drawing import COLORS, panels

from skort.optimizers import SGD, Adam, Momentum, Nesterov
from skort.schedules import Constant, Cosine, Cyclic, InvScaling, Warmup

_CURVATURES = np.array([0.04, 1.0])
_START = np.array([-4.0, 1.5])
_SHOWN = [(SGD(), 0.9), (Momentum(), 0.2), (Nesterov(), 0.2), (Adam(), 0.2)]


def _path(optimizer, eta, n_updates):
    weights, scratch = _START.copy(), np.empty(2)
    state = optimizer.start(2, 0, weights.dtype)
    path = [weights.copy()]
    for _ in range(n_updates):
        optimizer.update(weights, _CURVATURES * weights, eta, state, scratch)
        path.append(weights.copy())
    return np.array(path)


def valley():
    """Draw the paths of all optimizers through a long valley, and how fast they descend."""
    way, descent = panels("the first 30 updates", "objective", height=3.2)
    a, b = np.meshgrid(np.linspace(-4.5, 2, 200), np.linspace(-2, 2, 200))
    way.contour(
        a,
        b,
        (_CURVATURES[0] * a**2 + _CURVATURES[1] * b**2) / 2,
        levels=12,
        colors="#cccccc",
        linewidths=0.8,
    )
    for color, (optimizer, eta) in zip(COLORS, _SHOWN, strict=False):
        path = _path(optimizer, eta, 100)
        way.plot(*path[:31].T, ".-", markersize=4, linewidth=1, color=color)
        descent.semilogy(
            (_CURVATURES * path**2).sum(axis=1) / 2, color=color, label=f"{optimizer}, eta={eta}"
        )
    way.set(xlabel="first weight", ylabel="second weight")
    descent.set_xlabel("updates")
    descent.legend(fontsize="small", frameon=False)


def schedules():
    """Draw the first thousand learning rates of each schedule."""
    left, right = panels("fixed by the update's number", "with a warm-up", height=2.8)
    updates = np.arange(1, 1001)
    for label, schedule in {
        "Constant()": Constant(),
        "InvScaling()": InvScaling(),
        "InvScaling(power_t=0.5)": InvScaling(power_t=0.5),
        "Cosine(n_updates=1000)": Cosine(n_updates=1000),
        "Cyclic(400, eta0=0.002, eta1=0.006)": Cyclic(400, eta0=0.002, eta1=0.006),
    }.items():
        left.plot(updates, schedule.simulate(1000), label=label)
    for label, schedule in {
        "Warmup(Constant())": Warmup(Constant()),
        "Warmup(Cosine())": Warmup(Cosine(n_updates=1000)),
        "Warmup(InvScaling(), n_updates=300)": Warmup(InvScaling(), n_updates=300),
    }.items():
        right.plot(updates, schedule.simulate(1000), label=label)
    for axis in (left, right):
        axis.set(xlabel="update", ylim=(0, 0.0165))
        axis.legend(fontsize="x-small", frameon=False, loc="upper right")
    left.set_ylabel("learning rate")
