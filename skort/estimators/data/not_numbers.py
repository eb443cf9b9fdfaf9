"""Errors for values of X that are no numbers: they name the column, show the value, and the cure."""

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from skort.estimators.data.columns import (
    OF_NUMBER,
    columns_with,
    first_texts,
    has_missing,
    has_sentences,
    has_text,
    listed,
)
from skort.estimators.data.dates import DAYS, is_date
from skort.estimators.data.nesting import model_inside
from skort.estimators.data.row_forms import check_no_dict, check_no_iterator, largest

# The type of text in an ONNX graph, onnx.TensorProto.STRING.
_ONNX_TEXT = 8
# The encoder of categories for a model that names no other.
_ENCODER = 'OneHotEncoder(handle_unknown="ignore")'
# The errors of Python and numpy for a value that is no number, with its type, or for a sequence.
_OF_OBJECT = re.compile(
    r"(?:a string or a (?:real )?number, not|unhashable type:) '(?:\w+\.)*(\w+)'"
    r"|setting an array element with a sequence"
)
_SEQUENCES = ("list", "tuple", "ndarray")
# The types of dates and times.
_OF_DATES = (
    *("Timestamp", "Timedelta", "Period", "NaTType"),
    *("date", "time", "datetime", "timedelta", "datetime64", "timedelta64"),
)
_BYTES = "could not convert string to float: b"
_COMPLEX = "Complex data not supported"
# No call of a stream fits a step.
IN_STREAMS = (
    "partial_fit and fit_batches take a fitted imputer: FrozenEstimator(SimpleImputer().fit(X))."
)
#: The advice for missing values in a batch.
FILL_BATCHES = (
    "Fill them in the pipeline inside, by an imputer that was fitted before: "
    "make_pipeline(FrozenEstimator(SimpleImputer().fit(X)), model)."
)
SEVERAL_LABELS = (
    "For several labels in a row, give y = MultiLabelBinarizer().fit_transform(y), and "
    "MLPClassifier() as estimator."
)


def check_table(X: Any) -> None:
    """
    Raise an error for an X that is no table: None, an iterator, a path or text, a dict or a list of
    dicts.
    """
    if X is None:
        raise ValueError("X is None: give the rows.")
    check_no_iterator(X, "X")
    if isinstance(X, (str, os.PathLike)):
        raise ValueError(
            f"X is {str(X)!r}, and no table. If it is a path, read the file: pandas.read_csv(path)."
        )
    check_no_dict(X)
    if is_list_of_dicts(X):
        raise dicts_error()


def is_list_of_dicts(X: Any) -> bool:
    """Return whether X is a list, or an array, of dicts."""
    is_vector = isinstance(X, list) or (isinstance(X, np.ndarray) and X.ndim == 1)
    return is_vector and len(X) > 0 and isinstance(X[0], Mapping)


def dicts_error() -> ValueError:
    """Return the error for a list of dicts."""
    return ValueError("X is a list of dicts, and no table: give pandas.DataFrame(X).")


def ragged_error(y: Any) -> ValueError | None:
    """Return the error for a y of numbers whose rows have several lengths, or None."""
    sizes = [len(each) if isinstance(each, (list, tuple)) else 1 for each in y]
    row = _first_other(sizes)
    if row is None:
        return None
    return ValueError(
        f"y has rows of several lengths: {sizes[0]} in row 0, and {sizes[row]} in row {row}. Give "
        "each row a number for each output."
    )


def _first_other(lengths):
    """Return the number of the first row of another length than the first one, or None."""
    return next((j for j, length in enumerate(lengths) if length != lengths[0]), None)


def with_lists_of_labels(error: Exception, y: Any) -> Exception:
    """Return an error for a y whose rows are lists of labels, or the given error for any other."""
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    first = next(iter(y), None) if kind in "OU" and hasattr(y, "__iter__") else None
    if not isinstance(first, (list, tuple, set, frozenset, np.ndarray)):
        return error
    return ValueError(f"{str(error).rstrip('.')}. {SEVERAL_LABELS}")


def with_ragged_rows(error: Exception, X: Any) -> Exception:
    """Return an error that names a row of X of another length than the first, or the given error."""
    rows = X if isinstance(X, list | tuple) else []
    lengths = [np.size(row) for row in rows]
    other = _first_other(lengths)
    if other is None:
        return error
    return ValueError(
        f"X has rows of several lengths: row 0 has {lengths[0]} values, and row {other} has "
        f"{lengths[other]}. A table needs a value in each column."
    )


