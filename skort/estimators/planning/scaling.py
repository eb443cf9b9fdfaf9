"""The scales of X and y in a training."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from skort.estimators.data.rows import DataStatistics
from skort.estimators.planning.decision import Decision, rule, yours
from skort.estimators.planning.epochs import STREAM_ROWS
from skort.estimators.variables.reparametrization import FAR
from skort.estimators.variables.score_losses import reads_together
from skort.objective.loss import is_of_y, takes_standardized_y
from skort.optim.standardization import Standardization, deviation_of_all, usable_scale

if TYPE_CHECKING:
    from skort.estimators.planning.plan import Plan
    from skort.graphs.layers import Layer
    from skort.graphs.score_graph import ScoreGraph

# To make so many columns uncorrelated costs as much as about ten passes over the rows: `python -m
# benchmarks.lbfgs`.
_MANY_COLUMNS = 256
# More columns are mostly those of texts. The second limit is a gigabyte.
_FEW_COLUMNS = 256
_MOST_BYTES = 2**30
# `python -m benchmarks.rules --only relevance` measures it: a column that explains nothing alone
# has this part of the mean.
_LEAST_PART = 0.1


@rule("scaling")
def scaling(plan: "Plan", score_graph: "ScoreGraph", statistics: DataStatistics) -> Decision:
    """
    The columns of X, and y of a regressor, are standardised during the training,
    if the weights can take it back; several columns of y have one scale, unless a custom loss reads
    them together.
    """
    if not plan.standardize:
        return yours(None, "standardize")

    used = _standardization(plan, score_graph, statistics)
    if plan.standardize is True and (used is None or used.scale is None):
        raise ValueError(
            "standardize=True needs a model that first multiplies X by trained weights, so that "
            'they can take the change back. Use standardize="auto" or False.'
        )
    if used is None:
        return Decision(None, "no weights of the model could take it back", "standardize")

    return Decision(
        used,
        "it makes the training shorter; at the end, the weights are changed to those of X and y",
        "standardize",
    )


@rule("scaling")
def dense_if_narrow(X: Any, *, is_partition: bool = False) -> Any:
    """
    A sparse X of at most 256 columns is trained as a dense array of the same numbers, if that takes
    at most a gigabyte.
    """
    if not issparse(X):
        return X

    # Partitions of any size must be alike.
    is_small = is_partition or X.shape[0] * X.shape[1] * X.dtype.itemsize <= _MOST_BYTES
    return X.toarray() if X.shape[1] <= _FEW_COLUMNS and is_small else X


@rule("scaling")
def whitens(n_columns: int, *, are_sparse: bool) -> bool:
    """
    L-BFGS trains a linear model of at most 256 dense columns in variables in which these are
    uncorrelated.
    """
    return n_columns <= _MANY_COLUMNS and not are_sparse


@rule("scaling")
def column_relevance(explained: np.ndarray) -> np.ndarray:
    """
    In a fit, the dense columns of a new network have variances in proportion to the part of y that
    each explains alone plus a tenth of the mean part; with standardize=True, all have the same.
    """
    if not np.any(explained):
        return np.ones(len(explained))
    mean = np.mean(explained)
    return np.sqrt((explained / mean + _LEAST_PART) / (1 + _LEAST_PART))


def at_relevance(of_scaling: Decision, first: "Layer", statistics: DataStatistics) -> Decision:
    """Return the decision on the scales, with the relevance of the columns that a first layer reads."""
    explained = statistics.explained
    if explained is None:
        return of_scaling

    used = of_scaling.value
    # Other columns are ids, which stay as they are, or have one value so far.
    read = first.read(np.arange(len(explained)))
    read = np.setdiff1d(read, [] if used.constant is None else used.constant)
    relevance = np.ones(len(explained))
    relevance[read] = column_relevance(explained[read])
    because = f"{of_scaling.because}; columns that say more about y are larger"
    value = replace(used, scale=used.scale / relevance, relevance=relevance)
    return of_scaling._replace(value=value, because=because)


def described(used: Standardization | None) -> str:
    """Return what is standardised, as text."""
    if used is None:
        return "X and y as they are"

    parts = []
    if used.scale is not None:
        is_centred = used.mean is not None and bool(np.any(used.mean))
        has_one_scale = not is_centred and np.ptp(used.scale) == 0
        half = "" if used.decorrelation is None else " (half decorrelated)"
        parts.append("X, by one number" if has_one_scale else f"columns of X{half}")
    if used.target_mean is not None:
        parts.append("y")
    return " and ".join(parts)


def _standardization(plan, score_graph, statistics):
    """Return the standardization of X and y, as far as the weights of a model can take it back."""
    # A penalty on intercepts means the intercepts of X as it is.
    is_free = plan.penalty is None or plan.penalty.intercepts is None
    # The calls of a stream may be smaller.
    n_rows = max(plan.batch_size, STREAM_ROWS) if plan.is_stream else plan.batch_size
    mean, scale, constant = _of_columns(
        score_graph.first_layer, statistics, n_rows, is_free=is_free
    )
    is_offset = scale is not None and bool(np.any(np.abs(mean) > FAR * scale))

    last = score_graph.last_layer
    target_mean = None
    target_scale: float | np.ndarray = 1.0
    if (
        last is not None
        and not plan.is_classifier
        and takes_standardized_y(plan.loss, score_graph.n_outputs)
    ):
        centre = is_free and last.intercept is not None
        target_mean, deviation = _of_target(
            plan.loss, score_graph.n_outputs, statistics, centre=centre
        )
        target_scale = _scale(deviation, "y")
        target_scale = target_scale if target_scale.size > 1 else float(target_scale.item())

    if scale is None and target_mean is None:
        return None
    return Standardization(mean, scale, target_mean, target_scale, is_offset, constant)


def _of_columns(first, statistics, batch_size, *, is_free):
    """
    Return the means and scales of the columns, and the numbers of the constant columns, or None if
    there are none.
    """
    if first is None:
        return None, None, None

    X = statistics.some_rows.X
    if statistics.some_rows.is_sparse:
        scale = usable_scale(statistics.sparse_scale(batch_size), np.float64)
        # Vectors of one repeated number would take more memory than the weights of many columns.
        mean, scale = (np.broadcast_to(number, X.shape[1]) for number in (0.0, scale))
        return mean, scale, None

    mean, deviation = _centred(*statistics.columns, centre=is_free and first.intercept is not None)
    if first.columns is not None:
        # Other columns are ids, which stay as they are.
        others = np.delete(np.arange(len(mean)), first.columns)
        mean, deviation = mean.copy(), deviation.copy()
        mean[others] = 0.0
        deviation[others] = 1.0
    scale = _scale(deviation, "a column of X")
    # The training subtracts the rounded mean.
    mean = mean.astype(np.float32 if X.dtype == np.float32 else np.float64).astype(np.float64)
    constant = np.flatnonzero(deviation == 0)
    return mean, scale, constant if len(constant) else None


def _scale(deviation: Any, what: str) -> np.ndarray:
    """
    Return standard deviations to divide by. A deviation of zero becomes one. Raise a ValueError if
    float64 cannot hold an inverse.
    """
    scale = usable_scale(deviation, np.float64)
    lost = np.compress(np.ravel((deviation > 0) & (scale != deviation)), np.ravel(deviation))
    if len(lost):
        raise ValueError(
            f"The standard deviation of {what} is {lost[0]:.2g}, whose inverse float64 cannot "
            "hold. Divide it by a constant."
        )

    return scale


def _centred(mean, deviation, *, centre):
    """
    Return the means and standard deviations of columns,
    or zeros and the roots of the mean squares.
    """
    return (mean, deviation) if centre else (np.zeros_like(mean), np.hypot(mean, deviation))


def _of_target(loss, n_outputs, statistics, *, centre):
    """Return the mean and the scale of y, or None and one if y has no scale."""
    if loss.inverse_link_function(n_outputs) is not None:
        # The logarithm of the mean goes into the intercept.
        total = float(np.mean(_centred(*statistics.targets, centre=centre)[0]))
        return (np.zeros(n_outputs), total) if total > 0 else (None, 1.0)

    if loss.is_robust and centre:
        # Such a loss is made for outliers, whose standard deviation would make everything else
        # small.
        mean, deviation = statistics.robust_targets()
    else:
        mean, deviation = _centred(*statistics.targets, centre=centre)

    if is_of_y(loss, n_outputs) and reads_together(loss, n_outputs):
        # Each column may have another unit, as those of a mean and of a logarithm.
        return mean, deviation
    return mean, deviation_of_all(deviation)
