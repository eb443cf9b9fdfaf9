"""The gap of a linear fit by the user's steps: how far its objective ended above the least one."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.common.blas import one_blas_thread
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.stopping import is_far_above
from skort.estimators.training.finish import rounds
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.row_loss import RowLoss, some_of

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph

# The rows on which a gap is measured, and more for many columns: few rows have a least objective
# that fits their noise.
_ROWS = 2000
_ROWS_PER_COLUMN = 50
# The iterations that measure a gap if the curvature of the loss has no bound.
_ITERATIONS = 10
# A gap from the Gram matrix of other rows is sure enough if it is below this part of one worth a
# warning.
_SURE = 0.8
# As in a `Whitening` for float32.
_LEAST = 1e-6
# With a smaller share of rows in a class, the curvature of a log-loss is far below its bound.
RARE = 0.1
# The number of values in a block of rows.
_BLOCK = 2**17


def rarest_share(plan: Plan, rows: TrainingData) -> float:
    """Return the share of rows in the rarest class of a classifier; 1/2 for a regressor."""
    if not plan.is_classifier:
        return 0.5
    of_classes = rows.target.mean(axis=0)
    return float(np.minimum(of_classes, 1 - of_classes).min())


def rows_for_gap(rows: TrainingData, share: float = RARE) -> TrainingData:
    """Return the rows on which the gap is measured: more if a class has a smaller share of them."""
    most = max(_ROWS, _ROWS_PER_COLUMN * rows.X.shape[1])
    # As many rows of a rarer class need more rows of all.
    times = max(1.0, min(RARE / max(share, 1e-9), float(len(rows.target))))
    return some_of(rows, math.ceil(times * most))


def constant_weights(
    plan: Plan,
    variables: Reparametrization,
    score_graph: "ScoreGraph",
    weights: dict[str, np.ndarray],
    rows: TrainingData,
) -> dict[str, np.ndarray]:
    """Return weights of the best constant prediction; of zeros, if the model has no intercept."""
    constant = {name: np.zeros_like(value) for name, value in weights.items()}
    layer = score_graph.last_layer
    if layer is not None and layer.intercept is not None:
        loss = RowLoss(plan, score_graph, variables, rows)
        constant[layer.intercept] = loss.best_intercept(weights, layer.intercept)

    return constant


def is_surely_near(
    plan: Plan,
    variables: Reparametrization,
    score_graph: "ScoreGraph",
    weights: dict[str, np.ndarray],
    statistics: DataStatistics,
) -> bool:
    """
    Return whether the objective at some weights is clearly near the least one. False: it is not, or
    this takes steps to find out.
    """
    found = rough_gap(plan, variables, score_graph, weights, statistics)
    if found is None:
        return False
    gap, objective = found
    return math.isfinite(gap) and not is_far_above(gap / _SURE, objective, constant=0.0)


def rough_gap(
    plan: Plan,
    variables: Reparametrization,
    score_graph: "ScoreGraph",
    weights: dict[str, np.ndarray],
    statistics: DataStatistics,
) -> tuple[float, float] | None:
    """
    Return a bound of the gap of a linear model, and its objective. None: it takes steps to find
    one.

    It is that of `part_above_least`, but with the Gram matrix of rows from which the first rate was
    found, and without a copy of the rows.
    """
    from skort.solvers.whitening import inverse_factor

    layer = _only_layer(plan, variables, score_graph)
    curvature = variables.loss.curvature(score_graph.n_outputs)
    gram = statistics.gram(variables.standardization)
    if layer is None or curvature is None or gram is None:
        return None

    coefficient = _by_input(layer, weights[layer.coefficient])
    l2 = _by_input(layer, _l2(variables, layer, weights[layer.coefficient]))
    rows = rows_for_gap(statistics.some_rows)
    found = _of_rows(variables, score_graph, weights, rows)
    if found is None:
        return None

    loss, gradient = found
    n_columns = len(coefficient)
    gradient[:n_columns] += l2 * coefficient
    objective = loss + 0.5 * float(np.sum(l2 * np.square(coefficient)))

    # All outputs share the matrix, as the variables of L-BFGS do.
    gram = gram[: len(gradient), : len(gradient)]
    curved = curvature * variables.sample_weight_scale(score_graph.n_outputs) * gram
    curved[range(n_columns), range(n_columns)] += l2.mean(axis=1)
    with one_blas_thread(curved.size * n_columns):
        gap = 0.5 * float(np.sum(np.square(inverse_factor(curved, _LEAST).T @ gradient)))

    return gap, objective


def _only_layer(plan, variables, score_graph):
    """
    Return the layer of a model that is one product and maybe an intercept, with no penalty but l2.
    None: another model.
    """
    layer = score_graph.first_layer
    penalty = plan.penalty
    if (
        layer is None
        or layer.columns is not None
        or variables.loss.weight_names
        or (variables.score is not None and variables.score.is_of_y)
        or (penalty is not None and (penalty.is_custom or penalty.intercepts is not None))
    ):
        return None

    names = {layer.coefficient, layer.intercept} - {None}
    return layer if names == {*score_graph.trainable} == {*score_graph.arrays} else None


def _by_input(layer, values):
    """Return values of a layer's coefficient, with a row for each column of X."""
    return values.T if layer.transposed else values


