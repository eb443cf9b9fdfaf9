"""Errors for values that should be numbers: they name the column or row, and show the value."""

import contextlib
import datetime
import os
import re
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.frozen import FrozenEstimator

# The number of values that are searched for dates in a column of objects.
_LOOKED_AT = 20
# The type of text in an ONNX graph, onnx.TensorProto.STRING.
_ONNX_TEXT = 8
# The number of columns that a message names.
_SHOWN = 10
# The beginning of numpy's errors for text. The text follows.
_REFUSED = "could not convert string to float: "
# A number with other signs than Python's: 1,5 or 1.000,50 or 10 % or $ 7 or 1 000.
_OF_NUMBER = re.compile(r"[$€£+-]? ?\d{1,3}(?:[., ']?\d{3})*(?:[.,]\d+)? ?[%$€£]?")
# The error of an encoder for a column with values of several types, with their names.
_MIXED = re.compile(r"must be uniformly strings or numbers\. Got (\[.*\])")
# The errors of Python and numpy for a value that is no number, with its type, or for a sequence.
_OF_OBJECT = re.compile(
    r"a string or a (?:real )?number, not '(?:\w+\.)*(\w+)'|setting an array element with a sequence"
)
# Python's error for an encoder of y that gets X and y.
_OF_LABELS = re.compile(r"(Multi)?Label(Encoder|Binarizer)\.fit_transform\(\) takes")
_UNKNOWN = (
    'OneHotEncoder(handle_unknown="ignore") takes new categories, and '
    'OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).'
)
# The errors of a vectorizer for a document that is no text, with its type if it is not NaN.
_NO_TEXT = re.compile(
    r"'(?:\w+\.)*?((?:numpy\.)?\w+)' object has no attribute 'lower'|is an invalid document"
)
# The errors of numpy and scikit-learn for a date or a time beside numbers.
_OF_DATE = re.compile(
    r"not '(?:\w+\.)*(?:Timestamp|Timedelta|Period|NaTType|date|time|datetime|timedelta)'"
    r"|DateTime64|TimeDelta64|datetime64|timedelta64"
)
_DAYS = (
    "Convert them to numbers before, such as the days since the first one, the month or the hour."
)
# No call of a stream fits a step.
_IN_STREAMS = (
    "partial_fit and fit_batches take a fitted imputer: FrozenEstimator(SimpleImputer().fit(X))."
)
#: The advice for missing values in a batch.
FILL_BATCHES = (
    "Fill them in the pipeline inside, by an imputer that was fitted before: "
    "make_pipeline(FrozenEstimator(SimpleImputer().fit(X)), model)."
)
#: The advice for a vectorizer that got several columns.
ONE_COLUMN = (
    "A vectorizer takes one column of text: give X['review'], or X[:, 0]. In a ColumnTransformer, "
    "name the column without brackets: (TfidfVectorizer(), 'review')."
)


def check_table(X: Any) -> None:
    """Raise an error for an X that is no table: None, a path or text, a dict or a list of dicts."""
    if X is None:
        raise ValueError("X is None: give the rows.")
    if isinstance(X, (str, os.PathLike)):
        raise ValueError(
            f"X is {str(X)!r}, and no table. If it is a path, read the file: pandas.read_csv(path)."
        )
    # A matrix of scipy by keys is a dict.
    is_dict = isinstance(X, Mapping) and not scipy.sparse.issparse(X)
    if is_dict or (isinstance(X, list) and X and isinstance(X[0], Mapping)):
        kind = "a dict" if is_dict else "a list of dicts"
        raise ValueError(f"X is {kind}, and no table: give pandas.DataFrame(X).")


def check_dates(X: Any, given: Any = None) -> None:
    """
    Raise an error for dates and times in X that names their columns.

    If steps made X, the names are those of the dates that they were given. scikit-learn would
    convert dates to numbers of nanoseconds.
    """
    names = _date_columns(X)
    if names:
        names = _date_columns(given) or names
        raise ValueError(
            f"X has dates or times{_place(names)}, but the model takes numbers. {_DAYS}"
        )


