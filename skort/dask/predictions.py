"""Predictions of collections: lazily, partition by partition, by the local estimator."""

from typing import Any

import dask
import dask.array as da
import numpy as np

from skort.dask.parts import check_rows, is_collection

__all__ = ["predicted"]


def predicted(model: Any, method: str, X: Any, columns: tuple[int, ...]) -> Any:
    """
    Return the predictions of a collection, or of rows in memory.

    Parameters
    ----------
    model : OrtSGDRegressor or OrtSGDClassifier
        The local one, fitted.
    method : str
    X : dask Array of shape (n_samples, n_features), DataFrame, or array-like
    columns : tuple of int
        The shape of the prediction of a row.

    Returns
    -------
    prediction : dask Array, or ndarray
        With as many partitions as X.
    """
    if not is_collection(X):
        return getattr(model, method)(X)
    check_rows("X", X)
    shared, one = dask.delayed(model), dask.delayed(_predicted, pure=False)
    dtype = _dtype(model, method)
    if isinstance(X, da.Array):
        X, sizes = X.rechunk({1: -1}), X.chunks[0]
        blocks = X.to_delayed().ravel()
    else:
        blocks, sizes = X.to_delayed(), (np.nan,) * X.npartitions
    pieces = [
        da.from_delayed(one(shared, method, block, columns, dtype), (size, *columns), dtype=dtype)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(pieces)


def _dtype(model, method):
    """Return the dtype of predictions."""
    if method == "predict_proba":
        return np.dtype(model.dtype)
    if method == "predict" and hasattr(model, "classes_"):
        return model.classes_.dtype
    return np.dtype(np.float64)


def _predicted(model, method, X, columns, dtype):
    """Return the prediction of a partition."""
    return getattr(model, method)(X) if X.shape[0] else np.empty((0, *columns), dtype)
