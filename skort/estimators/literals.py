"""The names that parameters take, as types."""

from typing import TYPE_CHECKING, Literal, NewType

if TYPE_CHECKING:
    from onnx import ModelProto
else:
    # What `inspect.signature(..., eval_str=True)` finds: estimators are imported without onnx.
    ModelProto = NewType("ModelProto", object)

Auto = Literal["auto"]
SolverName = Literal["auto", "graph", "agent", "session", "module"]
PenaltyName = Literal["auto", "l1", "l2", "elasticnet"]
OptimizerName = Literal["auto", "sgd", "momentum", "nesterov", "adam", "lbfgs"]
ScheduleName = Literal["auto", "constant", "invscaling", "optimal", "adaptive"]
DtypeName = Literal["float32", "float64"]
