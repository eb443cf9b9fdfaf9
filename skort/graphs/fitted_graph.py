"""A fitted scikit-learn model as a score graph, without data."""

from typing import Any

import numpy as np
import onnx
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skort.graphs.initial import initial_score_graph
from skort.graphs.score_graph import ScoreGraph, ScoreSpec

__all__ = ["fitted_score_graph", "given_model"]


def given_model(model: Any) -> "onnx.ModelProto | BaseEstimator":
    """
    Return what a user gave as a model: the ONNX model of an estimator of skort, or what it is.

    Raises
    ------
    ValueError
        Where it is neither an `onnx.ModelProto` nor an estimator.
    NotFittedError
        Where it is not fitted.
    """
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
        return getattr(model, "onnx_", model)
    if isinstance(model, onnx.ModelProto):
        return model
    raise ValueError(f"model must be an onnx.ModelProto or a fitted estimator, got {model!r}.")


def fitted_score_graph(model: BaseEstimator, *, own_link: bool = True) -> ScoreGraph:
    """
    Return the score graph of a fitted scikit-learn model, in float32, at its own weights.

    Parameters
    ----------
    model : estimator
        A predictor, or a pipeline that ends in one.
    own_link : bool, default=True
        See `ScoreSpec`.

    Raises
    ------
    NotTrainableError
        Where skl2onnx does not convert the model.
    """
    n_features = model.n_features_in_
    if is_classifier(model):
        n_outputs = 1 if len(model.classes_) == 2 else len(model.classes_)
    else:
        predicted = model.predict(np.zeros((1, n_features)))
        n_outputs = predicted.shape[1] if predicted.ndim == 2 else 1
    spec = ScoreSpec(n_features, n_outputs, np.dtype(np.float32), is_classifier(model), own_link)
    return initial_score_graph(model, spec, np.random.RandomState(0), is_fitted=True)
