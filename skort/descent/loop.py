"""The loop over epochs: steps, stopping, divergence."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skort.descent.batches import Batch

__all__ = ["Descent", "Stepper", "minimise"]


class Stepper(Protocol):
    """What the loop needs of a solver."""

    #: The arrays that the next step reads.
    batch: Batch

    def step(self, eta: float) -> float:
        """Make one update with learning rate `eta`; return the objective on the batch before it."""

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""


@dataclass(frozen=True)
class Descent:
    """
    What came out of `minimise`.

    Parameters
    ----------
    weights : dict of str to ndarray
        The trained weights.
    loss_curve : list of float
        The mean objective over each epoch.
    n_updates : int
    converged : bool
        False where `max_iter` ended the loop although `tol` was given.
    """

    weights: dict[str, np.ndarray]
    loss_curve: list[float]
    n_updates: int
    converged: bool


def minimise(solver, batches, schedule, *, max_iter, tol, n_iter_no_change, on_epoch_end=None):
    """
    Repeat a solver's step until the objective no longer falls.

    Parameters
    ----------
    solver : Stepper
    batches : Batches
    schedule : callable
        Number of the update, from 1 -> learning rate. Where it has a method `on_bad_epochs`, the loop goes on as long
        as that returns True.
    max_iter : int
        Largest number of epochs.
    tol : float or None
        The loop ends where the objective was above its best value minus `tol` for `n_iter_no_change` epochs in a row,
        as in `sklearn.linear_model.SGDRegressor` since scikit-learn 1.8. None: after `max_iter` epochs.
    n_iter_no_change : int
    on_epoch_end : callable, default=None
        Called with the objective of each epoch.

    Returns
    -------
    descent : Descent

    Raises
    ------
    ValueError
        Where the objective of a batch, or a weight at the end of an epoch, is not finite.
    """
    t = 0
    loss_curve = []
    best, n_bad = math.inf, 0
    lower_rate = getattr(schedule, "on_bad_epochs", bool)
    # Without tol no epoch is bad.
    converged, tol = tol is None, -math.inf if tol is None else tol
    # A diverging descent overflows; that is reported by the error below, not by numpy's warnings.
    with np.errstate(over="ignore", invalid="ignore"):
        for epoch in range(1, max_iter + 1):
            mean = 0.0
            for share in batches.epoch(solver.batch):
                t += 1
                # A Python float: numpy's would make float64 arithmetic of float32 weights.
                eta = float(schedule(t))
                objective = solver.step(eta)
                if not math.isfinite(objective):
                    raise _diverged("loss", epoch, eta)
                mean += share * objective
            weights = solver.weights()
            if not all(np.isfinite(w).all() for w in weights.values()):
                raise _diverged("weights", epoch, eta)
            loss_curve.append(mean)
            if on_epoch_end is not None:
                on_epoch_end(mean)
            n_bad = n_bad + 1 if mean > best - tol else 0
            best = min(best, mean)
            if n_bad >= n_iter_no_change:
                converged = not lower_rate()
                if converged:
                    break
                n_bad = 0
    return Descent(weights, loss_curve, t, converged)


def _diverged(what, epoch, eta):
    return ValueError(
        f"Training diverged: the {what} became infinite or NaN in epoch {epoch}, at a learning rate of {eta:.3g}. "
        "Scale the data, for instance with StandardScaler, or lower eta0."
    )
