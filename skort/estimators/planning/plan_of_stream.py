"""The plan of a stream: at its first call, after a fit, with other parameters, and with more rows."""

import dataclasses
from typing import TYPE_CHECKING, Any

from skort.estimators.planning import optimizer, stream
from skort.estimators.planning.decision import Decision
from skort.estimators.planning.epochs import (
    AUTO_AGAIN,
    OF_FIRST_CALL,
    YOUR_BATCHES,
    batch_decision,
    batch_rows,
)
from skort.estimators.planning.loss_and_penalty import (
    counts_rows,
    penalty_decision,
    training_penalty,
)
from skort.estimators.planning.plan import OpenPlan, Plan, are_equal, parameters_inside
from skort.estimators.planning.rate import given_rate

if TYPE_CHECKING:
    from skort.estimators.model.model import Model


def of_stream(plan: OpenPlan, model: "Model") -> Plan:
    """Return the plan of a stream from its first call on, for its model."""
    is_linear = model.score_graph.is_linear
    of_optimizer = plan.decisions.get("optimizer") or (
        _steps_of_linear() if is_linear else optimizer.stream_optimizer()
    )
    whole = _of_calls(plan, of_optimizer, _rates(plan))

    # A function of the number of an update gives rates of batches, and not of rows.
    has_first_rate = bool(optimizer.first_rates_of(whole.schedule))
    if not (is_linear and has_first_rate and whole.update.tags.gain is not None):
        return whole

    is_open = "batch_size" in plan.left_open
    n_rows = stream.rows_of_a_step() if is_open else plan.batch_size
    return _at_rate_of_rows(whole, n_rows, falls=model.is_drawn)


def _steps_of_linear():
    return optimizer.linear_optimizer("partial_fit makes steps")


def _of_calls(plan, of_optimizer, rates, rate=None):
    """Return the whole plan of a stream by an optimizer and rates: one epoch for each call, no end."""
    decisions = {
        "optimizer": of_optimizer,
        "learning rate": rates,
        "epochs": Decision("one for each call", "partial_fit makes one epoch"),
        "stopping": Decision("never", "a stream has no end"),
    }
    return plan.completed(decisions, rate=rate or plan.rate, is_stream=True)


def _rates(plan):
    """Return the decision on the schedule of a stream."""
    of_user = plan.decisions.get("learning rate")
    return of_user or optimizer.linear_schedule(plan.eta0_of_schedule)


def _at_rate_of_rows(plan, n_rows, *, falls):
    """
    Return the plan of a linear stream. A step of so many rows has the whole rate. `falls`: the rows
    seen lower the rate.
    """
    rate = stream.rate_of_rows(plan, n_rows, falls=falls)
    rates = plan.decisions["learning rate"]
    if rate.bound is not None:
        rates = rates._replace(value=optimizer.at_rate(rates.value, 1.0))
    return plan.with_rates(rates, rate)


def going_on(last: Plan, model: "Model", estimator: Any) -> Plan:
    """
    Return the plan of the next call of a stream by the present parameters, for the same model and
    the same size. The last plan is that of a call, or of a fit that the stream goes on from.
    """
    plan = _of_parameters(last, estimator, keeps_batches=last.is_stream)
    of_optimizer = _optimizer_after(last, plan)
    if not last.is_stream:
        plan = _with_kept(plan, last, ["scaling"])
        rate = plan.rate._replace(falls=model.score_graph.is_linear)
        return _of_calls(plan, of_optimizer, _rates(plan), rate)

    plan = _with_kept(plan, last, ["weights", "scaling"])
    whole = _of_calls(plan, of_optimizer, *_rates_after(last, plan))
    n_rows = last.rate.rows_of_a_step
    if n_rows is not None and whole.update.tags.gain is not None:
        whole = _at_rate_of_rows(whole, n_rows, falls=last.rate.falls)
    return _with_first_rates(whole, last)


def renewed(last: Plan, model: "Model", estimator: Any) -> Plan:
    """Return the plan of single steps after a fit or a call, by the present parameters."""
    if last.is_stream:
        return going_on(last, model, estimator)

    plan = _of_parameters(last, estimator, keeps_batches=True)
    plan = _with_kept(plan, last, ["weights", "scaling"])
    rates, rate = _rates_after(last, plan)
    decisions = {"optimizer": _optimizer_after(last, plan), "learning rate": rates}
    return plan.completed(decisions, rate=rate)


