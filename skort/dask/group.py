"""What a worker does in a round: one group's epoch from the common state, and the mean of what groups made of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skort.dask.packed import Packed
from skort.dask.rows import Rows
from skort.descent.batches import Batches
from skort.descent.progress import Progress
from skort.descent.standardization import Standardization
from skort.estimators.fitted_model import FittedModel
from skort.estimators.settings import Settings
from skort.estimators.stream import Stream
from skort.runtime.kept import Lent

__all__ = ["Job", "Leg", "averaged", "leg"]

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
    """

    settings: Settings
    fitted: FittedModel
    standardization: Standardization | None
    rate_scale: float
    n_batches: int
    mean_weight: float

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
            random_state=np.random.RandomState(seed),
            sample_weight_scale=scale,
        )


class Leg(NamedTuple):
    """
    What a group, or a part of its epoch, has made of a state.

    Parameters
    ----------
    state : dict of str to ndarray
        As `Solver.state` returns it; the mean of several in float64.
    n_rows : int
    n_updates : int
        Since the beginning of the round; of several groups the largest number.
    objective, loss : float
        Means over the rows, in the units of the training.
    last_objective : float
        Of the last batch, before its update; the mean over groups.
    gradient_norm : float
        Of the last batch; the mean over groups.
    """

    state: dict[str, np.ndarray]
    n_rows: int
    n_updates: int
    objective: float
    loss: float
    last_objective: float
    gradient_norm: float


class _Borrower:
    """Has a solver for as long as it lives."""


def leg(
    packed: Packed[Job], before: "dict[str, np.ndarray] | Leg", rates: np.ndarray, seed: int, parts: Sequence
) -> Leg:
    """
    Make one pass over some partitions from a state, in an order that the seed draws.

    Parameters
    ----------
    packed : Packed of Job
    before : dict of str to ndarray, or Leg
        The common state of the round, or what the group made of it so far.
    rates : ndarray of shape (n_updates,)
        The learning rates of the updates of the round.
    seed : int
    parts : sequence of Rows
    """
    job, rows = packed.value(), Rows.concatenated(parts)
    batch_size, borrower = min(job.settings.batch_size, rows.n_rows), _Borrower()
    stream = _STREAMS.borrow((packed.key, batch_size), borrower, lambda: job.stream(batch_size))
    solver, batches = stream.solver, job.batches(rows, stream, seed)
    state, n_before, so_far = before, 0, None
    if isinstance(before, Leg):
        state, n_before, so_far = before.state, before.n_updates, before
    solver.restore(state)  # type: ignore[arg-type]
    solver.batch.begin(batches.data)
    # A diverging training overflows: the client reports it.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for t, share in enumerate(batches.epoch(solver.batch), n_before):
            solver.step(float(rates[t]), share)
        objective, loss = solver.means()
    n_updates = n_before + batches.n_batches
    made = Leg(solver.state(), rows.n_rows, n_updates, objective, loss, solver.objective(), solver.gradient_norm())
    return made if so_far is None else _after(so_far, made)


def _after(before, made):
    """Return what two legs of one group have made, one after the other."""
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
    >>> legs = [Leg({"weights": np.array([w])}, n, 1, 0.0, 0.0, 0.0, 0.0) for w, n in [(1.0, 30), (5.0, 10)]]
    >>> averaged(legs).state["weights"]
    array([2.])
    """
    n_rows = np.array([each.n_rows for each in legs])
    shares = n_rows / n_rows.sum()
    states = _on_one_count([each.state for each in legs], first)
    state = {}
    for name, array in states[0].items():
        if array.dtype.kind in "iu":
            state[name] = np.max([each[name] for each in states], axis=0)
        else:
            state[name] = sum(share * each[name].astype(np.float64) for share, each in zip(shares, states, strict=True))
    means = (float(shares @ [getattr(each, name) for each in legs]) for name in Leg._fields[3:])
    return Leg(state, int(n_rows.sum()), max(each.n_updates for each in legs), *means)


def _on_one_count(states, first):
    """Return states whose sums of weights, where they have some, are of equally many weights."""
    if _SUM not in states[0]:
        return states
    counts = [max(0, int(state[_COUNT][0]) - first + 1) for state in states]
    return [
        state | {_SUM: state[_SUM] * (max(counts) / count)} if count else state
        for state, count in zip(states, counts, strict=True)
    ]
