"""What ONNX Runtime says where it cannot differentiate a model."""

import contextlib
import re

from skort.exceptions import NotTrainableError

__all__ = ["differentiation"]

_NO_GRADIENT = re.compile(r"gradient builder has not been registered: (\w+)")
_UNREACHABLE = re.compile(r"unreachable from the output|couldn't find the consumer node")


@contextlib.contextmanager
def differentiation():
    """Name the operator that has no gradient, in place of the runtime's own error."""
    try:
        yield
    except Exception as error:  # RuntimeError and the runtime's own, by version
        missing = _NO_GRADIENT.search(str(error))
        if missing:
            raise NotTrainableError(f"ONNX Runtime has no gradient of the operator {missing[1]}.") from error
        if _UNREACHABLE.search(str(error)):
            raise NotTrainableError("no gradient of the result by the score or the weights.") from error
        raise
