"""The score graph of a model, and the model with the weights of a score graph."""

from typing import Any

import numpy as np
import onnx
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator

from skort.estimators.base import BaseOrtSGD
from skort.estimators.model.wrapped import Preprocessing, TargetTransform, WrappedModel
from skort.estimators.planning.threads import n_threads
from skort.estimators.training.result import result_of
from skort.exceptions import NotExportableError, NotTrainableError
from skort.graphs.gradient.forward_backward import check_gradient
from skort.graphs.initialization import fitted_score_graph, score_model
from skort.graphs.onnx_models.onnx_score_graph import onnx_score_graph, spec_of
from skort.graphs.score_graph import ScoreGraph, joined
from skort.graphs.sklearn.transformers import StepGraphs, trainable_steps
from skort.graphs.trainable import check_trainable, got_instead, select_trainable
from skort.runtime.device import Device
from skort.solvers.base import flat, views
from skort.solvers.graph.gradient_sessions import GradientSessions


class DifferentiableModel:
    """A model and sessions for its score and gradient, for `ForwardBackward` and `OnnxModule`."""

    def __init__(
        self,
        model: Any,
        trainable: Any,
        dtype: str | None,
        n_jobs: int | None,
        *,
        input_gradient: bool = False,
    ):
        self._model = model
        self.graph: ScoreGraph = score_graph_of(model, trainable, dtype)
        check_gradient(self.graph, input_gradient=input_gradient)
        self.sessions: GradientSessions = GradientSessions(
            self.graph, Device(n_threads=n_threads(n_jobs))
        )
        self.frozen: dict[str, np.ndarray] = self.graph.frozen_arrays

    def weights(self) -> np.ndarray:
        """Return the trained weights of the model as one new vector."""
        return flat(self.graph.trained_arrays)

    def views(self, vector: Any) -> dict[str, Any]:
        """Return the parts of a vector of all trained weights, by name: views, not copies."""
        return views(vector, self.graph.trained_arrays)

    def to_estimator(self, score_graph: ScoreGraph) -> Any:
        """Return a fitted copy of the estimator, with the weights of a score graph."""
        return estimator_with(self._model, score_graph)


def score_graph_of(model: Any, trainable: Any = None, dtype: str | None = None) -> ScoreGraph:
    """Return the score graph of a model, X -> raw score, with its steps before the model."""
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}.')

    transformers, score_graph = _parts(model, dtype)
    if transformers is not None:
        score_graph = _with_steps(transformers, score_graph)
    return (
        score_graph
        if trainable is None
        else select_trainable(score_graph, StepGraphs({}, None), trainable)[1]
    )


def _parts(model, dtype):
    """Return the fitted steps before a model, or None, and the score graph of the model alone."""
    if isinstance(model, onnx.ModelProto):
        transformers = None
        score_graph = onnx_score_graph(model, spec_of(model))
    elif isinstance(model, BaseOrtSGD):
        fitted = result_of(model).model
        transformers = fitted.preprocessing.transformers
        score_graph = fitted.score_graph
    else:
        transformers, score_graph = _of_scikit_learn(model, np.dtype(dtype or "float32"))

    if dtype not in (None, str(score_graph.dtype)):
        raise ValueError(f"dtype={dtype!r}, but the model computes in {score_graph.dtype}.")
    if score_graph.has_dropout:
        raise NotTrainableError(
            "model: it has a Dropout in training mode, and only the estimators draw its masks. "
            "Give the model for predictions, model.to_onnx() of an estimator or torch's export after "
            "model.eval(), and apply the dropout before it or after it."
        )

    return transformers, score_graph


def _of_scikit_learn(model, dtype):
    """Return the fitted steps before a fitted model, or None, and the score graph of the model."""
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise ValueError(
            "model must be an onnx.ModelProto, a fitted estimator that predicts, or a Pipeline "
            f"that ends in one. {got_instead(model)}"
        )

    inner = WrappedModel.of(FrozenEstimator(model))
    if inner.target is not None:
        raise NotTrainableError(
            "model: the score of a TransformedTargetRegressor is not its prediction. "
            "Give its regressor_."
        )
    if isinstance(inner.model, onnx.ModelProto):
        return inner.transformers, onnx_score_graph(inner.model, spec_of(inner.model))

    check_trainable(inner.model, is_fitted=True)
    return inner.transformers, fitted_score_graph(inner.model, dtype)


def _with_steps(transformers, score_graph):
    """Return the score graph with the steps before the model, whose weights are not trained."""
    steps = trainable_steps(transformers, score_graph.dtype)
    if steps.obstacle is not None:
        raise NotExportableError(
            f"model: the step {steps.obstacle.step!r} cannot be a part of the graph: "
            f"{steps.obstacle.reason}. Transform X by the steps up to it, and give the rest "
            "of the Pipeline."
        )

    whole = joined([*steps.graphs.values(), score_graph]).with_input_name("X")
    return whole.training_only(score_graph.trainable)


def estimator_with(model: Any, score_graph: ScoreGraph) -> Any:
    """Return a fitted copy of an estimator with the weights of a score graph."""
    if isinstance(model, onnx.ModelProto):
        raise ValueError("The model is an ONNX model, not an estimator: use to_onnx().")

    _, last = _parts(model, str(score_graph.dtype))
    trained = score_graph.trained_arrays
    of_steps = [name for name in trained if name not in last.arrays]
    if of_steps:
        raise ValueError(
            f"{of_steps} are weights of steps before the model, which estimators do not "
            "take: use to_onnx()."
        )
    if isinstance(model, BaseOrtSGD):
        return model.with_weights(trained)

    inner = WrappedModel.of(FrozenEstimator(model))
    plain = inner.to_sklearn(
        Preprocessing(inner.transformers, None, last.dtype),
        last.with_weights(trained),
        TargetTransform(),
        classes=getattr(inner.model, "classes_", None),
        single_output=_has_single_output(inner.model),
        has_link=False,
    )
    if inner.transformers is None and hasattr(model, "feature_names_in_"):
        plain.feature_names_in_ = model.feature_names_in_

    return plain


def _has_single_output(model):
    """Return whether a model was fitted on a y of one dimension that is not multi-label."""
    model = score_model(model)
    if is_classifier(model):
        return getattr(model, "out_activation_", None) != "logistic" or model.n_outputs_ == 1
    return model.n_outputs_ == 1 if hasattr(model, "n_outputs_") else np.ndim(model.coef_) == 1
