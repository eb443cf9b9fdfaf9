"""A fitted scikit-learn model as a score graph, without data."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreGraph, ScoreSpec
from skort.graphs.sklearn.families import FAMILY, fitted_stand_in, layers, score_model

__all__ = ["fitted_score_graph", "given_model", "n_score_columns"]


def given_model(model: Any) -> "onnx.ModelProto | BaseEstimator":
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
        return layers(fitted_stand_in(model))[0][-1].shape[1]
    if is_classifier(model):
        return 1 if len(model.classes_) == 2 else len(model.classes_)
    prediction = model.predict(np.zeros((1, model.n_features_in_)))
    return 1 if np.ndim(prediction) == 1 else np.shape(prediction)[1]
