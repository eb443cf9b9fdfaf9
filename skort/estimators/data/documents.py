"""The columns of X that the vectorizers of steps take: each value of them is a document."""

from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skort.estimators.data.nesting import thawed


def columns_of_documents(steps: Any, X: Any) -> list[Any]:
    """
    Return the names or the numbers of the columns that the first `ColumnTransformer` of the steps
    gives to vectorizers; none if X is no table or another step comes first.
    """
    first = _first_of(steps)
    if not isinstance(first, ColumnTransformer) or getattr(X, "ndim", 0) != 2:
        return []

    return [
        name
        for _, transformer, columns in first.transformers
        if _takes_documents(transformer)
        for name in _names(columns, X)
    ]


def _first_of(steps):
    """Return the step that gets X."""
    step = thawed(steps)
    return _first_of(step.steps[0][1]) if isinstance(step, Pipeline) else step


def _takes_documents(transformer):
    """Return whether a transformer, or a part of it that gets the same X, takes documents."""
    first = _first_of(transformer)
    if isinstance(first, FeatureUnion):
        return any(_takes_documents(part) for _, part in first.transformer_list)
    if first is None or isinstance(first, str):
        return False

    takes = get_tags(first).input_tags
    return takes.string and not takes.two_d_array


def _names(columns, X):
    """Return the names, or the numbers, of the columns that a `ColumnTransformer` is given."""
    chosen = columns(X) if callable(columns) else columns
    names = np.empty(X.shape[1], dtype=object)
    names[:] = list(getattr(X, "columns", range(X.shape[1])))

    if not isinstance(chosen, slice):
        chosen = [chosen] if np.isscalar(chosen) else list(chosen)
        if all(isinstance(each, str) for each in chosen):
            return chosen
    return list(names[chosen])
