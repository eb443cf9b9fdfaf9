"""The score graph that training starts from: of a model at its initial weights, or at those it was fitted to."""

import functools

import numpy as np
import onnx
from onnx import helper
from sklearn.base import is_classifier as is_sklearn_classifier

from skort.exceptions import NotTrainableError
from skort.graphs.conversion import to_onnx
from skort.graphs.differentiable import undifferentiable
from skort.graphs.families import (
    FAMILY,
    any_stand_in,
    fitted_stand_in,
    has_log_link,
    initial_stand_in,
    layers,
    score_model,
)
from skort.graphs.onnx_models import onnx_score_graph
from skort.graphs.raw_inputs import RawInput
from skort.graphs.score_graph import ScoreGraph, find_weights

__all__ = ["check_differentiable", "initial_score_graph", "stand_in_graph"]


def initial_score_graph(
    model, n_features, n_outputs, dtype, random_state, *, is_fitted=False, is_classifier=False, own_link=True
):
    """
    Convert a model to ONNX, up to its raw score.

    Parameters
    ----------
    model : estimator or onnx.ModelProto
        One that `check_trainable` accepts.
    n_features, n_outputs : int
        Numbers of columns of the data and of the raw score.
    dtype : dtype
        float32 or float64.
    random_state : numpy.random.RandomState
        Draws the initial weights of an unfitted model.
    is_fitted : bool, default=False
        Whether to start from the model's own weights.
    is_classifier : bool, default=False
        Whether the score is to be turned into classes; then two of them have one score.
    own_link : bool, default=True
        Whether the exponential that a regressor with a log link predicts is part of the score. False where the loss is
        one of the logarithm of the prediction.

    Returns
    -------
    score_graph : ScoreGraph
        Every trained weight leads to the score through operators that have a gradient.

    Raises
    ------
    NotTrainableError
        Where the model has no weights with a gradient.
    ValueError
        Where a fitted model has other numbers of features or outputs than the data.
    """
    if isinstance(model, onnx.ModelProto):
        return onnx_score_graph(model, n_features, n_outputs, dtype, is_classifier=is_classifier)
    known = type(score_model(model)) in FAMILY
    if not is_fitted:
        stand_in = initial_stand_in(model, n_features, n_outputs, random_state)
    elif known:
        stand_in = fitted_stand_in(model)
    name = type(model).__name__
    if is_fitted and getattr(model, "n_features_in_", n_features) != n_features:
        raise ValueError(
            f"X has {n_features} features, but the fitted {name} is expecting {model.n_features_in_} features as input."
        )
    if not known:
        try:
            graph = to_onnx(model, (RawInput("X", False, n_features),), dtype)
        except Exception as error:  # skl2onnx raises errors of many kinds
            raise NotTrainableError(
                f"estimator={name} cannot be trained by gradient descent: skl2onnx gives no graph of it: "
                f"{type(error).__name__}: {(str(error) or 'no reason given').splitlines()[0]}"
            ) from error
        return onnx_score_graph(graph, n_features, n_outputs, dtype, is_classifier=is_classifier)
    if layers(stand_in)[0][-1].shape[1] != n_outputs:
        raise ValueError(f"y asks for {n_outputs} outputs, which the fitted {name} does not have.")
    log_link = own_link and not is_sklearn_classifier(model) and has_log_link(model)
    return stand_in_graph(stand_in, dtype, log_link=log_link)


def stand_in_graph(stand_in, dtype, *, log_link=False):
    """
    Convert a stand-in to ONNX.

    Parameters
    ----------
    stand_in : LinearRegression or MLPRegressor
        As from `skort.graphs.families`.
    dtype : dtype
        float32 or float64.
    log_link : bool, default=False
        True: the score is the exponential of what the stand-in predicts.

    Returns
    -------
    score_graph : ScoreGraph
    """
    coefs, intercepts = layers(stand_in)
    sizes = (stand_in.n_features_in_, *(coef.shape[1] for coef in coefs))
    options = getattr(stand_in, "activation", None), getattr(stand_in, "fit_intercept", True)
    template = _template(sizes, *options, np.dtype(dtype), log_link)
    # No intercepts in the graph where the model has none.
    values = zip(template.weights().items(), [*coefs, *intercepts], strict=False)
    return template.with_weights({name: w.astype(dtype).reshape(like.shape) for (name, like), w in values})


@functools.lru_cache(maxsize=8)
def _template(sizes, activation, fit_intercept, dtype, log_link):
    """Return the graph of all stand-ins of one structure, at some weights: a conversion takes longer than a copy."""
    model = to_onnx(any_stand_in(sizes, activation), (RawInput("X", False, sizes[0]),), dtype)
    graph = model.graph
    _drop_ends(graph, sizes[-1])
    if not fit_intercept:
        # The Add.
        graph.output[0].name = graph.node.pop().input[0]
        graph.initializer.pop()
    if log_link:
        graph.node.append(helper.make_node("Exp", [graph.output[0].name], ["prediction"]))
        graph.output[0].name = "prediction"
    return ScoreGraph(model, find_weights(graph))


def check_differentiable(score_graph, solver, gradient):
    """
    Raise an error where a trained weight leads to the score through an operator without a gradient.

    Parameters
    ----------
    score_graph : ScoreGraph
    solver : str
        The name of the solver, for the message.
    gradient : callable
        What it differentiates, as for `undifferentiable`.

    Raises
    ------
    NotTrainableError
        It names the operator. Also where there is no weight to train.
    """
    if not score_graph.trainable:
        operators = ", ".join(dict.fromkeys(node.op_type for node in score_graph.model.graph.node))
        raise NotTrainableError(
            "estimator: the model has no weight to train, no initializer of its ONNX graph that is an operand of "
            f"MatMul, Gemm, Conv or Add between its input and its output. Its operators are {operators}."
        )
    # Some rules depend on shapes, but none on the number of rows.
    obstacle = undifferentiable(score_graph.with_batch_size(2).graph, score_graph.trainable, gradient)
    if obstacle is not None:
        operator, node = obstacle
        raise NotTrainableError(
            f"estimator: its ONNX graph computes with the operator {operator}{f' (node {node!r})' if node else ''} "
            f"between a weight and the score, which has no gradient in {score_graph.dtype} with solver={solver!r}. "
            "Name the weights after it in trainable, or cut the model before it."
        )


def _drop_ends(graph, n_outputs):
    """Drop the cast of X to its own type and the last reshape to (any, n_outputs): the nodes between keep both."""
    element_type = graph.input[0].type.tensor_type.elem_type
    nodes = list(graph.node)
    if nodes[0].op_type == "Cast" and nodes[0].attribute[0].i == element_type:
        cast = nodes.pop(0)
        for node in nodes:
            node.input[:] = [cast.input[0] if name == cast.output[0] else name for name in node.input]
    if nodes[-1].op_type == "Reshape":
        reshape = nodes.pop()
        shape = reshape.input[1]
        kept = [i for i in graph.initializer if i.name != shape]
        del graph.initializer[:]
        graph.initializer.extend(kept)
        graph.output[0].CopyFrom(helper.make_tensor_value_info(reshape.input[0], element_type, [None, n_outputs]))
    del graph.node[:]
    graph.node.extend(nodes)
