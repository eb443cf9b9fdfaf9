"""What workers do in a round: the steps of a group from the common state, and the exchange of what groups made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skort.dask.deals import Task
from skort.dask.packed import Packed
from skort.dask.rows import Rows
from skort.descent.batches import Batches
from skort.descent.progress import Progress
from skort.descent.random_state import seeded
from skort.descent.standardization import Standardization
from skort.estimators.fitted_model import FittedModel
from skort.estimators.settings import Settings
from skort.estimators.stream import Stream
from skort.runtime.kept import Lent

__all__ = ["Common", "Job", "Leg", "averaged", "exchanged", "leg"]

# What a worker keeps of a training is its compiled step alone: all else comes with each task.
_STREAMS: Lent = Lent(8)
_SUM, _COUNT = "average_sum", "average_n_updates"


@dataclass(frozen=True, eq=False)
class Job:
    """
    What the steps of a training are made from.

    Parameters
    ----------
    settings : Settings
    fitted : FittedModel
        The model at its initial weights.
    standardization : Standardization or None
    rate_scale : float
    n_batches : int
        Of a group's epoch.
    mean_weight : float
        The mean sample weight of all rows.
    momentum : float
        Of the common weights.
    """

    settings: Settings
    fitted: FittedModel
    standardization: Standardization | None
    rate_scale: float
    n_batches: int
    mean_weight: float
    momentum: float

    def stream(self, batch_size: int) -> Stream:
        """Return the solver of these steps."""
        progress = Progress.start(
            np.random.RandomState(0), standardization=self.standardization, rate_scale=self.rate_scale
        )
        variables = self.settings.variables(self.fitted.score_graph, self.standardization)
        return Stream.begin(self.settings, self.fitted, variables, batch_size, progress, self.n_batches)

    def batches(self, rows: Rows, stream: Stream, seed: int) -> Batches:
        """Return the rows of a task in batches, whose sample weights are relative to the mean of all rows."""
        scale = stream.variables.sample_weight_scale(rows.target.shape[1])
        if rows.sample_weight is not None:
            scale *= float(np.mean(rows.sample_weight)) / self.mean_weight
        return Batches(
            rows.X,
            stream.variables.target(rows.target),
            rows.sample_weight,
            batch_size=self.settings.batch_size,
            shuffle=self.settings.shuffle,
            random_state=seeded(seed),
            sample_weight_scale=scale,
        )


class Leg(NamedTuple):
    """
    What a group has made of the common state.

    Parameters
    ----------
    state : dict of str to ndarray
        As `Solver.state` returns it; the mean of several groups in float64.
    n_rows : int
    objective, loss : float
        Means over the rows, in the units of the training.
    last_objective : float
        Of the last batch, before its update; the mean over groups.
    gradient_norm : float
        Of the last batch; the mean over groups.
    """

    state: dict[str, np.ndarray]
    n_rows: int
    objective: float
    loss: float
    last_objective: float
    gradient_norm: float


class Common(NamedTuple):
    """
    The common state of all groups.

    Parameters
    ----------
    state : dict of str to ndarray
        As `Solver.state` returns it.
    velocity : ndarray of shape (n_weights,) or None
        Of the common weights from one exchange to the next, in float64; None before the first.
    so_far : Leg or None, default=None
        What the round has given so far; None at its beginning.
    """

    state: dict[str, np.ndarray]
    velocity: np.ndarray | None
    so_far: Leg | None = None

    def ahead(self, momentum: float) -> dict[str, np.ndarray]:
        """Return the state that groups begin at: where the velocity takes the weights."""
        if self.velocity is None:
            return self.state
        weights = self.state["weights"]
        return self.state | {"weights": (weights + momentum * self.velocity).astype(weights.dtype)}


class _Borrower:
    """Has a solver for as long as it lives."""


def leg(packed: Packed[Job], common: Common, rates: np.ndarray, task: Task, parts: Sequence[Rows]) -> Leg:
    """
    Make one pass over some rows from the common state.

    Parameters
    ----------
    packed : Packed of Job
    common : Common
    rates : ndarray of shape (n_updates,)
        The learning rates of the updates before the next exchange.
    task : Task
    parts : sequence of Rows
        The partitions of the task.
    """
    job = packed.value()
    rows = Rows.concatenated([part.every(task.start, task.stride) for part in parts])
    batch_size, borrower = min(job.settings.batch_size, rows.n_rows), _Borrower()
    stream = _STREAMS.borrow((packed.key, batch_size), borrower, lambda: job.stream(batch_size))
    solver, batches = stream.solver, job.batches(rows, stream, task.seed)
    solver.restore(common.ahead(job.momentum))
    solver.batch.begin(batches.data)
    # A diverging training overflows: the client reports it.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for eta, share in zip(rates[: batches.n_batches].tolist(), batches.epoch(solver.batch), strict=True):
            solver.step(eta, share)
        objective, loss = solver.means()
    return Leg(solver.state(), rows.n_rows, objective, loss, solver.objective(), solver.gradient_norm())


def exchanged(common: Common, legs: Sequence[Leg], momentum: float, first: int) -> Common:
    r"""
    Return the next common state.

    It is the mean of what groups made, from a state to which Nesterov's momentum has taken the common weights x:

    .. math:: v \leftarrow \mu v + mean - (x + \mu v), \qquad x \leftarrow mean

    A mean of G groups moves about as far as one of them, a G-th of what all of them together would do one after the
    other: with :math:`\mu = 1 - 1 / G` the moves of many exchanges add up to that. A weight that is zero in all groups,
    as l1 penalties make it, stays zero. Everything else of the state is the mean.

    Parameters
    ----------
    common : Common
    legs : sequence of Leg
    momentum : float
        :math:`\mu`.
    first : int
        See `averaged`.

    References
    ----------
    Douillard, A. et al., DiLoCo: Distributed low-communication training of language models, arXiv:2311.08105;
    Wang, J. et al., SlowMo: Improving communication-efficient distributed SGD with slow momentum, ICLR 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.dask.group import Common, Leg, exchanged
    >>> common = Common({"weights": np.array([1.0])}, np.array([0.5]))
    >>> legs = [Leg({"weights": np.array([w])}, 10, 0.0, 0.0, 0.0, 0.0) for w in (2.0, 4.0)]
    >>> common = exchanged(common, legs, 0.5, 0)
    >>> common.state["weights"], common.velocity
    (array([3.]), array([2.]))
    """
    mean = averaged(legs, first)
    weights = mean.state["weights"]
    velocity = np.subtract(weights, common.ahead(momentum)["weights"], dtype=np.float64)
    if common.velocity is not None:
        velocity += momentum * common.velocity
    velocity[weights == 0] = 0.0
    state = {name: array.astype(common.state[name].dtype) for name, array in mean.state.items()}
    return Common(state, velocity, mean if common.so_far is None else _after(common.so_far, mean))


def _after(before, made):
    """Return what a round has given, from what it had given before and what was made since."""
    n_rows = before.n_rows + made.n_rows
    share = made.n_rows / n_rows
    objective, loss = (
        (1 - share) * old + share * new for old, new in ((before.objective, made.objective), (before.loss, made.loss))
    )
    return made._replace(n_rows=n_rows, objective=objective, loss=loss)


def averaged(legs: Sequence[Leg], first: int = 0) -> Leg:
    """
    Return the mean of what groups made of the same state, each counted by its rows.

    Counts, such as the number of updates, are those of the group with the most.

    Parameters
    ----------
    legs : sequence of Leg
    first : int, default=0
        The first update whose weights count where a solver averages its weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.dask.group import Leg, averaged
    >>> legs = [Leg({"weights": np.array([w])}, n, 0.0, 0.0, 0.0, 0.0) for w, n in [(1.0, 30), (5.0, 10)]]
    >>> averaged(legs).state["weights"]
    array([2.])
    """
    if len(legs) == 1:
        return legs[0]
    n_rows = np.array([each.n_rows for each in legs])
    shares = n_rows / n_rows.sum()
    states = _on_one_count([each.state for each in legs], first)
    state = {}
    for name, array in states[0].items():
        if array.dtype.kind in "iu":
            state[name] = np.max([each[name] for each in states], axis=0)
        else:
            state[name] = sum(share * each[name].astype(np.float64) for share, each in zip(shares, states, strict=True))
    means = (float(shares @ [getattr(each, name) for each in legs]) for name in Leg._fields[2:])
    return Leg(state, int(n_rows.sum()), *means)


def _on_one_count(states, first):
    """Return states whose sums of weights, where they have some, are of equally many weights."""
    if _SUM not in states[0]:
        return states
    counts = [max(0, int(state[_COUNT][0]) - first + 1) for state in states]
    return [
        state | {_SUM: state[_SUM] * (max(counts) / count)} if count else state
        for state, count in zip(states, counts, strict=True)
    ]
