"""The names that parameters take, as types."""

from typing import Literal

Auto = Literal["auto"]
SolverName = Literal["auto", "graph", "agent", "session", "module"]
PenaltyName = Literal["auto", "l1", "l2", "elasticnet"]
OptimizerName = Literal["sgd", "momentum", "nesterov", "adam"]
ScheduleName = Literal["constant", "invscaling", "optimal", "adaptive"]
DtypeName = Literal["float32", "float64"]
