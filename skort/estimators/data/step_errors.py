"""Errors of the steps before a model: they name the column of X, and the cure."""

import re
from typing import Any

import numpy as np
import scipy.sparse

from skort.estimators.data.columns import (
    REFUSED,
    as_texts,
    column_of_texts,
    columns_with,
    first_texts,
    has_missing,
    has_text,
    is_missing,
    is_number,
    listed,
)
from skort.estimators.data.dates import date_columns, dates_in_steps
from skort.estimators.data.not_numbers import (
    advice_on_form,
    code_of,
    dicts_error,
    infinity_error,
    is_list_of_dicts,
    is_of_object,
    numbers_with_na,
    object_error,
)

# The error of an encoder for a column with values of several types, with their names.
_MIXED = re.compile(r"must be uniformly strings or numbers\. Got (\[.*\])")
# Python's error for an encoder of y that gets X and y.
_OF_LABELS = re.compile(r"(Multi)?Label(Encoder|Binarizer)\.fit_transform\(\) takes")
# What makes texts of lists of words.
_JOINED = 'X = [" ".join(words) for words in X]'
_UNKNOWN = (
    'OneHotEncoder(handle_unknown="ignore") takes new categories, and '
    'OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).'
)
# The errors of a vectorizer for a document that is no text, with its type if it is not NaN.
_NO_TEXT = re.compile(
    r"'(?:\w+\.)*?((?:numpy\.)?\w+)' object has no attribute 'lower'|is an invalid document"
    r"|expected string or bytes-like object, got '(\w+)'"
)
# Those for a row of a matrix, which older versions of scipy and Python word without a type.
_OF_MATRIX = re.compile(r"^lower not found|^expected string or bytes-like object")
# The error of a vectorizer without lowercase for a row of an array.
_OF_ARRAY = "cannot use a string pattern on a bytes-like object"
# The number of columns that an error names.
_MOST_NAMES = 10
# The values that may be the words of a text.
_TOKENS = ("list", "tuple")
# The errors of numpy, pandas and scikit-learn for a date or a time beside numbers.
_OF_DATE = re.compile(
    r"not '(?:\w+\.)*(?:Timestamp|Timedelta|Period|NaTType|date|time|datetime|timedelta)'"
    r"|DateTime64|TimeDelta64|datetime64|timedelta64|(Datetime|Timedelta|Period)Array"
)
# The errors of numpy and scipy for transformers that return different numbers of rows.
_OF_ROWS = re.compile(r"but along dimension 0, the array|incompatible row dimensions")
# The errors of a ColumnTransformer for a DataFrame without some of its columns.
_WITHOUT_COLUMNS = re.compile(
    r"(?:columns are missing|not columns of the dataframe): \{(.*)\}|not a column of the dataframe"
)
# The error for the number of a column, with the largest number that there is.
_OF_NUMBER = re.compile(r"all features must be in \[0, (\d+)\]")
# The values that are missing texts, by the names in errors.
_MISSING = ("NaN", "NoneType", "NAType")


def step_error(error: Exception, X: Any, steps: Any, *, are_fitted: bool = False) -> Exception:
    """
    Return an error that names what the steps refused: no text, dates, NaN, text; or the given.

    What fitted steps refused, the rows of the fit did not have.
    """
    # It loads scikit-learn's linear models.
    from skort.estimators.data.encoded_types import other_type_error

    of_column = other_type_error(error, X, steps) or _vectorizer_error(error, X, steps)
    of_column = of_column or (dicts_error() if is_list_of_dicts(X) else None)
    if of_column is not None:
        return of_column
    if _OF_DATE.search(str(error)) and (dates := date_columns(X)):
        return dates_in_steps(dates)
    if types := _MIXED.search(str(error)):
        return _mixed_error(types[1], X, steps)
    if (of_object := _object_error(error, X, steps) or _columns_error(error, X)) is not None:
        return of_object
    if not isinstance(error, ValueError):
        return error
    if "Found unknown categories" in str(error):
        # numpy 2 shows the types of numbers. Each missing value is a category of its own.
        told = re.sub(r"\bnp\.(?:float|u?int)\d+\(([^()]*)\)", r"\1", str(error))
        told = re.sub(r"\bnan(, nan)+\b", "nan", told)
        return ValueError(f"{told}{_with_category(told, X)}. {_UNKNOWN}")
    lacks = _WITHOUT_COLUMNS.search(str(error))
    if lacks and hasattr(X, "columns"):
        return _missing_columns_error(error, lacks[1], X)
    if "transformed X contains NaN" in str(error):
        # It loads scikit-learn's linear models.
        from skort.estimators.data.not_filled import not_filled_error

        return not_filled_error(error, X, steps)
    if "X contains infinity" in str(error):
        return infinity_error(error, X)

    return _step_text_error(error, X, steps, are_fitted)


