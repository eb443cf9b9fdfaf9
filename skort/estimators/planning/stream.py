"""What a stream decides from its first rows, and keeps."""

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from skort.estimators.data.rows import TrainingData
from skort.estimators.planning.decision import YOURS, Decision, rule
from skort.estimators.planning.epochs import STREAM_ROWS
from skort.estimators.planning.rate import (
    RateBasis,
    RateChoice,
    given_rate,
    needs_spread,
    network_rate,
    stiffness,
)
from skort.estimators.planning.scaling import whitens
from skort.objective.loss import known_curvature
from skort.optim.standardization import (
    Standardization,
    dense,
    half_decorrelation,
    spreads_of_some,
    usable_scale,
)

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan

#: The number of rows that decide on the scales of a stream: `python -m benchmarks.rules --only
#: "first rows"`.
FIRST_ROWS = 20
#: The reason if `eta0` is left out and the data do not decide on a rate.
OF_SCHEDULE = "the schedule has it"
# A rate that rows do not lower is this part of the largest stable rate. No benchmark chose it.
_PART = 0.25
# A fitted network has this part of the rate of a new one. No benchmark chose it.
_FITTED = 0.1
# A short call of m rows lowers a declared rate by this power of m. The optimizer divides by the
# size of the gradients: this is in proportion to m^(-1/2) if they are noise, and constant if not.
# `python -m benchmarks.rules --only "short calls"`.
_SHORT = 2 / 3
# More copies would take too much time. No benchmark chose it.
_MOST_COPIES = 16
# The rows for each column that count in the mean of recent weights: `python -m benchmarks.rules --only
# "mean of a stream"`.
_ROWS_PER_COLUMN = 20


@rule("stream")
def rows_of_a_step() -> int:
    """
    In a stream, unless you give `batch_size`, `eta0` of a linear model that SGD trains is the rate
    of a row, as in SGDRegressor: a batch of m rows makes a step of m times the rate.
    """
    return 1


def rate_of_rows(plan: "Plan", n_rows: int, *, falls: bool) -> RateChoice:
    """
    Return who chooses the rate of a linear stream, and that a step of so many rows has the whole
    rate. If rows lower the rate, the data decide on it, and a number for `eta0` is its bound.
    """
    choice = plan.rate._replace(rows_of_a_step=n_rows, falls=falls)
    if not falls or "learning_rate" not in plan.left_open or "eta0" in plan.left_open:
        return choice

    bound = float(plan.given["eta0"])
    return choice._replace(is_auto=True, is_found=True, bound=bound)


@rule("stream")
def is_waiting(plan: "Plan", n_rows: int) -> bool:
    """
    If scales or the rate come from the first rows of a stream, these wait until 20 rows count;
    otherwise the first row that counts begins the training.
    """
    return n_rows < (FIRST_ROWS if plan.standardize or plan.rate.is_found else 1)


@rule("stream")
def with_late_scales(used: Standardization | None, rows: TrainingData) -> Standardization | None:
    """
    If a column of a stream was constant, the first call in which it varies gives it a scale: the
    root mean square of its differences from the constant, over 20 rows or more, and at most one.
    """
    if used is None or used.constant is None or used.mean is None or used.scale is None:
        return used

    columns = dense(rows.counted(rows.X[:, used.constant]))
    differences = columns.astype(np.float64) - used.mean[used.constant]
    varies = differences.any(axis=0)
    if not varies.any():
        return used

    # Few rows count as if others had the constant, so that calls of any size give similar scales.
    mean_square = np.square(differences[:, varies]).sum(axis=0) / max(len(differences), FIRST_ROWS)
    # The user may have a scaler that learns from each call, and makes large values smaller later.
    late = usable_scale(np.minimum(np.sqrt(mean_square), 1.0), rows.X.dtype)
    scale = used.scale.copy()
    scale[used.constant[varies]] = late
    constant = used.constant[~varies]

    return dataclasses.replace(used, scale=scale, constant=constant if len(constant) else None)


def spread_of_stream(basis: RateBasis) -> tuple[float, float] | None:
    """
    Return the largest eigenvalue and squared norm of the first rows of a stream. Later calls keep
    them. None: no rate needs them.
    """
    if not needs_spread(basis.plan, basis.score_graph):
        return None
    rows = basis.statistics.some_rows
    used = basis.variables.standardization
    *_, (spread, _) = spreads_of_some(rows.X, rows.sample_weight, used)
    return spread


