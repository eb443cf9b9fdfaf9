"""Sample weights and class weights: how much each row counts."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skort.common.blas import aligned
from skort.common.sklearn_private import check_sample_weight
from skort.estimators.data.row_forms import has_masked
from skort.estimators.data.targets import EncodedTarget


def validated_sample_weight(
    sample_weight: ArrayLike | None, X: Any, *, is_stream: bool = False
) -> np.ndarray | None:
    """
    Return finite sample weights in float64, or None for None.

    No weight is negative. Only in a stream may all weights be zero.
    """
    if sample_weight is None:
        return None
    check_numbers(sample_weight)
    if is_stream and np.asarray(sample_weight).dtype.kind in "biuf" and not np.any(sample_weight):
        # In a call of a stream, all weights may be zero. scikit-learn would refuse that.
        return np.zeros_like(check_sample_weight(np.add(sample_weight, 1.0), X, dtype=np.float64))

    weights = aligned(
        check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    )
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if not _has_sum(weights):
        raise ValueError(
            "The sum of sample_weight is too large for float64. Divide all by the largest."
        )

    return weights


def check_numbers(sample_weight: Any) -> None:
    """Raise an error for sample weights that are not numbers."""
    if has_masked(sample_weight):
        raise ValueError(
            "sample_weight has masked values. With sample_weight.filled(0), these rows do not count."
        )
    try:
        np.asarray(sample_weight, dtype=np.float64)
        if getattr(getattr(sample_weight, "dtype", None), "kind", "") in ("m", "M"):
            raise TypeError
    except (TypeError, ValueError):
        advice = ""
        if isinstance(sample_weight, dict | str):
            advice = " Weights of classes go into OrtSGDClassifier(class_weight=...)."
        if isinstance(sample_weight, tuple):
            advice = " fit takes a validation set by its names, X_val and y_val."
        raise ValueError(
            f"sample_weight must have a number for each row, got {_kind_of(sample_weight)}.{advice}"
        ) from None


def check_not_negative(weights: np.ndarray) -> None:
    """Raise scikit-learn's error for weights below zero."""
    if (weights < 0).any():
        raise ValueError("Negative values in data passed to `sample_weight`.")


def _kind_of(value):
    """Return what a message calls a value that is not numbers."""
    if isinstance(value, str):
        return repr(value)
    return f"values of dtype {value.dtype}" if hasattr(value, "dtype") else type(value).__name__


def is_counted(sample_weight: np.ndarray | None) -> bool:
    """Return whether any row counts."""
    return sample_weight is None or bool(sample_weight.any())


def _has_sum(weights):
    """Return whether the sum of weights is finite."""
    with np.errstate(over="ignore"):
        return np.isfinite(weights.sum())


class ClassWeight(NamedTuple):
    """The class weights of an estimator."""

    #: The parameter `class_weight`.
    given: dict[Any, float] | str
    #: Whether the loss has the weights of three classes and more that are trained one against the
    #: rest: in the binary problem of a class, only the rows of that class get its weight.
    of_positives: bool
    #: Whether "balanced" counts rows. False: it sums sample weights.
    balances_rows: bool

    def by_class(
        self, classes: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the weight of each class."""
        if isinstance(self.given, str):
            counted = None if self.balances_rows else sample_weight
            return balanced(
                np.bincount(np.searchsorted(classes, y), counted, minlength=len(classes))
            )
        if not all(isinstance(weight, Real) for weight in self.given.values()):
            raise ValueError(f"class_weight={self.given} has weights that are not numbers.")

        weights = _given_weights(self.given, classes)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(
                f"class_weight={self.given} has weights that are negative or not finite."
            )

        return weights

    def of_rows(
        self, classes: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None
    ) -> "ClassWeight":
        """Return the class weights, with "balanced" as the numbers for some rows."""
        by_class = self.by_class(classes, y, sample_weight)
        return self._replace(given=dict(zip(classes.tolist(), by_class.tolist(), strict=True)))


def _given_weights(class_weight, classes):
    """Return the weight of each class; 1 for a class that a dict of other classes leaves out."""
    # compute_class_weight of scikit-learn makes a number of each label that looks like one, and
    # then misses the text "1" among the keys, and takes "01" for "1".
    keys = {label: _key_of(label, class_weight) for label in classes.tolist()}
    missing = [label for label, key in keys.items() if key is None]
    if missing and len(classes) - len(missing) != len(class_weight):
        raise ValueError(
            f"The classes, {missing}, are not in class_weight, whose keys are {list(class_weight)}."
        )

    return np.array([1.0 if key is None else class_weight[key] for key in keys.values()])


def _key_of(label, class_weight):
    """Return the key of a label: the label, or else the number that is written like it, or None."""
    if label in class_weight:
        return label
    return next((key for key in class_weight if isinstance(label, str) and str(key) == label), None)


def balanced(totals: np.ndarray) -> np.ndarray:
    """Return weights that give all classes the same total weight."""
    # A class with a total of zero has no row that counts. The 1.0 only avoids a division by zero.
    return totals.sum() / (len(totals) * np.where(totals > 0, totals, 1.0))


def weighted(
    sample_weight: ArrayLike | None,
    X: Any,
    encoded: EncodedTarget,
    class_weight: ClassWeight | None,
    *,
    is_stream: bool = False,
) -> tuple[np.ndarray | None, EncodedTarget]:
    """
    Return the weights of the rows, or None if all count the same, and the encoded target.

    If class weights belong to the loss, the target has them, and the rows do not.
    """
    of_rows = validated_sample_weight(sample_weight, X, is_stream=is_stream)
    if class_weight is None:
        return of_rows, encoded

    classes = encoded.classes
    y = encoded.y
    if encoded.multi_label or classes is None:
        raise ValueError(
            "class_weight is for one label per row, and y has several. Use sample_weight."
        )

    by_class = class_weight.by_class(classes, y, of_rows)
    if class_weight.of_positives and len(classes) > 2:
        return of_rows, encoded._replace(class_weight=by_class)

    weights = by_class[np.searchsorted(classes, y)]
    with np.errstate(over="ignore"):
        weights = weights if of_rows is None else of_rows * weights
    if not _has_sum(weights):
        raise ValueError(
            f"class_weight={class_weight.given} times sample_weight is too large for float64. Make "
            "one of them smaller."
        )
    if not (weights.any() or is_stream):
        raise ValueError(
            f"class_weight={class_weight.given} and sample_weight leave no row of positive weight."
        )

    return weights, encoded
