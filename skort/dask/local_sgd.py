"""
Local SGD (Stich, ICLR 2019) with momentum between the exchanges (Douillard et al.,
DiLoCo, arXiv:2311.08105).
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skort.common.random_state import seeded
from skort.dask.assignment import Assignment, Assignments, Task
from skort.dask.cluster import Borrower, Broadcast
from skort.dask.part_statistics import PartStatistics, Rows
from skort.estimators.model.model import Model
from skort.estimators.planning.plan import Plan
from skort.estimators.training.data_source import BatchShape, batches_in_memory
from skort.estimators.training.run import TrainRun
from skort.optim.batches import Batches
from skort.optim.state import TrainState
from skort.runtime.cache import SessionPool

# A worker keeps only the compiled step of a training. All else comes with each task.
_RUNS: SessionPool = SessionPool(8)
# The name of the velocity of the global weights in a state and in checkpoints. An optimizer may
# have a velocity of its own.
_VELOCITY = "global_velocity"


class Means(NamedTuple):
    """Means over the steps of one group or of several groups, in the units of the training."""

    n_rows: int
    #: Means over the rows.
    objective: float
    loss: float
    #: The objective of the last batch before its update, and the norm of its gradient. Means over
    #: the groups, weighted by their rows.
    last_objective: float
    gradient_norm: float
    n_groups: int = 1

    def then(self, later: "Means") -> "Means":
        """Return the means over both, weighted by rows. The last batch is the one of `later`."""
        n_rows = self.n_rows + later.n_rows
        share = later.n_rows / n_rows
        objective = (1 - share) * self.objective + share * later.objective
        loss = (1 - share) * self.loss + share * later.loss
        return Means(n_rows, objective, loss, later.last_objective, later.gradient_norm)


class GlobalState(NamedTuple):
    """The common state of all groups after an exchange."""

    #: The state as a `TrainStep` returns it.
    state: dict[str, np.ndarray]
    #: The velocity of the global weights between exchanges, in float64. None before the first one.
    velocity: np.ndarray | None
    #: The means of the round so far. None at its beginning.
    so_far: Means | None = None

    def ahead(self, momentum: float) -> np.ndarray:
        """Return the weights at which groups start: the global weights moved by the velocity."""
        weights = self.state["weights"]
        return (
            weights
            if self.velocity is None
            else (weights + momentum * self.velocity).astype(weights.dtype)
        )


class LocalResult(NamedTuple):
    """The result of one or several groups. `start` has only the weights of their global state."""

    start: GlobalState
    state: dict[str, np.ndarray]
    means: Means


@dataclass(frozen=True, eq=False)
class Job:
    """The description of a training, from which workers make its steps."""

    plan: Plan
    #: The model at its initial weights.
    model: Model
    #: The state before the first update.
    state: TrainState
    #: The number of batches in an epoch of a group.
    n_batches: int
    #: The mean sample weight of all rows.
    mean_weight: float
    #: The momentum of the global weights.
    momentum: float

    def run(self, batch_size: int) -> TrainRun:
        """Return the run that makes the steps."""
        run = TrainRun.of(self.plan, self.model, self.state, BatchShape(batch_size), self.n_batches)
        return run.with_step(self.state)

    def batches(self, rows: Rows, run: TrainRun, seed: int) -> Batches:
        """Return batches of a task's rows, with sample weights relative to the overall mean."""
        weight = 1.0
        if rows.sample_weight is not None:
            weight = float(np.mean(rows.sample_weight)) / self.mean_weight
        return batches_in_memory(self.plan, rows, run.variables, seeded(seed), weight)

    def trial(self, rows: Rows) -> tuple[Any, Batches]:
        """Return a step in the state before the first update, and batches of some rows."""
        run = self.run(min(self.plan.batch_size, rows.n_rows))
        return run.step, self.batches(rows, run, 0)