def _vectorizer_error(error, X, steps):
    """Return an error for what a vectorizer got, or None for another error."""
    no_text = _NO_TEXT.search(str(error))
    if no_text:
        return _no_text_error(no_text[1] or no_text[2] or "NaN", X, steps)
    if scipy.sparse.issparse(X) and _OF_MATRIX.search(str(error)):
        return _no_text_error(type(X).__name__, X, steps)
    if _OF_ARRAY in str(error):
        return _no_text_error("numpy.ndarray", X, steps)
    if "empty vocabulary" in str(error) and hasattr(X, "columns"):
        # The texts of a DataFrame are the names of its columns.
        return ValueError(f"{error}. {one_column(X, steps)}")
    if _OF_ROWS.search(str(error)) and column_of_texts(X) is not None:
        return ValueError(
            "A transformer of the pipeline inside returns another number of rows than X has. "
            f"{one_column(X, steps)}"
        )
    return None


def _columns_error(error, X):
    """Return an error for columns that a step takes and X or other steps do not have, or None."""
    n_columns = np.shape(X)[1] if np.ndim(X) == 2 else 0
    if of_number := _OF_NUMBER.match(str(error)):
        last = int(of_number[1])
        given = (
            f"X has {last + 1}" if last + 1 == n_columns else f"the step before leaves {last + 1}"
        )
        return ValueError(
            "A step of the pipeline inside takes a column by a number that its rows do not have: "
            f"{given} columns, 0 to {last}."
        )
    if "using strings is only supported for dataframes" in str(error).lower():
        if hasattr(X, "columns"):
            return ValueError(
                "A step of the pipeline inside takes columns by their names, and the step before it "
                'gives none: call set_output(transform="pandas") on the step before, or take columns '
                "by their numbers."
            )
        return ValueError(
            "A step of the pipeline inside takes columns by their names, and X has no names: give a "
            "DataFrame."
        )
    if n_columns and str(error).startswith("Found array with 0 feature(s)"):
        return ValueError(f"{error} The steps before the model leave no column of X.")
    return None


def _missing_columns_error(error, found, X):
    """Return an error for columns that a step takes and X lacks: it names those of X."""
    names = found and ", ".join(sorted(found.split(", ")))
    # Where the steps are not fitted, the cause has the name.
    cause = error.__cause__
    names = names or (repr(cause.args[0]) if isinstance(cause, KeyError) and cause.args else None)
    if names is None:
        return error
    given = [repr(name) for name in X.columns]
    shown = ", ".join(given[:_MOST_NAMES])
    more = f" and {len(given) - _MOST_NAMES} more" if len(given) > _MOST_NAMES else ""
    return ValueError(
        f"X lacks a column that a step of the pipeline inside takes: {names}. X has "
        f"{len(given)} columns: {shown}{more}."
    )


def _object_error(error, X, steps):
    """Return an error for values of another type than a step takes, or None for another error."""
    if _OF_LABELS.match(str(error)):
        return TypeError(
            f"{error}. It is for y: take OneHotEncoder or OrdinalEncoder for columns of X."
        )
    if "support data with dtype bool" in str(error) and hasattr(X, "columns"):
        names = columns_with(X, lambda values: values.dtype == bool)
        cure = f"X[{names[0]!r}] = X[{names[0]!r}].astype(float)" if names else ""
        return ValueError(
            f"SimpleImputer takes no bools: {listed(names)}. Make them numbers: {cure}."
        )
    if is_of_object(error):
        return object_error(error, X)
    if "boolean value of NA is ambiguous" in str(error):
        # Beside text, numbers are objects, and NA one of them.
        if (of_text := _text_beside_numbers(X, steps)) is not None:
            return of_text
        names = columns_with(X, lambda values: any(repr(value) == "<NA>" for value in values.flat))
        return ValueError(
            f"X has pandas.NA in {listed(names)}, and a step of the pipeline inside does not take it. "
            "Write it as NaN: X = X.astype(object).fillna(numpy.nan)."
        )
    return None


