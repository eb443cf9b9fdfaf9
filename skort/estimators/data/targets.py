"""Encoding of y as the target of a training: labels, numbers, or named outputs of an ONNX model."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import (
    check_classification_targets,
    type_of_target,
)

from skort.common.sklearn_private import check_partial_fit_first_call
from skort.estimators.data.columns import OF_NUMBER, is_missing, is_number
from skort.estimators.data.dates import DAYS
from skort.estimators.data.nesting import model_inside
from skort.estimators.data.not_numbers import SEVERAL_LABELS, with_lists_of_labels
from skort.estimators.data.row_forms import (
    check_in_memory,
    check_no_iterator,
    has_masked,
    is_in_range,
)
from skort.estimators.data.rows import is_plain

# The number of labels that a message shows.
_SHOWN = 10


@dataclass(frozen=True)
class NamedOutputs:
    """
    The outputs of an ONNX model that a regressor trains,
    in the order of its parameter `loss`.
    """

    #: The number of columns of each output.
    widths: dict[str, int]
    #: The names of the outputs whose targets had one dimension.
    vectors: frozenset[str] = frozenset()
    #: Whether y was a dict. Then predictions are a dict, too.
    by_name: bool = False

    @classmethod
    def of(cls, model: Any, names: tuple[str, ...], y: Any) -> "NamedOutputs":
        """Return the outputs of a model that y has targets for."""
        from skort.graphs.onnx_models.onnx_score_graph import output_widths

        declared = output_widths(model, names)
        if isinstance(y, Mapping):
            _check_names(names, y)
            dims = {name: np.ndim(y[name]) for name in names}
            widths = {name: 1 if dims[name] < 2 else np.shape(y[name])[1] for name in names}

            for name, width in declared.items():
                if width not in (None, widths[name]):
                    raise ValueError(
                        f"y[{name!r}] has {widths[name]} columns, but that output of the ONNX "
                        f"model has {width}."
                    )

            return cls(widths, frozenset(name for name in names if dims[name] < 2), by_name=True)

        # An output has one column if the model does not say how many it has.
        widths = {name: width or 1 for name, width in declared.items()}
        n_columns = 1 if np.ndim(y) < 2 else np.shape(y)[1]
        if n_columns != sum(widths.values()):
            listed = ", ".join(f"{name} ({width})" for name, width in widths.items())
            raise ValueError(
                f"y has {n_columns} columns, but the outputs have {sum(widths.values())}: {listed}."
            )

        return cls(widths)

    def split(self, columns: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns of each output, by name, in the shapes of the y of `fit`."""
        ends = np.cumsum(list(self.widths.values()))[:-1]
        parts = dict(zip(self.widths, np.split(columns, ends, axis=1), strict=True))
        return {
            name: part.ravel() if name in self.vectors else part for name, part in parts.items()
        }


def columns_of(loss: Any, y: Any) -> Any:
    """Return a y with names as columns, in the order of the loss. Return any other y as it is."""
    if not isinstance(y, Mapping):
        if isinstance(loss, dict) and hasattr(y, "columns") and {*y.columns} == {*loss}:
            return y[[*loss]]
        return y
    if not isinstance(loss, dict):
        raise ValueError(
            f"y is a dict of the outputs {', '.join(map(str, y))}: give loss as a dict "
            "by the same names."
        )

    _check_names(tuple(loss), y)
    check_consistent_length(*y.values())
    return np.column_stack([np.asarray(y[name]) for name in loss])


def _check_names(names, y):
    if {*y} != {*names}:
        raise ValueError(
            f"y has the outputs {', '.join(map(str, y)) or 'none'}, but loss has "
            f"{', '.join(names)}."
        )


class EncodedTarget(NamedTuple):
    """The validated y, and the target of the training that it is encoded as."""

    #: ndarray of shape (n_samples,) or (n_samples, n_outputs). Validated.
    y: np.ndarray
    #: ndarray of shape (n_samples, n_columns). One column for each raw score; numbers
    #: are not cast yet.
    target: np.ndarray
    #: ndarray of shape (n_classes,) or None. The labels of a classifier, sorted. None
    #: for a regressor.
    classes: np.ndarray | None
    #: Whether y has one dimension.
    single_output: bool = True
    #: ndarray of shape (n_classes,) or None. Class weights that belong to the loss.
    class_weight: np.ndarray | None = None
    #: The outputs of an ONNX model, in the order of their columns. None: the model has one output.
    outputs: NamedOutputs | None = None

    @property
    def multi_label(self) -> bool:
        """Whether each row may have several labels."""
        return self.classes is not None and not self.single_output

    @property
    def is_one_hot(self) -> bool:
        """Whether each row may have several labels, but has exactly one."""
        return self.multi_label and bool(np.all(self.target.sum(axis=1) == 1))