def _date_columns(X):
    """Return the names or the numbers of the columns of X with dates or times; [None]: all."""
    if hasattr(X, "columns") and hasattr(X, "head"):
        dtypes = dict(zip(X.columns, X.dtypes, strict=True))
        parts = {name: X[name].head(_LOOKED_AT) for name in dtypes if _may_date(dtypes[name])}
    elif isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        return [None]
    else:
        parts = dict(enumerate(_first_objects(X).T))

    return [name for name, part in parts.items() if _has_dates(np.asarray(part))]


def _first_objects(X):
    """Return the first rows of a list or of an array of objects; an empty matrix for another X."""
    rows = np.empty((0, 0), object)
    if isinstance(X, (list, tuple)) or (isinstance(X, np.ndarray) and X.dtype.kind == "O"):
        with contextlib.suppress(ValueError):  # The rows of a list may differ in their lengths.
            rows = np.asarray(X[:_LOOKED_AT], object)

    return rows if rows.ndim == 2 else np.empty((0, 0), object)


def _may_date(dtype):
    return getattr(dtype, "kind", "O") in "mMO"


def _place(names):
    return "" if names == [None] else f" in {_listed(names)}"


def _has_dates(values):
    kinds = ("isoformat", "total_seconds", "to_timestamp")
    return values.dtype.kind in "mM" or any(
        hasattr(value, kind) for value in values.ravel() for kind in kinds
    )


def text_error(error: Exception, X: Any, estimator: Any) -> Exception:
    """
    Return the error to raise for an X that a fit refused.

    For an error about text, name the columns of text and show how to encode them. For one about
    NaN, name the columns and show how to fill them. For one about images, show how to flatten them.
    Return any other error as it is.
    """
    texts = _texts(X, error)
    inside = estimator.estimator
    if texts and (advice := _advice_on_steps(estimator) or _advice_on_form(texts)):
        return ValueError(f"X has text in {_listed(texts)}, but the model takes numbers. {advice}")
    default = "LogisticRegression()" if is_classifier(estimator) else "LinearRegression()"
    if not texts:
        model = "onnx_model" if _is_onnx(inside) else default if inside is None else "model"
        name = type(estimator).__name__
        cure = (
            f"Fill them in the pipeline inside: {name}(make_pipeline(SimpleImputer(), {model})). "
            f"{_IN_STREAMS}"
        )
        return missing_error(_shape_error(_object_error(error, X), X), X, cure)

    encode = "TfidfVectorizer()"
    place = ""
    if None not in texts:
        place = f" in {_listed(texts)}"
        encoder = 'OneHotEncoder(handle_unknown="ignore")'
        encode = f'ColumnTransformer([("text", {encoder}, {[*texts]!r})], remainder="passthrough")'

    model = (
        "model.set_params(estimator=make_pipeline(encode, "
        f"{default if inside is None else 'model.estimator'}))"
    )
    if _is_onnx(inside):
        model = "model = make_pipeline(encode, model)"
    return ValueError(
        f"X has text{place}, such as {next(iter(texts.values()))!r}, but the model takes numbers. "
        "Convert it to numbers, for instance:\n"
        f"    encode = {encode}\n"
        f"    {model}\n"
        "    model.fit(X, y)  # partial_fit takes encode fitted: FrozenEstimator(encode.fit(X))"
    )


def _advice_on_steps(estimator):
    """Return where the steps of a model inside are, if a fitted estimator or a file has them."""
    inside = estimator.estimator
    if isinstance(inside, FrozenEstimator) and hasattr(inside.estimator, "to_sklearn"):
        return (
            "Give the steps, too: FrozenEstimator(fitted.to_sklearn()), with the estimator that is "
            "frozen now; or call its own fit, with warm_start=True."
        )
    if _is_onnx(inside) and any(_takes_text(each) for each in inside.graph.input):
        return (
            "The transformers in an ONNX file cannot be trained. Load the estimator that wrote the "
            "file, and give FrozenEstimator(fitted.to_sklearn())."
        )
    return ""


def _takes_text(graph_input):
    return graph_input.type.tensor_type.elem_type == _ONNX_TEXT