def _text_beside_numbers(X, steps):
    """Return the error for text in a column that no encoder takes, or None if there is none."""
    # It loads scikit-learn's linear models.
    from skort.estimators.data.documents import columns_of_numbers

    for name in columns_of_numbers(steps, X):
        part = np.asarray(X[name] if hasattr(X, "columns") else X[:, name], object)
        text = next((each for each in part if isinstance(each, str) and not is_number(each)), None)
        if text is not None:
            return _text_error(name, text, X)
    return None


def one_column(X: Any, steps: Any) -> str:
    """Return the advice for a vectorizer that got several columns."""
    name = column_of_texts(X, _of_documents(steps, X))
    if name is None:
        name = "review"
    column = f"X[{name!r}]" if hasattr(X, "columns") else f"X[:, {name}]"
    return (
        f"A vectorizer takes one column of text: give {column}. In a ColumnTransformer, name the "
        f"column without brackets: (TfidfVectorizer(), {name!r})."
    )


def _of_documents(steps, X):
    """Return the columns that vectorizers take, as far as the steps tell."""
    # It loads scikit-learn's linear models.
    from skort.estimators.data.documents import columns_of_documents

    return columns_of_documents(steps, X)


def _with_empty_texts(X, names):
    """Return how to write missing texts of some columns as empty ones."""
    if not (names and hasattr(X, "columns")):
        return 'Write a missing text as the empty text, as X.fillna("") does.'
    column = f"X[{(names[0] if len(names) == 1 else names)!r}]"
    # Neither categories nor numbers take a text.
    dtypes = [getattr(X[name], "dtype", None) for name in names]
    takes_none = any(str(each) == "category" or getattr(each, "kind", "") == "f" for each in dtypes)
    given = f"{column}.astype(object)" if takes_none else column
    return f'Write a missing text as the empty text: {column} = {given}.fillna("").'


def _mixed_error(types, X, steps):
    """Return an error for a column of several types that an encoder refused: it names the column."""
    # It loads scikit-learn's linear models.
    from skort.estimators.data.documents import columns_of_numbers

    kinds = set(re.findall(r"'(\w+)'", types))
    parts = dict(X.items()) if hasattr(X, "items") else dict(enumerate(np.asarray(X, object).T))
    names = [name for name, part in parts.items() if kinds == _kinds(part)]
    if not names and "NAType" not in kinds:
        # An imputer has filled in a value of another type.
        numbers = columns_of_numbers(steps, X)
        names = [
            name
            for name, part in parts.items()
            if name not in numbers
            and has_missing(np.asarray(part, object))
            and _kinds(part) < kinds
        ]
    place = f" in {listed(names)}" if names else ""
    cure = _with_empty_texts(X, names) if "NAType" in kinds else _as_text(X, names)
    if "NAType" in kinds and names and not kinds & {"str", "bytes"}:
        cure = numbers_with_na(X, names)
    return ValueError(
        f"X has values of several types{place}, {', '.join(sorted(kinds))}, and an encoder takes "
        f"one type. {cure}"
    )


def _as_text(X, names):
    """Return how to make the values of the first of some columns text."""
    if not (names and hasattr(X, "columns")):
        if np.ndim(X) == 1:
            return "Make all of them text: X = [str(value) for value in X]."
        return "Make all of them text, as X.astype(str) does."
    column = f"X[{names[0]!r}]"
    return f"Make all of them text: {column} = {column}{as_texts(X[names[0]])}."


def _joined(X, names):
    """Return how to make texts of the words in the first of some columns."""
    if not (names and hasattr(X, "columns")):
        return f"Join them: {_JOINED}."
    column = f"X[{names[0]!r}]"
    return f'Join them: {column} = {column}.map(" ".join).'


def _kinds(values):
    """Return the names of the types of some values, without those of missing ones to scikit-learn."""
    return {
        type(value).__name__
        for value in np.asarray(values, object).ravel()
        if not (value is None or (isinstance(value, float) and value != value))
    }


def _with_category(message, X):
    """Return where X has the first category of a message, as the end of a sentence, if it is found."""
    listing = message.partition("[")[2]
    if not listing or not hasattr(X, "columns"):
        return ""

    is_text = listing[0] in "'\""

    def has_first(values):
        if is_text and values.dtype.kind in "biuf":
            return False
        return any(listing.startswith((f"{v!r},", f"{v!r}]")) for v in values.ravel().tolist())

    names = columns_with(X, has_first)
    return f", {listed(names)} of X" if names else ""


