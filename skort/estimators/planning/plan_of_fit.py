"""The plan of a fit for its model: the rules of linear models, or those of networks."""

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.planning import epochs, optimizer
from skort.estimators.planning.decision import YOURS
from skort.estimators.planning.fine_tuning import is_planned_as_new
from skort.estimators.planning.plan import OpenPlan, Plan
from skort.estimators.planning.rate import GIVEN_RATE
from skort.objective.loss import known_curvature
from skort.optim.optimizers import optimizer_tags
from skort.optim.schedules import may_fall

if TYPE_CHECKING:
    from skort.estimators.model.model import Model


class NetworkSteps(NamedTuple):
    """What the decay and the rate of a network that is trained by steps depend on."""

    n_updates: int
    weights_per_row: float
    #: Whether the epochs are so few that many weights a row do not lower the rate.
    is_short: bool


def for_model(plan: OpenPlan, model: "Model", rows: TrainingData | None = None) -> Plan:
    """
    Return the plan of a fit for a model, which decides what the user leaves open. `rows` are all
    rows, or None if they are not in memory.
    """
    obstacle = _obstacle(plan, model, rows)
    is_full = obstacle is None
    network = None
    of_epochs = plan.decisions.get("epochs")
    if is_full or model.score_graph.is_linear:
        of_epochs = of_epochs or epochs.linear_epochs()
    else:
        of_epochs = of_epochs or _planned_epochs(plan, model)
        network = _network_steps(plan, model, of_epochs.value)

    of_optimizer = plan.decisions.get("optimizer") or _optimizer(model, obstacle, network)
    rates, rate = _rates(plan, of_optimizer.value, network, is_full=is_full)
    of_stopping = _stopping(plan, model, rates.value, is_full=is_full)
    decisions = {
        "optimizer": of_optimizer,
        "learning rate": rates,
        "epochs": of_epochs,
        "stopping": of_stopping,
    }

    return plan.completed(
        decisions,
        rate=rate,
        max_iter=of_epochs.value,
        tol=of_stopping.value,
        can_restart=not is_full and epochs.may_restart(is_rate_found=plan.rate.is_found),
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
        and optimizer.full_obstacle(plan.given) is None
        and _is_smooth(plan, model)
    )


def _is_smooth(plan, model):
    return plan.loss.smooth_instead is None and not plan.has_l1(model)


def _planned_epochs(plan, model):
    """Return the decision on the epochs of a network that the user leaves open."""
    size = plan.size
    return epochs.network_epochs(size.n_rows, size.n_batches, model.score_graph.n_features)


def _network_steps(plan, model, n_epochs):
    """Return what the decay and the rate of a network depend on."""
    planned_epochs = _planned_epochs(plan, model).value
    is_curved = model.score_graph.has_curved_units and not plan.is_classifier
    weights_per_row = 0.0
    # A frozen network keeps what it knows.
    if is_planned_as_new(model) and optimizer.counts_weights(is_curved=is_curved):
        weights_per_row = model.score_graph.n_weights[0] / plan.size.n_rows

    return NetworkSteps(
        n_epochs * plan.size.n_batches,
        weights_per_row,
        optimizer.is_short(n_epochs, planned_epochs, is_classifier=plan.is_classifier),
    )


def _optimizer(model, obstacle, network):
    """Return the decision on an optimizer that the user leaves open."""
    if model.score_graph.is_linear:
        return optimizer.linear_optimizer(obstacle)
    if network is None:
        return optimizer.full_optimizer()
    # The decay of a new network depends on y: the start of its training decides on it.
    decay = 0.0 if is_planned_as_new(model) else optimizer.network_decay(*network)
    return optimizer.network_optimizer(decay)


def _rates(plan, chosen, network, *, is_full):
    """Return the decision on the schedule of an optimizer, and who chooses its first rate."""
    if is_full:
        return optimizer.searched_rates(), GIVEN_RATE

    rates = plan.decisions.get("learning rate")
    rate = plan.rate
    eta0 = plan.eta0_of_schedule
    if network is None:
        return rates or optimizer.linear_schedule(eta0), rate

    tags = optimizer_tags(chosen)
    if tags.gain is None:
        # The optimizer says the first rate, and the schedule has it.
        rate = rate._replace(is_found=False)
        if "eta0" in plan.left_open:
            eta0 = optimizer.planned_rate(
                tags.first_rates[1], network.weights_per_row, is_short=network.is_short
            )
    if rates is None:
        rates = optimizer.network_schedule(network.n_updates, eta0)
    elif plan.rate.is_found:
        rates = rates._replace(value=optimizer.at_rate(rates.value, eta0))

    return rates, rate


def _stopping(plan, model, schedule, *, is_full):
    """Return the decision on the smallest improvement."""
    of_user = plan.decisions.get("stopping")
    if is_full:
        return of_user or epochs.full_tolerance(plan.dtype)
    if model.score_graph.is_linear:
        return of_user or epochs.tolerance()

    # A network is trained to its last epoch, unless the user gave a tol or n_iter_no_change, a
    # validation set, or a schedule that falls when the objective does not.
    is_open = plan.left_open >= {"tol", "n_iter_no_change"}
    if is_open and not (plan.is_validated or may_fall(schedule)):
        return epochs.no_tolerance()

    is_scored_by_loss = plan.is_validated and plan.given["scoring"] is None
    return of_user or (epochs.validated_tolerance() if is_scored_by_loss else epochs.tolerance())


def with_decay(plan: Plan, model: "Model", statistics: DataStatistics) -> Plan:
    """
    Return the plan of a new network or a warm start with the decay, if the user leaves the optimizer
    open. It depends on the noise of y, if the rows tell it, and on an `eta0` of the user.
    """
    if "optimizer" not in plan.left_open or not is_planned_as_new(model) or plan.is_full:
        return plan

    decay = optimizer.network_decay(*_network_steps(plan, model, plan.max_iter))
    # Distances between ids mean nothing.
    noise = None if model.score_graph.reads_ids else statistics.noise
    if noise is not None:
        decay *= optimizer.noise_growth(noise)
    if "eta0" not in plan.left_open:
        decay = min(decay, optimizer.largest_decay(plan.given["eta0"]))
    return plan.with_optimizer(optimizer.network_optimizer(decay, noise))


def of_steps(plan: OpenPlan) -> Plan:
    """Return the plan of single steps of a model that is not fitted: SGD, if the user leaves it open."""
    of_optimizer = plan.decisions.get("optimizer") or _of_single_steps()
    # The user gives each step its rate.
    rates = plan.decisions.get("learning rate") or optimizer.linear_schedule(plan.eta0_of_schedule)
    return plan.completed({"optimizer": of_optimizer, "learning rate": rates})


def in_steps(plan: Plan) -> Plan:
    """Return the plan for single steps: SGD trains a linear model whose optimizer is open."""
    if not plan.is_full or plan.objective_inside.is_full or "optimizer" not in plan.left_open:
        return plan

    plan = plan.with_optimizer(_of_single_steps())
    # Nothing bounds the rates of the user's steps.
    return dataclasses.replace(plan, update=dataclasses.replace(plan.update, largest_rate=None))


def _of_single_steps():
    return optimizer.linear_optimizer("single steps are made")
