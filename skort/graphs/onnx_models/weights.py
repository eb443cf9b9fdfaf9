"""The weights of an ONNX model: finding them, and replacing their numbers."""

import contextlib
import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import ArrayLike, DTypeLike
from onnx import TensorProto, helper

from skort.common.onnx_text import leading_to
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import runtime_gradient, undifferentiable
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.initialization import fitted_score_graph, given_model
from skort.graphs.onnx_models.inputs import given_inputs, in_one_input
from skort.graphs.onnx_models.onnx_score_graph import constants_to_initializers, plain_model
from skort.graphs.onnx_models.standard_operators import held_weights, hold_weights
from skort.graphs.onnx_models.untied import untied
from skort.graphs.score_graph import find_weights as weights_of
from skort.graphs.training_mode import in_training_mode

_DATA = {
    TensorProto.FLOAT: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.FLOAT16: "int32_data",
}
_KINDS = {"coefficients": "coefficient", "intercepts": "intercept", "scales": "scale"}


class Weight(NamedTuple):
    """
    A weight of an ONNX model.

    Parameters
    ----------
    name : str
        The name of the initializer, or of the output of the `Constant` node.
    shape : tuple of int
        The shape of its array.
    kind : {"coefficient", "intercept", "scale"}
        A coefficient multiplies X or a result of X (`MatMul`, `Gemm`, `Conv`). An intercept is
        added to such a product. A scale is another operand of `Add`, `Sub`, `Mul`, `Div` or
        `LayerNormalization`; an estimator trains it only by name. The scale of a
        `BatchNormalization` or `InstanceNormalization` and the slope of a `PRelu` are of this kind,
        too; an estimator trains them by default.
    trainable : bool
        Whether the weight has a gradient from an output of floats, by skort's rules or by ONNX
        Runtime.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort.gradients import initial_model
    >>> from skort.onnx_models import find_weights
    >>> find_weights(initial_model(LinearRegression(), 2))[0]
    Weight(name='coef', shape=(2, 1), kind='coefficient', trainable=True)
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    trainable: bool


def find_weights(model: Any) -> list[Weight]:
    """
    Return the weights of a model, found by the structure of its ONNX graph.

    Parameters
    ----------
    model : onnx.ModelProto, or fitted estimator of skort or scikit-learn
        The columns of X are those of all inputs of an ONNX model. The model is not changed.

    Returns
    -------
    weights : list of Weight
        Coefficients, then intercepts, then scales, each in the order of the graph. A weight is an
        initializer or constant with dimensions and the type of X, which an operator combines with X
        or with a result of X.

    Raises
    ------
    ValueError
        If `model` is none of these, has no input, or has an opset that cannot be converted.

    Examples
    --------
    >>> import onnx.parser
    >>> from skort.onnx_models import find_weights
    >>> model = onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N, 2] X) => (float[N, 1] y) <float[2] scale = {1, 3}, float[2, 1] W = {1, 2}>
    ... { scaled = Div (X, scale)  product = MatMul (scaled, W)  y = Ceil (product) }''')
    >>> for weight in find_weights(model):
    ...     print(weight)
    Weight(name='W', shape=(2, 1), kind='coefficient', trainable=False)
    Weight(name='scale', shape=(2,), kind='scale', trainable=False)
    """
    given = given_model(model)
    model = plain_model(
        given if isinstance(given, onnx.ModelProto) else fitted_score_graph(given).model
    )
    graph = model.graph
    in_one_input(graph)
    inputs = given_inputs(graph)
    if not inputs:
        raise ValueError("The ONNX model has no input.")

    del graph.input[:]
    graph.input.append(inputs[0])
    constants_to_initializers(graph)

    # Nodes that cannot be trained stay as they are.
    with contextlib.suppress(NotTrainableError):
        in_training_mode(model)
    found = weights_of(graph)
    shapes = {i.name: tuple(i.dims) for i in graph.initializer}
    graph.input.extend(inputs[1:])
    trainable = _with_gradient(model, found.names)

    return [
        Weight(name, shapes[name], kind, name in trainable)
        for field, kind in _KINDS.items()
        for name in getattr(found, field)
    ]


def _with_gradient(model, names):
    """Return the names of the weights that a gradient goes to."""
    # Some rules depend on shapes, but none on the number of rows.
    for info in (*model.graph.input, *model.graph.output):
        dims = info.type.tensor_type.shape.dim
        if dims and not dims[0].dim_value:
            dims[0].dim_value = 2

    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    outputs = [o for o in graph.output if o.type.tensor_type.elem_type in _DATA]

    trainable = set()
    for output in outputs:
        del graph.output[:]
        graph.output.append(output)
        leading = leading_to(graph.node, [output.name])

        for name in leading.intersection(names):
            if any(
                undifferentiable(graph, [name], gradient) is None
                for gradient in (rule_gradient, runtime_gradient)
            ):
                trainable.add(name)

    return trainable


def with_weights(model: onnx.ModelProto, weights: Mapping[str, ArrayLike]) -> onnx.ModelProto:
    """
    Return a copy of an ONNX model with other numbers in some of its tensors.

    Everything else is kept byte for byte: names, opset, producer, metadata, which tensors are
    initializers and which are constants, and how their numbers are stored. Two weights may share an
    array only because they started with equal numbers: each then gets an array of its own.

    Parameters
    ----------
    model : onnx.ModelProto
        It is not changed.
    weights : dict of str to array-like
        The name of an initializer of floats, or of the output of such a `Constant` node -> its new
        numbers, finite and of the same shape. They are cast to the type of the tensor: float32,
        float64 or float16.

    Returns
    -------
    model : onnx.ModelProto

    Raises
    ------
    ValueError
        If the graph has no such tensor, if the shapes differ, if a number is not finite in the type
        of the tensor, or if the numbers of the tensor are in another file.

    Examples
    --------
    >>> import onnx.parser
    >>> from onnx import numpy_helper
    >>> from skort.onnx_models import with_weights
    >>> model = onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... line (float[N, 2] X) => (float[N, 1] y) <float[2, 1] W = {1, 2}> { y = MatMul (X, W) }''')
    >>> numpy_helper.to_array(
    ...     with_weights(model, {"W": [[3.0], [4.0]]}).graph.initializer[0]
    ... ).ravel()
    array([3., 4.], dtype=float32)
    """
    if not isinstance(model, onnx.ModelProto):
        raise ValueError(
            f"model must be an onnx.ModelProto, got {model!r}. An estimator has set_weights."
        )

    check_by_name(weights)
    apart, copies = untied(model)
    is_shared = not weights.keys().isdisjoint({*copies, *copies.values()})
    copied = copy.deepcopy(apart if is_shared else model)
    tensors = _tensors(copied.graph)
    held = {
        name: (node, array)
        for node in copied.graph.node
        for name, array in held_weights(node).items()
    }

    for name, values in weights.items():
        if name in tensors:
            _fill(tensors[name], name, values)
        elif name in held:
            node, array = held[name]
            hold_weights(node, {name: weight_array(name, values, array.shape, array.dtype)})
        else:
            known = ", ".join([*tensors, *held]) or "none"
            raise ValueError(
                f"weights: the ONNX model has no tensor of floats {name!r}. It has {known}."
            )

    return copied


def check_by_name(weights: Any) -> None:
    """Raise a ValueError if weights are not a dict."""
    if not isinstance(weights, Mapping):
        raise ValueError(f"weights must be a dict: name -> array, got {type(weights).__name__}.")


def finite_array(values: ArrayLike, name: str, dtype: DTypeLike) -> np.ndarray:
    """
    Return a new array of finite numbers in a dtype.

    A ValueError for anything else begins with `name`.
    """
    try:
        with np.errstate(over="ignore"):
            array = np.array(values)
            if array.dtype.kind == "c":
                raise TypeError("it is complex.")
            array = array.astype(dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from error

    if not np.isfinite(array).all():
        raise ValueError(f"{name} has numbers that are not finite in {np.dtype(dtype)}.")

    return array


def weight_array(
    name: str, values: ArrayLike, shape: tuple[int, ...], dtype: np.dtype
) -> np.ndarray:
    """Return the new values of a weight as a new array of its shape and dtype."""
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
    """Replace the numbers of a tensor, in place."""
    if tensor.data_location == TensorProto.EXTERNAL:
        raise ValueError(
            f"weights[{name!r}]: its numbers are in another file. Load the model with "
            "onnx.load(path)."
        )

    array = weight_array(
        name, values, tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type)
    )
    field = _DATA[tensor.data_type]

    if len(getattr(tensor, field)):
        tensor.ClearField(field)
        bits = array.view(np.uint16) if array.dtype == np.float16 else array
        getattr(tensor, field).extend(bits.ravel().tolist())
    else:
        tensor.raw_data = array.astype(array.dtype.newbyteorder("<")).tobytes()
