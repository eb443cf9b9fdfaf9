"""What workers do in a round: the steps of a group from the common state, and the exchange of what groups made."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skort.common.random_state import seeded
from skort.dask.deals import Task
from skort.dask.packed import Packed
from skort.dask.rows import Rows
from skort.estimators.fitted_model import FittedModel
from skort.estimators.settings import Settings
from skort.estimators.stream import Stream
from skort.optim.batches import Batches
from skort.optim.progress import Progress
from skort.optim.standardization import Standardization
from skort.runtime.cache import SessionPool

__all__ = ["Begin", "Common", "Job", "Leg", "Means", "averaged", "exchanged", "leg"]

# What a worker keeps of a training is its compiled step alone: all else comes with each task.
_STREAMS: SessionPool = SessionPool(8)
_SUM, _COUNT = "average_sum", "average_n_updates"


class Means(NamedTuple):
    """
    What the steps of a group, or of all groups, were like.

    Parameters
    ----------
    n_rows : int
    objective, loss : float
        Means over the rows, in the units of the training.
    last_objective : float
        Of the last batch, before its update; the mean over groups.
    gradient_norm : float
        Of the last batch; the mean over groups.
    """

    n_rows: int
    objective: float
    loss: float
    last_objective: float
    gradient_norm: float

    def then(self, later: "Means") -> "Means":
        """Return those of both; the last batch is the later one's."""
        n_rows = self.n_rows + later.n_rows
        share = later.n_rows / n_rows
        objective = (1 - share) * self.objective + share * later.objective
        loss = (1 - share) * self.loss + share * later.loss
        return later._replace(n_rows=n_rows, objective=objective, loss=loss)


class Begin(NamedTuple):
    """
    What an exchange needs of the common state before it.

    Parameters
    ----------
    weights : ndarray of shape (n_weights,)
    velocity : ndarray of shape (n_weights,) or None
        Of the common weights from one exchange to the next, in float64; None before the first.
    so_far : Means or None
        Of the round so far; None at its beginning.
    """

    weights: np.ndarray
    velocity: np.ndarray | None
    so_far: Means | None

    def ahead(self, momentum: float) -> np.ndarray:
        """Return the weights that groups begin at: where the velocity takes the common ones."""
        if self.velocity is None:
            return self.weights
        return (self.weights + momentum * self.velocity).astype(self.weights.dtype)


class Common(NamedTuple):
    """
    The common state of all groups.

    Parameters
    ----------
    state : dict of str to ndarray
        As `Solver.state` returns it.
    velocity : ndarray of shape (n_weights,) or None
        As in `Begin`.
    so_far : Means or None, default=None
        As in `Begin`.
    """

    state: dict[str, np.ndarray]
    velocity: np.ndarray | None
    so_far: Means | None = None

    @property
    def begin(self) -> Begin:
        """What the next exchange needs of it."""
        return Begin(self.state["weights"], self.velocity, self.so_far)


class Leg(NamedTuple):
    """
    What a group, or several, have made of the common state.

    Parameters
    ----------
    begin : Begin
        Of the common state: the same for all groups.
    state : dict of str to ndarray
        As `Solver.state` returns it.
    means : Means
    """

    begin: Begin
    state: dict[str, np.ndarray]
    means: Means


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

    @property
    def first(self) -> int:
        """The first update whose weights count where a solver averages its weights."""
        return int(self.settings.update.average)

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


class _Borrower:
    """Has a solver for as long as it lives."""


def leg(packed: Packed[Job], begin: Common | list[Leg], rates: np.ndarray, task: Task, parts: Sequence[Rows]) -> Leg:
    """
    Make one pass over some rows from the common state.

    Parameters
    ----------
    packed : Packed of Job
    begin : Common, or list of Leg
        The common state, or what all groups made before. These a group exchanges by itself: it need not wait for
        another task.
    rates : ndarray of shape (n_updates,)
        The learning rates of the updates before the next exchange.
    task : Task
    parts : sequence of Rows
        The partitions of the task.
    """
    job = packed.value()
    common = begin if isinstance(begin, Common) else exchanged(begin, job.momentum, job.first)
    rows = Rows.concatenated([part.every(task.start, task.stride) for part in parts])
    batch_size, borrower = min(job.settings.batch_size, rows.n_rows), _Borrower()
    stream = _STREAMS.borrow((packed.key, batch_size), borrower, lambda: job.stream(batch_size))
    solver, batches = stream.solver, job.batches(rows, stream, task.seed)
    solver.restore(common.state | {"weights": common.begin.ahead(job.momentum)})
    solver.batch.begin(batches.data)
    # A diverging training overflows: the client reports it.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for eta, share in zip(rates[: batches.n_batches].tolist(), batches.epoch(solver.batch), strict=True):
            solver.step(eta, share)
        objective, loss = solver.means()
    means = Means(rows.n_rows, objective, loss, solver.objective(), solver.gradient_norm())
    return Leg(common.begin, solver.state(), means)


