"""The score graph that training starts from: a model at its initial weights, or at those it was fitted to."""

import copy
import functools
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skort.common.model_builder import build_model
from skort.common.onnx_text import onnx_dtype
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import Gradient, undifferentiable
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph
from skort.graphs.score_graph import ScoreGraph, ScoreSpec, Weights, find_weights, set_batch_size
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.families import FAMILY, Layers, fitted_layers, has_log_link, initial_layers, score_model
from skort.graphs.sklearn.raw_inputs import RawInput

_LINEAR_NAMES = "coef", "intercept", "multiplied", "resh"
_NETWORK_NAMES = "coefficient", "intercepts", "mul_result", "add_result"
# Of hidden layers, by scikit-learn's names
_ACTIVATIONS = {"identity": "", "logistic": "Sigmoid", "relu": "Relu", "tanh": "Tanh"}


def initial_score_graph(
    model: Any, spec: ScoreSpec, random_state: np.random.RandomState, *, is_fitted: bool = False
) -> ScoreGraph:
    """Convert a model to ONNX, up to its raw score; all weights are trained, but for the scales of an ONNX model."""
    if isinstance(model, onnx.ModelProto):
        return onnx_score_graph(model, spec)
    name = type(model).__name__
    if is_fitted and getattr(model, "n_features_in_", spec.n_features) != spec.n_features:
        raise ValueError(
            f"X has {spec.n_features} features, but the fitted {name} is expecting {model.n_features_in_} features as "
            "input."
        )
    if type(score_model(model)) not in FAMILY:
        return onnx_score_graph(_converted(model, spec), spec)
    layers = fitted_layers(model) if is_fitted else initial_layers(model, spec.n_features, spec.n_outputs, random_state)
    if layers.n_outputs != spec.n_outputs:
        raise ValueError(f"y asks for {spec.n_outputs} outputs, which the fitted {name} does not have.")
    log_link = spec.own_link and not is_classifier(model) and has_log_link(model)
    return _layers_graph(layers, np.dtype(spec.dtype), log_link)


