"""The values of parameters that take a name, as types."""

from typing import TYPE_CHECKING, Literal, NewType

if TYPE_CHECKING:
    from onnx import ModelProto
else:
    # A type for `inspect.signature(..., eval_str=True)`: the estimators do not import onnx.
    ModelProto = NewType("ModelProto", object)

Auto = Literal["auto"]
SolverName = Literal["auto", "graph", "agent", "session", "module"]
PenaltyName = Literal["auto", "l1", "l2", "elasticnet"]
OptimizerName = Literal["auto", "sgd", "momentum", "nesterov", "adam", "lbfgs"]
ScheduleName = Literal["auto", "constant", "invscaling", "optimal", "adaptive"]
DtypeName = Literal["float32", "float64"]