def exchanged(legs: Sequence[Leg], momentum: float, first: int) -> Common:
    r"""
    Return the next common state.

    It is the mean of what groups made, from a state to which Nesterov's momentum has taken the common weights x:

    .. math:: v \leftarrow \mu v + mean - (x + \mu v), \qquad x \leftarrow mean

    A mean of G groups moves about as far as one of them, a G-th of what all of them together would do one after the
    other: with :math:`\mu = 1 - 1 / G` the moves of many exchanges add up to that. A weight that is zero in all groups,
    as l1 penalties make it, stays zero. Everything else of the state is the mean.

    Parameters
    ----------
    legs : sequence of Leg
        From the same state.
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
    >>> from skort.dask.group import Begin, Leg, Means, exchanged
    >>> begin = Begin(np.array([1.0]), np.array([0.5]), None)
    >>> legs = [Leg(begin, {"weights": np.array([w])}, Means(10, 0.0, 0.0, 0.0, 0.0)) for w in (2.0, 4.0)]
    >>> common = exchanged(legs, 0.5, 0)
    >>> common.state["weights"], common.velocity
    (array([3.]), array([2.]))
    """
    begin, (mean, means) = legs[0].begin, _mean(legs, first)
    velocity = np.subtract(mean["weights"], begin.ahead(momentum), dtype=np.float64)
    if begin.velocity is not None:
        velocity += momentum * begin.velocity
    velocity[mean["weights"] == 0] = 0.0
    return Common(_like(legs[0].state, mean), velocity, means if begin.so_far is None else begin.so_far.then(means))


def averaged(legs: Sequence[Leg], first: int = 0) -> Leg:
    """
    Return the mean of what groups made from the same state, each counted by its rows.

    Counts, such as the number of updates, are those of the group with the most.

    Parameters
    ----------
    legs : sequence of Leg
    first : int, default=0
        The first update whose weights count where a solver averages its weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.dask.group import Begin, Leg, Means, averaged
    >>> begin = Begin(np.array([0.0]), None, None)
    >>> made = [(1.0, Means(30, 0.0, 0.0, 0.0, 0.0)), (5.0, Means(10, 0.0, 0.0, 0.0, 0.0))]
    >>> legs = [Leg(begin, {"weights": np.array([w])}, means) for w, means in made]
    >>> averaged(legs).state["weights"]
    array([2.])
    """
    mean, means = _mean(legs, first)
    return Leg(legs[0].begin, _like(legs[0].state, mean), means)


def _mean(legs, first):
    """Return the mean of states, in float64 as far as they are no integers, and the mean of what steps were like."""
    n_rows = np.array([each.means.n_rows for each in legs])
    shares = n_rows / n_rows.sum()
    states, state = _on_one_count([each.state for each in legs], first), {}
    for name, array in states[0].items():
        if array.dtype.kind in "iu":
            state[name] = np.max([each[name] for each in states], axis=0)
        else:
            state[name] = sum(share * each[name].astype(np.float64) for share, each in zip(shares, states, strict=True))
    means = (float(mean) for mean in shares @ [each.means[1:] for each in legs])
    return state, Means(int(n_rows.sum()), *means)


def _like(state, mean):
    """Return a mean state with the dtypes of a state."""
    return {name: array.astype(state[name].dtype) for name, array in mean.items()}


def _on_one_count(states, first):
    """Return states whose sums of weights, where they have some, are of equally many weights."""
    if _SUM not in states[0]:
        return states
    counts = [max(0, int(state[_COUNT][0]) - first + 1) for state in states]
    return [
        state | {_SUM: state[_SUM] * (max(counts) / count)} if count else state
        for state, count in zip(states, counts, strict=True)
    ]
