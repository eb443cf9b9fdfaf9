"""The warnings and errors on how a training ended."""

import dataclasses
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from skort.common.user_warning import warn_user
from skort.estimators.data.nesting import is_fitted, model_inside
from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import FITTED_WEIGHTS
from skort.estimators.planning.fine_tuning import Knowledge
from skort.estimators.planning.loss_and_penalty import alpha_inside
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.stopping import is_lower
from skort.estimators.training.result import FAR_END, KEEPS, KEPT, Ending, FitResult
from skort.estimators.variables.custom_loss import fault_at_scores, fault_of
from skort.estimators.variables.custom_penalty import fault_of_penalty
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.row_loss import RowLoss, some_of
from skort.exceptions import DivergedError
from skort.objective.loss import known_curvature, takes_standardized_y
from skort.optim.schedules import advice_to_lower, has_ended, last_update
from skort.optim.standardization import moments, robust_moments
from skort.optim.state import TrainState

# Beyond so many standard deviations, a mean leaves three digits of a standard deviation in float32.
_LOST = 2**14
# New networks on raw columns of wine begin at 35 to 64 times the loss of a constant, and learn.
# Weights that were fitted in other units begin at 220 times (wine) or 610 times (breast cancer),
# and do not learn.
_FAR_START = 100.0
# With this factor between the units of two columns of y, one has 10,000 times the squared error of
# the other.
_FAR_UNITS = 100.0
_ROUNDING = 1e-7
# A class is rare if it has a smaller share of the rows.
_RARE = 0.1
# The number of columns that a warning names.
_SHOWN = 5
# If standard deviations differ by more than this factor, a training is slow, or diverges.
_DIFFERENT = 10.0
# A loss above this part of the best constant's shows that the penalty leaves little more than a
# constant.
_NEARLY = 0.95
# A loss below this part of the loss at the start, and of the loss that follows from the spread of
# y, is below that of every constant.
_FAR_BELOW = 0.9
# A y so many interquartile ranges / 1.349 from the median decides alone where a squared error ends.
# It is searched for only if a y is so many standard deviations from the mean.
_OUTLYING = 1e3
_SUSPECT = 5.0
# So many last epochs tell whether the objective was still falling.
_LAST_EPOCHS = 10
# A schedule that ends before this part of the planned epochs is shorter than its user meant.
_EARLY = 0.5
_CHECK_OF_FITTED = (
    "Check that X and y have the columns, units and labels of the rows that it was fitted on."
)


def warn_of_outcome(estimator: Any, result: FitResult, *, is_stream: bool) -> None:
    """Warn if a training ended early or did not converge. Raise the error of a callback that ended it."""
    ending = result.ending
    state = result.state
    interrupted = isinstance(ending.error, KeyboardInterrupt)
    if ending.error is not None and not interrupted:
        raise ending.error

    if interrupted:
        end = (
            "the fitted weights stay"
            if result.kept in KEEPS
            else f"fitted up to the last whole epoch, {state.n_epochs}"
        )
        warn_user(f"Training interrupted by the user: {end}.")
    elif ending.went_back and (not ending.no_better or "eta0" in result.plan.left_open):
        warn_user(f"The fitted weights stay: {_why_they_stay(result)}", ConvergenceWarning)
    elif ending.no_better:
        warn_user(
            f"The training ended no better than {_no_better_than(result)}", ConvergenceWarning
        )
    elif result.kept == "new":
        warn_user(
            "New weights are better than the fitted ones in cross-validation on these rows, also "
            f"after a training: the fit began at new weights. {_CHECK_OF_FITTED} "
            "early_stopping=False trains the fitted weights."
        )
    elif ending.warned_of_fitted:
        # A warning at the beginning has said what to check first.
        return
    elif (
        result.plan.is_validated
        and ending.validation_constant_loss is not None
        and -estimator.best_validation_score_ >= ending.validation_constant_loss
    ):
        warn_user(
            "The training ended no better than a constant prediction: the loss of the validation "
            f"set is {-estimator.best_validation_score_:.4g} at best, that of its best constant "
            f"prediction {ending.validation_constant_loss:.4g}. If you gave X_val, check that it "
            "has the units of X: a pipeline around the estimator does not transform it. Otherwise, "
            "more rows, other columns of X or a larger validation_fraction may help.",
            ConvergenceWarning,
        )
    elif is_stream:
        _warn_of_stream(result)
    else:
        _warn_of_fit(estimator, result)