def given_model(model: Any) -> onnx.ModelProto | BaseEstimator:
    """Return what a user gave as a model: the ONNX model of an estimator of skort, or what it is."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
        return getattr(model, "onnx_", model)
    if isinstance(model, onnx.ModelProto):
        return model
    raise ValueError(f"model must be an onnx.ModelProto or a fitted estimator, got {model!r}.")


def fitted_score_graph(model: BaseEstimator, dtype: DTypeLike = np.float32, *, own_link: bool = True) -> ScoreGraph:
    """Return the score graph of a fitted scikit-learn predictor, or a pipeline that ends in one, at its weights."""
    spec = ScoreSpec(model.n_features_in_, n_score_columns(model), np.dtype(dtype), is_classifier(model), own_link)
    return initial_score_graph(model, spec, np.random.RandomState(0), is_fitted=True)


def n_score_columns(model: BaseEstimator) -> int:
    """Return the number of columns of the raw score of a fitted model of scikit-learn."""
    if type(score_model(model)) in FAMILY:
        return fitted_layers(model).n_outputs
    if is_classifier(model):
        return 1 if len(model.classes_) == 2 else len(model.classes_)
    prediction = model.predict(np.zeros((1, model.n_features_in_)))
    return 1 if np.ndim(prediction) == 1 else np.shape(prediction)[1]


def _converted(model: Any, spec: ScoreSpec) -> onnx.ModelProto:
    """Return a fitted model of any type as ONNX."""
    try:
        return to_onnx(model, (RawInput("X", False, spec.n_features),), spec.dtype)
    except Exception as error:  # skl2onnx raises errors of many kinds
        raise NotTrainableError(
            f"estimator={type(model).__name__} cannot be trained by gradient descent: skl2onnx cannot convert it: "
            f"{type(error).__name__}: {(str(error) or 'no reason given').splitlines()[0]}"
        ) from error


def _layers_graph(layers: Layers, dtype: np.dtype, log_link: bool) -> ScoreGraph:
    """Return layers as ONNX; with `log_link` the score is the exponential of what they give."""
    sizes = (len(layers.coefs[0]), *(coef.shape[1] for coef in layers.coefs))
    structure, weights = _layers_structure(sizes, bool(layers.intercepts), layers.activation, dtype, log_link)
    intercepts = layers.intercepts if layers.activation is None else [array[None] for array in layers.intercepts]
    values = zip(weights.names, [*layers.coefs, *intercepts], strict=True)
    return ScoreGraph(structure, {name: array.astype(dtype) for name, array in values}, weights)


@functools.lru_cache(maxsize=8)
def _layers_structure(sizes, has_intercepts, activation, dtype, log_link) -> tuple[onnx.ModelProto, Weights]:
    """Return the structure of layers, which fits share, and its weights; the names are those that skl2onnx gives."""
    is_linear, element_type = activation is None, onnx_dtype(dtype)
    coef, intercept, product, total = _LINEAR_NAMES if is_linear else _NETWORK_NAMES
    operator = "" if is_linear else _ACTIVATIONS[activation]
    numbers = [str(i or "") for i in range(len(sizes) - 1)]
    nodes: list[onnx.NodeProto] = []

    def add(operator, result, *others, i):
        inputs = [nodes[-1].output[0] if nodes else "X", *others]
        nodes.append(helper.make_node(operator, inputs, [f"{result}{i}"], name=f"{operator}{i}", domain=""))

    for i in numbers:
        add("MatMul", product, coef + i, i=i)
        if has_intercepts:
            add("Add", total, intercept + i, i=i)
        if operator and i != numbers[-1]:
            add(operator, "next_activations", i=i)
    if log_link:
        nodes.append(helper.make_node("Exp", list(nodes[-1].output), ["prediction"]))
    ends = list(zip(numbers, sizes, sizes[1:], strict=False))
    shapes = {"X": (None, sizes[0]), **{coef + i: shape for i, *shape in ends}}
    if has_intercepts:
        shapes |= {intercept + i: (n,) if is_linear else (1, n) for i, _, n in ends}
    shapes[nodes[-1].output[0]] = (None, sizes[-1])
    *inputs, score = (helper.make_tensor_value_info(name, element_type, shape) for name, shape in shapes.items())
    structure = build_model(helper.make_graph(nodes, "skort", inputs, [score]), producer_name="skort")
    # Fields that are empty are written, too: the files of earlier versions have them.
    structure.model_version, structure.doc_string = 0, ""
    return structure, find_weights(structure.graph)


def check_differentiable(score_graph: ScoreGraph, solver: str, gradient: Gradient) -> None:
    """Raise a NotTrainableError where there is no weight, or none that a gradient reaches, naming the operator."""
    if not score_graph.trainable:
        operators = ", ".join(dict.fromkeys(node.op_type for node in score_graph.structure.graph.node))
        has_branches = "If" in operators.split(", ")
        branches = " The weights in the branches of If are not found: export the branch that is used." * has_branches
        raise NotTrainableError(
            "estimator: the model has no weight to train: no initializer of its ONNX graph is an operand of MatMul, "
            f"Gemm, Conv or Add between its input and its output. Its operators are {operators}.{branches}"
        )
    structure = copy.deepcopy(score_graph.structure)
    # Some rules depend on shapes, but none on the number of rows.
    set_batch_size(structure, 2)
    obstacle = undifferentiable(structure.graph, score_graph.trainable, gradient)
    if obstacle is not None:
        operator, node = obstacle
        raise NotTrainableError(
            f"estimator: its ONNX graph computes with the operator {operator}{f' (node {node!r})' if node else ''} "
            f"between a weight and the score, which has no gradient in {score_graph.dtype} with solver={solver!r}. "
            "Name the weights after it in trainable, or cut the model before it."
        )
