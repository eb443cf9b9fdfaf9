"""Functions that the user writes in ONNX: they are read, and their shapes checked, before a training uses them."""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from skort.objective.base import FunctionSource

if TYPE_CHECKING:
    import onnx

__all__ = ["check_signature", "parsed", "result_shape", "source_key"]


def parsed(what: str, source: FunctionSource) -> "onnx.FunctionProto":
    """
    Return a function of the user's.

    Parameters
    ----------
    what : str
        The parameter that it is, such as "loss: value".
    source : str or onnx.FunctionProto

    Raises
    ------
    ValueError
        Where it is no function.
    """
    from skort.common.onnx_text import function

    try:
        return function(source, "float32")
    except Exception as error:  # of onnx.parser, which is no ValueError
        raise _no_function(what, error) from error


def check_signature(what: str, source: FunctionSource, signatures: Sequence[Sequence[str]]) -> None:
    """Raise a ValueError where a function has other inputs than one of the signatures, or not one output."""
    proto = parsed(what, source)
    if list(proto.input) not in [list(inputs) for inputs in signatures] or len(proto.output) != 1:
        wanted = " or ".join(f"({', '.join(inputs)})" for inputs in signatures)
        raise ValueError(
            f"{what} must be a function of {wanted} with one output, got ({', '.join(proto.input)}) => "
            f"({', '.join(proto.output)})."
        )


def result_shape(what: str, source: FunctionSource, inputs: Mapping[str, tuple[int, ...]]) -> list[int]:
    """
    Return the shape of the result of a function, with 0 for what is not known.

    Parameters
    ----------
    what : str
    source : str or onnx.FunctionProto
    inputs : dict of str to tuple of int
        The inputs of the function, in order: name -> shape.

    Raises
    ------
    ValueError
        Where the function cannot run on such inputs.
    """
    try:
        return list(_inferred_shape(source_key(source), tuple(inputs.items())))
    except Exception as error:  # of onnx.checker and onnx.shape_inference, which are no ValueErrors
        raise _no_function(what, error) from error


@functools.lru_cache(64)
def _inferred_shape(key, inputs):
    """Return the shape of the result of a function: a fit asks several times, and a search in every fit."""
    import onnx.checker
    import onnx.shape_inference

    from skort.common.model_builder import function_model

    source = key if isinstance(key, str) else onnx.FunctionProto.FromString(key)
    model = function_model(source, "float32", dict(inputs))
    onnx.checker.check_model(model)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    return tuple(dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim)


def source_key(source: "FunctionSource | None") -> str | bytes | None:
    """Return a function, or None, as a hashable value."""
    return source if source is None or isinstance(source, str) else source.SerializeToString()


def _no_function(what: str, error: Exception) -> ValueError:
    """Return the error of a function that cannot run."""
    reason = error.args[0] if error.args else ""
    reason = reason.decode() if isinstance(reason, bytes) else str(reason)
    return ValueError(f"{what} is not an ONNX function that can run: {' '.join(reason.split())}")
