"""Conversion of scikit-learn models to ONNX."""

import copy
from collections.abc import Sequence
from typing import Any

import onnx
import skl2onnx
from numpy.typing import DTypeLike
from onnx import TensorProto
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import TargetEncoder

from skort.common.onnx_text import (
    IR_VERSION,
    OPSET,
    import_each_domain_once,
    name_inputs,
    onnx_dtype,
)
from skort.common.sklearn_private import input_indices
from skort.graphs.sklearn.converters import CONVERTERS, SHAPES
from skort.graphs.sklearn.encoders import apart, encoder_converters, encoder_shapes
from skort.graphs.sklearn.neighbors import convert_neighbors, set_neighbors_type
from skort.graphs.sklearn.raw_inputs import RawInput
from skort.graphs.sklearn.text import check_convertible, text_converters, text_shapes

# Operators of skl2onnx that hold their weights as attributes, which cannot be trained.
_DECOMPOSED = {"LinearRegressor", "LinearClassifier", "Scaler"}


def to_onnx(
    estimator: Any,
    inputs: Sequence[RawInput],
    dtype: DTypeLike,
    columns: Sequence[str] | None = None,
) -> onnx.ModelProto:
    """
    Return a fitted scikit-learn estimator as ONNX, with its weights as initializers.

    `columns` are the names in a table of rows, if the inputs are its columns. skl2onnx raises
    errors of many kinds.
    """
    element_type = onnx_dtype(dtype)
    number = DoubleTensorType if element_type == TensorProto.DOUBLE else FloatTensorType
    model = skl2onnx.convert_sklearn(
        _convertible(estimator, columns),
        initial_types=[
            (i.name, (StringTensorType if i.is_text else number)([None, i.width])) for i in inputs
        ],
        target_opset=OPSET,
        black_op=_DECOMPOSED,
        options={"zipmap": False} if _gives_classes(estimator) else None,
        custom_conversion_functions={
            **CONVERTERS,
            KNNImputer: convert_neighbors,
            **encoder_converters(element_type),
            **text_converters(element_type),
        },
        custom_shape_calculators={
            **SHAPES,
            KNNImputer: set_neighbors_type,
            **encoder_shapes(element_type),
            **text_shapes(element_type),
        },
    )
    model.ir_version = IR_VERSION
    import_each_domain_once(model)

    for opset in model.opset_import:
        if opset.domain == "":
            # skl2onnx imports the newest opset that an operator here needs; none of them changed
            # from there to OPSET.
            opset.version = OPSET

    name_inputs(model.graph, [i.name for i in inputs])
    return model


def _gives_classes(estimator):
    """Return whether skl2onnx writes an estimator as a classifier."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    # A selector of features around a classifier is tagged as one.
    return is_classifier(estimator) and not isinstance(last, SelectorMixin)


def _convertible(estimator, names=None):
    """
    Return a copy that skl2onnx can convert: nothing is frozen, and columns are positions.

    `names` are those of the columns that the estimator gets, if they are known.
    """
    if isinstance(estimator, str):
        return estimator
    if isinstance(estimator, FrozenEstimator):
        return _convertible(estimator.estimator, names)

    check_convertible(estimator)
    if type(estimator) is TargetEncoder:
        return apart(estimator)
    estimator = copy.copy(estimator)

    if isinstance(estimator, Pipeline):
        (first, step), *others = estimator.steps
        others = [(name, _convertible(each)) for name, each in others]
        estimator.steps = [(first, _convertible(step, names)), *others]
    elif isinstance(estimator, FeatureUnion):
        estimator.transformer_list = [
            (name, _convertible(part, names)) for name, part in estimator.transformer_list
        ]
    elif isinstance(estimator, ColumnTransformer):
        # skl2onnx takes positions of columns, but no masks, slices of names, or names from
        # an earlier step.
        columns = _positions(estimator, names)
        parts = estimator.transformers_
        # A part that selects no column is not fitted.
        estimator.transformers_ = [
            (name, _convertible(part) if len(columns[name]) else "drop", columns[name])
            for name, part, _ in parts
        ]

    return estimator


def _positions(transformer, names):
    """
    Return the positions of the columns of each part of a `ColumnTransformer`, by its name.

    A frozen one may know the columns of a table in another order: scikit-learn takes them by name.
    """
    known = getattr(transformer, "feature_names_in_", None)
    taken = input_indices(transformer)
    if names is None or known is None:
        return taken

    used = {
        name: [] if part == "drop" else taken[name] for name, part, _ in transformer.transformers_
    }
    place = {name: position for position, name in enumerate(names)}
    return {name: [place[known[j]] for j in indices] for name, indices in used.items()}
