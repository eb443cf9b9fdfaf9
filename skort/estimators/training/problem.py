"""The problem that a solver gets: that of a training, or of a fitted estimator."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from skort.estimators.model.model import Model
from skort.estimators.planning.loss_and_penalty import chosen_class_weight
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.plan_of_fit import in_steps
from skort.estimators.planning.stream import recent_updates
from skort.estimators.training.result import result_of
from skort.estimators.variables.reparametrization import Reparametrization
from skort.optim.state import TrainState
from skort.optim.transforms import Recent

if TYPE_CHECKING:
    from skort.solvers.base import Problem


def problem_of(  # noqa: PLR0913  # what steps depend on
    plan: Plan,
    model: Model,
    variables: Reparametrization,
    state: TrainState,
    batch_size: int,
    n_batches: int | None = None,
    *,
    is_sparse: bool = False,
    of_model_rows: bool = False,
) -> "Problem":
    """
    Return the problem of a plan: in the variables of the training, or of X itself.
    `n_batches=None`: the batches of an epoch are not known.
    """
    from skort.graphs.training_mode import masked
    from skort.objective.objective import Objective
    from skort.solvers.base import Problem

    graph = variables.graph(model.score_graph, of_model_rows=of_model_rows)
    if graph.has_dropout:
        graph = masked(graph, batch_size)
    objective = Objective(
        loss=variables.loss,
        penalty=variables.penalty,
        coefficients=model.score_graph.coefficients,
        n_outputs=model.score_graph.n_outputs,
        dtype=graph.dtype,
        intercepts=model.score_graph.trained.intercepts,
        start=state.penalty_start or {},
    )

    update = plan.update
    largest = update.largest_rate
    if largest is not None:
        steps = plan.batch_size / (plan.rate.rows_of_a_step or plan.batch_size)
        update = dataclasses.replace(update, largest_rate=steps * state.rate_scale * largest)
    if state.n_in_rate is not None and "average" in plan.left_open:
        recent = recent_updates(model.score_graph.n_features, plan.batch_size)
        update = dataclasses.replace(update, average=Recent(recent))

    return Problem(
        graph,
        objective,
        update,
        batch_size,
        # The first product of sparse rows is little work.
        device=plan.device_for(model.score_graph, 0 if is_sparse else batch_size),
        n_batches=n_batches,
        loss_weights=variables.training_weights(model.loss_weights),
        row_factor=variables.row_factor if is_sparse else None,
    )


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


class FittedProblem(NamedTuple):
    """The problem of a fitted estimator on the CPU, with its model and variables."""

    model: Model
    variables: Reparametrization
    problem: "Problem"
    #: Whether the sample weights of a step include class weights.
    weighs_rows: bool


def fitted_problem(
    estimator: Any, *, is_sparse: bool = False, of_model_rows: bool = False
) -> FittedProblem:
    """Return the problem of a fitted estimator. Raise a NotFittedError before a fit."""
    from skort.runtime.device import CPU

    result = result_of(estimator)
    plan = in_steps(result.plan) if of_model_rows else result.plan
    model = result.model
    state = result.state
    variables = plan.variables(model.score_graph, state.standardization)
    of_rows = {"is_sparse": is_sparse, "of_model_rows": of_model_rows}
    problem = problem_of(
        plan, model, variables, state, result.batch_size, result.n_batches, **of_rows
    )
    if of_model_rows:
        plan.check_steps("a device")
    weighs_rows = plan.class_weight is None and (
        chosen_class_weight(estimator, plan.objective_inside, is_stream=False) is not None
    )

    return FittedProblem(model, variables, dataclasses.replace(problem, device=CPU), weighs_rows)
