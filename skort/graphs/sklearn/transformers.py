"""
The steps before a model: fitted scikit-learn transformers as ONNX,
compared with scikit-learn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.compose
import scipy.sparse
from numpy.typing import DTypeLike
from onnx import helper
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.sparsefuncs import mean_variance_axis

from skort.common.onnx_text import name_inputs, onnx_dtype, rename
from skort.common.sklearn_private import num_samples, safe_indexing
from skort.common.user_warning import warn_user
from skort.exceptions import NotExportableError
from skort.graphs.score_graph import ScoreGraph, find_weights
from skort.graphs.sklearn.conversion import to_onnx
from skort.graphs.sklearn.raw_inputs import (
    RawInput,
    date_columns,
    feeds,
    is_missing,
    numeric_inputs,
    object_columns,
    raw_inputs,
    text_columns,
)
from skort.runtime.sessions import InferenceModel, short_message

# The number of rows on which ONNX is compared with scikit-learn, and the largest number of further
# rows, which have new texts.
_SAMPLE = 100
# The largest number of values of a dense block, or of its characters if texts are filled up to the
# longest.
_BLOCK = 2**18
# A larger difference between both results, in standard deviations of a column, is more than
# rounding.
_TOLERANCE = 1e-3
_EMPTY = "the empty text"
# What else the user may do.
_ELSE = (
    "Replace the step, to keep one file; or put it in a Pipeline before this estimator, and the "
    "file takes what the step returns."
)


class Difference(NamedTuple):
    """
    The largest difference of a conversion from scikit-learn, and its place.

    `size` is in standard deviations of the column. `rows` are all that differ.
    """

    size: float
    column: int
    row: int = 0
    rows: tuple[int, ...] = ()


class UnlikeError(ValueError):
    """The result of the conversion cannot be compared with that of scikit-learn."""


class DatesError(ValueError):
    """A step takes the dates of some columns, which are the arguments, for numbers."""


def transformer_graph(transformers: Any, X: Any, dtype: DTypeLike) -> onnx.ModelProto:
    """
    Return fitted transformers as ONNX, with the inputs `raw_inputs(X)` and one output.

    If the steps take texts of X for numbers, the inputs are `numeric_inputs(X)`. Warn if their
    results differ from those of scikit-learn.
    """
    steps = [name for name, _ in transformers.steps]
    inputs = raw_inputs
    try:
        model, difference = _convert(transformers, X, dtype, inputs)
    except _ConversionError as error:
        inputs = numeric_inputs
        converted = _of_numbers(transformers, X, dtype)
        if converted is None:
            name, why = next(_failures(transformers, X, dtype), (steps[-1], error))
            part = transformers[: steps.index(name) + 1]
            raise NotExportableError(
                f"estimator: the step {name!r} cannot be part of an ONNX model in {dtype}: {why} "
                f"{_cause_of_failure(part, X, dtype) or _ELSE}"
            ) from error
        model, difference = converted

    if difference.size > _TOLERANCE:
        _warn_of_difference(transformers, difference, X, dtype, inputs)
    return model


def numeric_names(graph: onnx.ModelProto) -> set[str]:
    """Return the names of the inputs of numbers that the nodes of a graph take."""
    taken = {name for node in graph.graph.node for name in node.input}
    return {
        i.name
        for i in graph.graph.input
        if i.name in taken and i.type.tensor_type.elem_type != onnx.TensorProto.STRING
    }


def _of_numbers(transformers, X, dtype):
    """Return the conversion with texts of numbers as numbers, or None if there is none."""
    try:
        texts, numbers = (
            {i.name for i in read(X) if i.is_text} for read in (raw_inputs, numeric_inputs)
        )
        if texts == numbers:
            return None
        converted = _convert(transformers, X, dtype, numeric_inputs)
    except (_ConversionError, ValueError):  # Names of columns may be refused.
        return None

    dates = [name for name in date_columns(X) if name in texts - numbers]
    if dates:
        raise DatesError(*dates)
    return converted


@dataclass(frozen=True)
class Obstacle:
    """A step that has no graph, and the reason."""

    step: str
    reason: str


@dataclass(frozen=True, eq=False)
class StepGraphs:
    """
    The last steps of a pipeline as graphs, by position.

    `obstacle` says why the step before them has no graph.
    """

    graphs: dict[int, ScoreGraph]
    obstacle: Obstacle | None


def trainable_steps(transformers: Any, dtype: DTypeLike) -> StepGraphs:
    """
    Return the last steps of a pipeline that have graphs.

    A step has none if it takes no matrix of numbers, or if skl2onnx does not convert it.
    """
    graphs: dict[int, ScoreGraph] = {}
    steps = [] if transformers is None else list(enumerate(transformers.steps))

    for position, (name, step) in reversed(steps):
        graph = _step_graph(name, step, dtype)
        if isinstance(graph, Obstacle):
            return StepGraphs(graphs, graph)
        graphs = {position: graph, **graphs}

    return StepGraphs(graphs, None)


def _step_graph(name: str, step: Any, dtype: DTypeLike) -> ScoreGraph | Obstacle:
    """Return the graph of a step, or the obstacle."""
    if _takes_columns(step):
        return Obstacle(
            name, "it takes columns by their names or positions, not a matrix of numbers"
        )

    width = getattr(step, "n_features_in_", None)
    if width is None:
        return Obstacle(name, "it takes something else than a matrix of numbers")

    try:
        model = to_onnx(step, (RawInput("X", False, width),), dtype)
    except Exception as error:  # skl2onnx raises errors of many kinds
        return Obstacle(name, f"skl2onnx gives no graph of it: {_described(error)}")

    _cast_output(model, dtype)
    return _named_weights(model, name)


def _described(error: Exception) -> str:
    """
    Return an error as a sentence without its period: its type and first line.

    An error of skort is its own message alone.
    """
    if isinstance(error, (NotExportableError, UnlikeError)):
        return str(error).rstrip(".")
    return f"{type(error).__name__}: {short_message(error).rstrip('.')}"


def _named_weights(model: onnx.ModelProto, step: str) -> ScoreGraph:
    """Return a step as a graph whose weights are named "scale" and "offset"."""
    weights = find_weights(model.graph)
    names: dict[str, str] = {}

    for node in model.graph.node:
        for name in set(node.input) & set(weights.scales):
            what = "offset" if node.op_type in ("Add", "Sub") else "scale"
            names[name] = f"{what}{'' if what not in names.values() else len(names)}"

    for item in model.graph.initializer:
        item.name = names.get(item.name, item.name)
    rename(model.graph.node, names)
    return ScoreGraph.of(onnx.compose.add_prefix(model, f"{step}/"))


class _ConversionError(Exception):
    pass


def _failures(transformers, X, dtype):
    """Yield the name and the error of each step, but the last, up to which the conversion fails."""
    for i, (name, _) in enumerate(transformers.steps[:-1]):
        try:
            _convert(transformers[: i + 1], X, dtype, raw_inputs)
        except _ConversionError as error:
            yield name, error


@np.errstate(over="ignore")
def _cause_of_failure(transformers, X, dtype):
    """Return a sentence about a text with which a converted model fails; "" if there is none."""
    # skl2onnx and the runtime raise errors of many kinds.
    try:
        inputs = raw_inputs(X)
        model = _joined_columns(transformers, X, inputs, dtype)
        inference = InferenceModel(model)
    except Exception:
        return ""

    failing: list[int] = []
    for row in range(num_samples(X)):
        given = feeds(safe_indexing(X, [row]), inputs, dtype)
        try:
            inference.run(model.graph.output[0].name, given)
        except Exception:
            failing.append(row)

    if not failing:
        return ""
    return _cause(transformers, X, Difference(np.inf, 0, failing[0], tuple(failing)))


def _warn_of_difference(transformers, difference, X, dtype, inputs):
    """Warn of the first step that gives other values, and of the feature that differs most."""
    name = transformers.steps[-1][0]
    part = transformers

    for i, (earlier, _) in enumerate(transformers.steps[:-1]):
        of_beginning = _convert(transformers[: i + 1], X, dtype, inputs)[1]
        if of_beginning.size > _TOLERANCE:
            name = earlier
            part = transformers[: i + 1]
            difference = of_beginning
            break

    rounds = str(dtype) == "float32" and not text_columns(X)
    cure = f'Try dtype="float64". {_ELSE}' if rounds else _ELSE
    warn_user(
        f"estimator: the step {name!r} gives other values as ONNX in {dtype} than in scikit-learn, "
        f"by up to {difference.size:.2g} standard deviations of a "
        f"feature{_feature(part, difference.column)}. "
        + (
            _cause(part, X, difference)
            or (
                "The predictions of the exported model will differ from those of this "
                f"estimator, too. {cure}"
            )
        )
    )


def _cause(transformers, X, difference):
    """
    Return a sentence about a text that makes the difference; "" if there is none.

    It has something that no text has, in the same column, of a row without a difference.
    """
    lowers = any(
        name.rpartition("__")[2] == "lowercase" and value is True
        for name, value in transformers.get_params().items()
    )
    differing = set(difference.rows)

    for place, texts in object_columns(X):
        equal = {
            sign for i, text in enumerate(texts) if i not in differing for sign in _signs(text)
        }
        text = texts[difference.row]
        signs = [sign for sign in _signs(text) if sign not in equal]
        if signs and (is_missing(text) or text == ""):
            return _about_missing(X, place, *signs)
        if signs and lowers:
            return _about_letters(text, signs, [texts[row] for row in difference.rows])

    return ""


def _signs(value):
    """Return the letters of a text, or the missing value, that ONNX may take otherwise than Python."""
    if isinstance(value, str):
        capitals = (each for each in value if not each.isascii() and each.lower() != each)
        return list(dict.fromkeys(capitals)) if value else [_EMPTY]
    if not is_missing(value):
        return []
    return ["NaN" if isinstance(value, float) else str(value)]


def _about_missing(X, place, kind):
    cure = ""
    if hasattr(X, "iloc"):
        write = "replace('', numpy.nan)" if kind == _EMPTY else "astype(object).fillna(numpy.nan)"
        cure = f": {place} = {place}.{write}"
    imputer = " SimpleImputer fills None with missing_values=None only." if kind == "None" else ""
    return (
        f"This happens for {kind} in {place}: scikit-learn tells None, NaN and the empty text apart, "
        f"and the file does not.{imputer} Write what is missing in one way{cure}."
    )


def _about_letters(text, capitals, texts):
    """Return a sentence about the capitals of a text, and about those of all texts that differ."""
    # The first becomes two letters; the second depends on the letters beside it.
    known = [letter for letter in "\u0130\u03a3" if any(letter in each for each in texts)]
    named = known or capitals[:3]
    position = text.index(next(letter for letter in (*known, *capitals) if letter in text))
    letters = ", ".join(f"{letter!r} (U+{ord(letter):04X})" for letter in named)
    return (
        f"This happens in the text {text[max(0, position - 20) : position + 20]!r}: ONNX does not "
        f"change {letters} to small letters as Python does. For texts with such letters, the "
        "exported model may give other predictions than this estimator. Pass texts in small letters "
        "(str.lower)."
    )


def _feature(transformers, column):
    """Return the name of a column of the result in brackets; "" if it is not known."""
    try:
        return f" ({str(transformers.get_feature_names_out()[column])!r})"
    except (AttributeError, ValueError):
        return ""


def _convert(
    transformers: Pipeline, X: Any, dtype: DTypeLike, read: Callable[[Any], tuple[RawInput, ...]]
) -> tuple[onnx.ModelProto, Difference]:
    """Return the model with the inputs `read(X)`, and its largest difference from scikit-learn."""
    # Transformers with copy=False change the rows, so they get a copy.
    expected = transformers.transform(safe_indexing(X, np.arange(num_samples(X))))
    # skl2onnx and the runtime raise errors of many kinds for what they cannot convert or run.
    try:
        inputs = read(X)
        with np.errstate(over="ignore"):
            model = _joined_columns(transformers, X, inputs, dtype)
            if len(model.graph.output) > 1:
                raise UnlikeError("its conversion gives something else than its transform.")
            if text_columns(expected):
                # A later step turns the text into numbers, which are compared.
                return model, Difference(0.0, 0)

            _cast_output(model, dtype)
            return model, largest_difference(expected, model, X, inputs, dtype)
    except Exception as error:
        raise _ConversionError(f"{_described(error)}.") from error


def _joined_columns(transformers, X, inputs, dtype):
    """
    Return the converted transformers.

    Columns that they take as one array are concatenated first.
    """
    if len(inputs) == 1 or _takes_columns(transformers) or len({i.is_text for i in inputs}) > 1:
        names = [i.name for i in inputs] if hasattr(X, "columns") else None
        return to_onnx(transformers, inputs, dtype, names)

    width = sum(i.width for i in inputs)
    model = to_onnx(transformers, (RawInput("X", inputs[0].is_text, width),), dtype)
    # The prefix keeps the names of results apart from those of the columns for now.
    model = onnx.compose.add_prefix(model, "skort_")
    joined = model.graph.input[0].name
    element_type = model.graph.input[0].type.tensor_type.elem_type
    del model.graph.input[:]
    columns = [f"column{i}" for i in range(width)]
    model.graph.input.extend(
        helper.make_tensor_value_info(name, element_type, [None, 1]) for name in columns
    )
    model.graph.node.insert(0, helper.make_node("Concat", columns, [joined], axis=1))
    name_inputs(model.graph, [i.name for i in inputs])

    return model


def _takes_columns(transformer):
    """Return whether a transformer selects columns of its input."""
    if isinstance(transformer, FrozenEstimator):
        return _takes_columns(transformer.estimator)
    if isinstance(transformer, Pipeline):
        return _takes_columns(transformer.steps[0][1])
    if isinstance(transformer, FeatureUnion):
        return any(_takes_columns(part) for _, part in transformer.transformer_list)

    return isinstance(transformer, ColumnTransformer)


def _cast_output(model, dtype):
    """
    Cast the output to `dtype`, in place:
    encoders give float32 or integers, whatever they get.
    """
    (output, *_) = model.graph.output
    element_type = onnx_dtype(dtype)

    if output.type.tensor_type.elem_type != element_type:
        model.graph.node.append(
            helper.make_node("Cast", [output.name], ["skort_transformed"], to=element_type)
        )
        output.name, output.type.tensor_type.elem_type = "skort_transformed", element_type


def sample(X: Any) -> Any:
    """
    Return up to 100 rows of X, drawn by chance, and up to 100 rows with new texts.

    These are the rows in which a column of texts has None, NaN or the empty text first, or a
    character beyond ASCII.
    """
    n_samples = num_samples(X)
    # Evenly spaced rows may be alike, as in a table of weeks.
    drawn = sample_without_replacement(n_samples, min(n_samples, _SAMPLE), random_state=0)
    return safe_indexing(X, np.union1d(drawn, _rows_of_new_texts(X)))


def _rows_of_new_texts(X):
    """
    Return the rows in which texts have something first that ONNX may take otherwise than Python.

    A file has one missing text. Tokens and small letters of characters beyond ASCII may differ.
    """
    rows = []
    for _, texts in object_columns(X):
        known = set(map(chr, range(128)))
        for row, text in enumerate(texts):
            is_text = isinstance(text, str) and text
            new = () if is_text and text.isascii() else text if is_text else _signs(text)
            if not known.issuperset(new):
                known.update(new)
                rows.append(row)
                if len(rows) == _SAMPLE:
                    return np.array(rows)

    return np.array(rows, dtype=np.int64)


def largest_difference(
    expected: Any, model: onnx.ModelProto, X: Any, inputs: tuple[RawInput, ...], dtype: DTypeLike
) -> Difference:
    """Return the largest difference between `expected` and the result of an ONNX model on X."""
    is_sparse = scipy.sparse.issparse(expected)
    expected = (
        expected.tocsr().astype(np.float64) if is_sparse else np.asarray(expected, dtype=np.float64)
    )
    scale = _scales(expected)
    inference = InferenceModel(model)
    largest = Difference(0.0, 0)
    differing: list[int] = []
    texts = (
        text for column in text_columns(X) for text in column.flat if isinstance(text, (str, bytes))
    )
    width = max(
        1, max(map(len, texts), default=0), *expected.shape[1:], sum(i.width for i in inputs)
    )
    n_rows = max(1, _BLOCK // width)

    for start in range(0, expected.shape[0], n_rows):
        rows = np.arange(start, min(start + n_rows, expected.shape[0]))
        values = inference.run(
            model.graph.output[0].name, feeds(safe_indexing(X, rows), inputs, dtype)
        )
        part = expected[rows].toarray() if is_sparse else expected[rows]
        if values.shape != part.shape:
            raise UnlikeError("its conversion gives something else than its transform.")

        finite = np.isfinite(part)
        if not np.isfinite(values[finite]).all():
            columns = (finite & ~np.isfinite(values)).any(axis=0)
            raise UnlikeError(
                f"its conversion gives infinities or NaN in column {np.argmax(columns)} of its result."
            )

        sizes = np.abs(np.subtract(values, part, where=finite, out=np.zeros_like(part))) / scale
        differing += (start + np.flatnonzero((sizes > _TOLERANCE).any(axis=1))).tolist()
        row, column = np.unravel_index(sizes.argmax(), sizes.shape) if sizes.size else (0, 0)
        if sizes.size and sizes[row, column] > largest.size:
            largest = Difference(float(sizes[row, column]), int(column), start + int(row))

    return largest._replace(rows=tuple(differing))


def _scales(expected):
    """
    Return the unit of each column: its standard deviation.

    A column that hardly varies has rounding errors only, and gets the largest unit.
    """
    if scipy.sparse.issparse(expected):
        deviation = np.sqrt(mean_variance_axis(expected, axis=0)[1])
        most = np.nanmax(np.abs(expected.data), initial=0.0)
    else:
        deviation = np.nanstd(expected, axis=0)
        most = np.nanmax(np.abs(expected))

    largest = deviation.max()
    return np.where(deviation > 1e-3 * largest, deviation, largest or most or 1)