def _warn_of_stream(result):
    """
    Warn if the rate of a stream is zero for good, or if one y among its first rows is far from all
    others.
    """
    last = last_update(result.plan.schedule)
    if last is not None and result.state.n_updates > last:
        warn_user(
            f"The learning rate is zero: the schedule ended with update {last}, and later ones, up "
            f"to {result.state.n_updates}, change nothing. A stream takes a schedule without an "
            'end, such as learning_rate="invscaling".',
            ConvergenceWarning,
        )

    # Later calls have the scales of the first rows to compare with.
    if result.n_before:
        return

    warning = _warning_of_outlier(result)
    if warning is not None:
        warn_user(warning, ConvergenceWarning)


def _warn_of_fit(estimator, result):
    """Warn if a fit has ended badly."""
    state = result.state
    plan = result.plan
    too_strong = _too_strong(estimator, result)
    if too_strong is not None:
        warn_user(too_strong, ConvergenceWarning)
    elif not (state.stopped or plan.tol is None or has_ended(plan.schedule, state.n_updates)):
        of_last_epoch = _warning_of_last_epoch(result)
        if of_last_epoch is not None:
            warn_user(of_last_epoch, ConvergenceWarning)
    else:
        # With tol=None, the user decides when the training ends.
        says_when = plan.given["tol"] is None
        warning = (
            _warning_of_outlier(result)
            or _warning_of_zero_rate(result)
            or (None if says_when else _warning_of_useless(result) or _warning_of_steps(result))
        )
        if warning is not None:
            warn_user(warning, ConvergenceWarning)


def _too_strong(estimator, result):
    """
    Return a warning of an alpha that is too strong because it is not in the units of the model
    inside, or None.
    """
    plan = result.plan
    model = result.model
    rows = result.ending.rows
    alpha = plan.given["alpha"]
    penalty = plan.given["penalty"]
    is_number = isinstance(alpha, Real) and float(alpha) > 0 and isinstance(penalty, str)
    has_ended_itself = result.state.stopped or has_ended(plan.schedule, result.state.n_updates)
    if (
        rows is None
        or not (is_number and has_ended_itself)
        or estimator.estimator is None
        or plan.objective_inside.penalty is None
        or not _is_as_stiff_as_loss(result)
    ):
        return None

    same = alpha_inside(
        estimator, dataclasses.replace(plan.objective_inside, alpha=float(alpha)), plan.size
    )
    if math.isclose(same, alpha):
        return None

    variables = result.ending.variables
    row_loss = RowLoss(plan, model.score_graph, variables, some_of(rows))
    constant = row_loss.best_constant(variables.training_weights(model.trained_weights))
    loss = result.state.history["loss"][-1]
    if not constant / _NEARLY > loss > _NEARLY * constant > 0:
        return None

    inside = model_inside(estimator.estimator)
    ours = type(estimator).__name__
    name, value = ("alpha", alpha) if hasattr(inside, "alpha") else ("C", 1 / alpha)
    path = max(
        (path for path in estimator.get_params() if path.endswith(f"__{name}")),
        key=len,
        default=name,
    )

    return (
        f"The training ended near a constant prediction: its loss is {loss:.4g}, that of the "
        f"best constant {constant:.4g}. alpha={alpha:g} of {ours} is in other units than "
        f"{path}: {path}={value:g} is the same as alpha={same:.3g}. Lower alpha, or set {path} "
        "and leave alpha out."
    )


def _is_as_stiff_as_loss(result):
    """
    Return whether, in the variables of the training, the penalty of half of the columns is as
    strong as the curvature of the loss. If a weaker penalty leaves a constant, this has another
    reason.
    """
    variables = result.ending.variables
    graph = result.model.score_graph
    strengths = variables.penalty.strengths(graph.coefficients).values()
    curvature = known_curvature(variables.loss, graph.n_outputs) or 1.0
    stiffness = curvature * variables.loss.weight_scale(graph.n_outputs)
    of_terms = [np.median(np.add(each.l1, each.l2)) for each in strengths]
    return max(of_terms, default=0.0) >= stiffness


