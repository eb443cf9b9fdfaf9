"""The loop over epochs of several trainings whose steps are made together."""

import time
from typing import Protocol

import numpy as np

from skort.exceptions import DivergedError
from skort.optim.batches import Batch, Batches
from skort.optim.callbacks import Hooks
from skort.optim.loop import Outcome, give_reason, write_epoch
from skort.optim.schedules import is_steady
from skort.optim.training import Training, TrainStep

__all__ = ["JointStepper", "minimise_together"]


class JointStepper(Protocol):
    """The methods of a solver of several trainings that the loop needs."""

    #: The place from which the next step of all trainings reads its rows.
    batch: Batch

    def rates(self, etas: dict[int, float]) -> None:
        """Set the learning rates of the next steps, by the numbers of the trainings."""

    def step(self, share: float) -> None:
        """Make one update of each training on the batch; see `TrainStep.step`."""

    def keep(self, numbers: list[int]) -> None:
        """Let the next steps be those of some of the trainings alone."""

    def alone(self, number: int) -> TrainStep:
        """Return a solver of one training alone, as before its first update."""


def minimise_together(trainings: list[Training], solver: JointStepper, batches: Batches) -> list[Outcome | None]:
    """
    Repeat the steps of several trainings, each until it is over.

    Parameters
    ----------
    trainings : list of Training
        At their first update, each with its part of the solver. None of their callbacks has an `on_batch_end`.
    solver : JointStepper
    batches : Batches
        Of all trainings.

    Returns
    -------
    outcomes : list of Outcome or None
        What `minimise` returns for each training. None where it diverged, or ended no better than it began: such a
        training may have to begin again at a lower learning rate, which `minimise` does.
    """
    outcomes: list[Outcome | None] = [None] * len(trainings)
    hooks = [Hooks(training) for training in trainings]
    solver.batch.begin(batches.data)
    for hook in hooks:
        hook.begin()
    on_epoch_end = [hook.each("on_epoch_end") for hook in hooks]
    active = list(range(len(trainings)))
    while active:
        begin, left = time.perf_counter(), []
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            _make_steps({number: trainings[number] for number in active}, solver, batches)
            for number in active:
                training = trainings[number]
                try:
                    write_epoch(training, begin, 1 / len(active))
                except DivergedError:
                    continue
                hooks[number].call(on_epoch_end[number])
                if training.n_epochs < (training.max_iter or 1) and not training.stopped:
                    left.append(number)
                else:
                    outcomes[number] = _outcome(training, solver.alone, number)
        solver.keep(left)
        active = left
    for hook in hooks:
        hook.end()
    return outcomes


def _make_steps(trainings, solver, batches):
    """Make the updates of one epoch of some trainings, by their numbers."""
    # Each has made all the updates of the others: one that begins again leaves them.
    t = next(iter(trainings.values())).n_updates
    are_steady = all(is_steady(training.schedule) for training in trainings.values())
    etas: dict[int, float] = {}
    for share in batches.epoch(solver.batch):
        t += 1
        if not (etas and are_steady):
            etas = {number: training.rate(t) for number, training in trainings.items()}
            solver.rates(etas)
        solver.step(share)
        if t == 1:
            for number, training in trainings.items():
                training.first_eta, training.first_objective = etas[number], training.batch_objective()
    for number, training in trainings.items():
        training.n_updates, training.eta, training.objective = t, etas[number], training.batch_objective()


def _outcome(training, alone, number):
    """Return the outcome of a training that is over; None where it ended no better than it began."""
    training.end_epoch()
    give_reason(training)
    weights, progress = training.weights(), training.progress()
    if training.seems_no_better():
        training.solver = alone(number)
        if training.is_no_better():
            return None
    return Outcome(weights, progress, None, False, training.first_eta)
