"""Rounds: the steps of an epoch, made by groups of partitions on the workers, and the mean of their states."""

import dataclasses
from typing import Any

import numpy as np

from skort.dask.deals import Deal
from skort.dask.facts import PartFacts
from skort.dask.group import Common, Job, Leg, Means, averaged, exchanged, leg
from skort.dask.packed import Packed
from skort.estimators.stream import Stream
from skort.optim.progress import Progress

__all__ = ["Rounds", "without_velocity"]

# So many groups exchange by themselves what they made.
_FEW = 2
# Its place in a state: in checkpoints, too.
_VELOCITY = "velocity"


class Rounds:
    """
    A solver whose steps are made elsewhere.

    The loop asks for the steps of an epoch one by one, as of any solver; they are written down. At the end of the
    epoch all groups make theirs at the same time, each from the common state, which they exchange a few times.

    Parameters
    ----------
    stream : Stream
        With a solver of the same steps, which keeps the common state here.
    job : Job
    facts : PartFacts
        Of the partitions.
    """

    def __init__(self, stream: Stream, job: Job, facts: PartFacts):
        self._cluster, self._partitions = facts.cluster, facts.partitions
        self._solver, self._some_rows = stream.solver, job.batches(facts.some_rows, stream, 0)
        self._packed = Packed.of(facts.cluster.key("job"), job)
        self._momentum, self._first = job.momentum, job.first
        self._mean = _Mean(job.first)
        self._velocity: np.ndarray | None = None
        self._rates: list[float] = []
        self._last: Means | None = None
        self._deal: Deal | None = None
        self.batch: Any = self

    def begin(self, data: list[Any]) -> None:
        """Begin a training: the rows are on the workers."""

    def open(self, deal: Deal) -> None:
        """Begin to write down the steps of a round."""
        self._deal, self._rates = deal, []

    def step(self, eta: float, share: float) -> None:
        """Write down the learning rate of one update of every group."""
        self._rates.append(eta)

    def close(self) -> None:
        """Let all groups make the steps of the round."""
        assert self._deal is not None
        cluster, rates = self._cluster, np.array(self._rates)
        futures: list[Any] = []
        begin: Any = Common(self._solver.state(), self._velocity)
        ends = np.cumsum(self._deal.n_updates)
        for tasks, part in zip(self._deal.exchanges, np.split(rates, ends[:-1]), strict=True):
            legs = [
                cluster.submit(leg, self._packed, begin, part, task, [self._partitions[i] for i in task.partitions])
                for task in tasks
            ]
            # Few groups exchange by themselves, without another task to wait for.
            if len(legs) <= _FEW:
                begin = legs
                futures += legs
            else:
                begin = self._exchanged(legs)
                futures.append(begin)
        try:
            if isinstance(begin, list):
                made = exchanged(cluster.values(begin), self._momentum, self._first)
            else:
                made = cluster.value(begin)
        except BaseException:
            cluster.cancel(futures)
            raise
        self._solver.restore(made.state)
        self._velocity, self._last = made.velocity, made.so_far

    def _exchanged(self, legs):
        return self._cluster.submit(exchanged, self._cluster.few(self._mean, legs), self._momentum, self._first)

    def objective(self) -> float:
        """Return the objective on the last batches before their update; that of some rows before the first round."""
        return self._objective_of_some_rows() if self._last is None else self._last.last_objective

    def _objective_of_some_rows(self):
        batches, solver, state = self._some_rows, self._solver, self._solver.state()
        batch, n_filled = solver.batch, len(solver.batch)
        numbers = np.resize(np.arange(batches.n_rows), n_filled)
        batch.begin(batches.data)
        for fill in batch.fillers(batches.data):
            fill(numbers)
        batch.sample_weight[:, 0] = batches.sample_weight[numbers] / n_filled
        solver.step(0.0, 1.0)
        objective = solver.objective()
        solver.restore(state)
        return objective

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over the rows of the last round."""
        return (0.0, 0.0) if self._last is None else (self._last.objective, self._last.loss)

    def gradient_norm(self) -> float:
        """Return the norm of the gradient of the last batch of a group, the mean over groups."""
        return 0.0 if self._last is None else self._last.gradient_norm

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        return all(bool(np.isfinite(array).all()) for array in self.weights().values())

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the common weights, by name."""
        return self._solver.weights()

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of the common state, and of the velocity of its weights after the first exchange."""
        state = self._solver.state()
        return state if self._velocity is None else state | {_VELOCITY: self._velocity.copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned, or that of a solver of the same steps."""
        self._solver.restore(_of_solver(state))
        self._last, self._velocity = None, state.get(_VELOCITY)


def without_velocity(progress: Progress) -> Progress:
    """Return a progress that a solver in this process goes on from."""
    states = {name: getattr(progress, name) for name in ("solver", "best")}
    changed = {name: _of_solver(state) for name, state in states.items() if state is not None}
    return dataclasses.replace(progress, **changed)


def _of_solver(state):
    return {name: array for name, array in state.items() if name != _VELOCITY}


class _Mean:
    """`averaged` with the first update whose weights count."""

    __name__ = "mean"

    def __init__(self, first: int):
        self._first = first

    def __call__(self, legs: list[Leg]) -> Leg:
        return averaged(legs, self._first)
