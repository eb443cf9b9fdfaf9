"""The warnings of a model that is hardly better than a constant prediction."""

import dataclasses
import math
from numbers import Real

import numpy as np

from skort.estimators.data.nesting import model_inside
from skort.estimators.planning.loss_and_penalty import alpha_inside
from skort.estimators.training.diverged import fault_at_reached_scores
from skort.estimators.variables.custom_loss import fault_of
from skort.estimators.variables.row_loss import RowLoss, some_of
from skort.objective.loss import known_curvature
from skort.optim.schedules import has_ended
from skort.optim.standardization import moments

# A class is rare if it has a smaller share of the rows.
_RARE = 0.1
# A loss above this part of the best constant's shows that the penalty leaves little more than a
# constant.
_NEARLY = 0.95
# A loss below this part of the loss at the start, and of the loss that follows from the spread of
# y, is below that of every constant.
_FAR_BELOW = 0.9
# What to do if every prediction near the mean of y has no loss.
_NO_LOSS = (
    "All y are so near to one another that the loss ignores their differences: lower epsilon, or "
    "multiply y by a constant."
)


def warning_of_strong_alpha(estimator, result):
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
    row_loss = RowLoss(plan, model.score_graph, variables, rows)
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


def warning_of_useless(result):
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

    if row_loss.n_rows < len(rows.target):
        # The losses that the message tells are those of all rows, as is `loss_`.
        row_loss = RowLoss(plan, model.score_graph, variables, rows)
    ours, constant = row_loss.at(weights), row_loss.best_constant(weights)

    return (
        "The model is not clearly better than a constant prediction: its loss is "
        f"{ours:.4g}, that of the best constant {constant:.4g}. "
        f"{_checks_of_useless(result) if constant else _NO_LOSS}"
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

    loss = state.history["loss"][state.n_epochs - 1]
    # A loss of zero may ignore the differences of all y.
    return 0 < loss < _FAR_BELOW * min(state.first_objective, constant)


def _checks_of_useless(result):
    """Return what to check if a model is no better than a constant prediction."""
    used = result.state.standardization
    plan = result.plan
    if fault := fault_of_ended(result):
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
    if _has_planned_decay(result):
        causes.append('the weight decay is too large, which optimizer="adam" does not have')
    if plan.penalty is not None:
        causes.append("alpha is too large")
    if "eta0" not in plan.left_open:
        causes.append(f"eta0 is too {'large' if _is_above_usual_rate(result) else 'small'}")
    if "max_iter" not in plan.left_open and not result.state.stopped:
        causes.append("max_iter is too small")
    *others, last = causes
    return f"Check whether {', whether '.join(others)}, and whether {last}."


def _has_planned_decay(result):
    """Return whether a network has a weight decay that skort chose."""
    plan = result.plan
    return plan.update.tags.weight_decay > 0 and "optimizer" in plan.left_open


def _has_rare_class(result):
    """Return whether a class counts less than a tenth of all rows."""
    rows = result.ending.rows
    shares = np.average(rows.target, axis=0, weights=rows.sample_weight)
    return bool(np.min([shares, 1 - shares]) < _RARE)


def fault_of_ended(result):
    """Return what is wrong with a custom loss after a bad end of the training, or ""."""
    target = result.ending.rows.target
    fault = fault_of(result.plan.loss, target)
    # Only a training that began again may have met scores at which the loss is no number.
    if fault or not result.state.column("restarts"):
        return fault
    return fault_at_reached_scores(result.plan, target, result.model)


def _is_above_usual_rate(result):
    """Return whether the optimizer declares a rate, and eta0 is above it."""
    tags = result.plan.update.tags
    usual = tags.first_rates[0 if result.model.score_graph.is_linear else 1]
    return tags.gain is None and result.plan.given["eta0"] > usual