def _of_parameters(last, estimator, *, keeps_batches):
    """Return the open plan by the present parameters, with its batches."""
    plan = OpenPlan.of(
        estimator, last.objective_inside, last.size, dtype=last.dtype, is_stream=True
    )
    kept = last.decisions["batches"]
    # A rate of the user is that of a batch.
    keeps_batches = keeps_batches or not plan.rate.is_auto
    if estimator.batch_size == last.given["batch_size"]:
        # They may be the user's batches, of `fit_batches`.
        if keeps_batches or kept.because == YOUR_BATCHES:
            return plan.decided("batches", kept, batch_size=last.batch_size)
    elif keeps_batches and "batch_size" in plan.left_open:
        return plan.decided("batches", Decision(plan.batch_size, AUTO_AGAIN, "batch_size"))
    return plan


def _rates_after(last, plan):
    """Return the decision on the schedule, and who chooses its first rate."""
    # What skort chose in the first call stays.
    is_same = all(
        last.given[name] == plan.given[name] for name in ("optimizer", "learning_rate", "eta0")
    )
    chosen = last if is_same else plan
    return _rates(chosen), chosen.rate._replace(falls=last.rate.falls)


def _with_kept(plan, last, matters):
    """Return the plan with the last decisions on some matters. They came from data."""
    decisions = last.decisions
    return plan.with_decisions({name: decisions[name] for name in matters if name in decisions})


def _with_first_rates(plan, last):
    """Return the plan of a stream with the first rate of the last plan, if data decided on it."""
    if plan.rate.is_found:
        plan = _with_kept(plan, last, ["first rate"] if last.rate.is_found else [])
    else:
        plan = plan.decided("first rate", given_rate(plan, 1.0, stream.OF_SCHEDULE))
    return plan.with_decisions(stream.rates_by_rows(plan))


def _optimizer_after(last, plan):
    """Return the decision on the optimizer, which goes on with the memory of the last one."""
    is_open = "optimizer" in plan.left_open
    # After a fit over all rows, a linear model goes on by steps of SGD.
    makes_steps = last.objective_inside.is_full or not last.is_full
    if is_open and "optimizer" in last.left_open and makes_steps:
        return last.decisions["optimizer"]
    return _steps_of_linear() if is_open else plan.decisions["optimizer"]


def with_batches_of_call(plan: Plan, n_rows: int) -> Plan:
    """Return the plan of a stream after a fit, whose first call of so many rows decides on batches."""
    is_open = plan.decisions["batches"].because == OF_FIRST_CALL
    return _with_batches_of(plan, n_rows) if is_open else plan


def of_first_rows(plan: Plan, n_rows: int) -> Plan:
    """Return the plan of a stream after the first call in which rows count. So many count."""
    if plan.decisions["batches"].because in (OF_FIRST_CALL, AUTO_AGAIN):
        plan = _with_batches_of(plan, n_rows)
    size = plan.size._replace(batch_size=min(plan.batch_size, n_rows))
    return dataclasses.replace(plan, size=size)


def _with_batches_of(plan, n_rows):
    """Return the plan with the batches of a stream whose first call has so many rows."""
    n_rows = min(batch_rows(is_stream=True), n_rows)
    of_batches = batch_decision(n_rows, is_stream=True)
    return plan.decided("batches", of_batches, batch_size=n_rows)


def of_seen_rows(plan: Plan, estimator: Any, n_rows: int) -> Plan:
    """
    Return the plan of a stream after so many rows. If the penalty of the model inside depends on
    the number of rows, it counts the rows so far, and again whenever they have doubled.
    """
    inside = plan.objective_inside
    if not counts_rows(estimator, inside) or n_rows < 2 * plan.size.n_rows:
        return plan

    size = plan.size._replace(weight_sum=n_rows * plan.size.mean_weight)
    penalty = training_penalty(estimator, inside, size)
    decision = penalty_decision(estimator, plan.left_open, inside, penalty)
    return plan.decided("penalty", decision, penalty=penalty, size=size)


def check_same_model(plan: Plan, estimator: Any) -> None:
    """
    Raise an error if the model, the choice of trained weights or the dtype has changed since a
    plan.
    """
    for name, value in parameters_inside(estimator).items():
        if not are_equal(value, plan.given_inside[name]):
            raise ValueError(
                f"{name} was changed since the last fit, and partial_fit goes on with the "
                "model of that fit. Call fit, or set it back."
            )

    if estimator.dtype != (given := plan.given["dtype"]):
        raise ValueError(
            f"dtype={estimator.dtype!r}, but earlier calls had dtype={given!r}. Call "
            "fit, or set it back."
        )