@rule("stream")
def decorrelation(basis: RateBasis) -> np.ndarray | None:
    """
    If rows lower the rate of a linear model of at most 256 dense columns, each step is multiplied by
    S^(-1/2), at most by six in each direction, where S is the covariance of the standardised columns
    in the first rows, shrunk as by Ledoit and Wolf; with an l1 term, a strong l2 term or a penalty
    of your own, it is not.
    """
    used = basis.variables.standardization
    if used is None or not _may_decorrelate(basis):
        return None
    rows = basis.statistics.some_rows
    root = half_decorrelation(rows.X, rows.sample_weight, used)
    return None if root is None or _is_stiff(basis, root) else root


def keeps_decorrelation(basis: RateBasis) -> bool:
    """Return whether the penalty of a call goes with the decorrelation of its stream, if there is any."""
    used = basis.variables.standardization
    root = None if used is None else used.decorrelation
    return root is None or not _is_stiff(basis, root)


def _may_decorrelate(basis):
    """Return whether the steps of a stream can be multiplied by a matrix."""
    plan, variables, score_graph, statistics = basis
    layer = None if variables.inputs is None else variables.inputs.layer
    if layer is None or layer.columns is not None or not score_graph.is_linear:
        return False

    is_sparse = statistics.some_rows.is_sparse
    is_whole = score_graph.trained.coefficients == (layer.coefficient,)
    is_narrow = whitens(score_graph.n_features, are_sparse=is_sparse)
    return falls_by_rows(plan) and is_whole and is_narrow


def _is_stiff(basis, root):
    """
    Return whether a penalty has a part for which such a step is wrong: an l1 term, or an l2 term
    that bends more than the loss.
    """
    penalty = basis.variables.penalty
    if penalty is None:
        return False
    if penalty.is_custom:
        return True
    strengths = penalty.strengths(basis.score_graph.coefficients).values()
    curvature = known_curvature(basis.variables.loss, basis.score_graph.n_outputs) or 0.0
    # The largest factor of a step.
    factor = float(np.linalg.eigvalsh(root)[-1]) ** 2
    return any(np.any(each.l1) or factor * np.max(each.l2) > curvature for each in strengths)


def stream_rates(
    basis: RateBasis, spread: tuple[float, float] | None, *, is_fitted: bool
) -> dict[str, Decision]:
    """
    Return the decisions on the rates of a stream, by matter. `spread` is that of the first rows, or
    of the fit before the stream.
    """
    rate = _stream_rate(basis, spread, is_fitted=is_fitted)
    return {"first rate": rate, **rates_by_rows(basis.plan)}


def rates_by_rows(plan: "Plan") -> dict[str, Decision]:
    """Return the decisions on how rows lower the rate, by matter; none if they do not."""
    if not falls_by_rows(plan):
        return {}

    because = "in a stream, the rate is divided by the cube root of 1 + rows seen / columns"
    decisions = {"learning rate": plan.decisions["learning rate"]._replace(because=because)}
    if "average" in plan.left_open:
        because = "a rate that falls slowly leaves noise in the last weights"
        decisions["average"] = Decision("of recent weights", because, "average")

    return decisions


def at_bound(rate: Decision, bound: float | None) -> Decision:
    """Return the decision on a rate, with a reason that names `eta0` if its number bounds the rate."""
    if bound is None:
        return rate
    because = YOURS if bound <= rate.value else f"{rate.because}; eta0 is larger"
    return rate._replace(because=because)


def _stream_rate(basis, spread, *, is_fitted):
    """Return the decision on the rate of a stream, which multiplies the rates of the schedule."""
    plan = basis.plan
    if not plan.rate.is_found:
        return given_rate(plan, 1.0, OF_SCHEDULE)

    tags = plan.update.tags
    is_linear = basis.score_graph.is_linear
    # The rate is made for batches of so many rows, however small the calls are.
    n_rows = max(plan.batch_size, STREAM_ROWS)

    if tags.gain is None:
        rate = declared_rate(tags.first_rates[0 if is_linear else 2], plan.batch_size)
        because = "the optimizer says it, for batches of so many rows"
    elif is_linear:
        assert spread is not None  # The rate needs it.
        falls = falls_by_rows(plan)
        rate = stream_linear_rate(stable_rate(basis, n_rows, spread), falls=falls)
        part = "" if falls else "a quarter of "
        because = f"{part}the largest rate at which batches of the first rows are stable"
    else:
        rate = network_rate(tags.gain, 1.0, plan.batch_size / n_rows)
        because = "0.2 over the gain of the optimizer"

    if is_fitted:
        return Decision(fitted_rate(rate), f"a tenth for a fitted model: {because}", "eta0")
    return Decision(rate, because, "eta0")


@rule("stream")
def stream_linear_rate(stable: float, *, falls: bool) -> float:
    """
    A linear model in a stream begins at the largest rate at which batches of its first rows are
    stable; a model in a `FrozenEstimator`, or with a `learning_rate`, begins at a quarter of this rate
    for batches of 16 rows.
    """
    return stable if falls else stable * _PART


