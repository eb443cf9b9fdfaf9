"""What is said of how a training ended: its warning, or its error."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from skort.common.user_warning import warn_user
from skort.estimators.data.rows import TrainingData
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.initialization import in_units
from skort.estimators.training.result import FitResult
from skort.estimators.training.row_loss import RowLoss, some_of
from skort.exceptions import DivergedError
from skort.optim.schedules import Optimal, has_ended
from skort.optim.standardization import moments
from skort.optim.state import TrainState

# Beside means of more standard deviations, float32 rounds a standard deviation by a thousandth.
_LOST = 2**14
# How many columns a warning names.
_SHOWN = 5
# Standard deviations that differ by more than this make a training slow, or diverge.
_DIFFERENT = 10.0
# Of larger targets, a network may learn too little in the updates of its plan.
_LARGE = 50.0
# It has, where its loss is a larger part of the best constant's.
_GOOD = 0.2
# Or where a line through its scores would lower the loss by a larger part of the best constant's.
_SHORT = 0.05


def warn_of_outcome(estimator: Any, result: FitResult, *, one_epoch: bool) -> None:
    """Warn if a training ended early or did not converge, or raise the error of a callback that ended it."""
    ending, state, config = result.ending, result.state, result.config
    interrupted = isinstance(ending.error, KeyboardInterrupt)
    if ending.error is not None and not interrupted:
        raise ending.error
    if interrupted:
        warn_user(f"Training interrupted by the user: fitted up to the last whole epoch, {state.n_epochs}.")
    elif ending.no_better:
        warn_user(f"The training ended no better than {_no_better_than(result)}", ConvergenceWarning)
    elif estimator.early_stopping and ending.prior is not None and -estimator.best_validation_score_ >= ending.prior:
        warn_user(
            f"The training ended no better than a constant prediction: the loss of the validation set is "
            f"{-estimator.best_validation_score_:.4g} at best, that of its best constant prediction "
            f"{ending.prior:.4g}. Give columns of X that say more, more rows, or a larger validation_fraction.",
            ConvergenceWarning,
        )
    elif not one_epoch and (constant := _constant_of_far(result)) is not None:
        ours = 'standardize="auto", or ' if config.standardize is False else ""
        warn_user(
            f"The updates of a network may be too short for y as it is: its loss is {state.history['loss'][-1]:.4g}, "
            f"that of the best constant {constant:.4g}. Use {ours}a y whose mean is about zero and whose standard "
            "deviation is about one.",
            ConvergenceWarning,
        )
    elif not (state.stopped or config.tol is None or one_epoch or has_ended(config.schedule, state.n_updates)):
        warn_user(
            f"Maximum number of epochs reached before convergence (max_iter={config.max_iter}, "
            f"tol={config.tol}): {_last_epochs(state, config)}",
            ConvergenceWarning,
        )


def _constant_of_far(result):
    """Return the loss of the best constant for a network whose updates seem too short for y as it is, or None."""
    config, rows, used = result.config, result.ending.rows, result.state.standardization
    is_planned = config.is_planned and config.is_open("max_iter") and not result.n_before
    is_scaled = used is not None and used.target_mean is not None
    if config.is_classifier or not is_planned or is_scaled or rows is None or config.loss.is_least_at_zero:
        return None
    model, some, variables = result.model, some_of(rows), config.variables(result.model.score_graph, used)
    row_loss = RowLoss(config, model.score_graph, variables, some)
    weights = variables.training_weights(model.trained_weights)
    constant = row_loss.best_constant(weights)
    is_short = constant <= result.state.history["loss"][-1]
    is_large = not config.standardize and model.inverse_link is None and np.max(np.abs(rows.target)) > _LARGE
    if is_large and not is_short:
        # Longer updates would have brought the scores onto a line that fits y better.
        on_line = variables.training_weights(next(in_units(config, model, some)).trained_weights)
        loss = row_loss.at(weights)
        is_short = loss > _GOOD * constant or loss - row_loss.at(on_line) > _SHORT * constant
    return constant if constant > 0 and is_short else None


def _no_better_than(result):
    """Return the end of the warning of a training that ended as it began, or as a constant prediction."""
    ending, rate = result.ending, f"at a learning rate of {result.eta0:.3g} in the first update"
    cure = _cure(result.config, result.state, ending.rows)
    if ending.constant_loss is not None and not ending.went_back:
        loss = result.state.history["loss"][result.state.n_epochs - 1]
        return (
            f"a constant prediction: its loss is {loss:.4g}, that of the best constant {ending.constant_loss:.4g}, "
            f"{rate}. What the model inside has learned does not help with these rows: train a new one.{cure}"
        )
    kept = ", which it keeps" if ending.went_back else ""
    return (
        f"it began: its objective is {result.new_losses[-1]:.4g}, above that of the initial weights{kept}, "
        f"{rate}.{cure}"
    )


def warn_of_lost_digits(estimator: Any, result: FitResult) -> None:
    """Warn, at the beginning of a training, of columns and of a y whose digits the ONNX file in float32 cannot hold."""
    from skort.graphs.score_graph import TARGET_OFFSET

    used, model, rows = result.state.standardization, result.model, result.ending.rows
    if used is None or rows is None or result.n_before or result.config.dtype == "float64":
        return
    names, mean, scale = [], used.mean, used.scale
    if mean is not None and scale is not None and used.is_offset and not model.has_steps and rows.X.dtype != np.float32:
        is_far = np.abs(mean) > _LOST * scale
        is_far &= True if used.is_flat is None else ~used.is_flat
        columns = getattr(estimator, "feature_names_in_", [f"column {i} of X" for i in range(len(is_far))])
        names = [f"{columns[i]}" for i in np.flatnonzero(is_far)]
    target = model.score_graph.arrays.get(TARGET_OFFSET)
    if target is not None:
        varies = moments(rows.target, None)[1] > 0
        names += ["y"] if np.any(varies & (np.abs(target) > _LOST * used.target_scale)) else []
    if names:
        names = names if len(names) <= _SHOWN else [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
        warn_user(
            f"The mean of {', '.join(names)} is more than {_LOST:,} standard deviations from zero. The estimator "
            "predicts with all digits, but its ONNX file takes X and gives predictions in float32, which loses some. "
            'Use dtype="float64" for the file, or subtract a constant from the data.'
        )


def diverged_error(config: TrainConfig, error: DivergedError, state: TrainState, rows: TrainingData) -> DivergedError:
    """Return the error of a training that diverged from a state, with what may have caused it."""
    of_penalty = ""
    if config.penalty is not None and config.penalty.is_custom:
        of_penalty = " The gradient of the custom penalty must be a number everywhere, where weights are zero, too."
    return DivergedError(f"{error}{of_penalty}{_cure(config, state, rows)}")


def _last_epochs(progress, config):
    """Return what the objective did at the end, and what to do about it."""
    objective = (progress.column("objective") or [])[-10:]
    begin, end = objective[0], objective[-1]
    if len(objective) == 1:
        return "one epoch does not tell whether the objective falls. Increase max_iter."
    if end < begin:
        return (
            f"the objective was still falling, from {begin:.4g} to {end:.4g} in the last {len(objective)} epochs. "
            f"Increase max_iter{'' if config.is_full else ', or eta0'}."
        )
    return (
        f"the objective no longer fell, from {begin:.4g} to {end:.4g} in the last {len(objective)} epochs. Decrease "
        'eta0, or let it fall with learning_rate="adaptive".'
    )


def _cure(config, progress, data):
    """Return what in the data is a likely cause, with its figures, and what to do about it."""
    X, target, sample_weight = data
    used, causes = progress.standardization, []
    if (used is None or used.scale is None) and not scipy.sparse.issparse(X):
        deviation = moments(X, sample_weight)[1]
        spread = np.where(deviation > 0, deviation, np.nan)
        if np.isfinite(spread).any():
            least, most = int(np.nanargmin(spread)), int(np.nanargmax(spread))
            if spread[most] > _DIFFERENT * spread[least]:
                causes.append(
                    f"The columns of X have standard deviations from {spread[least]:.3g} (column {least}) to "
                    f"{spread[most]:.3g} (column {most})."
                )
            elif spread[most] > _DIFFERENT:
                causes.append(f"The columns of X have standard deviations of up to {spread[most]:.3g}.")
    if used is None or used.target_mean is None:
        largest = float(np.max(np.abs(target)))
        if largest > _DIFFERENT:
            causes.append(f"y has values of up to {largest:.3g}.")
    # Where "auto" left X and y as they are, the model does not allow it to change them.
    ours = 'standardize="auto", or ' if config.standardize is False else ""
    lower = 'use optimizer="adam".' if config.is_full else "lower eta0."
    if isinstance(config.schedule, Optimal):
        lower = 'use learning_rate="constant".'
    return " " + " ".join([*causes, f"Use {ours}StandardScaler, or {lower}" if causes else lower.capitalize()])
