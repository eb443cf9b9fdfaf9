"""Other weights in an ONNX model that stays as it is."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper

from skort.common.finite import finite_array

_DATA = {TensorProto.FLOAT: "float_data", TensorProto.DOUBLE: "double_data"}


def with_weights(model: onnx.ModelProto, weights: Mapping[str, ArrayLike]) -> onnx.ModelProto:
    """
    Return a copy of an ONNX model with other numbers in some of its tensors.

    All else is kept byte for byte: names, opset, producer, metadata, which tensors are initializers and which are
    constants, and how their numbers are stored.

    Parameters
    ----------
    model : onnx.ModelProto
        It is not changed.
    weights : dict of str to array-like
        Name of an initializer, or of the output of a `Constant` node, of floats -> its numbers, of the same shape and
        finite. They are cast to its type, float32 or float64.

    Returns
    -------
    model : onnx.ModelProto

    Raises
    ------
    ValueError
        Where the graph has no such tensor, or one of another shape, for numbers that are not finite in its type, and
        for a tensor whose numbers are in another file.

    Examples
    --------
    >>> import onnx.parser
    >>> from onnx import numpy_helper
    >>> from skort.onnx_models import with_weights
    >>> model = onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { y = MatMul (X, W) }''')
    >>> numpy_helper.to_array(with_weights(model, {"W": [[3.0], [4.0]]}).graph.initializer[0]).ravel()
    array([3., 4.], dtype=float32)
    """
    if not isinstance(model, onnx.ModelProto):
        raise ValueError(f"model must be an onnx.ModelProto, got {model!r}. An estimator has set_weights.")
    check_by_name(weights)
    copied = copy.deepcopy(model)
    tensors = _tensors(copied.graph)
    for name, values in weights.items():
        if name not in tensors:
            known = ", ".join(tensors) or "none"
            raise ValueError(f"weights: the ONNX model has no tensor of floats {name!r}. It has {known}.")
        _fill(tensors[name], name, values)
    return copied


def check_by_name(weights: Any) -> None:
    """Raise a ValueError where weights are no dict."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be a dict: name -> array, got {type(weights).__name__}.")


def weight_array(name: str, values: ArrayLike, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return the values that a weight is to have as a new array of its shape and dtype."""
    array = finite_array(values, f"weights[{name!r}]", dtype)
    if array.shape != shape:
        raise ValueError(f"weights[{name!r}] has shape {array.shape}, but the weight has {shape}.")
    return array


def _tensors(graph):
    """Return the initializers and constants of floats, by name."""
    tensors = {i.name: i for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    return {name: tensor for name, tensor in tensors.items() if tensor.data_type in _DATA}


def _fill(tensor, name, values):
    """Give a tensor other numbers, in place."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(f"weights[{name!r}]: its numbers are in another file. Load the model with onnx.load(path).")
    array = weight_array(name, values, tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type))
    field = _DATA[tensor.data_type]
    if len(getattr(tensor, field)):
        tensor.ClearField(field)
        getattr(tensor, field).extend(array.ravel().tolist())
    else:
        tensor.raw_data = array.astype(array.dtype.newbyteorder("<")).tobytes()
