"""The loop over epochs: steps, callbacks, divergence, interruption."""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.descent.callbacks import CallbackError, Hooks
from skort.descent.history import History
from skort.descent.schedules import rate

__all__ = ["Descent", "minimise"]


@dataclass(frozen=True)
class Descent:
    """
    What came out of `minimise`.

    Parameters
    ----------
    weights : dict of str to ndarray
        The trained weights.
    solver_state : dict of str to ndarray
        What the solver goes on from.
    random_state : numpy.random.RandomState
        What the order of the rows goes on from.
    history : History
    n_updates : int
    n_falls : int
        How often the learning rate fell for want of improvement.
    stopped : bool
        Whether a callback ended it.
    error : BaseException or None
        What ended it early: a `KeyboardInterrupt`, or the error of a callback.
    """

    weights: dict[str, np.ndarray]
    solver_state: dict[str, np.ndarray]
    random_state: Any
    history: History
    n_updates: int
    n_falls: int
    stopped: bool
    error: BaseException | None


def minimise(training):
    """
    Repeat a solver's step until a callback stops it or `max_iter` epochs are done.

    Parameters
    ----------
    training : Training

    Returns
    -------
    descent : Descent
        Where a `KeyboardInterrupt` or a callback's error ended the training: as it was after the last whole epoch.

    Raises
    ------
    ValueError
        Where the objective of a batch, or a weight at the end of an epoch, is not finite, and where the schedule gives
        no learning rate.
    BaseException
        A `KeyboardInterrupt` or the error of a callback, before there was a whole epoch.
    """
    hooks = Hooks(training)
    error = None
    try:
        error = _run(training, hooks)
        if error is not None and not training.go_back():
            raise error
    except BaseException:
        training.rewind_order()
        raise
    finally:
        end_error = hooks.end()
    error = error or end_error
    training.take_best()
    training.history.truncate(training.n_epochs)
    return Descent(
        weights=training.weights(),
        solver_state=training.solver.state(),
        random_state=training.batches.random_state,
        history=training.history,
        n_updates=training.n_updates,
        n_falls=training.n_falls,
        stopped=training.stopped,
        error=error,
    )


def _run(training, hooks):
    """Make all epochs; return what ended them early, or None."""
    try:
        hooks.begin()
        on_epoch_end, on_batch_end = hooks.each("on_epoch_end"), hooks.each("on_batch_end")
        one_more, max_iter = training.n_epochs + 1, training.max_iter
        # A fit has an epoch to keep, and a `partial_fit` makes its own, whatever stops the training before.
        least, most = (one_more, one_more) if max_iter is None else (1, max_iter)
        while training.n_epochs < least or (training.n_epochs < most and not training.stopped):
            _make_epoch(training, hooks, on_batch_end)
            training.end_epoch()
            hooks.call(on_epoch_end)
    except KeyboardInterrupt as interrupt:
        return interrupt
    except CallbackError as error:
        return error.__cause__
    return None


def _make_epoch(training, hooks, on_batch_end):
    """Make the updates of one epoch and write it down."""
    solver = training.solver
    begin = time.perf_counter()
    # A diverging descent overflows; that is reported by the error below, not by numpy's warnings.
    with np.errstate(over="ignore", invalid="ignore"):
        if hasattr(solver, "launch") and not on_batch_end:
            mean, loss = _launch_steps(training)
        else:
            mean, loss = _make_steps(training, hooks, on_batch_end)
        if not all(np.isfinite(w).all() for w in solver.weights().values()):
            raise _diverged("weights", training, training.eta)
        gradient_norm = solver.gradient_norm()
    training.history.next_epoch(
        loss=loss, objective=mean, eta=training.eta, gradient_norm=gradient_norm, seconds=time.perf_counter() - begin
    )


def _make_steps(training, hooks, on_batch_end):
    """Make the updates of one epoch; return the means of the objective and of the loss."""
    solver, schedule, t = training.solver, training.schedule, training.n_updates
    mean = loss = 0.0
    for share in training.batches.epoch(solver.batch):
        t += 1
        eta = rate(schedule, t)
        objective = solver.step(eta)
        if not math.isfinite(objective):
            raise _diverged("loss", training, eta)
        mean += share * objective
        loss += share * solver.loss()
        if on_batch_end:
            training.n_updates, training.eta, training.objective = t, eta, objective
            hooks.call(on_batch_end)
    training.n_updates, training.eta, training.objective = t, eta, objective
    return mean, loss


def _launch_steps(training):
    """Do the same with a `RemoteStepper`, whose results are read at the end of the epoch."""
    solver, schedule, t = training.solver, training.schedule, training.n_updates
    for share in training.batches.epoch(solver.batch):
        t += 1
        eta = rate(schedule, t)
        solver.launch(eta, share)
    mean, loss = solver.means()
    if not math.isfinite(mean):
        raise _diverged("loss", training, eta)
    training.n_updates, training.eta, training.objective = t, eta, solver.objective()
    return mean, loss


def _diverged(what, training, eta):
    return ValueError(
        f"Training diverged: the {what} became infinite or NaN in epoch {training.n_epochs + 1}, at a learning rate of "
        f"{eta:.3g}. Scale the data, for instance with StandardScaler, or lower eta0."
    )
