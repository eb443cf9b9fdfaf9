"""The start of a training: its variables, first weights and first rate, found from the data."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.planning.decision import FITTED_WEIGHTS, Decision
from skort.estimators.planning.fine_tuning import fitted_part, is_planned_as_new, knowledge_of
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.plan_of_fit import with_decay
from skort.estimators.planning.rate import RateBasis, first_rate, spread_of_fit
from skort.estimators.planning.scaling import at_relevance, scaling
from skort.estimators.planning.stream import (
    decorrelation,
    falls_by_rows,
    spread_of_stream,
    stream_rates,
)
from skort.estimators.training.warnings_at_start import (
    warn_of_far_start,
    warn_of_fitted,
    warn_of_one_target,
)
from skort.estimators.variables.custom_loss import warn_of_custom_loss
from skort.estimators.variables.custom_penalty import warn_of_custom_penalty
from skort.estimators.variables.reparametrization import Reparametrization, with_offsets
from skort.optim.state import TrainState

# It does not say that the model is new: a fitted model without a FrozenEstimator has new weights,
# too.
_NOT_FROZEN = "no FrozenEstimator gives others"


class Start(NamedTuple):
    """The start of a training."""

    plan: Plan
    model: Model
    state: TrainState
    variables: Reparametrization
    #: The loss of the best constant prediction, if the training starts at the weights of a fitted
    #: network. Infinite: the end is not compared with it.
    constant_loss: float | None = None
    #: The largest eigenvalue and the largest squared norm of the rows, if they are known.
    spread: tuple[float, float] | None = None
    #: Whether a warning has said that the fitted network is worse than a constant.
    warned_of_fitted: bool = False


def start(
    plan: Plan,
    model: Model,
    statistics: DataStatistics,
    state: TrainState,
) -> Start:
    """Return the start of a fit."""
    started = start_at_weights(plan, model, statistics, state)
    if model.is_drawn or plan.is_full:
        return started
    if model.score_graph.is_linear:
        # The weights of a file may be initial ones.
        keeps_better = plan.is_validated and model.inner.is_fitted
        return started._replace(constant_loss=math.inf) if keeps_better else started

    # The weights of an ONNX file may be initial ones, and the last fit before a `warm_start` may
    # have been short.
    known = knowledge_of(plan, started.model, started.variables, statistics)
    is_fitted = model.inner.is_fitted
    # Where a row has one label, another warning names the classes that no row has.
    names_absent = plan.is_classifier and not model.multi_label
    if not is_fitted:
        warn_of_far_start(known.share)
    elif known.has_one_target and plan.size.n_rows > 1 and not names_absent:
        warn_of_one_target()
    elif known.is_worse:
        warn_of_fitted(known)

    started = started._replace(warned_of_fitted=is_fitted and known.is_worse)
    if not plan.rate.is_auto:
        # A user who sets the rate may want a few epochs for another purpose.
        return started._replace(constant_loss=math.inf)
    return _with_part_of_rate(started, known)


def _with_part_of_rate(started, known):
    """
    Return the start of a fitted network, with a part of the rate. It depends on how well the
    network knows the rows.
    """
    plan = started.plan
    model = started.model
    part = fitted_part(known.share, is_fitted=model.inner.is_fitted)
    other = "a new network" if is_planned_as_new(model) else "a new network of few weights"
    because = (
        f"{part:.2g} times the rate of {other}: this one has "
        f"{known.share:.2g} times the loss of a constant prediction"
    )
    of_rate = plan.decisions["first rate"]._replace(because=because)

    return started._replace(
        plan=plan.decided("first rate", of_rate),
        state=dataclasses.replace(started.state, rate_scale=part * started.state.rate_scale),
        constant_loss=known.constant if known.constant > 0 else math.inf,
    )


def start_at_weights(
    plan: Plan,
    model: Model,
    statistics: DataStatistics,
    state: TrainState,
    *,
    is_stream: bool = False,
) -> Start:
    """Return the start of a training at the weights of a model."""
    from skort.graphs.layers import balanced

    if plan.loss.custom_parts:
        target = statistics.some_rows.target
        warn_of_custom_loss(plan.loss, target, model.score_graph, is_classifier=plan.is_classifier)
    if plan.penalty is not None and plan.penalty.is_custom:
        warn_of_custom_penalty(plan.penalty, model.score_graph)
    of_scaling = scaling(plan, model.score_graph, statistics)
    if not (is_stream or model.score_graph.is_linear):
        plan = with_decay(plan, model, statistics)
        of_scaling = _at_relevance(plan, model, of_scaling, statistics)
    standardization = of_scaling.value
    if standardization is not None and not model.is_drawn:
        # A column that is constant here may have varied where the weights were fitted.
        standardization = dataclasses.replace(standardization, constant=None)

    score_graph = model.score_graph
    initial = model.score_graph.trained_arrays
    if standardization is not None:
        score_graph = with_offsets(score_graph, plan.loss, standardization)
    variables = plan.variables(score_graph, standardization)
    variables.check_range()

    # New weights are drawn for standardized columns. All others belong to X and y as they are.
    if model.is_drawn:
        score_graph = score_graph.with_weights(variables.model_weights(initial))
    elif variables.score is not None and not score_graph.is_linear:
        score_graph = balanced(score_graph, variables.training_weights(initial))

    basis = RateBasis(plan, variables, score_graph, statistics)
    if is_stream:
        is_fitted = not (model.is_drawn or model.score_graph.is_linear)
        root = decorrelation(basis)
        if root is not None:
            standardization = dataclasses.replace(standardization, decorrelation=root)
            of_scaling = of_scaling._replace(value=standardization)
            variables = plan.variables(score_graph, standardization)
            basis = basis._replace(variables=variables)
        spread = spread_of_stream(basis)
        rates = stream_rates(basis, spread, is_fitted=is_fitted)
    else:
        spread = spread_of_fit(basis)
        rates = {"first rate": first_rate(basis, spread)}

    state = dataclasses.replace(
        state,
        solver=None,
        penalty_start=state.penalty_start
        or (score_graph.trained_arrays if plan.takes_start else None),
        standardization=standardization,
        rate_scale=rates["first rate"].value,
        is_rate_found=plan.rate.is_found,
        n_in_rate=0 if is_stream and falls_by_rows(plan) else None,
    )
    decisions = {"scaling": of_scaling, "weights": _of_weights(plan, model), **rates}
    model = dataclasses.replace(model, score_graph=score_graph, is_drawn=False)
    are_sparse = statistics.some_rows.is_sparse
    of_sparse = sparse_solvers(plan, model, variables, are_sparse=are_sparse)
    plan = plan.with_decisions(decisions, multiplies_sparse=bool(of_sparse))
    return Start(plan, model, state, variables, spread=spread)


def _at_relevance(plan, model, of_scaling, statistics):
    """
    Return the decision on the scales, with the relevance of the columns of a new network or a warm
    start.
    """
    used, first = of_scaling.value, model.score_graph.first_layer
    is_open = "standardize" in plan.left_open and not plan.is_full and is_planned_as_new(model)
    if not is_open or first is None or used is None or used.scale is None:
        return of_scaling
    return at_relevance(of_scaling, first, statistics)


def check_first_rows(plan: Plan, model: Model, rows: TrainingData) -> None:
    """Raise a WeightRangeError for rows that the dtype cannot hold, before their scales are known."""
    if not plan.standardize or rows.is_sparse or not rows.n_rows:
        return

    # A row and its opposite deviate from their mean by the size of the row.
    X, target = (np.concatenate([part, -part]) for part in (rows.X, rows.target))
    used = scaling(plan, model.score_graph, DataStatistics(TrainingData(X, target, None))).value
    plan.variables(model.score_graph, used).check_range()


def _of_weights(plan, model):
    """Return the decision on the first weights."""
    if not model.is_drawn and plan.is_full and model.score_graph.is_linear:
        because = "they were fitted or given; the optimum does not depend on them"
        return Decision(FITTED_WEIGHTS, because, "warm_start")
    if not model.is_drawn:
        return Decision(
            FITTED_WEIGHTS, "the model has weights that were fitted or given", "warm_start"
        )
    if model.score_graph.is_linear:
        return Decision("zeros", _NOT_FROZEN, "coef_init, warm_start")

    return Decision("new ones", _NOT_FROZEN, "warm_start")


def sparse_solvers(
    plan: Plan, model: Model, variables: Reparametrization, *, are_sparse: bool
) -> list[str]:
    """
    Return the names of the solvers that can multiply the rows of a model as they are, if these
    `are_sparse`.
    """
    if not are_sparse:
        return []

    from skort.graphs.standardized import product_layer
    from skort.solvers import has_sparse_steps

    has_own_penalty = plan.penalty is not None and plan.penalty.is_custom
    if plan.device.is_remote or variables.row_factor is None or has_own_penalty:
        return []

    layer = product_layer(model.score_graph)
    if layer is None or layer.coefficient != model.score_graph.trainable[0]:
        return []

    return [name for name in plan.solvers if has_sparse_steps(name)]