def _warning_of_useless(result):
    """
    Return a warning of a model that is not clearly better than the best constant prediction, or
    None.
    """
    plan = result.plan
    rows = result.ending.rows
    model = result.model
    if rows is None or plan.loss.is_least_at_zero or _is_far_below_constants(result):
        return None

    variables = result.ending.variables
    # Some rows are enough, as both losses are of the same ones.
    row_loss = RowLoss(plan, model.score_graph, variables, some_of(rows))
    weights = variables.training_weights(model.trained_weights)
    if row_loss.is_clearly_better(weights):
        return None
    # A fitted model has learned from other rows. It is useless only if it is clearly worse on
    # these.
    if model.inner.is_fitted and not row_loss.is_clearly_worse(weights):
        return None

    return (
        "The model is not clearly better than a constant prediction: its loss is "
        f"{row_loss.at(weights):.4g}, that of the best constant "
        f"{row_loss.best_constant(weights):.4g}. {_checks_of_useless(result)}"
    )


def _warning_of_steps(result):
    """Return a warning of steps that ended far above the least objective, or None."""
    if result.above_least is None:
        return None

    name = result.plan.chosen_of_steps
    return (
        f"The training ended at least {result.above_least:.0%} above its optimum: {FAR_END}. Leave "
        f"{name} at its default: the fit then ends at the optimum. Or take a larger eta0, or a "
        "smaller tol with a larger n_iter_no_change and max_iter."
    )


def _warning_of_zero_rate(result):
    """Return a warning of a schedule that comes to zero long before the planned epochs, or None."""
    plan = result.plan
    state = result.state
    # The default epochs of a linear model are a limit, and no plan.
    is_planned = not result.model.score_graph.is_linear or "max_iter" not in plan.left_open
    is_early = state.n_epochs < _EARLY * plan.max_iter
    if not (is_planned and is_early and has_ended(plan.schedule, state.n_updates)):
        return None

    n_batches = result.n_batches or 1
    return (
        f"The learning rate reached zero after {state.n_epochs} of {plan.max_iter} epochs: the "
        f"schedule ends with update {last_update(plan.schedule)}. An update is a batch, and an epoch "
        f"has {n_batches}: n_updates={plan.max_iter * n_batches} lets it end with the last epoch. If "
        f"it should end here, give max_iter={state.n_epochs}."
    )


def _is_far_below_constants(result):
    """
    Return whether the loss is below that of every constant prediction, as far as y and the history
    tell.
    """
    plan = result.plan
    state = result.state
    rows = result.ending.rows
    if state.first_objective is None:
        return False

    if plan.is_classifier and not plan.loss.custom_parts:
        # For a share p, the best constant of a log-loss has at least 4 log(2) p (1 - p), and that
        # of a hinge 2 min(p, 1 - p), which is above 2 p (1 - p).
        factor = math.log(2) * 4 if plan.loss.is_logistic else 2.0
        of_classes = np.average(rows.target, axis=0, weights=rows.sample_weight)
        constant = factor * float(np.mean(of_classes * (1 - of_classes)))
    elif (
        not (plan.is_classifier or plan.loss.is_robust)
        and plan.loss.curvature(result.model.score_graph.n_outputs) is not None
    ):
        with np.errstate(over="ignore", under="ignore"):
            constant = float(np.mean(np.square(moments(rows.target, rows.sample_weight)[1]))) / 2
    else:
        return False

    return state.history["loss"][state.n_epochs - 1] < _FAR_BELOW * min(
        state.first_objective, constant
    )


def _checks_of_useless(result):
    """Return what to check if a model is no better than a constant prediction."""
    used = result.state.standardization
    plan = result.plan
    if fault := _fault_of_ended(result):
        return fault
    if not (plan.is_classifier or result.model.inverse_link is not None or used is not None):
        ours = 'standardize="auto", or ' if plan.standardize is False else ""
        return f"Use {ours}a y whose mean is about zero and whose standard deviation is about one."

    if plan.is_classifier and plan.loss.smooth_instead is not None and _has_rare_class(result):
        return (
            f"The loss {type(plan.loss).__name__} gains little by a rare class. "
            'class_weight="balanced" lets its rows count more; loss="log_loss" gives probabilities, '
            "for which you can choose a threshold."
        )

    causes = ["the rows of X and y belong together", "the columns say anything about y"]
    if plan.penalty is not None:
        causes.append("alpha is too large")
    if "eta0" not in plan.left_open:
        causes.append(f"eta0 is too {'large' if _is_above_usual_rate(result) else 'small'}")
    if "max_iter" not in plan.left_open and not result.state.stopped:
        causes.append("max_iter is too small")
    *others, last = causes
    return f"Check whether {', whether '.join(others)}, and whether {last}."


