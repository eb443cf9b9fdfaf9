"""The warnings of values of X and y: means and units far apart, and a y far from all others."""

from typing import Any

import numpy as np

from skort.common.user_warning import warn_user
from skort.estimators.data.columns import listed_with_y
from skort.estimators.training.result import FitResult
from skort.objective.loss import takes_standardized_y
from skort.optim.standardization import moments, robust_moments

# Beyond so many standard deviations, a mean leaves three digits of a standard deviation in float32.
_LOST = 2**14
# With this factor between the units of two columns of y, one has 10,000 times the squared error of
# the other.
_FAR_UNITS = 100.0
_ROUNDING = 1e-7
# A y so many interquartile ranges / 1.349 from the median decides alone where a squared error ends.
# It is searched for only if a y is so many standard deviations from the mean.
_OUTLYING = 1e3
_SUSPECT = 5.0


def warn_of_target_units(result: FitResult) -> None:
    """Warn if the columns of y of a network have units that are far apart."""
    rows = result.ending.rows
    graph = result.model.score_graph
    plan = result.plan
    if (
        rows is None
        or result.n_before
        or graph.is_linear
        or plan.is_classifier
        or not takes_standardized_y(plan.loss, graph.n_outputs)
    ):
        return

    mean, deviation = moments(rows.target, rows.sample_weight)
    # A smaller deviation is the rounding of a constant.
    found = deviation[deviation > _ROUNDING * np.abs(mean)]
    if len(found) and found.max() > _FAR_UNITS * found.min():
        warn_user(
            f"The columns of y have standard deviations from {found.min():.3g} to "
            f"{found.max():.3g}: the loss of the large ones hides that of the small ones. Give "
            "estimator=TransformedTargetRegressor(model, transformer=StandardScaler()), or divide "
            "the columns of y by constants."
        )


def warn_of_lost_digits(estimator: Any, result: FitResult) -> None:
    """
    Warn, at a first training, of columns and of a y that lose digits in the float32 of the ONNX
    file.
    """
    from skort.graphs.layers import TARGET_OFFSET

    used = result.state.standardization
    model = result.model
    rows = result.ending.rows
    if used is None or rows is None or result.n_before or result.plan.dtype == "float64":
        return

    columns = []
    mean = used.mean
    scale = used.deviation

    if (
        mean is not None
        and scale is not None
        and used.is_offset
        and not model.has_steps
        and rows.X.dtype != np.float32
    ):
        is_far = np.abs(mean) > _LOST * scale
        if is_far.any():
            is_far &= moments(rows.X, None)[1] > 0
        names = getattr(estimator, "feature_names_in_", range(len(is_far)))
        columns = [names[i] for i in np.flatnonzero(is_far)]

    is_y_far = False
    target = model.score_graph.arrays.get(TARGET_OFFSET)
    if target is not None:
        varies = moments(rows.target, None)[1] > 0
        is_y_far = bool(np.any(varies & (np.abs(target) > _LOST * used.target_scale)))

    if columns or is_y_far:
        several = len(columns) + is_y_far > 1
        warn_user(
            f"The mean{'s' if several else ''} of {listed_with_y(columns, has_y=is_y_far)} "
            f"{'are' if several else 'is'} more than {_LOST:,} standard deviations from zero. "
            "The estimator predicts with all digits, but its ONNX file takes X and gives "
            'predictions in float32, which loses some. Use dtype="float64" for the file, or '
            "subtract a constant from the data."
        )


def warning_of_outlier(result):
    """Return a warning of a y whose squared error hides all other rows, or None."""
    plan = result.plan
    rows = result.ending.rows
    is_square = (
        not plan.loss.is_robust
        and plan.loss.curvature(result.model.score_graph.n_outputs) is not None
    )
    if rows is None or plan.is_classifier or not is_square:
        return None

    target = rows.counted(rows.target)
    weight = rows.counted(rows.sample_weight)
    mean, deviation = moments(target, weight)
    if not np.any(np.abs(target - mean) > _SUSPECT * deviation):
        return None

    median, scale = robust_moments(target, weight)
    distance = np.abs(target - median) / np.where(scale > 0, scale, np.inf)
    row, column = np.unravel_index(np.argmax(distance), distance.shape)
    if distance[row, column] <= _OUTLYING:
        return None

    return (
        f"y has the value {target[row, column]:.4g}, which is {distance[row, column]:.2g} times as "
        f"far from the median {median[column]:.4g} as usual values are: a squared error follows "
        'this row alone. Check y, or use loss="huber".'
    )