@dataclass(frozen=True, eq=False)
class LabelEncoder:
    """
    Encodes the labels of a classifier as 0 and 1.

    Two classes have one column. More classes have one column each.
    """

    dtype: str

    def columns(self, y: Any, name: str = "y") -> Any:
        """Return y as it is; raise an error if a value is not a label."""
        check_target(y, is_labels=True, name=name)
        return y

    def encode(self, y: Any, classes: np.ndarray | None) -> EncodedTarget:
        """Return labels as 0 and 1 in the dtype of the training; `classes` are the known ones."""
        if np.ndim(y) == 2 and type_of_target(y) == "multilabel-indicator":
            return _encoded_labels(y, classes, self.dtype)

        # A vector of integers, booleans or text needs no check: it can only be labels.
        is_checked = is_plain(y) and y.ndim == 1 and y.dtype.kind != "f"
        if not is_checked:
            try:
                y = column_or_1d(y, warn=True)
            except ValueError as error:
                raise with_lists_of_labels(error, y) from None
            check_classification_targets(y)

        if classes is None:
            classes = np.unique(y)
            # scikit-learn warns of a label for every other row.
            if is_checked and 2 * len(classes) >= len(y):
                check_classification_targets(y)

        codes = np.searchsorted(classes, y)
        is_unknown = classes.take(codes, mode="clip") != y
        if is_unknown.any():
            raise unknown_error(np.unique(y[is_unknown]), classes)
        if len(classes) < 2:
            raise one_class_error(classes)
        if len(classes) == 2:
            return EncodedTarget(y, codes.reshape(-1, 1).astype(self.dtype), classes)

        target = np.zeros((len(codes), len(classes)), self.dtype)
        target[np.arange(len(codes)), codes] = 1
        return EncodedTarget(y, target, classes)


@dataclass(frozen=True, eq=False)
class NumberEncoder:
    """Encodes the targets of a regressor as columns of numbers."""

    dtype: str
    #: The name of the regressor's class, for error messages.
    name: str
    #: The parameter `loss`. It may be a dict with the names of the outputs of an ONNX model.
    loss: Any
    outputs: NamedOutputs | None

    def columns(self, y: Any, name: str = "y") -> Any:
        """
        Return a y with names as columns, in the order of the loss. Return any other y as it is.

        Raise an error if a value is not a number.
        """
        by_name = (
            {f"{name}[{key!r}]": part for key, part in y.items()}
            if isinstance(y, Mapping)
            else {name: y}
        )
        for each, part in by_name.items():
            check_target(part, is_labels=False, name=each)
        return columns_of(self.loss, y)

    def encode(self, y: Any, classes: np.ndarray | None) -> EncodedTarget:
        """Return y as numbers in float64, and as the target: columns of numbers."""
        # float64 lacks digits of large integers. So they stay integers, and the training subtracts
        # their mean before it casts them.
        is_whole = getattr(y, "dtype", None) in (np.int64, np.uint64)
        given = y

        if is_plain(y) and y.dtype.kind != "U":
            y = y.astype(np.float64, copy=False)
        else:
            y = check_array(
                y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self.name
            )

        if not is_in_range(y, self.dtype):
            wide = ' Use dtype="float64", or divide y by a constant.' * (self.dtype != "float64")
            raise ValueError(f"y contains values too large for dtype={self.dtype!r}.{wide}")

        target = (np.asarray(given) if is_whole else y).reshape(len(y), -1)
        return EncodedTarget(y, target, None, single_output=y.ndim == 1, outputs=self.outputs)


def target_encoder(estimator: Any, y: Any) -> LabelEncoder | NumberEncoder:
    """Return the encoder of y for an estimator."""
    if isinstance(estimator, ClassifierMixin):
        return LabelEncoder(estimator.dtype)

    loss = estimator.loss
    outputs = (
        NamedOutputs.of(model_inside(estimator.estimator), tuple(loss), y)
        if isinstance(loss, dict)
        else None
    )
    return NumberEncoder(estimator.dtype, type(estimator).__name__, loss, outputs)