def _has_rare_class(result):
    """Return whether a class counts less than a tenth of all rows."""
    rows = result.ending.rows
    shares = np.average(rows.target, axis=0, weights=rows.sample_weight)
    return bool(np.min([shares, 1 - shares]) < _RARE)


def _fault_of_ended(result):
    """Return what is wrong with a custom loss after a bad end of the training, or ""."""
    target = result.ending.rows.target
    fault = fault_of(result.plan.loss, target)
    # Only a training that began again may have met scores at which the loss is no number.
    if fault or not result.state.column("restarts"):
        return fault
    return _fault_at_scores(result.plan, target, result.model)


def _fault_at_scores(plan, target, model):
    """Return what is wrong with a custom loss at scores that a training may reach, or ""."""
    return fault_at_scores(plan.loss, target, model.score_graph, is_classifier=plan.is_classifier)


def _is_above_usual_rate(result):
    """Return whether the optimizer declares a rate, and eta0 is above it."""
    tags = result.plan.update.tags
    usual = tags.first_rates[0 if result.model.score_graph.is_linear else 1]
    return tags.gain is None and result.plan.given["eta0"] > usual


def _warning_of_outlier(result):
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
        'it, and no other row. Check y, or use loss="huber".'
    )


def warn_of_fitted(known: Knowledge) -> None:
    """Warn if a fitted model is worse than the best constant prediction of the new rows."""
    warn_user(
        "On these rows, the fitted model is worse than a constant prediction: its loss is "
        f"{known.loss:.4g}, that of the best constant {known.constant:.4g}. "
        "Training begins from its weights all the same. "
        f"{_CHECK_OF_FITTED}"
    )


def warn_of_far_start(share: float) -> None:
    """
    Warn if the loss at the first weights of a model is many times that of a constant: `share`
    times.
    """
    if share > _FAR_START:
        warn_user(
            f"The model in estimator begins at {share:.3g} times the loss of a constant prediction on "
            "these rows, from which a training may not recover. Its weights seem to be for other "
            "units: scale X and y as they were where the weights were made."
        )


def warn_of_absent(labels: Sequence[Any]) -> None:
    """Warn of labels of a fitted model that no row of its training has."""
    if not len(labels):
        return
    several = len(labels) > 1
    shown = ", ".join(map(repr, labels[:_SHOWN]))
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    warn_user(
        f"y has no row of the class{'es' if several else ''} {shown}{more}, which the fitted model "
        f"knows: training on these rows alone forgets {'them' if several else 'it'}. Give some old "
        f"rows of {'these classes' if several else 'this class'}, too, or make fewer epochs, by "
        "max_iter or fewer calls of partial_fit."
    )


def warn_of_one_target() -> None:
    """Warn if all rows that a fitted network is to train on have the same target."""
    warn_user(
        "y is the same in all rows: a fitted network that trains on them alone forgets the rest. "
        "Give rows with other values of y, too, or call partial_fit once, which forgets less."
    )


def _ends_as_constant(ending: Ending) -> bool:
    """Return whether fitted weights ended no better than a constant does."""
    return ending.constant_loss is not None and not ending.went_back


def warn_of_unused_weights(wrapped: Any, result: FitResult) -> None:
    """
    Warn if the model inside is fitted, but was trained from new weights; not if any weights lead to
    the same end.
    """
    plan = result.plan
    ends_at_optimum = plan.is_full and result.model.score_graph.is_linear
    # There is no decision while the first rows of a stream wait.
    weights = plan.decisions.get("weights")
    went_on = weights is not None and weights.value == FITTED_WEIGHTS
    if ends_at_optimum or went_on:
        return

    # A fitted TransformedTargetRegressor has the weights in a copy of the model that it was given.
    inside = wrapped.model
    if wrapped.target is not None and is_fitted(wrapped.target):
        inside = wrapped.target
    elif not is_fitted(inside):
        return

    name = type(inside).__name__
    warn_user(
        f"estimator: The {name} inside is fitted, but the training began at new weights. To begin "
        "at the fitted ones, give FrozenEstimator(estimator). If you want new ones, give "
        "clone(estimator), which is not fitted."
    )


def _why_they_stay(result):
    """Return the end of the warning that the fitted weights stay."""
    if result.kept in KEEPS:
        return (
            f"{KEPT[result.kept].because}. partial_fit learns from 20 rows or more and forgets "
            "little. Or fit a new model to the old and the new rows. early_stopping=False trains on "
            "the new rows to the end, and forgets the old ones."
        )
    if not result.plan.is_validated:
        return "the trained ones have no lower objective on these rows."

    return "the trained ones have no lower loss on the validation set."