def _l2(variables, layer, coefficient):
    """Return the strength of the l2 term for each element of a layer's coefficient."""
    penalty = variables.penalty
    strengths = {} if penalty is None else penalty.strengths((layer.coefficient,))
    l2 = strengths[layer.coefficient].l2 if strengths else 0.0
    return np.broadcast_to(l2, coefficient.shape)


def _of_rows(variables, score_graph, weights, rows):
    """
    Return the mean loss of rows, and its gradient by the weights of the training: a row for each
    column of X, and one for an intercept. None: the loss has no gradient of its own.
    """
    from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
    from skort.solvers.loss_graph import SCORE, score_gradient_model

    n_outputs = score_graph.n_outputs
    layer = score_graph.first_layer
    objective = Objective(variables.loss, None, (), n_outputs, score_graph.dtype)
    model = score_gradient_model(objective)
    if model is None:
        return None

    # The training multiplies (X - mean) * inverse. Here the weights take the change, and X stays as
    # it is.
    change = variables.row_change
    inverse = np.broadcast_to(1.0 if change.inverse is None else change.inverse, rows.X.shape[1:])
    mean = np.zeros_like(inverse) if change.mean is None else change.mean
    of_X = _by_input(layer, weights[layer.coefficient]) * inverse[:, None]
    start = -(mean @ of_X)
    if layer.intercept is not None:
        start = start + weights[layer.intercept].ravel()

    counts = np.ones(len(rows.target)) if rows.sample_weight is None else rows.sample_weight
    counts = counts * (variables.sample_weight_scale(n_outputs) / counts.sum())
    dtype = np.float32 if rows.X.dtype == np.float32 else np.float64
    of_X = of_X.astype(dtype)
    loss = 0.0
    sums = np.zeros(n_outputs)
    by_X = np.zeros(of_X.shape)

    # The second product finds the block still in the cache.
    length = max(1, _BLOCK // rows.X.shape[1])
    with one_blas_thread(length * of_X.size), np.errstate(all="ignore"):
        for begin in range(0, len(counts), length):
            part = slice(begin, begin + length)
            X = rows.X[part]
            inputs = {
                SCORE: (X @ of_X + start).astype(score_graph.dtype),
                TARGET: variables.target(rows.target[part]),
                SAMPLE_WEIGHT: counts[part, None].astype(score_graph.dtype),
            }
            by_score = model.run(SCORE_GRADIENT, inputs)
            loss += float(model.run(LOSS, inputs))
            sums += by_score.sum(axis=0, dtype=np.float64)
            by_X += X.T @ by_score.astype(dtype)

        by_rows = (by_X - mean[:, None] * sums) * inverse[:, None]

    return loss, by_rows if layer.intercept is None else np.vstack([by_rows, sums])


def part_above_least(
    full: Any,
    weights: dict[str, np.ndarray],
    constant: Callable[[], dict[str, np.ndarray]],
    *,
    is_bounded: bool,
) -> float | None:
    r"""
    Return a lower bound of the gap at some weights, as a part of the objective. None: it is small.

    Where the loss has a bound of its curvature, no second derivative by the variables u of a
    `FullStep` is above one, so that

    .. math:: J(u) - \min J \ge \tfrac{1}{2} \lVert \nabla J(u) \rVert^2

    (Nesterov, Introductory lectures on convex optimization, 2004, theorem 2.1.5). Otherwise some
    iterations find a lower objective.
    """
    from skort.solvers.flat_weights import flat

    start = full.variables_of(flat(weights).astype(np.float64))
    end = full.evaluate(start)
    if not end.objective > 0:
        # No part of such an objective means anything.
        return None
    if is_bounded:
        fall = 0.5 * float(end.gradient @ end.gradient)
    else:
        fall = end.objective - rounds(full, end, _ITERATIONS)[0].objective

    # Most fits end near the least objective, and need no second pass over the rows.
    if not is_far_above(fall, end.objective, constant=0.0):
        return None

    of_constant = full.evaluate(full.variables_of(flat(constant()).astype(np.float64))).objective
    return fall / end.objective if is_far_above(fall, end.objective, of_constant) else None