def fitted_text_error(error: Exception, X: Any) -> Exception:
    """Return the error to raise for an X that a known model refused: see `text_error`."""
    texts = _texts(X, error)
    if not texts or None in texts:
        cure = "The model takes rows without NaN: fill them, or leave out these rows."
        return missing_error(_shape_error(_object_error(error, X), X), X, cure)

    return ValueError(
        f"X has text in {_listed(texts)}, such as {next(iter(texts.values()))!r}, but the model "
        "takes numbers. Encode X in the same way as all other rows."
    )


def _object_error(error, X):
    """Return an error that names the columns of values that are no numbers, or the given error."""
    refused = _OF_OBJECT.search(str(error))
    if refused is None or not hasattr(X, "shape"):
        return error
    kind = refused[1]
    names = _columns_with(X, lambda values: any(_is_of(value, kind) for value in values.ravel()))
    if not names:
        return error

    column = f"X[{names[0]!r}]" if hasattr(X, "columns") else f"X[:, {names[0]}]"
    cure = (
        "encode them, for instance with OneHotEncoder in a pipeline inside"
        if kind
        else f"make a column of each of their numbers, pandas.DataFrame({column}.tolist())"
    )
    return type(error)(f"{str(error).rstrip('.')}. X has such values in {_listed(names)}: {cure}.")


def _is_of(value, kind):
    """Return whether a value is of a type, by its name; None: a sequence."""
    if kind is None:
        return isinstance(value, (list, tuple, np.ndarray))
    return type(value).__name__ == kind


def _shape_error(error, X):
    """Return an error that shows how to flatten images, or the given error."""
    if len(getattr(X, "shape", ())) < 3:
        return error
    return ValueError(
        f"{error} A row of X is flat, unless an ONNX model takes others: give X.reshape(len(X), -1)."
    )


def missing_error(error: Exception, X: Any, cure: str) -> Exception:
    """Return an error that names the columns of X with NaN and ends with a cure, or the given one."""
    if " contains infinity" in str(error) and (names := _columns_with(X, _has_infinite)):
        return ValueError(f"{str(error).rstrip('.')} in {_listed(names)}.")
    if " contains NaN" not in str(error):
        return error

    names = _columns_with(X, _has_missing)
    if names:
        return ValueError(f"Input X contains NaN in {_listed(names)}. {cure}")
    if "transformed X" in str(error):
        return ValueError(f"{error} A step before the model made it: X itself has none.")
    return error


def _columns_with(X, has):
    """Return the names or the numbers of the columns of X whose values pass a test."""
    if scipy.sparse.issparse(X):
        columns = X.tocsc()
        parts = np.split(columns.data, columns.indptr[1:-1])
        return [j for j, values in enumerate(parts) if has(values)]

    names = getattr(X, "columns", None)
    if names is not None:
        return [name for name in names if has(np.asarray(X[name]))]
    rows = np.asarray(X)
    return [j for j, column in enumerate(rows.T) if has(column)] if rows.ndim == 2 else []


def _has_infinite(values):
    return values.dtype.kind == "f" and bool(np.isinf(values).any())


def _has_missing(values):
    if values.dtype.kind == "f":
        return bool(np.isnan(values).any())
    return values.dtype == object and any(_is_missing(value) for value in values.ravel())


def _is_onnx(inside):
    return not (inside is None or isinstance(inside, BaseEstimator))