def _no_text_error(kind, X, steps):
    """Return an error for a vectorizer that got a value of another type than text."""
    if scipy.sparse.issparse(X) or (kind == "numpy.ndarray" and column_of_texts(X) is None):
        kind = f"a {type(X).__name__}" if scipy.sparse.issparse(X) else "an array"
        return ValueError(
            f"X is {kind} of numbers, of the shape {np.shape(X)}, where a step takes texts. If they "
            "are vectorized already, give the texts themselves."
        )
    if kind == "numpy.ndarray":
        words = "" if hasattr(X, "columns") else f" If a row has the words of one text: {_JOINED}."
        return ValueError(
            f"X has two dimensions, where a step takes texts. {one_column(X, steps)}{words}"
        )

    def is_refused(value):
        return (
            is_missing(value)
            if kind in _MISSING
            else type(value).__name__ == kind.removeprefix("numpy.")
        )

    def has_refused(values):
        may_have = values.dtype == object if kind in _TOKENS else has_text(values)
        return may_have and any(is_refused(value) for value in values.ravel())

    with_refused = columns_with(X, has_refused)
    # A missing category may be one that an encoder knows.
    documents = _of_documents(steps, X)
    names = [name for name in with_refused if name in documents or not documents]
    if not names and (without := _without_texts(X, documents)):
        # All texts are missing, as in a request of one row.
        kind, names = "NaN", without
    place = f" in {listed(names)}," if names else ""
    if kind in _TOKENS:
        return ValueError(
            f"X has a {kind} of words in place of a text,{place} where a step takes texts. "
            f"{_joined(X, names)}"
        )
    if kind == "dict":
        return ValueError(
            "X has dicts in place of texts. Give pandas.DataFrame(X), and name the column of text "
            "in a ColumnTransformer: (TfidfVectorizer(), 'review')."
        )

    cure = _with_empty_texts(X, names) if kind in _MISSING else _as_text(X, names)
    return ValueError(
        f"X has a value that is no text, {kind},{place} where a step takes texts. {cure}"
    )


def _without_texts(X, documents):
    """Return the columns of documents of a table whose values are all missing."""
    parts = {name: np.asarray(X[name], object) for name in documents if hasattr(X, "columns")}
    return [name for name, part in parts.items() if all(map(is_missing, part.ravel()))]


def _step_text_error(error, X, steps, are_fitted):
    """Return an error that names the column whose text a step refused, or the given error."""
    # An imputer has a sentence of its own before.
    of_text = ValueError("".join(str(error).partition(REFUSED)[1:]) or str(error))
    refused = str(of_text).removeprefix(REFUSED)
    texts = first_texts(X, of_text)
    documents = _of_documents(steps, X)
    taken = {name: text for name, text in texts.items() if name not in (None, *documents)}
    names = [name for name, text in taken.items() if repr(text) == refused]
    if not names and refused == str(of_text):
        # pandas does not tell which category it refuses.
        names = [name for name in texts if str(getattr(X[name], "dtype", "")) == "category"]
        names = names if len(names) == 1 else []
    if not names:
        return error

    return _text_error(names[0], texts[names[0]], X, are_fitted)


def _text_error(name, text, X, are_fitted=False):
    """Return the error for a text in a column where a step takes numbers."""
    encode = advice_on_form({name: text}) or _cure_of_text(name, X, are_fitted)
    return ValueError(
        f"X has text in column {name!r}, such as {text!r}, and a step of the pipeline inside takes "
        f"numbers. {encode}"
    )


def _cure_of_text(name, X, are_fitted):
    """Return what to do about a column with text."""
    column = X[name] if hasattr(X, "columns") else np.asarray(X, object)[:, name]
    values = [value for value in np.asarray(column, object) if not is_missing(value)]
    if sum(map(is_number, values)) > len(values) / 2:
        read = f'pandas.to_numeric({code_of(name, X)}, errors="coerce")'
        return f"{read} makes NaN of what is no number."
    if are_fitted:
        return "Give that column as numbers, as in the rows of the fit."
    return "Encode that column before the step, for instance with OneHotEncoder in a ColumnTransformer."