def text_error(error: Exception, X: Any, estimator: Any) -> Exception:
    """
    Return the error to raise for an X that a fit refused.

    For an error about text, name the columns of text and show how to encode them. For one about
    NaN, name the columns and show how to fill them. For one about images, show how to flatten them.
    Return any other error as it is.
    """
    texts = first_texts(X, error)
    inside = estimator.estimator
    if texts and (advice := _advice_on_steps(estimator) or advice_on_form(texts)):
        return ValueError(f"X has text in {listed(texts)}, but the model takes numbers. {advice}")
    default = "LogisticRegression()" if is_classifier(estimator) else "LinearRegression()"
    if not texts:
        model = "onnx_model" if _is_onnx(inside) else default if inside is None else "model"
        name = type(estimator).__name__
        cure = (
            f"Fill them in the pipeline inside: {name}(make_pipeline(SimpleImputer(), {model})). "
            f"{IN_STREAMS}"
        )
        return missing_error(_shape_error(object_error(error, X), X), X, cure)

    encode = "TfidfVectorizer()"
    place = ""
    if None not in texts:
        place = f" in {listed(texts)}"
        innermost = None if inside is None else model_inside(inside)
        encoder = getattr(innermost, "encoder_of_text", _ENCODER)
        steps = ", ".join(_encoders(X, texts, encoder))
        encode = f'ColumnTransformer([{steps}], remainder="passthrough")'

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


def _encoders(X, texts, encoder):
    """
    Return the code of the transformers of columns of text: `encoder` for categories, and one for
    each column of sentences.
    """
    sentences = [name for name in columns_with(X, has_sentences) if name in texts]
    categories = [name for name in texts if name not in sentences]
    if categories:
        yield f'("text", {encoder}, {categories!r})'
    for j, name in enumerate(sentences, 1):
        yield f'("words {j}", TfidfVectorizer(), {name!r})'


def _advice_on_steps(estimator):
    """Return where the steps of a file inside are, if it has them."""
    inside = estimator.estimator
    if _is_onnx(inside) and any(_takes_text(each) for each in inside.graph.input):
        return (
            "The transformers in an ONNX file cannot be trained. Load the estimator that wrote the "
            "file, and call its partial_fit, or give FrozenEstimator(fitted)."
        )
    return ""


def _takes_text(graph_input):
    return graph_input.type.tensor_type.elem_type == _ONNX_TEXT


def fitted_text_error(error: Exception, X: Any) -> Exception:
    """Return the error to raise for an X that a known model refused: see `text_error`."""
    if is_list_of_dicts(X):
        return dicts_error()
    if "does not contain any features" in str(error):
        check_table(X)
        return ValueError(
            "X has one dimension, but the model takes a table. One row of a DataFrame is a table as "
            "table.iloc[[i]], with two brackets; a Series is one as X.to_frame().T."
        )
    texts = first_texts(X, error)
    if not texts:
        cure = "The model takes rows without NaN: fill them, or leave out these rows."
        return missing_error(_shape_error(object_error(error, X), X), X, cure)

    place = "" if None in texts else f" in {listed(texts)}"
    return ValueError(
        f"X has text{place}, such as {next(iter(texts.values()))!r}, but the model "
        "takes numbers. Encode X in the same way as all other rows."
    )


def is_of_object(error: Exception) -> bool:
    """Return whether an error is about values that are no numbers: `object_error` names them."""
    text = str(error)
    return _OF_OBJECT.search(text) is not None or text.startswith((_BYTES, _COMPLEX))


def object_error(error: Exception, X: Any) -> Exception:
    """Return an error that names the columns of values that are no numbers, or the given error."""
    if str(error).startswith((_BYTES, _COMPLEX)):
        return _coded_error(error, X)
    refused = _OF_OBJECT.search(str(error))
    if refused is None or not hasattr(X, "shape"):
        return error
    kind = None if refused[1] in _SEQUENCES else refused[1]
    names = columns_with(X, lambda values: any(_is_of(value, kind) for value in values.ravel()))
    if not names:
        return error

    if kind in _OF_DATES:
        return ValueError(
            f"X has dates or times in {listed(names)}, but the model takes numbers. {DAYS}"
        )
    column = code_of(names[0], X)
    cure = "encode them, for instance with OneHotEncoder in a pipeline inside"
    if kind == "NAType" and not set(names) & set(columns_with(X, has_text)):
        return type(error)(f"X has pandas.NA in {listed(names)}. {numbers_with_na(X, names)}")
    if kind in (None, "dict"):
        cure = f"make a column of each of their values, pandas.DataFrame({column}.tolist())"
    return type(error)(f"{str(error).rstrip('.')}. X has such values in {listed(names)}: {cure}.")


def _coded_error(error, X):
    """Return the error for bytes or complex numbers in X, without all of its values."""
    if str(error).startswith(_COMPLEX):
        names = columns_with(X, lambda values: values.dtype.kind == "c")
        place = f" in {listed(names)} of X" if names else ""
        return ValueError(
            f"{_COMPLEX}{place}. Give the real and the imaginary parts as columns of their own."
        )
    names = columns_with(X, lambda values: any(isinstance(value, bytes) for value in values.flat))
    if not names:
        return error
    column = code_of(names[0], X)
    return ValueError(
        f"X has bytes in {listed(names)}. Make them text, {column} = [value.decode() for value in "
        f"{column}], and then numbers: float, or OneHotEncoder in a pipeline inside."
    )


