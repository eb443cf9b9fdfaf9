"""The labels that a model inside an estimator brings: those of a fitted one, and of an ONNX one."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def model_labels(model: Any, is_fitted: bool, y: Any, name: str = "y") -> Any:
    """
    Return the labels of a fitted model or of an ONNX model, sorted, or None.

    Those of an ONNX model have the type of `y`; a ValueError names the labels of `y` that it lacks.
    """
    if isinstance(model, BaseEstimator) or model is None:
        return getattr(model, "classes_", None) if is_fitted else None

    from skort.graphs.onnx_models.onnx_score_graph import given_labels

    labels = given_labels(model)
    if labels is None or (np.ndim(y) == 2 and np.shape(y)[1] > 1):
        return None

    are_numbers = labels.tolist() == list(range(len(labels)))
    if y is None:
        # Numbers of columns may stand for any labels.
        return None if are_numbers else np.array(sorted(labels.tolist()))

    seen = np.unique(np.asarray(y))
    if are_numbers and all(isinstance(label, str) for label in seen.tolist()):
        return None

    known = set(labels.tolist())
    if lacking := [label for label in seen.tolist() if label not in known]:
        raise ValueError(
            f"{name} has the labels {lacking}, which the ONNX model in estimator lacks: its labels "
            f"are {labels.tolist()}. Give {name} these labels, or cut the output of labels off the "
            "model with onnx.utils.Extractor."
        )

    return _like(np.array(sorted(known)), seen)


def _like(labels, seen):
    """Return labels in the type of others, if it can hold them."""
    if seen.dtype.kind == "U":
        return labels
    cast = labels.astype(seen.dtype)
    return cast if cast.tolist() == labels.tolist() else labels
