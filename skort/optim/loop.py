"""The loop over epochs: steps, callbacks, divergence, interruption."""

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.exceptions import DivergedError
from skort.optim.batches import Batches
from skort.optim.callbacks import CallbackError, Hooks
from skort.optim.optimizers import optimizer_tags
from skort.optim.schedules import has_ended, is_steady
from skort.optim.state import TrainState
from skort.optim.training import Finished, Training

# A loss overflows in float32 if it is so many times the first epoch's loss, or 1. In float64 it is
# as bad.
_FAR = 1e38
#: The stopping reason after a `KeyboardInterrupt`.
INTERRUPTED = "The user interrupted the training."


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of `minimise`."""

    #: The trained weights.
    weights: dict[str, np.ndarray]
    #: Everything that another training can continue from.
    state: TrainState
    #: The `KeyboardInterrupt`, or the error of a callback, that ended the training early.
    error: BaseException | None
    #: Whether the training ended above the objective of its initial weights, or no better than a
    #: constant.
    no_better: bool = False
    #: The learning rate of the first update. None: there was no update.
    first_eta: float | None = None
    #: Whether it ended with the fitted weights that it began with.
    went_back: bool = False
    #: The weights that it ended with: see `Training.kept`.
    kept: str | None = None
    #: The lower objective over all rows with which it ended. None: none was searched or found.
    found: Finished | None = None


def minimise(training: Training) -> Outcome:
    """Repeat a step until a callback stops it or `max_iter` epochs are made."""
    hooks = Hooks(training)
    error = None
    try:
        error = _run(training, hooks)
        if error is not None and not training.go_back():
            raise error

        _give_reason(training, error)
        # This comes first: callbacks then see the model of the end.
        training.take_best()
    finally:
        end_error = hooks.end()

    training.history.truncate(training.n_epochs)
    return Outcome(
        weights=training.weights(),
        state=training.state(),
        error=error or end_error,
        no_better=training.no_better,
        first_eta=training.first_eta,
        went_back=training.went_back,
        kept=training.kept,
        found=training.found,
    )


def _give_reason(training: Training, error: BaseException | None = None) -> None:
    """Note why a training has ended."""
    if isinstance(error, KeyboardInterrupt):
        training.stopping_reason = INTERRUPTED
    elif error is not None:
        training.stopping_reason = f"A callback raised {type(error).__name__}."
    elif not training.stopped and has_ended(training.schedule, training.n_updates):
        training.stopping_reason = (
            f"The learning rate reached zero after {training.n_epochs} epochs, as planned."
        )
    elif not (training.stopped or training.finishes) and training.max_iter is not None:
        training.stopping_reason = f"The training reached max_iter={training.max_iter} epochs."


def _run(training, hooks):
    """Make all epochs. Return the error that ended them early, or None."""
    try:
        training.step.batch.begin(training.batches.data)
        hooks.begin()
        while not _make_epochs(training, hooks):
            hooks.call(hooks.each("on_train_restart"))
    except KeyboardInterrupt as interrupt:
        return interrupt
    except CallbackError as error:
        return error.__cause__

    return None


def _make_epochs(training, hooks):
    """Make all epochs. Return whether they end the training; otherwise it begins again."""
    on_epoch_end = hooks.each("on_epoch_end")
    on_batch_end = hooks.each("on_batch_end")
    if optimizer_tags(training.optimizer).is_full:
        # As below, but once: it takes as long as some operations on few weights.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            _make_iterations(training, hooks, on_batch_end, on_epoch_end)
        return True

    # A fit has at least one epoch, and a `partial_fit` its own, even if a callback stops it at the
    # beginning.
    if training.max_iter is None:
        least = most = training.n_epochs + 1
    else:
        least = 1
        most = training.max_iter

    try:
        while training.n_epochs < least or _goes_on(training, most):
            begin = time.perf_counter()
            if training.finishes:
                _finish(training, hooks, begin, on_epoch_end)
                break

            # A diverging training overflows. The error of `_write_epoch` says so, and numpy need
            # not warn.
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                _make_steps(training, hooks, on_batch_end)
                _write_epoch(training, begin)

            training.end_epoch()
            hooks.call(on_epoch_end)
    except DivergedError:
        if not training.restart():
            raise
        return False

    if not training.ends_above_start():
        training.no_better = training.ends_as_a_constant()
        return True
    if training.restart():
        return False

    training.no_better = True
    training.go_back_to_fitted()
    return True


def _goes_on(training, most):
    """Return whether a training that may make so many epochs makes one more."""
    is_over = training.stopped or has_ended(training.schedule, training.n_updates)
    return training.n_epochs < most and not is_over


def _finish(training, hooks, begin, on_epoch_end):
    """End a training at a lower objective over all rows, if there is one. It is one more epoch."""
    found = training.finish()
    if found is not None:
        _write_epoch(training, begin, found=found)
        training.end_epoch()
        hooks.call(on_epoch_end)


def _make_iterations(training, hooks, on_batch_end, on_epoch_end):
    """Let an optimizer make its updates itself. Each is an epoch."""
    begin = time.perf_counter()

    def after():
        nonlocal begin
        n_updates = training.n_updates + 1
        training.note_update(n_updates, training.rate(n_updates))
        hooks.call(on_batch_end)
        _write_epoch(training, begin)
        training.end_epoch()
        hooks.call(on_epoch_end)
        begin = time.perf_counter()

        return training.stopped

    n_epochs = training.n_epochs
    n_left = training.max_iter - n_epochs
    if n_epochs and (training.stopped or n_left <= 0):
        return

    full: Any = training.step
    if training.first_objective is None:
        full.begin()
        training.note_first_update(training.rate(1))
    reason = full.minimise(n_left, after)

    if not training.n_epochs:
        # The first weights were the best ones, but a fit has at least one epoch.
        after()

    if reason is not None and not training.stopped:
        training.stop(reason)


def _write_epoch(
    training: Training, begin: float, part: float = 1.0, found: Finished | None = None
) -> None:
    """Add an epoch to the history after its updates."""
    objective, loss = training.means() if found is None else training.means_of(found)
    if not math.isfinite(objective):
        raise _diverged("loss became infinite or NaN", training)

    first = next(iter(training.history.get("objective", ())), objective)
    if objective > _FAR * max(abs(first), 1.0):
        raise _diverged(f"loss grew from {first:.3g} to {objective:.3g}", training)
    if not training.step.is_finite():
        raise _diverged("weights became infinite or NaN", training)

    gradient_norm = training.step.gradient_norm() if found is None else found.gradient_norm
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
    step = training.step.step
    rate = training.rate
    t = training.n_updates

    # If nothing changes the rate within the epoch, it is asked for once. A callback may change it.
    falls = training.falls_by_rows
    is_same = is_steady(training.schedule) and not (on_batch_end or falls)
    eta = None
    for share, part in training.batches.epoch(training.step.batch):
        t += 1
        if eta is None or not is_same:
            eta = rate(t)
        step(eta * part, share)
        if t == 1:
            training.note_first_update(eta)
        if falls:
            training.note_rows(share)
        if on_batch_end:
            training.note_update(t, eta)
            if not math.isfinite(training.objective):
                raise _diverged("loss became infinite or NaN", training)
            hooks.call(on_batch_end)

    training.note_update(t, eta)


def _diverged(what, training):
    return DivergedError(
        f"Training diverged: the {what} in epoch {training.n_epochs + 1}, at a learning rate of "
        f"{training.eta:.3g}."
    )


def minimise_together(
    trainings: list[Training], step: Any, batches: Batches
) -> list[Outcome | None]:
    """Repeat the common step of several trainings, their `JointStep`, until each has ended."""
    outcomes: list[Outcome | None] = [None] * len(trainings)
    hooks = [Hooks(training) for training in trainings]
    step.batch.begin(batches.data)
    for hook in hooks:
        hook.begin()
    on_epoch_end = [hook.each("on_epoch_end") for hook in hooks]

    active = list(range(len(trainings)))
    while active:
        begin = time.perf_counter()
        left = []
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            _make_joint_steps({number: trainings[number] for number in active}, step, batches)
            for number in active:
                training = trainings[number]
                try:
                    _write_epoch(training, begin, 1 / len(active))
                except DivergedError:
                    # It has no outcome, and drops out.
                    continue

                hooks[number].call(on_epoch_end[number])
                if training.finishes:
                    training.end_epoch()
                    _finish(training, hooks[number], begin, on_epoch_end[number])
                    outcomes[number] = _joint_outcome(training, step.alone, number)
                elif _goes_on(training, training.max_iter or 1):
                    left.append(number)
                else:
                    outcomes[number] = _joint_outcome(training, step.alone, number)

        step.keep(left)
        active = left

    for hook in hooks:
        hook.end()
    return outcomes


def _make_joint_steps(trainings, step, batches):
    """Make the updates of one epoch of some trainings, by number."""
    # All have made the same number of updates: a training that begins again drops out.
    t = next(iter(trainings.values())).n_updates
    are_steady = all(is_steady(training.schedule) for training in trainings.values())
    etas: dict[int, float] = {}

    set_part = None
    for share, part in batches.epoch(step.batch):
        t += 1
        if not (etas and are_steady and part == set_part):
            etas = {number: training.rate(t) for number, training in trainings.items()}
            step.rates({number: eta * part for number, eta in etas.items()})
            set_part = part

        step.step(share)
        if t == 1:
            for number, training in trainings.items():
                training.note_first_update(etas[number])

    for number, training in trainings.items():
        training.note_update(t, etas[number])


def _joint_outcome(training, alone, number):
    """
    Return the outcome of a training that has ended. None: it is no better than at its beginning, or
    no better than a constant.
    """
    training.end_epoch()
    _give_reason(training)
    if training.ends_as_a_constant():
        return None
    # A lane makes no steps of its own. A separate step makes them for its weights.
    if training.seems_no_better() and training.ends_above_start(alone(number)):
        return None

    training.take_best()
    return Outcome(
        training.weights(),
        training.state(),
        error=None,
        first_eta=training.first_eta,
        kept=training.kept,
    )
