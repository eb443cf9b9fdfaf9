"""
Operators of other domains written as standard ones: those of ai.onnx.ml, whose attributes become
weights, and those of ONNX Runtime.
"""

import copy
import math
from collections.abc import Mapping

import numpy as np
import onnx
import onnx.shape_inference
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, function, inlined, replace_nodes
from skort.graphs.onnx_models.runtime_operators import (
    GELU,
    RUNTIME_DOMAIN,
    TANH_GELU,
    runtime_formula,
)

_ML = "ai.onnx.ml"
# Operator -> the attributes that hold its weights: a factor and a summand, or a subtrahend and a
# factor.
_HELD = {
    "LinearRegressor": ("coefficients", "intercepts"),
    "LinearClassifier": ("coefficients", "intercepts"),
    "Scaler": ("offset", "scale"),
}
#: Operators that came after `OPSET`, and the domain that they get before a model is converted.
LATER, LATER_DOMAIN = ("Gelu", "Mish", "RMSNormalization", "Swish"), "skort.later"
_ENDS = {"NONE": "%s", "LOGISTIC": "Sigmoid(%s)", "SOFTMAX": "Softmax(%s, axis=1)"}
# Losses of class numbers, and the logarithms of probabilities that they take.
_LOSSES = {
    "NegativeLogLikelihoodLoss": "Identity(X)",
    "SoftmaxCrossEntropyLoss": "LogSoftmax(X, axis=1)",
}
# Loss -> its reduction of `picked`, the logarithms of the probabilities of the labels.
_REDUCTIONS = {
    "none": "Neg(Squeeze(picked, [1]))",
    "sum": "Neg(ReduceSum(picked, keepdims=0))",
    "mean": "Neg(ReduceMean(picked, keepdims=0))",
}
_NORMS = {"L1": "ReduceL1", "L2": "ReduceL2", "MAX": "ReduceMax"}
# A single score s of two classes stands for the two scores -s and s.
_BINARY = {
    "NONE": "pair",
    "LOGISTIC": "Concat(1 - Sigmoid(s), Sigmoid(s), axis=1)",
    "SOFTMAX": "Softmax(pair, axis=1)",
}