def _encoded_labels(y, classes, dtype):
    """Return a multi-label y as a target."""
    if not np.isin(y, [0, 1]).all():
        raise ValueError("A multi-label y must have 1 if a row has the label, and 0 otherwise.")

    labels = np.arange(y.shape[1])
    if classes is not None and not np.array_equal(classes, labels):
        raise ValueError(
            f"y has {len(labels)} columns of labels: classes must be {labels.tolist()}."
        )

    return EncodedTarget(y, y.astype(dtype), labels, single_output=False)


def class_labels(classes: ArrayLike) -> np.ndarray:
    """Return the labels that the user gave, sorted and without duplicates."""
    classes = np.asarray(classes)
    if classes.ndim != 1:
        raise ValueError(
            "classes must be an array-like of shape (n_classes,), got one of shape "
            f"{classes.shape}."
        )

    return np.unique(classes)


def unknown_error(unknown: np.ndarray, classes: np.ndarray) -> ValueError:
    """Return the error for labels of y that are not among the known classes: it shows both."""
    return ValueError(
        f"y has the labels {_shown(unknown)}, and the known classes are {_shown(classes)}. Give y "
        "these labels. A new class needs a new fit."
    )


def one_class_error(classes: np.ndarray) -> ValueError:
    """Return the error for labels that are all the same."""
    return ValueError(
        f"The number of classes has to be greater than one; got 1 class, {_shown(classes)}. Give rows "
        "of another class, too."
    )


def _shown(labels):
    """Return the first labels as a list, and how many more there are."""
    more = f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
    return f"{labels[:_SHOWN].tolist()}{more}"


def streamed_classes(estimator: Any, classes: ArrayLike | None) -> np.ndarray:
    """Return all classes of a stream, sorted."""
    seen = SimpleNamespace(classes_=getattr(estimator, "classes_", None))
    if classes is not None:
        class_labels(classes)
    check_partial_fit_first_call(seen, classes)
    return seen.classes_


def check_target(y: Any, *, is_labels: bool, name: str = "y") -> None:
    """Raise an error for a value of y that is not a label, or not a number if y has no labels."""
    if not is_labels and getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M"):
        raise ValueError(f"{name} has dates or times, but a regressor takes numbers. {DAYS}")
    if has_masked(y):
        X = "X_val" if name == "y_val" else "X"
        whole_rows = ".any(axis=1)" * (np.ndim(y) > 1)
        raise ValueError(
            f"{name} has masked values, and each row needs a {'label' if is_labels else 'number'}. "
            f"Leave out rows without one: known = ~numpy.ma.getmaskarray({name}){whole_rows}, then "
            f"{X}[known] and {name}[known]."
        )
    objects = _objects(y, name)
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
    wrong = next((i for i, value in enumerate(values) if not is_number(value)), None)
    if wrong is None:
        return None
    if is_missing(values[wrong]):
        return wrong, "each row needs a number. Leave out rows without one."

    advice = ""
    if isinstance(values[wrong], str):
        has_other_form = OF_NUMBER.fullmatch(values[wrong].strip())
        advice = " Make y float before." if has_other_form else " OrtSGDClassifier takes labels."
    return wrong, f"a regressor takes numbers.{advice}"


def _wrong_label(values):
    """Return the position of the first value that is not a label, and advice; or None."""
    missing = next((i for i, value in enumerate(values) if is_missing(value)), None)
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

    if isinstance(values[other], (list, tuple, set, frozenset)):
        return other, SEVERAL_LABELS

    others = (
        "other labels are text"
        if any(isinstance(value, str) for value in values)
        else "y is an array of objects"
    )
    advice = "Make all labels text, np.array(y, dtype=str), or all int."
    return other, f"Unknown label type {type(values[other]).__name__}, and {others}. {advice}"


def _objects(y, name):
    """
    Return y as an array of objects, or None if its dtype makes every value a valid target. Raise an
    error for rows that are not in memory.
    """
    if y is None or scipy.sparse.issparse(y):
        return None

    try:
        array = np.asarray(y)
        if array.dtype.kind == "U":
            # numpy turns a list of numbers and text into text.
            array = np.asarray(y, dtype=object)
    except (TypeError, ValueError, RuntimeError):  # scikit-learn says what is wrong
        return None

    if array.dtype != object:
        return None
    if array.ndim == 0:
        check_in_memory(y, name)
        check_no_iterator(y, name)
    return array if array.ndim in (1, 2) and array.size else None