def falls_by_rows(plan: "Plan") -> bool:
    """Return whether the rows of a stream lower the rate, as no parameter says how it changes."""
    has_gain = plan.update.tags.gain is not None
    is_open = "learning_rate" in plan.left_open
    return plan.rate.falls and plan.rate.is_found and has_gain and is_open


@rule("stream")
def falling_part(n_rows: int, n_columns: int, most: float = 1.0) -> float:
    """
    The rate of a linear model in a stream is divided by the cube root of 1 + rows / columns, where
    the rows are all that it has seen before, in a `fit`, too; a number for `eta0` is the largest
    rate.
    """
    return min(most, (1.0 + n_rows / n_columns) ** (-1 / 3))


@rule("stream")
def recent_updates(n_columns: int, n_rows: int) -> int:
    """
    If rows lower the rate, the model has a mean of recent weights: those of about the last quarter
    of all updates, and at most of the last 20 rows for each column.
    """
    return math.ceil(_ROWS_PER_COLUMN * n_columns / n_rows)


@rule("stream")
def curvature_factor(largest: float, usual: float) -> float:
    """
    The rate of a log-loss in a stream is that for a curvature of 1/8, half the largest one; of a
    softmax, that for sqrt(1 / (8 classes)).
    """
    return largest / usual


@rule("stream")
def declared_rate(first_rate: float, n_rows: int) -> float:
    """
    An optimizer that declares its rate has this rate in a stream for batches of 16 rows, and (m /
    16)^(2/3) of it for calls of m < 16 rows.
    """
    return first_rate * _short_part(n_rows)


def _short_part(n_rows):
    """Return the part of a declared rate that a call of so many rows has."""
    return min(1.0, n_rows / STREAM_ROWS) ** _SHORT


@rule("stream")
def fitted_rate(rate: float) -> float:
    """A fitted network in a stream has a tenth of the rate of a new one."""
    return _FITTED * rate


def call_part(basis: RateBasis, first: float) -> float:
    """
    Return the factor that a call has of the rate of its stream. Without it, the call would begin at
    the rate `first`.
    """
    plan = basis.plan
    if plan.rate.is_found and plan.update.tags.gain is None and "batch_size" in plan.left_open:
        # The rate is that of a batch of B rows. The step of a call of m rows is m / B of it.
        whole = plan.batch_size
        n_rows = min(basis.statistics.n_rows, whole)
        return whole / n_rows * _short_part(n_rows) / _short_part(whole)

    # After a fit, a number for eta0 is the rate of the fit's batches.
    is_of_stream = plan.rate.rows_of_a_step is not None or needs_spread(plan, basis.score_graph)
    return stable_part(basis, first) if is_of_stream else 1.0


@rule("stream")
def heavy_row_copies(part: float, mean_weight: float) -> int:
    """
    If large sample weights make the rate unstable, the call repeats each row, at most 16 times, and
    divides the weight among the copies.
    """
    return max(1, math.ceil(min(1 / part, mean_weight, _MOST_COPIES)))


@rule("stream")
def stable_part(basis: RateBasis, first: float) -> float:
    """
    If the rate of a stream is not stable for the rows of a call, the call has the largest stable
    rate.
    """
    rows = basis.statistics.some_rows
    n_rows = min(basis.plan.batch_size, rows.n_rows)
    rate = math.inf
    # The first estimate takes the least time, and may be sure enough.
    used = basis.variables.standardization
    for spread, sure in spreads_of_some(rows.X, rows.sample_weight, used):
        rate = stable_rate(basis, n_rows, spread)
        if first <= sure * rate:
            return 1.0

    # A rate that is no number stays one.
    return min(rate / first, 1.0)


def stable_rate(basis: RateBasis, n_rows: int, spread: tuple[float, float]) -> float:
    """
    Return the largest rate at which a linear model is stable in the mean square, in batches of so
    many rows.
    """
    # This is the expected smoothness of batches of an endless stream: `batch_smoothness` for
    # n -> infinity.
    plan, variables, _, statistics = basis
    largest, norm = spread
    smoothness = statistics.mean_weight * ((n_rows - 1) * largest + norm) / n_rows
    gain = plan.update.tags.gain
    assert gain is not None  # An optimizer without a gain declares its rate.

    whole = plan.rate.rows_of_a_step or plan.batch_size
    factor = _factor(variables.loss, basis.score_graph.n_outputs)
    return factor * whole / n_rows / (gain * stiffness(basis, smoothness))


def _factor(loss, n_outputs):
    """Return the `curvature_factor` of a loss; one if its curvature has no bound."""
    largest = loss.curvature(n_outputs)
    return 1.0 if largest is None else curvature_factor(largest, loss.usual_curvature(n_outputs))
