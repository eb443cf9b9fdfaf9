"""The error for NaN that the steps before a model leave: it names their columns, and the cure."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder

from skort.common.sklearn_private import input_indices
from skort.estimators.data.columns import columns_with, has_missing, has_text, is_missing, listed
from skort.estimators.data.nesting import thawed
from skort.estimators.data.not_numbers import IN_STREAMS, of_infinite_squares

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
    rows = found[1] if found else X
    with_none = columns_with(rows, _has_none)
    with_nan = columns_with(rows, _has_nan)
    encoded: list[Any] = []
    imputed: list[Any] = []
    others: list[Any] = []
    are_mixed = False
    for part in parts:
        if _has(part.transformer, OrdinalEncoder):
            encoded += part.missing
            continue

        left = [name for name in part.missing if name in with_none]
        if left and _has(part.transformer, SimpleImputer):
            imputed += left
            # An imputer of None refuses NaN in any of its columns.
            are_mixed |= any(name in with_nan for name in part.missing)
        else:
            others += part.missing
    encoded, imputed, others = (list(dict.fromkeys(each)) for each in (encoded, imputed, others))
    if not (encoded or imputed or others):
        return ValueError(f"{error} {_maker(parts, found)}{of_infinite_squares(X)}")

    sentences = []
    texts = columns_with(rows, has_text)
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
    if imputed:
        by_pandas = ", as X.fillna(numpy.nan) does" if hasattr(X, "fillna") else ""
        of_none = "" if are_mixed else "take SimpleImputer(missing_values=None, ...), or "
        sentences.append(
            f"Input X contains None in {listed(imputed)}. SimpleImputer fills NaN, and leaves None: "
            f"{of_none}write NaN in place of None{by_pandas}."
        )
    if encoded:
        sentences.append(
            f"Input X contains NaN in {listed(encoded)}. OrdinalEncoder leaves them: take "
            f"OrdinalEncoder(encoded_missing_value=-1), or put {_OF_TEXT} before it."
        )
    sentences.append(_FITTED_STEPS if found or texts or encoded or imputed else IN_STREAMS)
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


def _has(transformer, cls):
    """Return whether a transformer is of a class, or a Pipeline with one that is."""
    inner = thawed(transformer)
    if isinstance(inner, Pipeline):
        return any(_has(step, cls) for _, step in inner.steps)
    return isinstance(inner, cls)


def _has_none(values):
    """Return whether some values are None, which is not NaN to scikit-learn."""
    return values.dtype == object and any(value is None for value in values.ravel())


def _has_nan(values):
    """Return whether some values are missing, and not None."""
    if values.dtype != object:
        return has_missing(values)
    return any(value is not None and is_missing(value) for value in values.ravel())


def _maker(parts, found):
    """Return the sentence for NaN that the steps made of rows without."""
    if not (found and parts):
        return "A step before the model made it: X itself has none."
    return f"{type(parts[0].transformer).__name__} made it of {listed(parts[0].columns)}."
