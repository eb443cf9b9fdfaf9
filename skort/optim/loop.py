"""The loop over epochs: steps, callbacks, divergence, interruption."""

import math
import time
from dataclasses import dataclass

import numpy as np

from skort.exceptions import DivergedError
from skort.optim.callbacks import CallbackError, Hooks
from skort.optim.progress import TrainState
from skort.optim.training import Training

__all__ = ["Outcome", "give_reason", "minimise", "write_epoch"]

# A loss that is so many times that of the first epoch, or 1, overflows in float32; float64 is to say the same.
_FAR = 1e38


@dataclass(frozen=True, eq=False)
class Outcome:
    """
    The result of `minimise`.

    Parameters
    ----------
    weights : dict of str to ndarray
        The trained weights.
    progress : TrainState
        Everything that another training goes on from.
    error : BaseException or None
        A `KeyboardInterrupt`, or the error of a callback, that ended the training early.
    no_better : bool, default=False
        Whether the training ended at a larger objective than that of its initial weights.
    first_eta : float or None, default=None
        Learning rate of the first update; None where there was none.
    """

    weights: dict[str, np.ndarray]
    progress: TrainState
    error: BaseException | None
    no_better: bool = False
    first_eta: float | None = None


def minimise(training: Training) -> Outcome:
    """
    Repeat a solver's step until a callback stops it or `max_iter` epochs are done.

    Parameters
    ----------
    training : Training

    Returns
    -------
    outcome : Outcome
        If a `KeyboardInterrupt` or a callback's error ended the training, that after the last whole epoch.

    Raises
    ------
    DivergedError
        If the mean objective of an epoch, or a weight at its end, is not finite, and no restart is left.
    ValueError
        If the schedule does not return a learning rate.
    BaseException
        A `KeyboardInterrupt` or the error of a callback before the end of the first epoch.
    """
    hooks = Hooks(training)
    error = None
    try:
        error = _run(training, hooks)
        if error is not None and not training.go_back():
            raise error
        give_reason(training, error)
    finally:
        end_error = hooks.end()
    training.take_best()
    training.history.truncate(training.n_epochs)
    return Outcome(training.weights(), training.progress(), error or end_error, training.no_better, training.first_eta)


def give_reason(training: Training, error: BaseException | None = None) -> None:
    """
    Write down why a training is over.

    Parameters
    ----------
    training : Training
    error : BaseException or None, default=None
        What ended it early.
    """
    if isinstance(error, KeyboardInterrupt):
        training.stopping_reason = "The user interrupted the training."
    elif error is not None:
        training.stopping_reason = f"A callback raised {type(error).__name__}."
    elif not training.stopped and training.max_iter is not None:
        training.stopping_reason = f"The training reached max_iter={training.max_iter} epochs."


def _run(training, hooks):
    """Make all epochs; return the error that ended them early, or None."""
    try:
        training.solver.batch.begin(training.batches.data)
        hooks.begin()
        while not _make_epochs(training, hooks):
            hooks.call(hooks.each("on_train_restart"))
    except KeyboardInterrupt as interrupt:
        return interrupt
    except CallbackError as error:
        return error.__cause__
    return None


def _make_epochs(training, hooks):
    """Make all epochs; return whether that is the end, or the training goes back to its start."""
    on_epoch_end, on_batch_end = hooks.each("on_epoch_end"), hooks.each("on_batch_end")
    one_more, max_iter = training.n_epochs + 1, training.max_iter
    # Even if a callback stops it at the beginning, a fit has at least one epoch and a `partial_fit` makes its own.
    least, most = (one_more, one_more) if max_iter is None else (1, max_iter)
    try:
        while training.n_epochs < least or (training.n_epochs < most and not training.stopped):
            _make_epoch(training, hooks, on_batch_end)
            training.end_epoch()
            hooks.call(on_epoch_end)
    except DivergedError:
        if not training.restart():
            raise
        return False
    training.no_better = training.is_no_better()
    return not (training.no_better and training.restart())


def _make_epoch(training, hooks, on_batch_end):
    """Make the updates of one epoch and add its row to the history."""
    begin = time.perf_counter()
    # A diverging training overflows: the error below reports it, numpy's warnings need not.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        _make_steps(training, hooks, on_batch_end)
        write_epoch(training, begin)


def write_epoch(training: Training, begin: float, part: float = 1.0) -> None:
    """
    Add the row of an epoch, whose updates are made, to the history.

    Parameters
    ----------
    training : Training
    begin : float
        When the epoch began, by `time.perf_counter`.
    part : float, default=1.0
        The part of the time since then that is that of this training.

    Raises
    ------
    DivergedError
        If the mean objective of the epoch, or a weight at its end, is not finite.
    """
    objective, loss = training.means()
    if not math.isfinite(objective):
        raise _diverged("loss became infinite or NaN", training)
    first = next(iter(training.history.get("objective", ())), objective)
    if objective > _FAR * max(abs(first), 1.0):
        raise _diverged(f"loss grew from {first:.3g} to {objective:.3g}", training)
    if not training.solver.is_finite():
        raise _diverged("weights became infinite or NaN", training)
    gradient_norm = training.solver.gradient_norm()
    training.history.next_epoch(
        loss=loss,
        objective=objective,
        eta=training.eta,
        gradient_norm=gradient_norm,
        seconds=part * (time.perf_counter() - begin),
        **({"restarts": training.n_restarts} if training.n_restarts else {}),
    )


def _make_steps(training, hooks, on_batch_end):
    """Make the updates of one epoch."""
    step, rate, t = training.solver.step, training.rate, training.n_updates
    for share in training.batches.epoch(training.solver.batch):
        t += 1
        eta = rate(t)
        step(eta, share)
        if t == 1:
            training.first_eta, training.first_objective = eta, training.batch_objective()
        if on_batch_end:
            training.n_updates, training.eta, training.objective = t, eta, training.batch_objective()
            if not math.isfinite(training.objective):
                raise _diverged("loss became infinite or NaN", training)
            hooks.call(on_batch_end)
    training.n_updates, training.eta, training.objective = t, eta, training.batch_objective()


def _diverged(what, training):
    return DivergedError(
        f"Training diverged: the {what} in epoch {training.n_epochs + 1}, at a learning rate of {training.eta:.3g}."
    )
