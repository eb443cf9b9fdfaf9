"""The error of a training that diverged, with its likely cause and its cure."""

import math

import numpy as np
import scipy.sparse

from skort.estimators.data.rows import TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import FITTED_WEIGHTS
from skort.estimators.planning.plan import Plan
from skort.estimators.variables.custom_loss import fault_at_scores, fault_of
from skort.estimators.variables.custom_penalty import fault_of_penalty
from skort.estimators.variables.reparametrization import Reparametrization
from skort.estimators.variables.row_loss import RowLoss, some_of
from skort.exceptions import DivergedError
from skort.optim.schedules import advice_to_lower
from skort.optim.standardization import moments
from skort.optim.state import TrainState

# If standard deviations differ by more than this factor, a training is slow, or diverges.
_DIFFERENT = 10.0


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
        or fault_at_reached_scores(plan, rows.target, model)
        or likely_cause(plan, state, rows)
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


def fault_at_reached_scores(plan, target, model):
    """Return what is wrong with a custom loss at scores that a training may reach, or ""."""
    return fault_at_scores(plan.loss, target, model.score_graph, is_classifier=plan.is_classifier)


def likely_cause(plan, state, data):
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
    lower = 'use optimizer="adam"' if plan.is_full else _advice_on_rate(plan, state)

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


def _advice_on_rate(plan, state):
    """Return what to do about a rate that seems too large."""
    is_of_skort = plan.rate.is_found and "eta0" in plan.left_open
    lower = "give eta0 a number below this rate" if is_of_skort else advice_to_lower(plan.schedule)
    if state.told:
        (name, _), _ = max(state.told.items(), key=lambda item: item[1])
        return f"check {name}, far from the rows that the stream began with, or {lower}"
    if not is_of_skort:
        return lower

    # `fit` has tried smaller rates, so that another cause is more likely.
    check = "check X and y for values far from all others"
    if plan.loss.custom_parts:
        check = "check that the loss and its gradient are numbers at all scores"
    return f"{check}, or {lower}"