def step_error(error: Exception, X: Any) -> Exception:
    """Return an error that names what the steps refused: no text, dates, NaN, text; or the given."""
    no_text = _NO_TEXT.search(str(error))
    if no_text:
        return _no_text_error(no_text[1] or "NaN")
    if _OF_DATE.search(str(error)) and (dates := _date_columns(X)):
        return ValueError(
            f"X has dates or times{_place(dates)}, and a step of the pipeline inside takes numbers. "
            f"{_DAYS}"
        )
    if types := _MIXED.search(str(error)):
        return _mixed_error(types[1], X)
    if _OF_LABELS.match(str(error)):
        return TypeError(
            f"{error}. It is for y: take OneHotEncoder or OrdinalEncoder for columns of X."
        )
    if _OF_OBJECT.search(str(error)):
        return _object_error(error, X)
    if not isinstance(error, ValueError):
        return error
    if "Found unknown categories" in str(error):
        return ValueError(f"{error}{_with_category(str(error), X)}. {_UNKNOWN}")
    if "empty vocabulary" in str(error) and hasattr(X, "columns"):
        # The texts of a DataFrame are the names of its columns.
        return ValueError(f"{error}. {ONE_COLUMN}")
    if "transformed X contains " in str(error):
        cure = "No step before the model fills them: begin the pipeline with SimpleImputer(). "
        cure += _IN_STREAMS
        return missing_error(error, X, cure)

    return _step_text_error(error, X)


def _mixed_error(types, X):
    """Return an error for a column of several types that an encoder refused: it names the column."""
    kinds = set(re.findall(r"'(\w+)'", types))
    parts = dict(X.items()) if hasattr(X, "items") else dict(enumerate(np.asarray(X, object).T))
    names = [name for name, part in parts.items() if kinds == _kinds(part)]
    place = f" in {_listed(names)}" if names else ""
    column = f"X[{names[0]!r}]" if names and hasattr(X, "columns") else "X"
    cure = (
        f'Write a missing text as the empty text, {column}.fillna("").'
        if "NAType" in kinds
        else f"Make all of them text, {column}.astype(str)."
    )
    return ValueError(
        f"X has values of several types{place}, {', '.join(sorted(kinds))}, and an encoder takes "
        f"one type. {cure}"
    )


def _kinds(values):
    """Return the names of the types of some values, without those of missing ones to scikit-learn."""
    return {
        type(value).__name__
        for value in np.asarray(values, object).ravel()
        if not (value is None or (isinstance(value, float) and value != value))
    }


def _with_category(message, X):
    """Return where X has the first category of a message, as the end of a sentence, if it is found."""
    category = re.search(r"\[('[^']*'|[^,\]]*)", message)
    if category is None or not hasattr(X, "columns"):
        return ""
    names = [name for name in X.columns if category[1] in map(repr, np.asarray(X[name], object))]
    return f", {_listed(names)} of X" if names else ""


def _no_text_error(kind):
    """Return an error for a vectorizer that got a value of another type than text."""
    if kind == "numpy.ndarray":
        return ValueError(f"X has two dimensions, where a step takes texts. {ONE_COLUMN}")
    return ValueError(
        f"X has a value that is no text, {kind}, where a step takes texts. Write the empty text "
        'for a missing one, as X.fillna("") does.'
    )


def _step_text_error(error, X):
    """Return an error that names the column whose text a step refused, or the given error."""
    refused = str(error).removeprefix(_REFUSED)
    texts = _texts(X, error)
    names = [name for name, text in texts.items() if name is not None and repr(text) == refused]
    if not names:
        return error

    encode = _advice_on_form({names[0]: texts[names[0]]}) or (
        "Encode that column before the step, for instance with OneHotEncoder in a ColumnTransformer."
    )
    return ValueError(
        f"X has text in column {names[0]!r}, such as {refused}, and a step of the pipeline inside "
        f"takes numbers. {encode}"
    )


def _advice_on_form(texts):
    """Return how to read the columns whose first text is a date or a number in another form, or ""."""
    known = {name: text for name, text in texts.items() if name is not None}
    dates = [name for name, text in known.items() if _is_date(text)]
    if dates:
        read = f"pandas.to_datetime(X[{dates[0]!r}])"
        return f"There are dates in {_listed(dates)}: {read} reads them. {_DAYS}"

    numbers = [name for name, text in known.items() if _OF_NUMBER.fullmatch(text.strip())]
    if numbers:
        return (
            f"There seem to be numbers in {_listed(numbers)}: make them float before. "
            'pandas.read_csv reads such files with decimal="," and thousands=".".'
        )
    return ""


