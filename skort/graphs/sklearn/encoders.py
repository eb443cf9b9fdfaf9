"""Converters of scikit-learn's encoders of categories, for skl2onnx."""

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    StringTensorType,
    guess_proto_type,
)
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder

from skort.exceptions import NotExportableError
from skort.graphs.sklearn.converters import Nodes
from skort.graphs.sklearn.raw_inputs import as_texts

# skl2onnx's own converters take parts of numbers for whole ones, fail on mixed columns or give them
# other values, know no missing text, and have no value for new categories in place of an error.


def encoder_converters(element_type: int) -> dict[type, Callable[..., None]]:
    """Return the converters of encoders by type. They give numbers of `element_type`."""

    def convert(scope, operator, container):
        nodes = Nodes(scope, container)
        encoder = operator.raw_operator
        write = _one_hot if isinstance(encoder, OneHotEncoder) else _looked_up

        columns = [
            write(nodes, encoder, i, code, element_type)
            for i, code in enumerate(_codes(nodes, encoder, operator.inputs))
        ]
        nodes.add("Concat", columns, result=operator.outputs[0].full_name, axis=1)

    return dict.fromkeys(_WIDTHS, convert)


def encoder_shapes(element_type: int) -> dict[type, Callable[..., None]]:
    """Return the functions that give the outputs of encoders types and shapes, by type."""
    tensor = DoubleTensorType if element_type == TensorProto.DOUBLE else FloatTensorType

    def give_type(operator):
        encoder = operator.raw_operator
        operator.outputs[0].type = tensor([None, _WIDTHS[type(encoder)](encoder)])

    return dict.fromkeys(_WIDTHS, give_type)


#: Type of an encoder -> the number of columns of its result.
_WIDTHS: dict[type, Callable[[Any], int]] = {
    OneHotEncoder: lambda encoder: sum(encoder._n_features_outs),
    OrdinalEncoder: lambda encoder: len(getattr(encoder, "encodings_", encoder.categories_)),
}


def category_counts(step: Any, n_columns: int) -> tuple[int, ...]:
    """
    Return the number of ids in each of the columns that a fitted step makes, zero for numbers.

    Ids are what an `OrdinalEncoder` makes: as a step, at the end of a Pipeline, or in a
    `ColumnTransformer`.
    """
    counts = np.zeros(n_columns, dtype=int)
    if n_columns == 0:
        # Such a part is not fitted.
        return ()
    if isinstance(step, FrozenEstimator):
        return category_counts(step.estimator, n_columns)
    if isinstance(step, Pipeline):
        return category_counts(_acting(step)[-1][1], n_columns)

    if isinstance(step, OrdinalEncoder):
        # What is missing is no id.
        counts[:] = [len(categories) for categories in step.categories_]
        counts[list(step._missing_indices)] -= 1
    elif isinstance(step, ColumnTransformer):
        for name, part, _ in step.transformers_:
            columns = step.output_indices_[name]
            counts[columns] = category_counts(part, columns.stop - columns.start)

    return tuple(counts.tolist())


def step_behind_ids(step: Any) -> str:
    """
    Return the name of the first step that makes numbers of the ids of an `OrdinalEncoder` before it,
    or "".

    An encoder whose user gives the order of the categories, right before a step, is to make numbers.
    """
    if isinstance(step, FrozenEstimator):
        return step_behind_ids(step.estimator)
    if isinstance(step, ColumnTransformer):
        return next(filter(None, (step_behind_ids(part) for _, part, _ in step.transformers_)), "")
    if not isinstance(step, Pipeline):
        return ""

    parts = _acting(step)
    for i, ((_, part), (name, _)) in enumerate(itertools.pairwise(parts), start=1):
        is_ordered = isinstance(part, OrdinalEncoder) and not isinstance(part.categories, str)
        is_encoded_anew = any(_has(_ANEW, behind) for _, behind in parts[i:])
        if _has(OrdinalEncoder, part) and not (is_ordered or is_encoded_anew):
            return name
    return step_behind_ids(parts[-1][1])


# They make columns of their own of ids.
_ANEW = OneHotEncoder, TargetEncoder


def _has(kinds, step):
    """Return whether the result of a step has columns of encoders of some kinds."""
    if isinstance(step, FrozenEstimator):
        return _has(kinds, step.estimator)
    if isinstance(step, Pipeline):
        return _has(kinds, _acting(step)[-1][1])
    if isinstance(step, ColumnTransformer):
        return any(_has(kinds, part) for _, part, _ in step.transformers_)
    return isinstance(step, kinds)


def _acting(pipeline):
    """Return the steps of a Pipeline that change columns, as (name, step), or its last one."""
    steps = pipeline.steps
    return [(name, step) for name, step in steps if hasattr(step, "transform")] or steps[-1:]


def apart(encoder: Any) -> Any:
    """Return a fitted `TargetEncoder` as an encoder whose columns skl2onnx leaves apart."""
    # It joins the columns of a TargetEncoder first, and makes text of the numbers among them.
    stand_in = OrdinalEncoder()
    vars(stand_in).update(vars(encoder))
    return stand_in


def _codes(nodes: Nodes, encoder: Any, inputs: list[Any]) -> Iterator[str]:
    """
    Yield the name of the codes of each column, of shape (n_samples,).

    The code of a category is its position; that of any other value is the number of categories.
    """
    columns = [(value, j) for value in inputs for j in range(value.type.shape[1])]

    for categories, (value, j) in zip(encoder.categories_, columns, strict=True):
        if categories.dtype.kind in "mM":
            raise NotExportableError(
                "its categories are dates or times, and a file takes texts, which it compares "
                "letter by letter. Make texts or numbers of them before, as X.astype(str) does"
            )
        column = value.full_name
        if value.type.shape[1] > 1:
            column = nodes.add("Gather", [column, nodes.constant([j])], "column", axis=1)
        if isinstance(value.type, StringTensorType):
            code = nodes.codes(column, _positions(categories), len(categories), "code")
        else:
            code = _number_codes(nodes, column, categories, guess_proto_type(value.type))

        yield nodes.add("Reshape", [code, nodes.constant([-1])], "code", version=14)


