"""The problem that a solver gets of a fitted estimator."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from skort.estimators.model.model import Model
from skort.estimators.planning.loss_and_penalty import chosen_class_weight
from skort.estimators.planning.plan_of_fit import in_steps
from skort.estimators.training.result import result_of
from skort.estimators.training.run import problem_of
from skort.estimators.variables.reparametrization import Reparametrization

if TYPE_CHECKING:
    from skort.solvers.base import Problem


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