def numbers_with_na(X: Any, names: list[Any]) -> str:
    """Return how to make numbers with missing ones of the first of some columns with pandas.NA."""
    column = code_of(names[0], X)
    return f'Make numbers of it, which an imputer takes: {column} = {column}.astype("Float64").'


def code_of(name: Any, X: Any) -> str:
    """Return how Python writes a column of X."""
    return f"X[{name!r}]" if hasattr(X, "columns") else f"X[:, {name}]"


def target_error(error: Exception, y: Any) -> Exception:
    """Return an error about y that names the first row that it is of, or the given error."""
    if str(error).startswith(_COMPLEX):
        return ValueError(f"{_COMPLEX} in y. Give its real and imaginary parts as two columns.")
    if not str(error).startswith("Input y contains "):
        return error
    try:
        values = np.asarray(y, np.float64)
    except (TypeError, ValueError):
        return error
    rows = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    if not len(rows):
        return error
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return ValueError(
        f"{str(error).rstrip('.')} in row {rows[0]}{more}. Leave out rows without a target."
    )


def _is_of(value, kind):
    """Return whether a value is of a type, by its name; None: a sequence."""
    if kind is None:
        return isinstance(value, (list, tuple, set, np.ndarray))
    return type(value).__name__ == kind


def _shape_error(error, X):
    """Return an error that shows how to flatten images, or which columns share a name, or the given."""
    if "unique column names" in str(error):
        names = list(X.columns)
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        return ValueError(f"X has several columns of one name: {listed(twice)}. Rename them.")
    # scikit-learn shows all rows before the cure.
    shown = re.search(r":\narray=.*\nReshape", str(error), re.DOTALL)
    if shown:
        return ValueError(str(error).replace(shown[0], ". Reshape"))
    if len(getattr(X, "shape", ())) < 3:
        return error
    return ValueError(
        f"{error} A row of X is flat, unless an ONNX model takes others: give X.reshape(len(X), -1)."
    )


def missing_error(error: Exception, X: Any, cure: str) -> Exception:
    """Return an error that names the columns of X with NaN and ends with a cure, or the given one."""
    if " contains infinity" in str(error):
        return infinity_error(error, X)
    if " contains NaN" not in str(error):
        return error

    names = columns_with(X, has_missing)
    return ValueError(f"Input X contains NaN in {listed(names)}. {cure}") if names else error


def infinity_error(error: Exception, X: Any) -> Exception:
    """Return an error that names the columns of X with infinity, or too large for float32, or the given."""
    refused = str(error).rstrip(".")
    if names := columns_with(X, _has_infinite):
        return ValueError(
            f"{refused} in {listed(names)}. Leave out these rows, or write NaN and fill it."
        )
    if names := columns_with(X, _has_large):
        return ValueError(
            f'{refused} in {listed(names)}. Use dtype="float64", or divide the column by a constant.'
        )
    return ValueError(f"{refused}.{squares}") if (squares := of_infinite_squares(X)) else error


def of_infinite_squares(X: Any) -> str:
    """Return a sentence, after a space, on columns of X whose squares float32 cannot hold, or ""."""
    names = columns_with(X, _has_large_squares)
    if not names:
        return ""
    return f" Check {listed(names)} of X, whose squares are no float32, or divide by a constant."


def _has_infinite(values):
    return values.dtype.kind == "f" and bool(np.isinf(values).any())


def _has_large(values):
    return values.dtype.kind == "f" and bool((np.abs(values) > largest(np.float32)).any())


def _has_large_squares(values):
    return values.dtype.kind == "f" and bool((np.abs(values) > largest(np.float32) ** 0.5).any())


def _is_onnx(inside):
    return not (inside is None or isinstance(inside, BaseEstimator))


def advice_on_form(texts: Mapping[Any, str]) -> str:
    """Return how to read the columns whose first text is a date or a number in another form, or ""."""
    known = {name: text for name, text in texts.items() if name is not None}
    dates = [name for name, text in known.items() if is_date(text)]
    if dates:
        read = f"pandas.to_datetime(X[{dates[0]!r}])"
        return f"There are dates in {listed(dates)}: {read} reads them. {DAYS}"

    numbers = [name for name, text in known.items() if OF_NUMBER.fullmatch(text.strip())]
    if numbers:
        return (
            f"There seem to be numbers in {listed(numbers)}: make them float before. "
            'pandas.read_csv reads such files with decimal="," and thousands=".".'
        )
    return ""
