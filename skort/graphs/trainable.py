"""
Which models and which of their weights gradient descent can train,
and why it cannot train the others.
"""

import os
import pathlib
import re
import warnings
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import onnx
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from skort.common.component import check_parameters
from skort.common.own_graph import makes_graph
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import DIFFERENTIABLE
from skort.graphs.initialization import FAMILY, score_model
from skort.graphs.score_graph import ScoreGraph, joined
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import RawInput
from skort.graphs.sklearn.transformers import StepGraphs

_OURS = {"regressor": "OrtSGDRegressor", "classifier": "OrtSGDClassifier"}
# Models without a gradient, and the linear ones of the same kind that have one.
_INSTEAD = {"SVC": "LinearSVC", "NuSVC": "LinearSVC", "SVR": "LinearSVR", "NuSVR": "LinearSVR"}
# How to get a model out of a file.
_LOADERS = {
    ".keras": "tf2onnx converts one of Keras",
    ".h5": "tf2onnx converts one of Keras",
    ".joblib": "joblib.load reads one of scikit-learn",
    ".pkl": "pickle.load or joblib.load reads one of scikit-learn",
    ".pt": "torch.onnx.export converts one of torch",
    ".pth": "torch.onnx.export converts one of torch",
}
_OTHER_KINDS = {
    "clusterer": "a clusterer",
    "density_estimator": "a density estimator",
    "outlier_detector": "an outlier detector",
    "transformer": "a transformer",
}
# Operators that are seldom the reason why a model has no gradient: an error names others first.
_BOOKKEEPING = {
    "ArgMax",
    "ArrayFeatureExtractor",
    "ConstantOfShape",
    "Equal",
    "Less",
    "Not",
    "Shape",
}


# What these make of the probabilities of a model, a training of the score alone would lose.
_CHANGE_PROBABILITIES = {
    "CalibratedClassifierCV",
    "FixedThresholdClassifier",
    "TunedThresholdClassifierCV",
}


def check_trainable(model: Any, *, is_fitted: bool = False) -> None:
    """
    Raise an error for a model that cannot be trained.

    A fitted model of an unknown type passes: its conversion to ONNX shows whether it can be.
    """
    if isinstance(model, onnx.ModelProto):
        return

    # Ask the class: some models have `predict` only once they are fitted.
    cls = model if isinstance(model, type) else type(model)
    if not (makes_graph(model) or (hasattr(cls, "fit") and hasattr(cls, "predict"))):
        raise ValueError(
            "The 'estimator' parameter must be a regressor or classifier of scikit-learn, a "
            "TabularNetwork, a Pipeline that ends in one of them, a FrozenEstimator, or an "
            "onnx.ModelProto. "
            f"{got_instead(model)}"
        )
    kind = None if isinstance(model, type) else get_tags(model).estimator_type
    if kind in _OTHER_KINDS:
        raise NotTrainableError(
            f"estimator={cls.__name__} is {_OTHER_KINDS[kind]}: it does not predict y. Use a "
            "regressor or a classifier."
        )
    if isinstance(model, type):
        raise NotTrainableError(
            f"estimator={model.__name__} is a class: pass an instance, {model.__name__}()."
        )
    if makes_graph(model):
        check_parameters(model)
        return
    if type(score_model(model)) not in FAMILY:
        if is_fitted and cls.__name__ not in _CHANGE_PROBABILITIES:
            return

        raise NotTrainableError(
            f"estimator={type(model).__name__} cannot be trained by gradient descent: "
            f"{_why_untrainable(model)}"
        )

    _check_parameters_of(model)


def _check_parameters_of(model):
    """Raise an error for parameters of a model of scikit-learn that gradient descent cannot keep."""
    parameters = vars(score_model(model))
    layers = parameters.get("loss")
    if "hidden_layer_sizes" in parameters and isinstance(layers, (tuple, list, int)):
        layers = (layers,) if isinstance(layers, int) else layers
        raise ValueError(
            f"estimator={type(model).__name__} has loss={layers!r}: write "
            f"hidden_layer_sizes={layers!r}."
        )
    check_parameters(model)
    if parameters.get("positive"):
        raise NotTrainableError(
            f"estimator={type(model).__name__}(positive=True) cannot be trained: gradient steps do "
            "not keep the weights positive."
        )

    for size in np.ravel(parameters.get("hidden_layer_sizes", ())).tolist():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(
                f"hidden_layer_sizes of {type(model).__name__} must be ints > 0, got "
                f"{parameters['hidden_layer_sizes']!r}."
            )


def got_instead(value: Any) -> str:
    """Return sentences about a value that is not a model: what it is, and how to get a model."""
    shown = repr(value)
    name = type(value).__name__
    bases = {base.__module__.partition(".")[0] for base in type(value).__mro__}

    if isinstance(value, bytes):
        return f"Got {len(value)} bytes. If they are an ONNX file, use onnx.load_from_string(them)."
    sizes = [value] if isinstance(value, int) else value
    if isinstance(sizes, (list, tuple)) and all(isinstance(size, int) for size in sizes):
        return (
            f"Got {shown}. A network with layers of such sizes is "
            f"MLPRegressor(hidden_layer_sizes={shown}) or MLPClassifier."
        )
    if isinstance(value, str) and value == "passthrough":
        return "Got 'passthrough'. Put a model after the steps, such as LinearRegression()."
    if isinstance(value, (str, os.PathLike)):
        load = _LOADERS.get(pathlib.PurePath(value).suffix, "onnx.load reads an ONNX file")
        return f"Got {shown}. If it is a path, load the model: {load}."
    if name == "InferenceSession":
        return "Got an InferenceSession, which has no weights to train. Use onnx.load of its file."
    if isinstance(value, onnx.GraphProto):
        return "Got a GraphProto. Use the ModelProto that it is in."
    if "torch" in bases:
        return f"Got a {name} of torch. Export it with torch.onnx.export, and load the file."
    if bases & {"keras", "tensorflow"}:
        return f"Got a {name} of Keras. Export it with tf2onnx."
    return _got_other(value, shown)


