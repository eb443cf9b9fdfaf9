"""The checks of scikit-learn that the estimators may fail, and the reasons."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from skort.estimators.base import BaseOrtSGD
from skort.estimators.planning.loss_and_penalty import loss_before_fit
from skort.estimators.planning.optimizer import asks_for_steps

__all__ = ["expected_failed_checks"]

_SAMPLE_WEIGHT = tuple(
    f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")
)
# The largest number of rows in the checks: they repeat each of 15 rows up to 4 times.
_ROWS = 60

_OF_PIPELINES = "a Pipeline gives no sample_weight to its transformers, in scikit-learn as here"
_OF_FITTED_STEPS = (
    "partial_fit of a Pipeline exists once fit has fitted its transformers, and the check then calls "
    "it of an unfitted clone"
)
_IN_FLOAT32 = (
    "predictions are compared at a relative 1e-7, and float32 rounds at 6e-8: the products of a "
    "weighted row and of a repeated one are rounded differently, and the fits end 1e-7 to 4e-3 "
    "apart. They pass with dtype='float64' and optimizer='sgd'"
)
_OF_LBFGS = (
    "predictions are compared at a relative 1e-7: L-BFGS ends where the gradient is smaller than "
    "tol, and where classes are apart, probabilities of such weights differ by a relative 1e-6"
)
_OF_BATCHES = (
    "repeated rows fill other mini-batches than weighted rows: they pass where a batch has all rows"
)
_OF_ADAM = (
    "Adam divides a gradient by its size: near the optimum, roundings decide the "
    "direction of a step"
)
_OF_DECAY = (
    "a network with more weights a row has more decay and a smaller rate, and so do weighted rows, "
    "which are fewer than the repeated ones"
)
_OF_QUARTILES = (
    "the training of this loss starts from quartiles of y, which lie elsewhere between "
    "two repeated rows"
)


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """
    Return the checks of scikit-learn that an estimator may fail, with the reasons.

    They compare a fit on weighted rows with one on repeated rows, or call `partial_fit` of a
    Pipeline whose transformers are not fitted. Some pass by chance, so pytest's `xfail_strict` has
    to be off.

    Parameters
    ----------
    estimator : estimator
        An `OrtSGDRegressor` or `OrtSGDClassifier` with `early_stopping=False`, since most checks
        have too few rows to hold some out. The result for any other estimator is empty.

    Returns
    -------
    reasons : dict of str to str
        The reasons by the names of the checks. The dict is empty if all checks should pass.

    Examples
    --------
    >>> from sklearn.utils.estimator_checks import parametrize_with_checks
    >>> from skort import OrtSGDClassifier, expected_failed_checks
    >>> @parametrize_with_checks(
    ...     [OrtSGDClassifier()], expected_failed_checks=expected_failed_checks
    ... )
    ... def test_classifier(estimator, check):
    ...     check(estimator)
    >>> sorted(expected_failed_checks(OrtSGDClassifier()))
    ['check_sample_weight_equivalence_on_dense_data', 'check_sample_weight_equivalence_on_sparse_data']
    >>> expected_failed_checks(OrtSGDClassifier(dtype="float64", optimizer="sgd"))
    {}
    """
    if not isinstance(estimator, BaseOrtSGD):
        return {}
    if isinstance(estimator.estimator, Pipeline):
        reasons = dict.fromkeys(_SAMPLE_WEIGHT, _OF_PIPELINES)
        return reasons | {"check_n_features_in_after_fitting": _OF_FITTED_STEPS}

    reason = _reason(estimator)
    return {} if reason is None else dict.fromkeys(_SAMPLE_WEIGHT, reason)


def _reason(estimator):
    """Return why a fit on weighted rows differs by over 1e-7 from one on repeated rows, or None."""
    from skort.graphs.initialization import FAMILY

    if estimator.batch_size != "auto" and estimator.batch_size < _ROWS:
        return _OF_BATCHES

    loss = loss_before_fit(estimator)
    if loss is not None and loss.is_robust:
        return _OF_QUARTILES
    if estimator.dtype == "float32":
        return _IN_FLOAT32

    is_open = "auto" in (estimator.optimizer, estimator.eta0)
    if FAMILY.get(type(estimator.estimator)) == "neural network" and is_open:
        return _OF_DECAY
    if is_classifier(estimator) and estimator.optimizer in ("auto", "lbfgs"):
        return _OF_LBFGS if asks_for_steps(vars(estimator)) is None else None
    return _OF_ADAM if estimator.optimizer == "adam" else None