def _no_better_than(result):
    """Return the end of a warning of a training that ended as it began, or as a constant prediction."""
    ending = result.ending
    rate = f"The learning rate of the first update was {result.eta0:.3g}."
    if _ends_as_constant(ending):
        loss = result.state.history["loss"][result.state.n_epochs - 1]
        return (
            f"a constant prediction: its loss is {loss:.4g}, that of the best constant "
            f"{ending.constant_loss:.4g}. {rate} {_cure_of_constant(result.plan)}"
        )

    cure = _fault_of_ended(result) or _cure(result.plan, result.state, ending.rows)
    kept = ", which it keeps" if ending.went_back else ""
    return (
        f"it began: its objective is {result.new_losses[-1]:.4g}, above that of the initial "
        f"weights{kept}. {rate} {cure}"
    )


def _cure_of_constant(plan):
    """Return what to do if fitted weights have not helped."""
    if plan.given["warm_start"]:
        return (
            "The weights of the last fit do not help yet: increase max_iter, or begin anew with "
            "warm_start=False."
        )
    return (
        "What the model inside has learned does not help with these rows: train a new one. A larger "
        "eta0 or max_iter changes its weights more."
    )


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

    names = []
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
        columns = getattr(
            estimator, "feature_names_in_", [f"column {i} of X" for i in range(len(is_far))]
        )
        names = [f"{columns[i]}" for i in np.flatnonzero(is_far)]

    target = model.score_graph.arrays.get(TARGET_OFFSET)
    if target is not None:
        varies = moments(rows.target, None)[1] > 0
        names += ["y"] if np.any(varies & (np.abs(target) > _LOST * used.target_scale)) else []

    if names:
        names = names if len(names) <= _SHOWN else [*names[:_SHOWN], f"{len(names) - _SHOWN} more"]
        warn_user(
            f"The mean of {', '.join(names)} is more than {_LOST:,} standard deviations from zero. "
            "The estimator predicts with all digits, but its ONNX file takes X and gives "
            'predictions in float32, which loses some. Use dtype="float64" for the file, or '
            "subtract a constant from the data."
        )


def diverged_error(
    plan: Plan,
    error: DivergedError,
    state: TrainState,
    rows: TrainingData,
    model: Model,
    variables: Reparametrization,
) -> DivergedError:
    """
    Return the error of a training that diverged from a state, or from the weights of a model, with
    its likely cause.
    """
    of_penalty = ""
    if plan.penalty is not None and plan.penalty.is_custom:
        if fault := fault_of_penalty(plan.penalty, model.score_graph):
            return DivergedError(f"{error} {fault}")
        of_penalty = " The custom penalty may be too strong: lower its alpha."

    cure = (
        fault_of(plan.loss, rows.target)
        or _of_beginning(plan, rows, model, variables)
        or _fault_at_scores(plan, rows.target, model)
        or _cure(plan, state, rows)
    )
    return DivergedError(f"{error}{of_penalty} {cure}")


def _of_beginning(plan, rows, model, variables):
    """Return a sentence if the loss of the fitted weights is no number before the first update, or ""."""
    weights = plan.decisions.get("weights")
    if weights is None or weights.value != FITTED_WEIGHTS:
        return ""

    with np.errstate(all="ignore"):
        row_loss = RowLoss(plan, model.score_graph, variables, some_of(rows))
        loss = row_loss.at(variables.training_weights(model.trained_weights))
    if math.isfinite(loss):
        return ""
    return (
        f"The loss {type(plan.loss).__name__} of the weights that the training began at is {loss} "
        "on these rows: they were fitted with another loss, or in other units. Set the loss back, "
        "or train a new model."
    )


def _warning_of_last_epoch(result):
    """Return a warning of a training that used all its epochs, or None if more would change little."""
    state = result.state
    plan = result.plan
    if state.n_epochs < plan.max_iter:
        # The search for a lower objective, which is one epoch, had no time left.
        begin, end = state.column("objective")[-2:]
        return (
            "SGD no longer lowered the objective. Then L-BFGS over all rows lowered it from "
            f"{begin:.4g} to {end:.4g} in max_iter={plan.max_iter} iterations, and it was still "
            "falling: the optimum is lower. Increase max_iter. Or increase alpha: L-BFGS then needs "
            "fewer iterations."
        )

    what = _rising_score(state) if plan.is_validated else _last_epochs(result)
    if what is None:
        return None
    return (
        f"Maximum number of epochs reached before convergence (max_iter={plan.max_iter}, "
        f"tol={plan.tol}): {what}"
    )