def _positions(categories):
    """Return the positions of categories of text. What is missing is "", as in an input."""
    texts = as_texts(np.asarray(categories, dtype=object)).tolist()
    positions = {text: position for position, text in enumerate(texts)}
    if len(positions) < len(texts):
        raise NotExportableError(
            f"the categories {list(categories)!r} have several values that are {''!r} in an ONNX "
            "model, which has no missing text. Replace what is missing by one text"
        )

    return positions


def _number_codes(nodes, column, categories, element_type):
    """Write the codes of numbers; return their name."""
    if element_type != TensorProto.FLOAT:
        element_type = TensorProto.DOUBLE
        column = nodes.add("Cast", [column], "column", to=element_type)

    exact = np.array([np.nan if c is None else c for c in categories], dtype=np.float64)
    with np.errstate(over="ignore"):
        known = exact.astype(helper.tensor_dtype_to_np_dtype(element_type))
    if np.isnan(exact).sum() > 1:
        raise NotExportableError(
            "its categories have None and NaN, which are one value in an ONNX model. Write None as "
            "NaN before, as X.astype(object).fillna(numpy.nan) does"
        )
    if len(np.unique(known)) < len(known):
        raise NotExportableError(
            f"some of its {len(known)} categories are one number in {known.dtype}. Use "
            'dtype="float64", or make text of them'
        )

    is_nan = np.isnan(known)
    matches = nodes.add("Equal", [column, nodes.constant(known, element_type)], "matches")
    if is_nan.any():
        flags = nodes.constant(is_nan, TensorProto.BOOL, "missing")
        missing = nodes.add("And", [nodes.add("IsNaN", [column]), flags], version=7)
        matches = nodes.add("Or", [matches, missing], version=7)

    # The first match counts. One more column matches everything.
    matches = nodes.add("Cast", [matches], to=TensorProto.FLOAT)
    pads = nodes.constant([0, 0, 0, 1], name="pads")
    one = nodes.constant(1.0, TensorProto.FLOAT, "one")
    return nodes.add("ArgMax", [nodes.add("Pad", [matches, pads, one])], "code", axis=1)


def _one_hot(nodes, encoder, i, code, element_type):
    """Write the columns of a feature of a `OneHotEncoder`; return their name."""
    n_categories = len(encoder.categories_[i])
    positions = np.arange(n_categories)
    mapping = encoder._default_to_infrequent_mappings[i] if encoder._infrequent_enabled else None
    if mapping is not None:
        positions = mapping

    # Without an own column, a new category has zeros, or is an error of the operator.
    n_columns = int(positions.max()) + 1
    is_infrequent = mapping is not None and _takes_new(encoder.handle_unknown)
    new = n_columns - 1 if is_infrequent else n_columns
    table = nodes.constant([*positions.tolist(), new], name="positions")
    position = nodes.add("Gather", [table, code], "position")
    one_hot = nodes.add(
        "OneHotEncoder",
        [position],
        domain="ai.onnx.ml",
        version=1,
        cats_int64s=list(range(n_columns)),
        zeros=int(encoder.handle_unknown != "error"),
    )

    dropped = encoder._drop_idx_after_grouping
    if dropped is not None and dropped[i] is not None:
        kept = np.delete(np.arange(n_columns), dropped[i]).tolist()
        one_hot = nodes.add("Gather", [one_hot, nodes.constant(kept, name="kept")], axis=1)
    return nodes.add("Cast", [one_hot], to=element_type)


@functools.cache
def _takes_new(handle_unknown):
    """Return whether a new category counts as an infrequent one."""
    # "warn" takes it for one only in later versions of scikit-learn than 1.6.
    if handle_unknown not in ("infrequent_if_exist", "warn"):
        return False

    encoder = OneHotEncoder(handle_unknown=handle_unknown, max_categories=1, sparse_output=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bool(encoder.fit([["a"], ["b"]]).transform([["new"]]).any())


def _looked_up(nodes, encoder, i, code, element_type):
    """Write the values of a feature, one row for each code; return their name."""
    table = (_encodings if hasattr(encoder, "encodings_") else _ordinals)(encoder, i)
    return nodes.add("Gather", [nodes.constant(table, element_type, "values"), code], "encoded")


def _ordinals(encoder, i):
    """Return the numbers of the categories of a feature, of shape (n_codes, 1)."""
    numbers = np.arange(len(encoder.categories_[i]), dtype=np.float64)
    mapping = encoder._default_to_infrequent_mappings[i] if encoder._infrequent_enabled else None
    if mapping is not None:
        # What is missing comes last, and is no infrequent category.
        numbers[: len(mapping)] = mapping
    if i in encoder._missing_indices:
        numbers[encoder._missing_indices[i]] = encoder.encoded_missing_value
    if encoder.handle_unknown == "use_encoded_value":
        # Else, a new category has no row, and Gather raises an error, as scikit-learn does.
        numbers = np.append(numbers, encoder.unknown_value)

    return numbers[:, None]


def _encodings(encoder, i):
    """Return the values of the categories of a feature, of shape (n_codes, n_classes or 1)."""
    means = np.ravel(encoder.target_mean_)
    encodings = encoder.encodings_[i * len(means) : (i + 1) * len(means)]
    return np.vstack([np.column_stack(encodings), means])
