"""The score graph that training starts from: a model with its initial or its fitted weights."""

import functools
from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skort.common.onnx_text import onnx_dtype, pruned
from skort.common.own_graph import makes_graph
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph, without_idle_nodes
from skort.graphs.score_graph import ScoreGraph, ScoreSpec
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.families import (
    FAMILY,
    any_stand_in,
    drawn_layers,
    fitted_stand_in,
    has_log_link,
    initial_stand_in,
    layers,
    score_model,
)
from skort.graphs.sklearn.raw_inputs import RawInput


def initial_score_graph(
    model: Any, spec: ScoreSpec, random_state: np.random.RandomState, *, is_fitted: bool = False
) -> ScoreGraph:
    """
    Return the score graph of a model.

    All weights are trained, except the scales of an ONNX model.
    """
    of_score = score_model(model)
    if type(of_score) not in FAMILY:
        return _of_other_model(model, spec, random_state, is_fitted=is_fitted)

    if is_fitted:
        _check_columns(model, spec)
        stand_in = fitted_stand_in(model)
    else:
        stand_in = initial_stand_in(of_score, spec.n_features, spec.n_outputs, random_state)

    log_link = spec.keeps_link and not is_classifier(model) and has_log_link(model)
    score_graph = stand_in_graph(stand_in, spec.dtype, log_link=log_link)
    if score_graph.n_outputs != spec.n_outputs:
        raise ValueError(
            f"y asks for {spec.n_outputs} outputs, which the fitted {type(model).__name__} does "
            f"not have: it has {score_graph.n_outputs}."
        )
    return score_graph


def _of_other_model(model, spec, random_state, *, is_fitted):
    """Return the score graph of an ONNX model, of a model that makes its own, or of any other type."""
    if isinstance(model, onnx.ModelProto):
        return onnx_score_graph(model, spec)
    if makes_graph(model):
        return model.initial_score_graph(spec, random_state)

    if is_fitted:
        _check_columns(model, spec)
    return onnx_score_graph(_converted(model, spec), spec)


def _check_columns(model, spec):
    """Raise an error if X does not have the columns of a fitted model."""
    if getattr(model, "n_features_in_", spec.n_features) != spec.n_features:
        raise ValueError(
            f"X has {spec.n_features} features, but the fitted {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input."
        )


def drawn_weights(
    model: Any, score_graph: ScoreGraph, spec: ScoreSpec, random_state: np.random.RandomState
) -> dict[str, np.ndarray] | None:
    """
    Return new initial weights for a network of scikit-learn, or one that makes its own graph, by
    name; None for other models, and where a new network for such rows would have other weights.
    """
    known = score_graph.trained_arrays
    if makes_graph(model):
        # A file of an estimator of skort puts the name of its class before each name.
        names = {name.rpartition("/")[2]: name for name in known}
        new = model.initial_score_graph(spec, random_state).trained_arrays
        drawn = {names.get(name, name): w for name, w in new.items()}
    elif FAMILY.get(type(score_model(model))) == "neural network":
        drawn = _drawn_of_family(score_model(model), score_graph, random_state)
    else:
        return None

    if {name: w.size for name, w in drawn.items()} != {name: w.size for name, w in known.items()}:
        return None
    return {
        name: w.astype(score_graph.dtype).reshape(known[name].shape) for name, w in drawn.items()
    }


def _drawn_of_family(network, score_graph, random_state):
    """Return new weights of a network of scikit-learn, by the names in a graph of its layers."""
    names = score_graph.weight_names
    sizes = [
        score_graph.n_features,
        *(score_graph.arrays[name].shape[1] for name in names.coefficients),
    ]
    coefs, intercepts = drawn_layers(network, sizes, random_state)
    return dict(zip([*names.coefficients, *names.intercepts], [*coefs, *intercepts], strict=False))


def given_model(model: Any) -> Any:
    """Return the model that a user gave. An estimator of skort gives its ONNX model."""
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
        return getattr(model, "onnx_", model)
    if isinstance(model, onnx.ModelProto):
        return model

    raise ValueError(f"model must be an onnx.ModelProto or a fitted estimator, got {model!r}.")


def fitted_score_graph(
    model: Any, dtype: DTypeLike = np.float32, *, keeps_link: bool = True
) -> ScoreGraph:
    """Return the score graph of a fitted predictor of scikit-learn, or of a pipeline with one."""
    spec = ScoreSpec(
        model.n_features_in_,
        n_score_columns(model),
        np.dtype(dtype),
        is_classifier(model),
        keeps_link,
    )
    return initial_score_graph(model, spec, np.random.RandomState(0), is_fitted=True)


def n_score_columns(model: Any) -> int:
    """Return the number of columns of the raw score of a fitted model of scikit-learn."""
    if type(score_model(model)) in FAMILY:
        return layers(fitted_stand_in(model))[0][-1].shape[1]
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
            f"estimator={type(model).__name__} cannot be trained by gradient descent: skl2onnx "
            f"cannot convert it: {type(error).__name__}: "
            f"{(str(error) or 'no reason given').splitlines()[0]}"
        ) from error


def stand_in_graph(stand_in: Any, dtype: DTypeLike, *, log_link: bool = False) -> ScoreGraph:
    """
    Return the score graph of a stand-in of `families`.

    With `log_link`, the score is the exponential of the prediction of the stand-in.
    """
    coefs, intercepts = layers(stand_in)
    sizes = (stand_in.n_features_in_, *(coef.shape[1] for coef in coefs))
    options = getattr(stand_in, "activation", None), getattr(stand_in, "fit_intercept", True)
    template = _template(sizes, *options, np.dtype(dtype), log_link)

    # A model without intercepts has none in its graph.
    values = zip(template.arrays.items(), [*coefs, *intercepts], strict=False)
    return template.with_weights(
        {name: w.astype(dtype, "C").reshape(like.shape) for (name, like), w in values}
    )


@functools.lru_cache(maxsize=8)
def _template(
    sizes: tuple[int, ...],
    activation: str | None,
    fit_intercept: bool,
    dtype: np.dtype,
    log_link: bool,
) -> ScoreGraph:
    """
    Return the graph of a stand-in with arbitrary weights.

    Fits share its structure, because the conversion takes long.
    """
    model = to_onnx(any_stand_in(sizes, activation), (RawInput("X", False, sizes[0]),), dtype)
    without_idle_nodes(model.graph)
    last = model.graph.node[-1]

    # skl2onnx reshapes all scores of a network to one column.
    graph = pruned(model, [last.input[0] if last.op_type == "Reshape" else last.output[0]]).graph
    name = graph.output[0].name
    graph.output[0].CopyFrom(
        helper.make_tensor_value_info(name, onnx_dtype(dtype), [None, sizes[-1]])
    )

    if not fit_intercept:
        graph.output[0].name = graph.node.pop().input[0]
        graph.initializer.pop()

    if log_link:
        graph.node.append(helper.make_node("Exp", [graph.output[0].name], ["prediction"]))
        graph.output[0].name = "prediction"

    return ScoreGraph.of(model).explored()
