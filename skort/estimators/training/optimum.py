"""
The optimum of a linear fit by steps. If the user leaves the steps open, L-BFGS goes on to the
optimum; otherwise, a warning says how far above it the steps ended.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skort.common.blas import one_blas_thread
from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.epochs import is_far_above, is_lower
from skort.estimators.planning.plan import Plan
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.row_loss import RowLoss, some_of
from skort.optim.descent import AT_KINKS, Point, descent
from skort.optim.split import product_descent, split_descent
from skort.optim.training import Finished
from skort.optim.transforms import norm

# A round that lowers the objective by a smaller part is the last one.
_ROUND = 1e-2
# With an l1 term, a smaller fall may still make a weight zero; and without kinks, a round takes few
# passes over the rows.
_ROUND_OF_ZEROS = 1e-4
# An objective is no longer falling if so many last iterations have not clearly lowered it.
_LAST = 100
# The number of changes that L-BFGS remembers at kinks, if they are not too many numbers; and
# without kinks.
_MEMORY = 100
_MOST_NUMBERS = 10**7
_LEAST_MEMORY = 10
# The changes of more weights would be too many numbers. Texts without a vocabulary have so many
# weights.
_MOST_WEIGHTS = _MOST_NUMBERS // _LEAST_MEMORY
# Without kinks, fewer iterations show that a descent falls no further: `python -m benchmarks.lbfgs
# --texts`.
_SMOOTH = AT_KINKS._replace(n_iterations=10)
# A gap is measured on so many rows, and on more for many columns: the least objective of few rows
# fits their noise.
_ROWS = 2000
_ROWS_PER_COLUMN = 50
# The iterations that measure a gap if the curvature of the loss has no bound.
_ITERATIONS = 10
# A gap by the Gram matrix of other rows is sure enough if it is below this part of a gap that is
# worth a warning.
_SURE = 0.8
# The same as in a `Whitening` for float32.
_LEAST = 1e-6
# If a class has a smaller share of the rows, the curvature of a log-loss is far below its bound.
_RARE = 0.1
# The number of values in a block of rows.
_BLOCK = 2**17


@dataclass(frozen=True, eq=False)
class Finish:
    """The search for a lower objective, from the weights of a training."""

    #: Makes the `FullStep` of all rows.
    full_step: Callable[[], Any]

    @np.errstate(over="ignore", under="ignore", invalid="ignore")
    def __call__(self, weights: dict[str, np.ndarray], max_iter: int) -> Finished | None:
        """Return the end at a lower objective, or None if there is none."""
        from skort.solvers.base import flat

        if sum(each.size for each in weights.values()) > _MOST_WEIGHTS:
            return None

        full = self.full_step()
        begin = full.evaluate(full.variables_of(flat(weights).astype(np.float64)))
        best, is_falling = rounds(full, begin, max_iter)
        if not best.objective < begin.objective:
            return None

        return Finished(
            weights=full.weights_of(best.weights),
            means=(best.objective, best.loss),
            gradient_norm=norm(best.gradient),
            is_falling=is_falling,
        )


def rounds(full: Any, point: Point, max_iter: int) -> tuple[Point, bool]:
    """
    Lower the objective of a `FullStep` by several descents, each with a new memory, until a descent
    hardly lowers it. Return the lowest point, and whether the objective was still falling when no
    iterations were left: whether the last hundred lowered it by more than 1 %.
    """
    l1 = full.l1
    is_smooth = l1 is None and not full.has_kink
    limits = _SMOOTH if is_smooth else AT_KINKS
    most = _LEAST_MEMORY if is_smooth else _MEMORY
    history_size = max(_LEAST_MEMORY, min(most, _MOST_NUMBERS // point.weights.size))
    least_fall = _ROUND if l1 is None or full.has_kink else _ROUND_OF_ZEROS
    n_left = max_iter
    best = point
    lowest = deque([point.objective], maxlen=_LAST + 1)

    def after(each):
        nonlocal best, n_left
        n_left -= 1
        best = min(best, each, key=lambda at: at.objective)
        lowest.append(best.objective)
        # The descent goes on.
        return False

    while n_left > 0:
        begin = best
        if l1 is None:
            descent(full.evaluate, begin, limits, n_left, history_size, after)
        else:
            best = split_descent(full.evaluate, l1, begin, n_left, history_size, after)
            if full.has_kink:
                best = product_descent(full.evaluate, l1, best, n_left, history_size, after)
        if not begin.objective - best.objective > least_fall * abs(begin.objective):
            return best, False

    return best, is_lower(best.objective, lowest[0])


class EndOfSteps(NamedTuple):
    """A linear model where its steps ended."""

    plan: Plan
    model: Model
    variables: Reparametrization
    #: In the variables of the training.
    weights: dict[str, np.ndarray]


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def part_above_least(
    end: EndOfSteps,
    rows: TrainingData,
    statistics: DataStatistics,
    full_step: Callable[[TrainingData], Any],
) -> float | None:
    """
    Return the gap between the end of the steps and the least objective, as a part of the objective.
    None: it is small.

    `full_step` makes the `FullStep` of rows.
    """
    from skort.solvers.base import flat

    plan, model, variables, weights = end
    share = _rarest_share(plan, rows)
    has_bound = (
        share >= _RARE
        and variables.loss.curvature(model.score_graph.n_outputs) is not None
        and not plan.has_l1(model)
    )
    # Most fits end near the least objective, and need no second pass over the rows.
    if has_bound and is_surely_near(end, statistics):
        return None

    rows = _rows_for_gap(rows, share)
    full = full_step(rows)
    start = full.variables_of(flat(weights).astype(np.float64))
    point = full.evaluate(start)
    if not point.objective > 0:
        # A part of a negative objective means nothing.
        return None

    gap = _least_gap(full, point, is_bounded=has_bound)
    if not is_far_above(gap, point.objective, constant=0.0):
        return None

    constant = flat(_constant_weights(end, rows)).astype(np.float64)
    of_constant = full.evaluate(full.variables_of(constant)).objective
    return gap / point.objective if is_far_above(gap, point.objective, of_constant) else None


def _least_gap(full, point, *, is_bounded):
    r"""
    Return a lower bound of the gap at a point of a `FullStep`.

    Where the loss has a bound of its curvature, no second derivative by the variables u of a
    `FullStep` is above one, so that

    .. math:: J(u) - \min J \ge \tfrac{1}{2} \lVert \nabla J(u) \rVert^2

    (Nesterov, Introductory lectures on convex optimization, 2004, theorem 2.1.5). Otherwise some
    iterations find a lower objective.
    """
    if is_bounded:
        return 0.5 * float(point.gradient @ point.gradient)
    return point.objective - rounds(full, point, _ITERATIONS)[0].objective


def _rarest_share(plan, rows):
    """Return the share of rows in the rarest class of a classifier; 1/2 for a regressor."""
    if not plan.is_classifier:
        return 0.5
    of_classes = rows.target.mean(axis=0)
    return float(np.minimum(of_classes, 1 - of_classes).min())


def _rows_for_gap(rows, share=_RARE):
    """Return the rows on which the gap is measured: more if a class has a smaller share of them."""
    most = max(_ROWS, _ROWS_PER_COLUMN * rows.X.shape[1])
    # To have as many rows of a rare class, it takes more rows of all.
    times = max(1.0, min(_RARE / max(share, 1e-9), float(len(rows.target))))
    return some_of(rows, math.ceil(times * most))


def _constant_weights(end, rows):
    """Return weights of the best constant prediction; of zeros, if the model has no intercept."""
    plan, model, variables, weights = end
    constant = {name: np.zeros_like(value) for name, value in weights.items()}
    layer = model.score_graph.last_layer
    if layer is not None and layer.intercept is not None:
        loss = RowLoss(plan, model.score_graph, variables, rows)
        constant[layer.intercept] = loss.best_intercept(weights, layer.intercept)

    return constant


def is_surely_near(end: EndOfSteps, statistics: DataStatistics) -> bool:
    """
    Return whether the objective is clearly near the least one. False: it is not, or only steps over
    the rows can tell.
    """
    found = rough_gap(end, statistics)
    if found is None:
        return False
    gap, objective = found
    return math.isfinite(gap) and not is_far_above(gap / _SURE, objective, constant=0.0)


def rough_gap(end: EndOfSteps, statistics: DataStatistics) -> tuple[float, float] | None:
    """
    Return a bound of the gap of a linear model, and its objective. None: only steps over the rows
    find one.

    The bound is that of `part_above_least`. It needs no copy of the rows: its Gram matrix is the
    one from which the first rate was found.
    """
    from skort.solvers.whitening import inverse_factor

    variables = end.variables
    weights = end.weights
    n_outputs = end.model.score_graph.n_outputs
    layer = _only_layer(end)
    curvature = variables.loss.curvature(n_outputs)
    gram = statistics.gram(variables.standardization)
    if layer is None or curvature is None or gram is None:
        return None

    coefficient = _by_input(layer, weights[layer.coefficient])
    l2 = _by_input(layer, _l2(variables, layer, weights[layer.coefficient]))
    rows = _rows_for_gap(statistics.some_rows)
    found = _of_rows(end, rows)
    if found is None:
        return None

    loss, gradient = found
    n_columns = len(coefficient)
    gradient[:n_columns] += l2 * coefficient
    objective = loss + 0.5 * float(np.sum(l2 * np.square(coefficient)))

    # All outputs share the matrix, as the variables of L-BFGS do.
    gram = gram[: len(gradient), : len(gradient)]
    curved = curvature * variables.sample_weight_scale(n_outputs) * gram
    curved[range(n_columns), range(n_columns)] += l2.mean(axis=1)
    with one_blas_thread(curved.size * n_columns):
        gap = 0.5 * float(np.sum(np.square(inverse_factor(curved, _LEAST).T @ gradient)))

    return gap, objective


def _only_layer(end):
    """
    Return the only layer of a model: a product, maybe with an intercept, and no penalty but l2.
    None: the model has another form.
    """
    score_graph = end.model.score_graph
    variables = end.variables
    layer = score_graph.first_layer
    penalty = end.plan.penalty
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


def _of_rows(end, rows):
    """
    Return the mean loss of rows, and its gradient by the weights of the training: a row for each
    column of X, and one for an intercept. None: the loss has no gradient of its own.
    """
    from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
    from skort.solvers.loss_graph import SCORE, score_gradient_model

    variables = end.variables
    weights = end.weights
    score_graph = end.model.score_graph
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

    # The block is still in the cache at the second product.
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
