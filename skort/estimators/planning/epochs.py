"""The rows of a batch, the size of a training, its epochs at most, and when it ends."""

import math
from collections.abc import Set
from typing import TYPE_CHECKING, Any, NamedTuple

from skort.estimators.planning.decision import YOURS, Decision, rule, yours

if TYPE_CHECKING:
    from skort.estimators.data.rows import TrainingData
    from skort.estimators.model.model import Model
    from skort.estimators.planning.plan import Plan

# As in MLPClassifier.
_BATCH_ROWS = 200
#: The rows of a batch of a stream, chosen by `python -m benchmarks.rules --only batches`.
STREAM_ROWS = 16
#: The reason if the user gives the batches.
YOUR_BATCHES = "your batches have so many"
#: The reason if the first call of a stream decides.
OF_FIRST_CALL = "the first call of a stream has so many rows, or more than 16"
#: The reason if it is "auto" again in a stream, after a number.
AUTO_AGAIN = "the first batches had so many rows"
# A linear model ends by its `tol`, long before so many epochs.
_LINEAR_EPOCHS = 1000

# Chosen by `python -m benchmarks.defaults --networks`: the updates of a network of so many rows,
# and the power with which they grow.
_UPDATES = 225
_ROWS = 150
_POWER = 0.6
_LEAST_EPOCHS = 20
_MOST_EPOCHS = 300
# `python -m benchmarks.epochs`, also with `--hidden 256 128`, measures it: from so many rows a
# column on, longer trainings help. With fewer rows, these learn noise. A training takes less than
# twice the time.
_ROWS_PER_COLUMN = 400
_MOST_LONGER = 1.75

# The smallest fall of the objective that counts, as a part of the objective: as in SGDRegressor.
_TOL = 1e-3
# The largest entry of the gradient over all rows at which L-BFGS ends, by
# `python -m benchmarks.lbfgs`.
_FULL_TOL = {"float32": 2e-6, "float64": 1e-8}
# The rate falls after so many updates of a linear model, and so many epochs, without an
# improvement: chosen by `python -m benchmarks.defaults`.
_LINEAR_UPDATES = 30
_LEAST_PATIENCE = 5
# An objective that is lower by a smaller part counts as the same.
_CLEARLY = 0.01
# A smaller fall changes scores of new rows by less than .01 with optimizer="sgd" on all tables of
# `python -m benchmarks.defaults`.
_FAR_ABOVE = 0.05
# The scores of a validation set of few rows move by chance:
# `python -m benchmarks.defaults --early`.
_VALIDATED_EPOCHS = 10


@rule("batches")
def batch_rows(batch_size: int | str = "auto", *, is_stream: bool = False) -> int:
    """A batch has 200 rows; a batch of a stream has the rows of the first call, at most 16."""
    if not isinstance(batch_size, str):
        return int(batch_size)
    return STREAM_ROWS if is_stream else _BATCH_ROWS


def batch_decision(batch_size: int, *, is_stream: bool) -> Decision:
    """Return the decision on a number of rows that skort chooses."""
    if is_stream:
        return Decision(batch_size, OF_FIRST_CALL, "batch_size")
    return Decision(batch_size, "a batch has 200 rows, if there are as many", "batch_size")


def chosen_batches(
    estimator: Any, left_open: Set[str], n_rows: int, *, are_given: bool, is_stream: bool
) -> Decision:
    """Return the decision on the rows of a batch. If the user gives batches, the largest has `n_rows`."""
    if "batch_size" not in left_open:
        one = "; all rows are one batch, and an epoch is one update"
        is_one = not is_stream and int(estimator.batch_size) > n_rows
        because = f"{YOURS}{one if is_one else ''}"
        return yours(int(estimator.batch_size), "batch_size", because)
    if are_given:
        return Decision(n_rows, YOUR_BATCHES, "batch_size")
    return batch_decision(n_rows, is_stream=is_stream)


