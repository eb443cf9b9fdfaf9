"""The plan of a fit for its model: the rules of linear models, or those of networks."""

import dataclasses
from typing import TYPE_CHECKING

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.planning import optimizer, stopping
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.rate import GIVEN_RATE
from skort.objective.loss import known_curvature
from skort.optim.optimizers import optimizer_tags
from skort.optim.schedules import may_fall
from skort.optim.update import full_obstacle

if TYPE_CHECKING:
    from skort.estimators.model.model import Model


def for_model(plan: Plan, model: "Model", rows: TrainingData | None = None) -> Plan:
    """
    Return the plan of a fit for a model, which decides what the user leaves open. `rows` are all
    rows, or None if they are not in memory.
    """
    is_open = "optimizer" in plan.left_open
    if model.score_graph.is_linear:
        return _of_linear_model(plan, model, rows) if is_open else plan

    if is_open and rows is not None and _goes_over_all_rows(plan, model):
        return _of_all_rows(plan, optimizer.full_optimizer())
    return plan if plan.is_full else _of_network(plan, model)


def _of_linear_model(plan, model, rows):
    """Return the plan of a linear model whose optimizer is open."""
    obstacle = _obstacle(plan, model, rows)
    of_optimizer = optimizer.linear_optimizer(obstacle)
    if obstacle is None:
        return _of_all_rows(plan, of_optimizer)
    return plan.with_optimizer(of_optimizer)


def _obstacle(plan, model, rows):
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


def _goes_over_all_rows(plan, model):
    """Return whether the solver of a new network inside is "lbfgs", and nothing asks for steps."""
    return (
        plan.objective_inside.is_full
        and model.inner.draws_weights
        and full_obstacle(plan.given) is None
        and _is_smooth(plan, model)
    )


def _is_smooth(plan, model):
    return plan.loss.smooth_instead is None and not plan.has_l1(model)


def _of_all_rows(plan, of_optimizer):
    """Return the plan with an optimizer over all rows, which makes its updates itself."""
    rates = optimizer.searched_rates()
    of_stopping = plan.decisions["stopping"]
    if "tol" in plan.left_open:
        of_stopping = stopping.full_tolerance(plan.dtype)

    return plan.with_decisions(
        {"optimizer": of_optimizer, "learning rate": rates, "stopping": of_stopping},
        update=dataclasses.replace(plan.update, optimizer=of_optimizer.value, largest_rate=None),
        schedule=rates.value,
        rate=GIVEN_RATE,
        can_restart=False,
        tol=of_stopping.value,
        shuffle=False,
    )


def _of_network(plan, model):
    """Return the plan of a network: a rule decides each matter that is open."""
    n_batches = plan.size.n_batches
    if "max_iter" in plan.left_open:
        of_epochs = stopping.network_epochs(
            plan.size.n_rows, n_batches, model.score_graph.n_features
        )
        plan = plan.decided("epochs", of_epochs, max_iter=of_epochs.value)

    n_updates = plan.max_iter * n_batches
    weights_per_row = _weights_per_row(plan, model)
    of_optimizer = (
        optimizer.network_optimizer(n_updates, weights_per_row)
        if "optimizer" in plan.left_open
        else plan.decisions["optimizer"]
    )

    eta0 = _eta0_of_network(plan, of_optimizer.value, weights_per_row)
    rates = plan.decisions["learning rate"]
    if "learning_rate" in plan.left_open:
        rates = optimizer.network_schedule(n_updates, eta0)
    elif plan.rate.is_found:
        rates = rates._replace(value=optimizer.at_rate(rates.value, eta0))

    has_gain = optimizer_tags(of_optimizer.value).gain is not None
    rate = plan.rate._replace(is_found=plan.rate.is_found and has_gain)
    plan = plan.with_steps(of_optimizer, rates, rate)

    # Not only max_iter may end the training: so may a validation set, a tol or n_iter_no_change
    # of the user, or an objective by which the rate falls.
    runs_out = plan.left_open >= {"tol", "n_iter_no_change"}
    if runs_out and not (plan.is_validated or may_fall(rates.value)):
        plan = plan.decided("stopping", stopping.no_tolerance(), tol=None)
    elif plan.is_validated and plan.given["scoring"] is None and "tol" in plan.left_open:
        plan = plan.decided("stopping", stopping.validated_tolerance(), tol=0.0)
    return plan


def _weights_per_row(plan, model):
    """Return the weights a row on which the decay and the rate of a network depend."""
    is_curved = model.score_graph.has_curved_units and not plan.is_classifier
    # A fitted network keeps what it knows.
    if not (model.is_drawn and optimizer.counts_weights(is_curved=is_curved)):
        return 0.0
    return model.score_graph.n_weights[0] / plan.size.n_rows


def _eta0_of_network(plan, of_network, weights_per_row):
    """
    Return the first rate of a network's schedule. It is 1 if the schedule multiplies a rate that is
    found from the data.
    """
    if "eta0" not in plan.left_open:
        return float(plan.given["eta0"])
    tags = optimizer_tags(of_network)
    if tags.gain is not None:
        return 1.0
    return optimizer.planned_rate(tags.first_rates[1], weights_per_row)


def with_decay(plan: Plan, model: "Model", statistics: DataStatistics) -> Plan:
    """
    Return the plan with the decay of a new network for the noise of y, if the rows tell it, and for
    an `eta0` of the user.
    """
    if "optimizer" not in plan.left_open or not model.is_drawn or plan.is_full:
        return plan
    of_optimizer = plan.decisions["optimizer"]
    # Ids are not near each other.
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

    # No schedule bounds their rates: an optimizer over all rows has none.
    return plan.with_optimizer(optimizer.linear_optimizer("single steps are made"))
