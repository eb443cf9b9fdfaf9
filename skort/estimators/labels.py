"""Class labels: which there are, and what they are trained as."""

from types import SimpleNamespace

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets

from skort.estimators.rows import is_plain

__all__ = ["encoded", "streamed_classes"]


def encoded(y, classes, dtype):
    """
    Encode class labels.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
    classes : ndarray of shape (n_classes,) or None
        All labels there are, sorted. None: those of y.
    dtype : str
        "float32" or "float64".

    Returns
    -------
    y : ndarray of shape (n_samples,)
    target : ndarray of shape (n_samples, 1) or (n_samples, n_classes)
        0 and 1: one column for two classes, one column a class for more.
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        For labels that are unknown, of one class only, or not to be exported.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.estimators.labels import encoded
    >>> y, target, classes = encoded(["b", "a", "c"], None, "float32")
    >>> target, classes
    (array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 1.]], dtype=float32), array(['a', 'b', 'c'], dtype='<U1'))
    """
    from skort.graphs.export import label_tensor

    # One dimension of ints, bools or text can be nothing but labels.
    if classes is None or not is_plain(y) or y.ndim > 1 or y.dtype.kind == "f":
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
    classes = np.unique(y) if classes is None else classes
    codes = np.searchsorted(classes, y)
    is_unknown = classes.take(codes, mode="clip") != y
    if is_unknown.any():
        unknown = np.unique(y[is_unknown]).tolist()
        raise ValueError(f"y contains labels that are not among the known classes: {unknown}.")
    if len(classes) < 2:
        raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class.")
    # Labels that cannot be exported are refused now, not after the training.
    label_tensor(classes)
    if len(classes) == 2:
        return y, codes.reshape(-1, 1).astype(dtype), classes
    target = np.zeros((len(codes), len(classes)), dtype)
    target[np.arange(len(codes)), codes] = 1
    return y, target, classes


def streamed_classes(estimator, classes):
    """
    Return all classes of a stream, sorted.

    Parameters
    ----------
    estimator : OrtSGDClassifier
        Before a `partial_fit`.
    classes : array-like of shape (n_classes,) or None
        Those of this call.

    Returns
    -------
    classes : ndarray of shape (n_classes,)

    Raises
    ------
    ValueError
        Where they are missing in the first call, or others than before, and for balanced classes, which need all rows.
    """
    if estimator.class_weight == "balanced":
        raise ValueError(
            'class_weight="balanced" needs all rows at once, which partial_fit does not have. Pass a dict: see '
            "sklearn.utils.class_weight.compute_class_weight."
        )
    seen = SimpleNamespace(classes_=getattr(estimator, "classes_", None))
    _check_partial_fit_first_call(seen, classes)
    return seen.classes_
