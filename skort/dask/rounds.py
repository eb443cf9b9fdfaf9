"""Rounds: the steps of an epoch, made by groups of partitions on the workers, and the mean of their states."""

from typing import Any

import numpy as np

from skort.dask.deals import Deal
from skort.dask.facts import PartFacts
from skort.dask.group import Job, Leg, averaged, leg
from skort.dask.packed import Packed
from skort.estimators.stream import Stream

__all__ = ["Rounds"]


class Rounds:
    """
    A solver whose steps are made elsewhere.

    The loop asks for the steps of an epoch one by one, as of any solver; they are written down. At the end of the
    epoch all groups make theirs at the same time, each from the common state, and the mean of what they have made is
    the next common state.

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
        self._first = int(job.settings.update.average)
        self._rates: list[float] = []
        self._last: Leg | None = None
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
        cluster, rates, state = self._cluster, np.array(self._rates), self._solver.state()
        futures, ends = [], []
        for tasks in self._deal.groups:
            before: Any = state
            for numbers, seed in tasks:
                parts = [self._partitions[number] for number in numbers]
                before = cluster.submit(leg, self._packed, before, rates, seed, parts)
                futures.append(before)
            ends.append(before)
        end = cluster.merged(_Mean(self._first), ends)
        try:
            made = cluster.value(end)
        except BaseException:
            cluster.cancel([*futures, end])
            raise
        # The mean is computed in float64.
        self._solver.restore({name: array.astype(state[name].dtype) for name, array in made.state.items()})
        self._last = made

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

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the common weights, by name."""
        return self._solver.weights()

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of the common state."""
        return self._solver.state()

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned."""
        self._solver.restore(state)
        self._last = None


class _Mean:
    """`averaged` with the first update whose weights count."""

    __name__ = "mean"

    def __init__(self, first: int):
        self._first = first

    def __call__(self, legs: list[Leg]) -> Leg:
        return averaged(legs, self._first)
