"""The types of parameters and of data."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NewType

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from onnx import ModelProto

    from skort.common.sklearn_types import Estimator as BaseEstimator
    from skort.common.sklearn_types import SparseRows

    # What X may be: arrays, lists, DataFrames and sparse rows.
    Rows = ArrayLike | SparseRows
else:
    from sklearn.base import BaseEstimator

    Rows = ArrayLike
    # A type for `inspect.signature(..., eval_str=True)`: the estimators do not import onnx.
    ModelProto = NewType("ModelProto", object)

__all__ = [
    "Auto",
    "BaseEstimator",
    "ClassificationLossName",
    "DtypeName",
    "ModelProto",
    "OptimizerName",
    "PenaltyName",
    "RegressionLossName",
    "Rows",
    "ScheduleName",
    "SolverName",
    "Targets",
]

# What y may be: a dict has the targets of several outputs.
Targets = ArrayLike | Mapping[str, ArrayLike]
Auto = Literal["auto"]
SolverName = Literal["auto", "graph", "agent", "session", "module"]
RegressionLossName = Literal[
    "auto",
    "squared_error",
    "absolute_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "quantile",
    "poisson",
    "gamma",
]
ClassificationLossName = Literal[
    "auto",
    "log_loss",
    "hinge",
    "squared_hinge",
    "modified_huber",
    "perceptron",
    "squared_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
]
PenaltyName = Literal["auto", "l1", "l2", "elasticnet"]
OptimizerName = Literal["auto", "sgd", "momentum", "nesterov", "adam", "lbfgs"]
ScheduleName = Literal["auto", "constant", "invscaling", "optimal", "adaptive"]
DtypeName = Literal["float32", "float64"]