def local_steps(
    spec: Broadcast[Job],
    start: GlobalState | list[LocalResult],
    rates: np.ndarray,
    task: Task,
    parts: Sequence[Rows],
) -> LocalResult:
    """
    Make one pass over the rows of a task, with one update for each rate.

    The pass starts from the global state, or from the exchange of the groups' last results.
    """
    job = spec.value()
    common = start if isinstance(start, GlobalState) else exchanged(start, job.momentum)
    rows = Rows.concatenated([part.every(task.start, task.stride) for part in parts])
    batch_size, borrower = min(job.plan.batch_size, rows.n_rows), Borrower()
    run = _RUNS.borrow((spec.key, batch_size), borrower, lambda: job.run(batch_size))
    step = run.step
    batches = job.batches(rows, run, task.seed)
    step.restore(common.state | {"weights": common.ahead(job.momentum)})
    step.batch.begin(batches.data)

    # A diverging training overflows. No warning here: the client reports it.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for eta, portion in zip(
            rates[: batches.n_batches].tolist(), batches.epoch(step.batch), strict=True
        ):
            step.step(eta * portion.part, portion.share)
        objective, loss = step.means()

    means = Means(rows.n_rows, objective, loss, step.objective(), step.gradient_norm())
    start = common._replace(state={"weights": common.state["weights"]})
    return LocalResult(start, step.state(), means)


def exchanged(results: Sequence[LocalResult], momentum: float) -> GlobalState:
    """
    Return the next global state: the mean over groups, and its momentum.

    The momentum is that of SlowMo (Wang et al., ICLR 2020).
    """
    # The mean over G groups moves about as far as one group. That is 1 / G of the way of a single
    # group with all the updates. With a momentum of 1 - 1 / G, the moves of many exchanges add up
    # to the whole way. Weights that an l1 penalty makes zero in all groups stay zero.
    start = results[0].start
    (mean, means) = _mean(results)
    velocity = np.subtract(mean["weights"], start.ahead(momentum), dtype=np.float64)
    if start.velocity is not None:
        velocity += momentum * start.velocity
    velocity[mean["weights"] == 0] = 0.0
    so_far = means if start.so_far is None else start.so_far.then(means)

    return GlobalState(_like(results[0].state, mean), velocity, so_far)


def averaged(results: Sequence[LocalResult]) -> LocalResult:
    """Return the mean of the results of groups."""
    mean, means = _mean(results)
    return LocalResult(results[0].start, _like(results[0].state, mean), means)


def _mean(results):
    """
    Return the mean of the states over groups, and the `Means` over their rows.

    Arrays are averaged in float64. The state has the largest of the groups' counts.
    """
    # Groups count the same, however many rows they have: each row has already moved the weights of
    # its group by its part of the rate.
    n_groups, n_rows = (
        np.array([getattr(each.means, n) for each in results]) for n in ("n_groups", "n_rows")
    )
    shares, of_rows = n_groups / n_groups.sum(), n_rows / n_rows.sum()
    states = [each.state for each in results]

    state = {}
    for name, array in states[0].items():
        if array.dtype.kind in "iu":
            state[name] = np.max([each[name] for each in states], axis=0)
        else:
            state[name] = sum(
                share * each[name].astype(np.float64)
                for share, each in zip(shares, states, strict=True)
            )

    objective, loss, last_objective, gradient_norm = (
        of_rows @ [each.means[1:5] for each in results]
    ).tolist()
    return state, Means(
        int(n_rows.sum()),
        objective,
        loss,
        last_objective,
        gradient_norm,
        n_groups=int(n_groups.sum()),
    )


def _like(state, mean):
    """Return the mean state with the dtypes of `state`."""
    return {name: array.astype(state[name].dtype) for name, array in mean.items()}


