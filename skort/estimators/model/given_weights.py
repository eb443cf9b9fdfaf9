"""The weights of a fitted model in the ONNX model that the user gave, and weights that the user gives."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skort.estimators.model.model import Model

if TYPE_CHECKING:
    import onnx


def original_model(fitted: Model) -> "onnx.ModelProto":
    """Return the ONNX model that an estimator was given, with its trained weights."""
    from skort.graphs.onnx_models.initializers import with_weights
    from skort.graphs.standardized import uncentred_arrays

    model = fitted.inner.model
    if model is None or isinstance(model, BaseEstimator):
        raise ValueError(
            f"original=True gives back the ONNX model that was given, but estimator={type(model).__name__} is none. "
            "Use to_onnx(), or to_sklearn()."
        )
    arrays = uncentred_arrays(fitted.score_graph)
    return with_weights(model, {name: arrays[name] for name in fitted.score_graph.trainable})


def checked_weights(fitted: Model, weights: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Return other values of some weights of a fitted model in its dtype."""
    from skort.graphs.onnx_models.initializers import check_by_name, weight_array

    check_by_name(weights)
    known, dtype = fitted.score_graph.arrays | fitted.loss_weights, fitted.score_graph.dtype
    for name in weights:
        if name not in known:
            raise ValueError(f"weights: the model has no weight {name!r}. Its weights are {', '.join(known)}.")
    return {name: weight_array(name, values, known[name].shape, dtype) for name, values in weights.items()}
