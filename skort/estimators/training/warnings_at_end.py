"""The warnings of a training that ended early, or without convergence."""

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from skort.common.user_warning import warn_user
from skort.estimators.data.nesting import is_fitted
from skort.estimators.planning.decision import FITTED_WEIGHTS
from skort.estimators.planning.epochs import is_lower
from skort.estimators.training.diverged import likely_cause
from skort.estimators.training.no_better_than_constant import (
    fault_of_ended,
    warning_of_strong_alpha,
    warning_of_useless,
)
from skort.estimators.training.result import FAR_END, KEEPS, KEPT, FitResult
from skort.estimators.training.warnings_at_start import CHECK_OF_FITTED
from skort.estimators.training.warnings_of_values import warning_of_outlier
from skort.estimators.variables.custom_loss import fault_of
from skort.optim.schedules import has_ended, last_update

# So many last epochs tell whether the objective was still falling.
_LAST_EPOCHS = 10
# A schedule that ends before this part of the planned epochs is shorter than its user meant.
_EARLY = 0.5


def warn_of_outcome(estimator: Any, result: FitResult, *, is_stream: bool) -> None:
    """Warn if a training ended early or did not converge. Raise the error of a callback that ended it."""
    ending = result.ending
    outcome = ending.outcome
    if outcome is None:
        # The first rows of a stream wait for more, and no step was made.
        return

    state = result.state
    interrupted = isinstance(outcome.error, KeyboardInterrupt)
    if outcome.error is not None and not interrupted:
        raise outcome.error

    if interrupted:
        end = (
            "the fitted weights stay"
            if result.kept in KEEPS
            else f"fitted up to the last whole epoch, {state.n_epochs}"
        )
        warn_user(f"Training interrupted by the user: {end}.")
    elif outcome.went_back and (not outcome.no_better or "eta0" in result.plan.left_open):
        warn_user(f"The fitted weights stay: {_why_they_stay(result)}", ConvergenceWarning)
    elif outcome.no_better:
        warn_user(
            f"The training ended no better than {_no_better_than(result)}", ConvergenceWarning
        )
    elif result.kept == "new":
        warn_user(
            "New weights are better than the fitted ones in cross-validation on these rows, also "
            f"after a training: the fit began at new weights. {CHECK_OF_FITTED} "
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

    warning = warning_of_outlier(result)
    if warning is not None:
        warn_user(warning, ConvergenceWarning)


def _warn_of_fit(estimator, result):
    """Warn if a fit has ended badly."""
    state = result.state
    plan = result.plan
    too_strong = warning_of_strong_alpha(estimator, result)
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
            warning_of_outlier(result)
            or _warning_of_zero_rate(result)
            or (None if says_when else _warning_of_steps(result) or warning_of_useless(result))
        )
        if warning is not None:
            warn_user(warning, ConvergenceWarning)


def _warning_of_last_epoch(result):
    """Return a warning of a training that used all its epochs, or None if more would change little."""
    state = result.state
    plan = result.plan
    found = result.ending.outcome.found
    if found is not None and found.is_falling:
        # The search for a lower objective had no iterations left.
        begin, end = state.column("objective")[-2:]
        return (
            "SGD no longer lowered the objective. L-BFGS over all rows lowered it from "
            f"{begin:.4g} to {end:.4g} in max_iter={plan.max_iter} iterations, and the optimum is "
            "lower. Increase max_iter, or alpha, with which L-BFGS needs fewer iterations."
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
    if len(scores) == 1:
        return "one epoch does not tell whether the score rises. Increase max_iter."

    best = [max(scores[:n]) for n in (len(scores) - _LAST_EPOCHS, len(scores)) if n > 0]
    if len(best) == 1:
        best = [scores[0], *best]
    begin, end = best
    # A score is minus an objective.
    if not is_lower(-end, -begin):
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
        f"schedule ends with update {last_update(plan.schedule)}, and an epoch has {n_batches}. "
        f"n_updates={plan.max_iter * n_batches} lets the schedule end with the last epoch. If the "
        f"training should end here, give max_iter={state.n_epochs}."
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


def _why_they_stay(result):
    """Return the end of the warning that the fitted weights stay."""
    if result.kept in KEEPS:
        counts = result.ending.counts
        here = f" Here, {counts[0]} of {counts[1]:,} rows count." if counts else ""
        return (
            f"{KEPT[result.kept].because}.{here} partial_fit learns from 20 rows or more and forgets "
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

    cure = fault_of_ended(result) or likely_cause(result.plan, result.state, ending.rows)
    kept = ", which it keeps" if ending.outcome.went_back else ""
    return (
        f"it began: its objective is {result.new_losses[-1]:.4g}, above that of the initial "
        f"weights{kept}. {rate} {cure}"
    )


def _ends_as_constant(ending):
    """Return whether fitted weights ended no better than a constant does."""
    return ending.constant_loss is not None and not ending.outcome.went_back


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