@dataclass(frozen=True, eq=False)
class PartitionedRows:
    """The source of rows in partitions on the workers. Groups of workers make the steps."""

    of_parts: PartStatistics
    n_groups: int
    #: The rows are on other machines.
    all_rows = None

    def statistics(self) -> PartStatistics:
        """Return the statistics of all rows."""
        return self.of_parts

    def batches(
        self, plan: Plan, variables: Any, random_state: np.random.RandomState
    ) -> Assignments:
        """Return the `Assignments` of partitions to groups."""
        return Assignments(
            self.of_parts.measures.sizes, self.n_groups, plan.batch_size, random_state
        )

    def step(self, run: TrainRun, model: Model, state: TrainState) -> "DistributedStep":
        """Return the step that lets groups make the steps of a run."""
        # The workers have their own random generators. A fixed one keeps the job the same.
        state = dataclasses.replace(
            state, random_state=np.random.RandomState(0).get_state(legacy=False)
        )
        n_groups = min(self.n_groups, len(self.of_parts.measures.sizes))
        n_batches = run.problem.n_batches or 1
        mean_weight = self.of_parts.mean_weight
        momentum = 1 - 1 / n_groups
        job = Job(run.plan, model.without_steps(), state, n_batches, mean_weight, momentum)

        return DistributedStep(run, job, self.of_parts)


class DistributedStep:
    """
    A step that records the learning rates of an epoch.

    At the end of the epoch, all groups make their steps at the same time, with a few exchanges.
    """

    def __init__(self, run: TrainRun, job: Job, of_parts: PartStatistics):
        self._cluster = of_parts.cluster
        self._partitions = of_parts.partitions
        self._solver, self._trial = run.step, functools.partial(job.trial, of_parts.some_rows)
        self._job = of_parts.cluster.broadcast("job", job)
        self._momentum = job.momentum
        self._velocity: np.ndarray | None = None
        self._rates: list[float] = []
        self._last: Means | None = None
        self._assignment: Assignment | None = None
        self.batch: Any = self

    def begin(self, data: list[Any]) -> None:
        """Do nothing: the rows are on the workers."""

    def open(self, assignment: Assignment) -> None:
        """Begin to record the learning rates of a round."""
        self._assignment = assignment
        self._rates = []

    def step(self, eta: float, share: float) -> None:
        """Record the learning rate of one update of every group."""
        self._rates.append(eta)

    def close(self) -> None:
        """Let all groups make the steps of the round."""
        assert self._assignment is not None
        cluster = self._cluster
        rates = np.array(self._rates)
        partitions = self._partitions
        futures: list[Any] = []
        start: Any = GlobalState(self._solver.state(), self._velocity)
        ends = np.cumsum(self._assignment.n_updates)

        for tasks, part in zip(self._assignment.exchanges, np.split(rates, ends[:-1]), strict=True):
            results = [
                cluster.submit(
                    local_steps,
                    self._job,
                    start,
                    part,
                    task,
                    [partitions[i] for i in task.partitions],
                )
                for task in tasks
            ]
            # The next tasks average these results themselves. No task in between is needed.
            start = cluster.few(averaged, results)
            futures += start

        try:
            made = exchanged(cluster.values(start), self._momentum)
        except BaseException:
            if cluster.client.status == "running":
                cluster.client.cancel(futures, force=True)
            raise

        self._solver.restore(made.state)
        self._velocity = made.velocity
        self._last = made.so_far

    def objective(self) -> float:
        """
        Return the mean objective of the groups' last batches before their updates.

        Before the first round, return the objective of some rows.
        """
        return self._objective_of_some_rows() if self._last is None else self._last.last_objective

    def _objective_of_some_rows(self):
        step, batches = self._trial()
        step.restore(self._solver.state())
        step.batch.begin(batches.data)
        step.step(0.0, next(batches.epoch(step.batch)).share)
        return step.objective()

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss as means over the rows of the last round."""
        return (0.0, 0.0) if self._last is None else (self._last.objective, self._last.loss)

    def gradient_norm(self) -> float:
        """Return the norm of the gradient of a group's last batch, averaged over the groups."""
        return 0.0 if self._last is None else self._last.gradient_norm

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        return all(bool(np.isfinite(array).all()) for array in self.weights().values())

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the global weights, by name."""
        return self._solver.weights()

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of the global state, and after the first exchange of the velocity."""
        state = self._solver.state()
        return state if self._velocity is None else state | {_VELOCITY: self._velocity.copy()}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a state of this step, or of a solver with the same steps."""
        self._solver.restore(without_velocity(state))
        self._last, self._velocity = None, state.get(_VELOCITY)


def without_velocity(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a state without the global velocity, for a solver in this process."""
    return {name: array for name, array in state.items() if name != _VELOCITY}