class TrainingSize(NamedTuple):
    """
    The size of a training. The strength of a model's own penalty and the number of planned epochs
    depend on it.
    """

    #: The sum and the mean of the sample weights of all training rows, class weights included.
    weight_sum: float
    mean_weight: float
    batch_size: int
    #: The number of columns of the raw score.
    n_outputs: int
    #: The number of batches in an epoch.
    n_batches: int = 1

    @property
    def n_rows(self) -> int:
        """The number of rows trained on."""
        return round(self.weight_sum / self.mean_weight)

    def of_stream(self, n_rows: int) -> "TrainingSize":
        """
        Return the size of a stream that begins with so many rows. Sample weights multiply its
        losses as they are.
        """
        return self._replace(weight_sum=float(n_rows), mean_weight=1.0)

    @classmethod
    def of(cls, weight_sum: float, n_rows: int, batch_size: int, n_outputs: int) -> "TrainingSize":
        """Return the size of a training on rows of positive sample weight."""
        n_batches = -(-n_rows // batch_size)
        return cls(weight_sum, weight_sum / n_rows, min(batch_size, n_rows), n_outputs, n_batches)


@rule("epochs")
def linear_epochs() -> Decision:
    """A linear model, or any model by L-BFGS, is trained for at most 1,000 epochs."""
    return Decision(_LINEAR_EPOCHS, "a limit: tol ends the training", "max_iter")


@rule("epochs")
def network_epochs(n_rows: int, n_batches: int, n_columns: int) -> Decision:
    """
    A network makes 225 updates with 150 rows or fewer, 225 * (rows / 150)^0.6 with more rows,
    and up to 1.75 times as many with more than 400 rows a column, in 20 to 300 epochs.
    """
    growth = max(1.0, n_rows / _ROWS) ** _POWER
    n_updates = _UPDATES * growth * longer(n_rows / n_columns)
    n_epochs = math.ceil(n_updates / n_batches)
    n_epochs = int(min(max(n_epochs, _LEAST_EPOCHS), _MOST_EPOCHS))
    return Decision(n_epochs, "the number of updates of a network grows with its rows", "max_iter")


def longer(rows_per_column: float) -> float:
    """Return how many times more updates a network makes with many rows a column."""
    return min(max(1.0, rows_per_column / _ROWS_PER_COLUMN), _MOST_LONGER)


@rule("stopping")
def tolerance() -> Decision:
    """
    An epoch counts as better if the objective, or with early_stopping the loss of the validation
    set, falls by a thousandth of itself.
    """
    return Decision(_TOL, "a smaller fall is no improvement", "tol")


@rule("stopping")
def validated_tolerance() -> Decision:
    """With early_stopping, an epoch of a network counts as better if the loss falls at all."""
    return Decision(0.0, "the best weights on the validation set come back", "tol")


@rule("stopping")
def full_tolerance(dtype: str) -> Decision:
    """
    L-BFGS ends when no entry of the gradient is above 2e-6, or 1e-8 in float64; in float32, a
    linear model also ends when its gradient shows that the objective is within 1e-9 of the least
    one.
    """
    return Decision(_FULL_TOL[dtype], f"gradients in {dtype} tell no more", "tol")


@rule("stopping")
def no_tolerance() -> Decision:
    """
    A network is trained to the last planned epoch,
    unless you set `tol` or `n_iter_no_change`.
    """
    return Decision(None, "the rate of a network comes to zero with its last epoch", "tol")


def asks_to_stop_early(early_stopping: Any) -> bool:
    """Return whether a value of early_stopping is true. "auto" is not."""
    return not isinstance(early_stopping, str) and bool(early_stopping)


@rule("stopping")
def patience(
    memory: float,
    n_batches: int,
    *,
    is_linear: bool,
    planned_epochs: int | None,
    is_validated: bool,
) -> int:
    """
    The rate falls or the training ends after five epochs without an improvement, and not before 30
    updates of a linear model or twice the updates in which a momentum keeps a gradient; with
    early_stopping, after ten epochs or half of the planned ones.
    """
    # With momentum, a gradient counts in several updates, and an oscillation takes about as many.
    # Twice as many are more than one oscillation.
    n_updates = max(2 * memory, _LINEAR_UPDATES if is_linear else 1)
    least = _LEAST_PATIENCE

    if is_validated:
        # A planned training gains most near its end, where the rate is small.
        least = max(_VALIDATED_EPOCHS, math.ceil((planned_epochs or 0) / 2))

    return max(least, math.ceil(n_updates / n_batches))


@rule("stopping")
def patience_grows(n_iter_no_change: Any, *, is_validated: bool) -> bool:
    """
    After n epochs, the patience is at least n / 5 epochs, up to 20, as noise hides a slow descent
    in few epochs.
    """
    return isinstance(n_iter_no_change, str) and not is_validated


@rule("stopping")
def keeps_best(*, is_validated: bool) -> bool:
    """
    With early_stopping, the best weights come back, which may be the fitted ones that the training
    began at; a new model keeps its last weights if they are worse by less than one standard error.
    """
    return is_validated


@rule("restarts")
def may_restart(*, is_rate_found: bool) -> bool:
    """
    A fit that diverges, or ends above its beginning, begins again at a tenth of the rate, at most
    three times, unless you set `eta0` or a schedule with a rate of its own.
    """
    return is_rate_found


@rule("stopping")
def may_go_on(plan: "Plan", model: "Model", rows: "TrainingData") -> bool:
    """
    If you leave the steps of a linear model to skort, L-BFGS over all rows in memory goes on to the
    optimum where SGD ends, for up to a million weights, and for sparse rows only if the loss has no
    kink.
    """
    if not (_aims_at_optimum(plan, model) and plan.leaves_steps_open):
        return False
    # At a kink, a look at rows that are not whitened takes hundreds of passes.
    return plan.loss.smooth_instead is None or not rows.is_sparse


def is_measured(plan: "Plan", model: "Model", rows: "TrainingData") -> bool:
    """Return whether a fit by the user's steps says how far above the optimum it has ended."""
    aims = _aims_at_optimum(plan, model)
    return aims and not (plan.leaves_steps_open or rows.is_sparse)


def _aims_at_optimum(plan, model):
    """Return whether steps should end at the least objective of a linear model, as L-BFGS does."""
    if plan.is_full or plan.is_validated or plan.loss.is_least_at_zero:
        return False
    is_exacting = plan.tol is not None and plan.tol <= _TOL
    return is_exacting and model.score_graph.is_linear


def is_lower(objective: float, other: float) -> bool:
    """Return whether an objective is lower than another by more than 1 %."""
    return objective < other - _CLEARLY * abs(other)


@rule("stopping")
def is_far_above(fall: float, objective: float, constant: float) -> bool:
    """
    If you choose the steps of a linear model, a fit to dense rows in memory warns if the optimum is
    lower by more than 5 % of the objective, and by more than 5 % of that of a constant prediction.
    """
    return fall > _FAR_ABOVE * max(objective, constant)


class Stopping(NamedTuple):
    """When a training ends: the smallest improvement, and how many epochs may lack it."""

    tol: float | None
    n_iter_no_change: int | float | None = None


def described(used: Stopping | float | None) -> str:
    """Return when a training ends, as text."""
    tol, n_epochs = used if isinstance(used, Stopping) else (used, None)
    if tol is None:
        return "after all epochs"
    if n_epochs is None:
        return f"tol={tol:.2g}"

    return f"tol={tol:.2g}, n_iter_no_change={n_epochs}"
