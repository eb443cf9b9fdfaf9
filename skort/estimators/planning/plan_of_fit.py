"""The plan of a fit for its model: the rules of linear models, or those of networks."""

import dataclasses
from typing import TYPE_CHECKING

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.planning import optimizer, stopping
from skort.estimators.planning.decision import YOURS
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.rate import GIVEN_RATE
from skort.objective.loss import known_curvature
from skort.optim.schedules import may_fall
from skort.optim.update import full_obstacle

if TYPE_CHECKING:
    from skort.estimators.model.model import Model


def for_model(plan: Plan, model: "Model", rows: TrainingData | None = None) -> Plan:
    """
    Return the plan of a fit for a model, which decides what the user leaves open. `rows` are all
    rows, or None if they are not in memory.
    """
    obstacle = _obstacle(plan, model, rows)
    is_full = obstacle is None
    of_epochs = _epochs(plan, model, is_full=is_full)
    if "optimizer" in plan.left_open:
        plan = plan.with_optimizer(_optimizer(plan, model, obstacle, of_epochs.value))
    can_restart = not is_full and stopping.may_restart(is_rate_found=plan.rate.is_found)
    plan = plan.with_rates(*_rates(plan, model, of_epochs.value, is_full=is_full))
    of_stopping = _stopping(plan, model, is_full=is_full)

    return plan.with_decisions(
        {"epochs": of_epochs, "stopping": of_stopping},
        max_iter=of_epochs.value,
        tol=of_stopping.value,
        can_restart=can_restart,
        shuffle=plan.shuffle and not is_full,
    )


def _obstacle(plan, model, rows):
    """Return why no optimizer over all rows makes the updates, or None if one does."""
    if "optimizer" not in plan.left_open:
        return None if plan.is_full else YOURS
    if model.score_graph.is_linear:
        return _linear_obstacle(plan, model, rows)

    goes_over_all_rows = rows is not None and _follows_full_solver(plan, model)
    return None if goes_over_all_rows else "a network makes steps"


def _linear_obstacle(plan, model, rows):
    """Return why no optimizer over all rows trains a linear model, or None if one does."""
    if rows is None:
        return "its rows are not in memory as a whole"
    if rows.is_sparse:
        return "its rows are sparse"

    of_parameter = optimizer.asks_for_steps(plan.given)
    if of_parameter is not None:
        return of_parameter
    if not _is_smooth(plan, model):
        return "its objective has a kink"

    is_custom = plan.penalty is not None and plan.penalty.is_custom
    if is_custom or known_curvature(plan.loss, model.score_graph.n_outputs) is None:
        return "its objective has a part that may have a kink"
    return None


def _follows_full_solver(plan, model):
    """Return whether the solver of a new network inside is "lbfgs", and nothing asks for steps."""
    return (
        plan.objective_inside.is_full
        and model.inner.draws_weights
        and full_obstacle(plan.given) is None
        and _is_smooth(plan, model)
    )


def _is_smooth(plan, model):
    return plan.loss.smooth_instead is None and not plan.has_l1(model)


def _epochs(plan, model, *, is_full):
    """Return the decision on the epochs."""
    of_user = plan.decisions.get("epochs")
    if of_user is not None:
        return of_user
    if is_full or model.score_graph.is_linear:
        return stopping.linear_epochs()

    return _planned_epochs(plan, model)


def _planned_epochs(plan, model):
    """Return the decision on the epochs of a network that the user leaves open."""
    size = plan.size
    return stopping.network_epochs(size.n_rows, size.n_batches, model.score_graph.n_features)


def _is_short(plan, model, n_epochs):
    """Return whether a network is trained for so few epochs that its rate does not fall."""
    planned = _planned_epochs(plan, model).value
    return optimizer.is_short(n_epochs, planned, is_classifier=plan.is_classifier)