def _is_date(text):
    try:
        datetime.date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def ids_in_range() -> Iterator[None]:
    """Replace ONNX Runtime's error for an id in X without a row in a table of an ONNX model."""
    try:
        yield
    except Exception as error:  # the runtime raises errors of many kinds
        # A backward pass scatters by the same ids, but the Gather of the forward pass fails first.
        found = re.search(
            r"running Gather node.*idx=(-?\d+) must be within .* \[-\d+,(\d+)\]",
            str(error),
            re.DOTALL,
        )
        if found is None:
            raise

        raise ValueError(
            f"X has the id {found[1]}, but the ids of a table in the ONNX model go from "
            f"0 to {found[2]}."
        ) from error


def check_target(y: Any, *, is_labels: bool, name: str = "y") -> None:
    """Raise an error for a value of y that is not a label, or not a number if y has no labels."""
    if not is_labels and getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(f"{name} has dates or times, but a regressor takes numbers. {_DAYS}")
    objects = _objects(y)
    if objects is None:
        return

    wrong = _wrong_label(objects.ravel()) if is_labels else _wrong_number(objects.ravel())
    if wrong is None:
        return

    number, advice = wrong
    width = objects.size // len(objects)
    raise ValueError(f"{name} has {objects.flat[number]!r} in row {number // width}: {advice}")


def _wrong_number(values):
    """Return the position of the first value that is not a number, and advice; or None."""
    wrong = next((i for i, value in enumerate(values) if not _is_number(value)), None)
    if wrong is None:
        return None
    if _is_missing(values[wrong]):
        return wrong, "each row needs a number. Leave out rows without one."

    advice = ""
    if isinstance(values[wrong], str):
        is_number = _OF_NUMBER.fullmatch(values[wrong].strip())
        advice = " Make y float before." if is_number else " OrtSGDClassifier takes labels."
    return wrong, f"a regressor takes numbers.{advice}"


def _is_number(value):
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _wrong_label(values):
    """Return the position of the first value that is not a label, and advice; or None."""
    missing = next((i for i, value in enumerate(values) if _is_missing(value)), None)
    if missing is not None:
        return (
            missing,
            (
                "each row needs a label. Leave out rows without one, or give them one, "
                'such as "unknown".'
            ),
        )

    other = next((i for i, value in enumerate(values) if not isinstance(value, str)), None)
    if other is None:
        return None

    others = (
        "other labels are text"
        if any(isinstance(value, str) for value in values)
        else "y is an array of objects"
    )
    advice = "Make all labels text, np.array(y, dtype=str), or all int."
    return other, f"Unknown label type {type(values[other]).__name__}, and {others}. {advice}"


def _is_missing(value):
    """Return whether a value is None, NaN or the NA of pandas."""
    return (
        value is None
        or (isinstance(value, Real) and value != value)
        or repr(value) in ("<NA>", "NaT")
    )


def _objects(y):
    """Return y as an array of objects, or None if its dtype makes every value a valid target."""
    if y is None or scipy.sparse.issparse(y):
        return None

    try:
        array = np.asarray(y)
        if array.dtype.kind == "U":
            # numpy turns a list of numbers and text into text.
            array = np.asarray(y, dtype=object)
    except (TypeError, ValueError, RuntimeError):  # scikit-learn says what is wrong
        return None

    return array if array.dtype == object and array.ndim in (1, 2) and array.size else None


def _texts(X, error):
    """Return the first text of each column of X with text, by name, for an error about text."""
    if not str(error).startswith(_REFUSED) or scipy.sparse.issparse(X):
        return {}

    names = list(getattr(X, "columns", ()))
    rows = np.asarray(X, dtype=object)
    if rows.ndim == 1:
        return {None: rows[0]}
    if rows.ndim != 2:
        return {}

    texts = (
        (value for value in column if isinstance(value, str) and not _is_number(value))
        for column in rows.T
    )
    firsts = {j: next(column, None) for j, column in enumerate(texts)}
    return {
        (names or range(len(firsts)))[j]: text for j, text in firsts.items() if text is not None
    }


def _listed(texts):
    """Return the names of columns as a message shows them."""
    names = [repr(text) for text in texts]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{'column' if len(names) == 1 else 'columns'} {', '.join(names[:_SHOWN])}{more}"