def standard_operators(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Return a model of `OPSET` with operators of other domains, or later, as standard ones.

    So are losses of class numbers, which have a gradient then.
    """
    if not any(_is_rewritten(node) for node in model.graph.node):
        return model

    model, fragment = copy.deepcopy(model), Fragment(np.float32)
    graph = model.graph
    is_double = any(i.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE for i in graph.input)

    for node in graph.node:
        inputs, constants, formula = _with_inputs(node) if _is_rewritten(node) else ([], {}, "")
        if not formula:
            fragment.nodes.append(node)
            continue

        names = [f"{node.output[-1]}/{name}" for name in constants]
        arrays = zip(constants.values(), names, strict=True)
        graph.initializer.extend(numpy_helper.from_array(array, name) for array, name in arrays)
        dtype = np.float64 if is_double and node.domain != _ML else np.float32
        outputs = ["label", "Z"] if len(node.output) == 2 else ["Z"]
        signature = f"{node.op_type} ({', '.join([*inputs, *constants])}) => ({', '.join(outputs)})"
        called = function(function_text(signature, formula), dtype)
        given = [name for name in node.input if name]
        fragment.call_as_is(called, [*given, *names], node.output)

    picked = {
        node.input[1]
        for node in graph.node
        if node.domain == _ML and node.op_type == "ArrayFeatureExtractor"
    }
    for indices in graph.initializer:
        if indices.name in picked:
            # ArrayFeatureExtractor ignores the shape of its indices, but Gather does not.
            indices.dims[:] = [math.prod(indices.dims)]

    dicts = [output for output in graph.output if not output.type.HasField("tensor_type")]
    for output in dicts:
        # ZipMap, which made dicts of a tensor, is gone: onnx infers the type of the tensor.
        output.ClearField("type")

    replace_nodes(graph, fragment.nodes)
    plain = inlined(model, fragment)
    if dicts:
        plain = onnx.shape_inference.infer_shapes(plain)
    for output in plain.graph.output:
        if not output.type.HasField("tensor_type"):
            # onnx does not infer the type of what trees return. The values of the dicts were floats.
            output.type.tensor_type.elem_type = TensorProto.FLOAT

    return plain


def _is_rewritten(node):
    return node.domain in (_ML, LATER_DOMAIN, RUNTIME_DOMAIN) or (
        node.domain == "" and node.op_type in _LOSSES
    )


def held_weights(node: onnx.NodeProto) -> dict[str, np.ndarray]:
    """
    Return the weights in the attributes of a node, by name.

    Coefficients have one column per output.
    """
    held = _HELD.get(node.op_type, ()) if node.domain == _ML else ()
    constants = _written(node)[0] if held else {}
    return {f"{node.output[-1]}/{name}": constants[name] for name in held if name in constants}


def hold_weights(node: onnx.NodeProto, weights: Mapping[str, ArrayLike]) -> None:
    """
    Replace weights in the attributes of a node, in place.

    Names and shapes are those of `held_weights`.
    """
    for attribute in node.attribute:
        array = weights.get(f"{node.output[-1]}/{attribute.name}")
        if array is not None:
            array = np.asarray(array).T
            both = np.concatenate([-array, array]) if array.size < len(attribute.floats) else array
            attribute.floats[:] = both.ravel().tolist()


def _with_inputs(node):
    """Return the names of the inputs in the formula of a node, its constants and its formula."""
    if node.domain == RUNTIME_DOMAIN:
        names, formula = runtime_formula(node)
        return names, {}, formula

    second = "scale" if node.op_type == "RMSNormalization" else "indices"
    return ["X", second][: len(node.input)], *_written(node)


def _written(node):  # noqa: C901  # a case for each operator
    """Return the constants of a node by name, and the formula of its outputs or ""."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    texts = {name: value.decode() for name, value in given.items() if isinstance(value, bytes)}
    floats = {
        name: np.array(given[name], np.float32)
        for name in _HELD.get(node.op_type, ())
        if given.get(name)
    }

    match node.op_type:
        case "LinearRegressor":
            return _linear(floats, given.get("targets", 1), texts.get("post_transform", "NONE"))
        case "LinearClassifier":
            return _classifier(floats, given, texts.get("post_transform", "NONE"))
        case "Scaler" if len(floats) == 2:
            return floats, "Z = (Cast(X, to=1) - offset) * scale"
        case "Normalizer":
            norm = _NORMS[texts.get("norm", "MAX")]
            return {}, f"x = Cast(X, to=1)\nn = {norm}(x, axes=[1])\nZ = x / Where(n == 0, 1, n)"
        case "Imputer":
            return _imputer(given)
        case "OneHotEncoder" if "cats_int64s" in given:
            categories = np.array(given["cats_int64s"], np.int64)
            return {
                "categories": categories
            }, "Z = Cast(Unsqueeze(Cast(X, to=7), [-1]) == categories, to=1)"
        case "ArrayFeatureExtractor":
            return {}, "Z = Gather(X, indices, axis=-1)"
        case "NegativeLogLikelihoodLoss" | "SoftmaxCrossEntropyLoss":
            return {}, _class_loss(node, given, texts.get("reduction", "mean"))
        case "ZipMap":
            return {}, "Z = X"
        case "Gelu":
            gelu = TANH_GELU if texts.get("approximate") == "tanh" else GELU
            return {}, f"s = Identity(X)\nZ = {gelu}"
        case "Mish":
            # The last factor is tanh(log(1 + exp(X))).
            return {}, "Z = X * Tanh(Relu(X) + Log(1 + Exp(-Abs(X))))"
        case "Swish":
            return {}, f"Z = X * Sigmoid({given.get('alpha', 1.0)!r} * X)"
        case "RMSNormalization" if given.get("axis", -1) == -1:
            mean = f"ReduceMean(X * X, axes=[-1]) + {given.get('epsilon', 1e-5)!r}"
            return {}, f"Z = X / Sqrt({mean}) * scale"

    return {}, ""


def _linear(floats, n_outputs, end):
    """Return the weights of a linear model and the formula of its output."""
    if end not in _ENDS or "coefficients" not in floats:
        return {}, ""
    weights = floats | {"coefficients": floats["coefficients"].reshape(n_outputs, -1).T}
    plus = " + intercepts" if "intercepts" in floats else ""
    return weights, f"s = MatMul(Cast(X, to=1), coefficients){plus}\nZ = {_ENDS[end] % 's'}"


def _classifier(floats, given, end):
    """Return the weights and labels of a linear classifier, and the formula of its two outputs."""
    labels = np.array(given.get("classlabels_ints") or given.get("classlabels_strings") or [])
    labels = labels.astype(object) if labels.dtype.kind == "S" else labels
    n_rows = len(floats.get("intercepts", labels))
    rows = {name: array.reshape(n_rows, -1) for name, array in floats.items()} if n_rows else {}

    if n_rows == 2 and all(np.array_equal(array[0], -array[1]) for array in rows.values()):
        rows = {name: array[1:] for name, array in rows.items()}
        n_rows = 1

    if len(labels) != max(2, n_rows):
        return {}, ""

    weights, score = _linear({name: array.ravel() for name, array in rows.items()}, n_rows, end)
    if not score:
        return {}, ""

    score = score.partition("\n")[0]
    pair = "Concat(Neg(s), s, axis=1)" if n_rows == 1 else "s"
    best = f"pair = {pair}\nlabel = Gather(labels, ArgMax(pair, axis=1, keepdims=0))"
    result = _BINARY[end] if n_rows == 1 else _ENDS[end] % "s"

    return weights | {"labels": labels}, f"{score}\n{best}\nZ = {result}"


def _class_loss(node, given, reduction):
    """Return the formula of a loss of class numbers, or "" for one with weights of classes."""
    if len(node.input) > 2 or "ignore_index" in given:
        return ""

    loss, logarithms = ("label", "Z") if len(node.output) == 2 else ("Z", "logarithms")
    return (
        f"{logarithms} = {_LOSSES[node.op_type]}\n"
        "depth = Gather(Shape(X), [1])\n"
        "of_label = Cast(OneHot(Cast(indices, to=7), depth, [0, 1], axis=1), to=9)\n"
        f"picked = ReduceSum(Where(of_label, {logarithms}, 0), [1], keepdims=1)\n"
        f"{loss} = {_REDUCTIONS[reduction]}"
    )


def _imputer(given):
    """Return the replacements of missing numbers as constants, and the formula of the result."""
    if "imputed_value_floats" in given:
        missing = given.get("replaced_value_float", 0.0)
        imputed = np.array(given["imputed_value_floats"], np.float32)
    else:
        missing = given.get("replaced_value_int64", 0)
        imputed = np.array(given["imputed_value_int64s"], np.int64)

    if np.isnan(missing):
        return {"imputed": imputed}, "Z = Where(IsNaN(X), imputed, X)"

    return {
        "imputed": imputed,
        "missing": np.array([missing], imputed.dtype),
    }, "Z = Where(X == missing, imputed, X)"
