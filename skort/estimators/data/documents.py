"""The columns of X that steps take for documents or for categories, and those for numbers."""

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
    return [name for part, names in _parts(steps, X) if _takes_documents(part) for name in names]


def columns_of_numbers(steps: Any, X: Any) -> list[Any]:
    """
    Return the columns that the first `ColumnTransformer` of the steps gives to no encoder, as
    `columns_of_documents` does.
    """
    return [name for part, names in _parts(steps, X) if not _encodes(part) for name in names]


def _parts(steps, X):
    """Return the transformers of the first step of X, if it has several, with their columns."""
    first = _first_of(steps)
    if not isinstance(first, ColumnTransformer) or getattr(X, "ndim", 0) != 2:
        return []
    return [(part, _names(columns, X)) for _, part, columns in first.transformers]


def _encodes(transformer):
    """Return whether a transformer, or a part of it, may make numbers of text."""
    step = thawed(transformer)
    if step is None or isinstance(step, str):
        return step == "drop"
    if isinstance(step, Pipeline):
        return any(_encodes(part) for _, part in step.steps)
    if isinstance(step, FeatureUnion):
        return any(_encodes(part) for _, part in step.transformer_list)

    takes = get_tags(step).input_tags
    # A function may do anything.
    return takes.string or takes.categorical or get_tags(step).no_validation


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
