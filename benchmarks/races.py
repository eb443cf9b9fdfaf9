"""What a race is, and what it ends with."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.jax_process import COMPILED, COUNTED
from benchmarks.timing import in_turn

__all__ = ["ALL_CORES", "LOSS_TOLERANCE", "ONE_THREAD", "OURS", "Outcome", "Race", "run"]

#: The names of skort among the contenders: its solvers, or "skort" where there is no choice.
OURS = ["session", "agent", "graph", "skort"]

#: A time counts if the loss at the end is worse by at most this part.
LOSS_TOLERANCE = 0.02

ONE_THREAD, ALL_CORES = "One thread", "All cores"


@dataclass(frozen=True)
class Race:
    """
    Contenders that do the same work.

    Parameters
    ----------
    name : str
    unit : str
        What a time is divided by.
    n_units : int
    contenders : dict of str to callable
        Each returns its result.
    loss : callable or None, default=None
        Result -> loss; None where times are compared whatever the loss.
    n_steps : int or None, default=None
        Number of updates of a unit, if all contenders make the same.
    """

    name: str
    unit: str
    n_units: int
    contenders: dict[str, Callable[[], Any]]
    loss: Callable[[Any], float] | None = None
    n_steps: int | None = None


@dataclass(frozen=True)
class Outcome:
    """
    The result of a race.

    Parameters
    ----------
    name, unit, n_units, n_steps
        Those of the race.
    threads : str
        `ONE_THREAD` or `ALL_CORES`.
    milliseconds : dict of str to list of float
        Contender -> times per unit.
    losses : dict of str to float
        Contender -> its loss at the end; empty where times are compared whatever the loss.
    """

    name: str
    unit: str
    n_units: int
    n_steps: int | None
    threads: str
    milliseconds: dict[str, list[float]]
    losses: dict[str, float]

    @property
    def ours(self):
        """The names of skort's contenders."""
        return [name for name in self.milliseconds if name in OURS]

    def median(self, name):
        """Return the median time of a contender in milliseconds."""
        return statistics.median(self.milliseconds[name])

    def microseconds(self, name):
        """Return the median time of a contender's step."""
        return 1e3 * self.median(name) / self.n_steps

    @property
    def compilation(self):
        """The time that JAX takes to compile, in milliseconds."""
        return self.n_units * (self.median(COUNTED) - self.median(COMPILED))

    def ratio(self, peer, ours):
        """Return the median time of a peer over that of a contender of skort."""
        return self.median(peer) / self.median(ours)

    def counts(self, peer, ours):
        """
        Return whether the loss of a contender of skort, if it has one,
        is no worse than that of a peer.
        """
        return not self.losses or self.losses[ours] <= self.losses[peer] * (1 + LOSS_TOLERANCE)


def run(race, repeats, threads):
    """Return what a race ends with."""
    times, results = in_turn(race.contenders, repeats)
    milliseconds = {
        name: [1e3 * t / race.n_units for t in values] for name, values in times.items()
    }
    losses = {
        name: float(race.loss(result)) for name, result in results.items() if race.loss is not None
    }
    return Outcome(race.name, race.unit, race.n_units, race.n_steps, threads, milliseconds, losses)
