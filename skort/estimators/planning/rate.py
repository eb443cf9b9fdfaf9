"""The first learning rate of a training on all rows, and how stiff a linear model is."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skort.estimators.data.rows import DataStatistics
from skort.estimators.planning.decision import Decision, rule, yours
from skort.estimators.planning.scaling import whitens
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.score_losses import USABLE, ScoreLosses, reads_targets
from skort.objective.loss import ScoreLoss, known_curvature
from skort.optim.standardization import batch_smoothness, moments, spreads_of_some

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan
    from skort.graphs.score_graph import ScoreGraph

# The first rate of a network by SGD, over the gain of its optimizer:
# `python -m benchmarks.defaults --networks`.
_NETWORK = 0.2
_OWN = "the optimizer or the schedule says it"
_OF_NETWORK = f"{_OWN}; with more than 8 weights a row, that of the optimizer is smaller"


class RateChoice(NamedTuple):
    """Who chooses the first rate of a training, and which rows it belongs to."""

    #: Whether skort chooses it, in a stream up to the `bound`. If it is not found, the optimizer or
    #: the schedule says it.
    is_auto: bool
    #: Whether the data decide on it when the training starts. The schedule then begins at one, and
    #: multiplies the rate.
    is_found: bool
    #: A step of m rows has m / rows_of_a_step of the rate. None: m / batch_size.
    rows_of_a_step: int | None = None
    #: Whether the rows of a stream lower the rate, unless a schedule is given.
    falls: bool = False
    #: A number for `eta0`: the rate does not exceed it. None: no bound.
    bound: float | None = None


#: The rates of the user's schedule, or of an optimizer that makes its updates itself.
GIVEN_RATE = RateChoice(is_auto=False, is_found=False)


class RateBasis(NamedTuple):
    """What a rate is decided from."""

    plan: "Plan"
    variables: Reparametrization
    score_graph: "ScoreGraph"
    #: Of the rows of a fit, or of a call of `partial_fit`.
    statistics: DataStatistics


def first_rate(basis: RateBasis, spread: tuple[float, float] | None) -> Decision:
    """
    Return the decision on the first rate of a fit, which multiplies the rates of the schedule.
    `spread` has the largest eigenvalue and squared norm of the rows.
    """
    plan = basis.plan
    is_linear = basis.score_graph.is_linear
    factor = plan.factor_of_few_rows
    if not plan.rate.is_found:
        return given_rate(plan, factor, _OWN if is_linear else _OF_NETWORK)

    tags = plan.update.tags
    if tags.gain is None:
        return Decision(
            factor * tags.first_rates[0 if is_linear else 1],
            "the optimizer says it",
            "eta0",
        )
    if not is_linear:
        mean_square = _mean_square(basis)
        rate = network_rate(tags.gain, mean_square, factor)
        return Decision(rate, "0.2 over the gain of the optimizer and the mean square of X", "eta0")

    assert spread is not None  # The rate needs it.
    largest, norm = spread
    n_rows = basis.statistics.n_rows
    smoothness = batch_smoothness(largest, norm, n_rows, min(plan.batch_size, n_rows))
    of_objective = stiffness(basis, smoothness)
    rate = linear_rate(tags.gain, of_objective, factor)

    return Decision(rate, "the largest rate at which batches of these rows are stable", "eta0")


def needs_spread(plan: "Plan", score_graph: "ScoreGraph") -> bool:
    """Return whether the rows of a linear model decide on its rate."""
    has_gain = plan.update.tags.gain is not None
    return plan.rate.is_found and has_gain and score_graph.is_linear


def spread_of_fit(basis: RateBasis) -> tuple[float, float] | None:
    """
    Return the largest eigenvalue and squared norm of the rows of a fit, for its rate and for a
    stream that goes on from it. None: neither needs them, or the Gram matrix of L-BFGS will have
    them.
    """
    plan, variables, score_graph, statistics = basis
    used = variables.standardization
    if plan.is_full and score_graph.is_linear:
        rows = statistics.some_rows
        if whitens(rows.X.shape[1], are_sparse=rows.is_sparse):
            return None
        spread, _ = next(spreads_of_some(rows.X, rows.sample_weight, used))
        return spread
    if not needs_spread(plan, score_graph):
        return None
    return statistics.largest_eigenvalue(used), statistics.largest_norm(used)


def given_rate(plan: "Plan", factor: float, because: str) -> Decision:
    """
    Return the decision on a rate that the schedule has: from the user, or else from the optimizer or
    the schedule itself. The value is the factor of the rates of the schedule.
    """
    is_open = "eta0" in plan.left_open
    return Decision(factor, because, "eta0") if is_open else yours(factor, "eta0")


@rule("first rate")
def linear_rate(gain: float, stiffness: float, part: float = 1.0) -> float:
    """A linear model begins at the largest rate at which its batches are stable."""
    return part / (gain * stiffness)


@rule("first rate")
def network_rate(gain: float, mean_square: float, part: float = 1.0) -> float:
    """
    A network begins at the rate that its optimizer declares;
    SGD begins at 0.2 divided by the mean square of the columns.
    """
    return part * _NETWORK / (gain * mean_square)


def stiffness(basis: RateBasis, smoothness: float) -> float:
    """
    Return a bound of the second derivatives of a linear model's objective, for rows of this
    smoothness.
    """
    loss = basis.variables.loss
    penalty = basis.variables.penalty
    n_outputs = basis.score_graph.n_outputs
    curvature = known_curvature(loss, n_outputs) or _estimated(basis)
    curvature *= loss.weight_scale(n_outputs) * smoothness

    strengths = {} if penalty is None else penalty.strengths(basis.score_graph.coefficients)
    l2 = np.concatenate([np.zeros(1), *(np.ravel(strength.l2) for strength in strengths.values())])

    # The step of a stiffer penalty is implicit, and stable at every rate.
    return curvature + float(np.max(l2[l2 <= curvature], initial=0.0))


def _mean_square(basis) -> float:
    """Return the mean square of the columns of X in the training, at least 1. Scaled columns have 1."""
    used = basis.variables.standardization
    if basis.score_graph.first_layer is None or (used is not None and used.scale is not None):
        return 1.0
    rows = basis.statistics.some_rows
    mean, deviation = moments(rows.X, rows.sample_weight)
    square = deviation**2 + (0.0 if used is not None and used.mean is not None else mean**2)
    return max(1.0, float(np.mean(square)))


def _estimated(basis) -> float:
    """
    Return an estimate of the second derivative of the loss by the score, in the variables of the
    training.
    """
    from skort.graphs.standardized import linear_weights

    plan, variables, score_graph, statistics = basis
    if plan.is_classifier:
        return estimated_curvature(plan.loss, score_graph.n_outputs)

    linear = linear_weights(score_graph)
    assert linear is not None  # The rate of a network is that of its optimizer.
    coef, start = linear
    if coef.any() and not statistics.some_rows.is_sparse:
        start = start + coef @ statistics.columns[0]

    mean, deviation = statistics.targets
    scale = 1.0 if variables.score is None else variables.score.scale
    return (
        estimated_curvature(plan.loss, score_graph.n_outputs, (start, mean, deviation), scale)
        / variables.in_units.unit
    )


def estimated_curvature(
    loss: ScoreLoss,
    n_outputs: int,
    start: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    scale: float | np.ndarray = 1.0,
) -> float:
    """
    Return an estimate of the largest second derivative of the loss of a row by one column of its
    score, which counts in units of its scale.
    """
    # The differences are long, to look across kinks. Their length is one for a classifier. For a
    # regressor that starts at a score s, it is the root mean square of s - y, or one if that is
    # zero or the score is a logarithm. It is the scale for a score without a target of its own, whose
    # distance from y says nothing, and for a column of one y.
    moved = np.repeat(np.eye(n_outputs), 3, axis=0)
    steps = np.array([[-1.0], [0.0], [1.0]] * n_outputs)

    if start is None:
        # One column moves, once for a row of its class and once for a row of the next class.
        others = np.roll(moved, 3, axis=0) if n_outputs > 1 else 1 - moved
        target = np.concatenate([moved, others])
        score = np.tile(steps * moved, (2, 1))
        moved = np.tile(moved, (2, 1))
        length = np.ones(n_outputs)
    else:
        score, mean, deviation = (np.asarray(each, np.float64) for each in start)
        length = np.hypot(score - mean, deviation)
        has_link = loss.inverse_link_function(n_outputs) is not None
        length = np.where((length > 0) & np.isfinite(length) & (not has_link), length, 1.0)
        if np.ndim(scale):
            length = np.where(reads_targets(loss, mean, deviation), length, scale)
        target = mean + steps * deviation
        score = np.tile(score, (len(steps), 1))

    h = moved * length
    # In a loss of several columns, one column moves.
    losses = ScoreLosses(loss, n_outputs)
    below, here, above = (losses.of_rows(s, target) for s in (score - h, score, score + h))

    with np.errstate(all="ignore"):
        differences = np.abs(above - 2 * here + below)
        # Values are in float32: a smaller difference is rounding.
        is_bent = differences > 1e-6 * (np.abs(above) + 2 * np.abs(here) + np.abs(below))
        seconds = differences / (h**2).sum(axis=1)

    is_usable = is_bent & np.isfinite(seconds)
    curvature = float(np.max(seconds, initial=0.0, where=is_usable))
    if not USABLE[0] <= curvature <= USABLE[1]:
        raise _no_curvature_error(loss, n_outputs, target)
    squares = (moved * scale**2).sum(axis=1)
    return float(np.max(seconds * squares, initial=0.0, where=is_usable))


def _no_curvature_error(loss, n_outputs, target):
    """Return the error of a loss without a usable second derivative around targets."""
    from skort.estimators.variables.custom_loss import (
        UNLESS_BOUNDED,
        check_differentiable,
        fault_of,
    )

    check_differentiable(loss, n_outputs)
    fault = fault_of(loss, target)
    if fault:
        is_endless = fault.endswith(UNLESS_BOUNDED)
        return ValueError(f"{fault} If one does, give eta0 a number." if is_endless else fault)
    return ValueError(
        f'eta0="auto": the loss {type(loss).__name__} does not say its largest second derivative, '
        "and float32 shows none around the targets of these rows. Give eta0 a number."
    )