def _optimizer(plan, model, obstacle, n_epochs):
    """Return the decision on an optimizer that the user leaves open."""
    if model.score_graph.is_linear:
        return optimizer.linear_optimizer(obstacle)
    if obstacle is None:
        return optimizer.full_optimizer()

    return optimizer.network_optimizer(
        n_epochs * plan.size.n_batches,
        _weights_per_row(plan, model),
        is_short=_is_short(plan, model, n_epochs),
    )


def _rates(plan, model, n_epochs, *, is_full):
    """Return the decision on the schedule, and who chooses its first rate."""
    if is_full:
        return optimizer.searched_rates(), GIVEN_RATE

    rates = plan.decisions.get("learning rate")
    eta0 = plan.eta0_of_schedule
    if model.score_graph.is_linear:
        return rates or optimizer.linear_schedule(eta0), plan.rate

    tags = plan.update.tags
    rate = plan.rate
    if tags.gain is None:
        # The optimizer says the first rate, and the schedule has it.
        rate = rate._replace(is_found=False)
        if "eta0" in plan.left_open:
            eta0 = optimizer.planned_rate(
                tags.first_rates[1],
                _weights_per_row(plan, model),
                is_short=_is_short(plan, model, n_epochs),
            )
    if rates is None:
        rates = optimizer.network_schedule(n_epochs * plan.size.n_batches, eta0)
    elif plan.rate.is_found:
        rates = rates._replace(value=optimizer.at_rate(rates.value, eta0))

    return rates, rate


def _stopping(plan, model, *, is_full):
    """Return the decision on the smallest improvement."""
    of_user = plan.decisions.get("stopping")
    if is_full:
        return of_user or stopping.full_tolerance(plan.dtype)
    if model.score_graph.is_linear:
        return of_user or stopping.tolerance()

    # A network is trained to its last epoch, unless the user gave a tol or n_iter_no_change, a
    # validation set, or a schedule that falls when the objective does not.
    is_open = plan.left_open >= {"tol", "n_iter_no_change"}
    if is_open and not (plan.is_validated or may_fall(plan.schedule)):
        return stopping.no_tolerance()

    is_scored_by_loss = plan.is_validated and plan.given["scoring"] is None
    return of_user or (
        stopping.validated_tolerance() if is_scored_by_loss else stopping.tolerance()
    )


def _weights_per_row(plan, model):
    """Return the weights a row on which the decay and the rate of a network depend."""
    is_curved = model.score_graph.has_curved_units and not plan.is_classifier
    # A fitted network keeps what it knows.
    if not (model.is_drawn and optimizer.counts_weights(is_curved=is_curved)):
        return 0.0
    return model.score_graph.n_weights[0] / plan.size.n_rows


def with_decay(plan: Plan, model: "Model", statistics: DataStatistics) -> Plan:
    """
    Return the plan with the decay of a new network for the noise of y, if the rows tell it, and for
    an `eta0` of the user.
    """
    if "optimizer" not in plan.left_open or not model.is_drawn or plan.is_full:
        return plan
    of_optimizer = plan.decisions["optimizer"]
    # Distances between ids mean nothing.
    noise = None if model.score_graph.reads_ids else statistics.noise
    if noise is not None:
        of_optimizer = optimizer.at_noise(of_optimizer, noise)
    if "eta0" not in plan.left_open:
        of_optimizer = optimizer.at_given_rate(of_optimizer, plan.given["eta0"])
    return plan.with_optimizer(of_optimizer)


def in_steps(plan: Plan) -> Plan:
    """Return the plan for single steps: SGD trains a linear model whose optimizer is open."""
    if not plan.is_full or plan.objective_inside.is_full or "optimizer" not in plan.left_open:
        return plan

    plan = plan.with_optimizer(optimizer.linear_optimizer("single steps are made"))
    # Nothing bounds the rates of the user's steps.
    return dataclasses.replace(plan, update=dataclasses.replace(plan.update, largest_rate=None))