def _got_other(value, shown):
    """Return sentences about a value that comes from no other library."""
    if isinstance(value, type):
        return f"Got the class {value.__name__}: give an instance of it."
    if hasattr(value, "shape"):
        return f"Got data, of the shape {value.shape}: X and y are arguments of fit."
    if hasattr(value, "transform"):
        return (
            f"Got {shown}, a transformer. Put a model after it, such as LinearRegression() or "
            "LogisticRegression()."
        )

    return f"Got {shown if len(shown) < 200 else shown[:200] + '...'}."


def select_trainable(
    score_graph: ScoreGraph, steps: StepGraphs, patterns: str | Sequence[str]
) -> tuple[int | None, ScoreGraph]:
    """
    Return the position of the first step with a selected weight, and the graph from there on.

    The position is None if only the model itself has selected weights.
    """
    names = [name for graph in (*steps.graphs.values(), score_graph) for name in graph.arrays]
    hint = ""
    if steps.obstacle is not None:
        step = steps.obstacle.step
        reason = steps.obstacle.reason
        hint = (
            f" Those of the step {step!r}, and of the steps before it, are not available: {reason}."
        )

    matched = set(matching(patterns, names, hint))
    first = next((i for i, graph in steps.graphs.items() if matched & graph.arrays.keys()), None)

    if first is not None:
        later = [graph for i, graph in steps.graphs.items() if i >= first]
        score_graph = joined([*later, score_graph]).with_input_name("X")

    return first, score_graph.training_only(matched)


def matching(patterns: str | Sequence[str], names: Sequence[str], hint: str = "") -> list[str]:
    """
    Return the names that patterns select.

    Raise a ValueError that ends with `hint` if a pattern selects none.
    """
    if isinstance(patterns, str):
        patterns = [patterns]
    if not isinstance(patterns, Iterable) or not all(
        isinstance(pattern, str) for pattern in patterns
    ):
        raise ValueError(f"trainable must be names or patterns of weights, got {patterns!r}.")

    unknown = [
        pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if unknown or not patterns:
        raise ValueError(
            f"trainable={unknown or patterns!r} matches no weight. The weights are {names}.{hint}"
        )

    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _no_gradient(operator):
    return f"its ONNX graph computes with the operator {operator}, which has no gradient."


def _instead(model):
    """Return a sentence on what to train in place of a model without a gradient."""
    name = type(model).__name__
    if name in _INSTEAD:
        return f"{_INSTEAD[name]} has one."
    linear, network = (
        ("LogisticRegression", "MLPClassifier")
        if is_classifier(model)
        else ("LinearRegression", "MLPRegressor")
    )
    return f"Train {linear}() or {network}() in its place, or fit it by itself."


def _why_untrainable(model: Any) -> str:
    """Say why a model has no gradient, from the graph of a copy that is fitted to a few rows."""
    X = np.random.RandomState(0).uniform(
        size=(60, 1 if get_tags(model).input_tags.one_d_array else 3)
    )
    y = (X[:, 0] > 0.5).astype(int) if is_classifier(model) else X[:, 0] + 1
    name = type(model).__name__
    if name in _OURS.values():
        return (
            f"it is an {name} already. Give the model inside it; or, to continue from a fitted one, "
            "FrozenEstimator(fitted), or its own partial_fit."
        )
    if {"estimator", "estimators", "regressor"} & set(model.get_params(deep=False)):
        return f"put {_OURS[get_tags(model).estimator_type]} inside it, not around it."

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = to_onnx(
                clone(model).fit(X, y), (RawInput("X", False, X.shape[1]),), np.float32
            ).graph
    except (MissingShapeCalculator, MissingConverter):
        return (
            "skl2onnx has no converter for it, so that there is no graph to differentiate. "
            f"{_instead(model)}"
        )
    except Exception as error:  # scikit-learn and skl2onnx raise errors of many kinds
        # skl2onnx fails at the numpy scalars of some trees.
        if operator := re.match(r"Unable to create node '(\w+)'", str(error)):
            return f"{_no_gradient(operator[1])} {_instead(model)}"
        return (
            f"skl2onnx cannot convert it: {type(error).__name__}: "
            f"{(str(error) or '?').splitlines()[0][:200]}"
        )

    operators = [
        node.op_type for node in graph.node if node.domain or node.op_type not in DIFFERENTIABLE
    ]
    telling = [operator for operator in operators if operator not in _BOOKKEEPING] or operators
    if telling:
        return f"{_no_gradient(telling[0])} {_instead(model)}"

    return (
        "skort does not know its initial weights. Fit it, and pass FrozenEstimator(fitted_model)."
    )
