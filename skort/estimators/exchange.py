"""What a fitted estimator gives to a training elsewhere, and takes back."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.utils.validation import check_is_fitted

from skort.estimators.fitted_model import FittedModel
from skort.estimators.own_terms import chosen_class_weight
from skort.estimators.variables import Variables

if TYPE_CHECKING:
    from skort.solvers.base import Problem

__all__ = ["FittedProblem", "fitted_problem"]


class FittedProblem(NamedTuple):
    """
    The training that goes on from the weights of a fitted estimator.

    Parameters
    ----------
    fitted : FittedModel
    variables : Variables
        Of the training.
    problem : Problem
        On the CPU.
    weighs_rows : bool
        Whether class weights are part of the sample weights that a step gets.
    """

    fitted: FittedModel
    variables: Variables
    problem: "Problem"
    weighs_rows: bool


def fitted_problem(estimator: Any, *, is_sparse: bool = False) -> FittedProblem:
    """
    Return the training that goes on from the weights of a fitted estimator.

    Parameters
    ----------
    estimator : OrtSGDRegressor or OrtSGDClassifier
    is_sparse : bool, default=False
        Whether its batches are sparse.

    Raises
    ------
    NotFittedError
    """
    from skort.runtime.device import CPU

    check_is_fitted(estimator)
    settings, fitted, progress = estimator._settings, estimator._fitted, estimator._progress
    variables = settings.variables(fitted.score_graph, progress.standardization)
    size = estimator._batch_size, progress.rate_scale, estimator._n_batches
    problem = settings.problem(fitted, variables, *size, is_sparse=is_sparse)
    weighs_rows = settings.class_weight is None and (
        chosen_class_weight(estimator, settings.own, one_epoch=False) is not None
    )
    return FittedProblem(fitted, variables, dataclasses.replace(problem, device=CPU), weighs_rows)
