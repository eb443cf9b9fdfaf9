"""The error for NaN that the steps before a model leave: it names their columns, and the cure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder

from skort.common.sklearn_private import input_indices
from skort.estimators.data.columns import columns_with, has_missing, has_text, listed
from skort.estimators.data.nesting import thawed
from skort.estimators.data.not_numbers import IN_STREAMS

_OF_TEXT = 'SimpleImputer(strategy="most_frequent")'
_FITTED_STEPS = "partial_fit and fit_batches take fitted steps: FrozenEstimator(steps.fit(X))."


class _Part(NamedTuple):
    """A fitted transformer whose result has NaN."""

    transformer: Any
    #: The names or the numbers of the columns that it takes.
    columns: list[Any]
    #: Those with missing values.
    missing: list[Any]


def not_filled_error(error: Exception, X: Any, steps: Any) -> Exception:
    """Return an error that names the columns of NaN that fitted steps leave, and how to fill them."""
    found = _column_transformer(steps, X)
    parts = list(_parts(*found)) if found else [_whole(steps, X)]
    encoded = _names(part for part in parts if _has_encoder(part.transformer))
    others = _names(part for part in parts if not _has_encoder(part.transformer))
    if not encoded and not others:
        return ValueError(f"{error} {_maker(parts, found)}")

    sentences = []
    texts = columns_with(found[1] if found else X, has_text)
    if others:
        has_texts = any(name in texts for name in others)
        imputer = _OF_TEXT if has_texts else "SimpleImputer()"
        place = (
            f"put make_pipeline({imputer}, transformer) in place of the transformer of these columns."
            if found or texts
            else f"begin the pipeline with {imputer}."
        )
        sentences.append(
            f"Input X contains NaN in {listed(others)}. No step before the model fills them: {place}"
        )
    if encoded:
        sentences.append(
            f"Input X contains NaN in {listed(encoded)}. OrdinalEncoder leaves them: take "
            f"OrdinalEncoder(encoded_missing_value=-1), or put {_OF_TEXT} before it."
        )
    sentences.append(_FITTED_STEPS if found or texts or encoded else IN_STREAMS)
    return ValueError(" ".join(sentences))


def _column_transformer(steps, X):
    """Return the first `ColumnTransformer` of fitted steps and its rows, or None."""
    step = thawed(steps)
    if isinstance(step, ColumnTransformer):
        return step, X
    if not isinstance(step, Pipeline):
        return None

    rows = X
    for _, each in step.steps:
        # Only names tell the columns of X after another step.
        if rows is not X and not hasattr(rows, "columns"):
            return None
        if (found := _column_transformer(each, rows)) is not None:
            return found
        if each not in (None, "passthrough"):
            rows = each.transform(rows)
    return None


def _parts(columns: ColumnTransformer, X: Any) -> Iterator[_Part]:
    """Yield the transformers of a fitted `ColumnTransformer` whose results have NaN."""
    result = columns.transform(X)
    if not scipy.sparse.issparse(result):
        result = np.asarray(result)
    with_nan = columns_with(result, has_missing)
    missing = columns_with(X, has_missing)
    given = getattr(X, "columns", range(X.shape[1]))
    # A frozen transformer may know the columns in another order.
    names = list(getattr(columns, "feature_names_in_", given))
    indices = input_indices(columns)

    for key, transformer, _ in columns.transformers_:
        made = columns.output_indices_[key]
        if any(made.start <= j < made.stop for j in with_nan):
            taken = [names[j] for j in indices[key]]
            yield _Part(transformer, taken, [name for name in taken if name in missing])


def _whole(steps, X):
    """Return the steps as one transformer."""
    return _Part(steps, [], columns_with(X, has_missing))


def _names(parts):
    """Return the columns with missing values of some transformers, each once."""
    return list(dict.fromkeys(name for part in parts for name in part.missing))


def _has_encoder(transformer):
    """Return whether a transformer is an `OrdinalEncoder`, or a Pipeline that has one."""
    inner = thawed(transformer)
    if isinstance(inner, Pipeline):
        return any(_has_encoder(step) for _, step in inner.steps)
    return isinstance(inner, OrdinalEncoder)


def _maker(parts, found):
    """Return the sentence for NaN that the steps made of rows without."""
    if not (found and parts):
        return "A step before the model made it: X itself has none."
    return f"{type(parts[0].transformer).__name__} made it of {listed(parts[0].columns)}."
