"""How much each row counts: sample weights and class weights."""

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from skort.estimators.data.targets import EncodedTarget

__all__ = ["ClassWeight", "balanced", "validated_sample_weight", "weighted", "with_class_weight"]


def validated_sample_weight(sample_weight: ArrayLike | None, X: Any) -> np.ndarray | None:
    """Return finite sample weights in float64, none negative and not all zero; None for None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if not _has_sum(weights):
        raise ValueError("The sum of sample_weight is too large for float64. Divide all by the largest.")
    return weights


def _has_sum(weights):
    """Return whether the sum of weights is finite."""
    with np.errstate(over="ignore"):
        return np.isfinite(weights.sum())


class ClassWeight(NamedTuple):
    """
    How much classes count.

    Parameters
    ----------
    given : dict or "balanced"
        The parameter `class_weight`.
    of_positives : bool
        Whether three classes and more, each trained against the rest, have their weights in their own binary problems
        only.
    balances_rows : bool
        Whether "balanced" counts rows; False: it sums sample weights.
    """

    given: dict[Any, float] | str
    of_positives: bool
    balances_rows: bool

    def by_class(self, classes: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        """
        Return the weight of each class.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Sorted.
        y : ndarray of shape (n_samples,)
            Labels that are all in `classes`.
        sample_weight : ndarray of shape (n_samples,) or None

        Returns
        -------
        weights : ndarray of shape (n_classes,)

        Raises
        ------
        ValueError
            If a class weight is negative or not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from skort.estimators.data.sample_weight import ClassWeight
        >>> classes, y = np.array(["no", "yes"]), np.array(["yes", "no", "no"])
        >>> ClassWeight("balanced", of_positives=False, balances_rows=False).by_class(classes, y, None)
        array([0.75, 1.5 ])
        """
        if isinstance(self.given, str):
            counted = None if self.balances_rows else sample_weight
            return balanced(np.bincount(np.searchsorted(classes, y), counted, minlength=len(classes)))
        if not all(isinstance(weight, Real) for weight in self.given.values()):
            raise ValueError(f"class_weight={self.given} has weights that are not numbers.")
        weights = compute_class_weight(self.given, classes=classes, y=y)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"class_weight={self.given} has weights that are negative or not finite.")
        return weights


def balanced(totals: np.ndarray) -> np.ndarray:
    """
    Return weights that give all classes the same total weight.

    Parameters
    ----------
    totals : ndarray of shape (n_classes,)
        The number of rows of each class, or the sum of their sample weights.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.estimators.data.sample_weight import balanced
    >>> balanced(np.array([2, 1]))
    array([0.75, 1.5 ])
    """
    # No row of a class whose total is zero counts; 1.0 only avoids a division by zero.
    return totals.sum() / (len(totals) * np.where(totals > 0, totals, 1.0))


def weighted(
    sample_weight: ArrayLike | None, X: Any, encoded: EncodedTarget, class_weight: ClassWeight | None
) -> tuple[np.ndarray | None, EncodedTarget]:
    """Return what each row counts, None where all count the same, and the target with its class weights."""
    weights = validated_sample_weight(sample_weight, X)
    return (weights, encoded) if class_weight is None else with_class_weight(weights, class_weight, encoded)


def with_class_weight(
    sample_weight: np.ndarray | None, class_weight: ClassWeight, encoded: EncodedTarget
) -> tuple[np.ndarray | None, EncodedTarget]:
    """
    Multiply sample weights by the weights of the rows' classes, or keep these with the target.

    Parameters
    ----------
    sample_weight : ndarray of shape (n_samples,) or None
    class_weight : ClassWeight
    encoded : EncodedTarget

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,) or None
    encoded : EncodedTarget
        With `class_weight` where the weights are of positives only.

    Raises
    ------
    ValueError
        As `ClassWeight.by_class` does, for several labels a row, and if no row has a positive sample weight.

    Examples
    --------
    >>> from skort.estimators.data.targets import encoded
    >>> from skort.estimators.data.sample_weight import ClassWeight, with_class_weight
    >>> weights = ClassWeight({"no": 1, "yes": 3}, of_positives=False, balances_rows=False)
    >>> with_class_weight(None, weights, encoded(["yes", "no", "no"], None, "float32"))[0]
    array([3., 1., 1.])
    """
    classes, y = encoded.classes, encoded.y
    if encoded.multi_label or classes is None:
        raise ValueError("class_weight is for one label a row, and y has several. Use sample_weight.")
    by_class = class_weight.by_class(classes, y, sample_weight)
    if class_weight.of_positives and len(classes) > 2:
        return sample_weight, encoded._replace(class_weight=by_class)
    weights = by_class[np.searchsorted(classes, y)]
    with np.errstate(over="ignore"):
        weights = weights if sample_weight is None else sample_weight * weights
    if not _has_sum(weights):
        raise ValueError(
            f"class_weight={class_weight.given} times sample_weight is too large for float64. Make one of them smaller."
        )
    if not weights.any():
        raise ValueError(f"class_weight={class_weight.given} and sample_weight leave no row of positive weight.")
    return weights, encoded
