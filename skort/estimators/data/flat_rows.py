"""Rows of several dimensions, such as images, for an ONNX model whose input has such rows."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator


def row_shape(model: Any, X: Any) -> tuple[int, ...]:
    """
    Return the shape of a row of X if it is that of an ONNX model's input; () if rows are flat.

    A ValueError for another shape of several dimensions names both shapes.
    """
    if model is None or isinstance(model, BaseEstimator):
        return ()

    given = np.shape(X)[1:] if hasattr(X, "shape") or isinstance(X, (list, tuple)) else ()
    if len(given) < 2:
        return ()

    from skort.graphs.onnx_models.inputs import row_sizes

    sizes = row_sizes(model)
    fits = len(sizes) == len(given) and all(
        size in (0, own) for size, own in zip(sizes, given, strict=True)
    )
    if sizes and not fits:
        stated = ", ".join(str(size or "any") for size in sizes)
        raise ValueError(
            f"X has rows of the shape {given}, but the input of the ONNX model takes rows of the "
            f"shape ({stated})."
        )

    return given if sizes else ()


def flat_rows(model: Any, X: Any) -> Any:
    """Return X with flat rows if its rows have the shape of an ONNX model's input; else as it is."""
    if type(X) is np.ndarray and X.ndim < 3:
        return X
    if not row_shape(model, X):
        return X

    rows = np.asarray(X)
    return rows.reshape(len(rows), -1)
