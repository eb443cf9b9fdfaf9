"""The names that parameters take, as types."""

from typing import Literal

__all__ = [
    "Auto",
    "ClassificationLossName",
    "DtypeName",
    "OptimizerName",
    "PenaltyName",
    "RegressionLossName",
    "ScheduleName",
    "SolverName",
]

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
OptimizerName = Literal["sgd", "momentum", "nesterov", "adam"]
ScheduleName = Literal["constant", "invscaling", "optimal", "adaptive"]
DtypeName = Literal["float32", "float64"]