def _rising_score(state):
    """
    Return what the validation score did at the end. None: the last epochs did not clearly raise it,
    and the best weights have come back.
    """
    scores = state.column("validation_score")
    best = [max(scores[:n]) for n in (len(scores) - _LAST_EPOCHS, len(scores)) if n > 0]
    if len(best) == 1:
        best = [scores[0], *best]
    begin, end = best
    # A score is minus an objective.
    if len(scores) > 1 and not is_lower(-end, -begin):
        return None
    return (
        f"the best validation score was still rising, from {begin:.4g} to {end:.4g} in the last "
        f"{min(len(scores), _LAST_EPOCHS)} epochs. Increase max_iter, or eta0."
    )


def _last_epochs(result):
    """Return what the objective did at the end, and what to do about it."""
    plan = result.plan
    rows = result.ending.rows
    objective = (result.state.column("objective") or [])[-_LAST_EPOCHS:]
    begin = objective[0]
    end = objective[-1]
    if len(objective) == 1:
        return "one epoch does not tell whether the objective falls. Increase max_iter."

    if end < begin:
        what = "was still falling"
        cure = f"Increase max_iter{'' if plan.is_full else ', or eta0'}."
    else:
        what = "no longer fell"
        cure = 'Decrease eta0, or let it fall with learning_rate="adaptive".'
    fault = "" if rows is None else fault_of(plan.loss, rows.target)

    return (
        f"the objective {what}, from {begin:.4g} to {end:.4g} in the last {len(objective)} epochs. "
        f"{fault or cure}"
    )


def _cure(plan, state, data):
    """Return the likely cause in the data, or the rate, and what to do about it."""
    X, target, sample_weight = data
    used = state.standardization
    of_X = of_y = ""
    if (used is None or used.scale is None) and not scipy.sparse.issparse(X):
        of_X = _spread_of_columns(X, sample_weight)
    largest = float(np.max(np.abs(target)))
    if (used is None or used.target_mean is None) and largest > _DIFFERENT:
        of_y = f"y has values of up to {largest:.3g}."

    cures = []
    # A score that is a logarithm has a scale of one.
    is_log = plan.loss.inverse_link_function(target.shape[1]) is not None
    if of_X or (of_y and not is_log):
        # "auto" leaves X and y as they are if the model does not allow a change.
        ours = 'standardize="auto", or ' if plan.standardize is False else ""
        cures.append(f"use {ours}StandardScaler")
    if of_y and is_log:
        cures.append(f"divide y by {largest:.0e}")
    if plan.loss.custom_parts and is_log and not (plan.is_full or plan.is_stream):
        cures.append('use optimizer="lbfgs" if the loss is smooth')
    lower = 'use optimizer="adam"' if plan.is_full else _advice_on_rate(plan)

    cure = f"{', '.join(cures)}, or {lower}" if cures else lower
    return " ".join([*filter(None, (of_X, of_y)), f"{cure[0].upper()}{cure[1:]}."])


def _spread_of_columns(X, sample_weight):
    """Return a sentence on columns of X with different or large standard deviations, or ""."""
    deviation = moments(X, sample_weight)[1]
    spread = np.where(deviation > 0, deviation, np.nan)
    if not np.isfinite(spread).any():
        return ""

    least = int(np.nanargmin(spread))
    most = int(np.nanargmax(spread))
    if spread[most] > _DIFFERENT * spread[least]:
        return (
            f"The columns of X have standard deviations from {spread[least]:.3g} (column {least}) to "
            f"{spread[most]:.3g} (column {most})."
        )
    if spread[most] > _DIFFERENT:
        return f"The columns of X have standard deviations of up to {spread[most]:.3g}."
    return ""


def _advice_on_rate(plan):
    """Return what to do about a rate that seems too large."""
    if not (plan.rate.is_found and "eta0" in plan.left_open):
        return advice_to_lower(plan.schedule)

    # `fit` has tried smaller rates, so that another cause is more likely.
    check = "check X and y for values far from all others"
    if plan.loss.custom_parts:
        check = "check that the loss and its gradient are numbers at all scores"
    return f"{check}, or give eta0 a number below this rate"
