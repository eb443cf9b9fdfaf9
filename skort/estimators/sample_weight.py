"""How much each row counts: sample weights and class weights."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

__all__ = ["validated_sample_weight", "with_class_weight"]


def validated_sample_weight(sample_weight: ArrayLike | None, X: Any) -> np.ndarray | None:
    """Return finite sample weights in float64, none negative and not all zero; None for None."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def with_class_weight(
    sample_weight: np.ndarray | None,
    class_weight: dict[Any, float] | str,
    classes: np.ndarray,
    y: np.ndarray,
) -> np.ndarray:
    """
    Multiply sample weights by the weights of the rows' classes.

    Parameters
    ----------
    sample_weight : ndarray of shape (n_samples,) or None
    class_weight : dict or "balanced"
        "balanced" gives all classes the same sum of sample weights.
    classes : ndarray of shape (n_classes,)
        Sorted.
    y : ndarray of shape (n_samples,)
        Labels that are all in `classes`.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        If a class weight is negative or not finite, or if no row has a positive sample weight.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.estimators.sample_weight import with_class_weight
    >>> with_class_weight(None, {"no": 1, "yes": 3}, np.array(["no", "yes"]), np.array(["yes", "no", "no"]))
    array([3., 1., 1.])
    >>> with_class_weight(None, "balanced", np.array(["no", "yes"]), np.array(["yes", "no", "no"]))
    array([1.5 , 0.75, 0.75])
    """
    codes = np.searchsorted(classes, y)
    sample_weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    if class_weight == "balanced":
        totals = np.bincount(codes, sample_weight, minlength=len(classes))
        # No row of a class whose total is zero counts; 1.0 only avoids a division by zero.
        weights = totals.sum() / (len(classes) * np.where(totals > 0, totals, 1.0))
    else:
        weights = compute_class_weight(class_weight, classes=classes, y=y)
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"class_weight={class_weight} has weights that are negative or not finite.")
    sample_weight = sample_weight * weights[codes]
    if not sample_weight.any():
        raise ValueError(f"class_weight={class_weight} and sample_weight leave no row of positive weight.")
    return sample_weight
