"""
The classes of scikit-learn that skort's classes have as bases, as types.

Only type checkers read this module. scikit-learn has no types: to mypy its classes are `Any`, and
a class with such a base has every attribute. Nothing runs here: a body that is not reached raises a
NotImplementedError, as mypy refuses an empty one.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

Own = TypeVar("Own")


class Estimator(Protocol):
    """An estimator of scikit-learn, or another one with its methods."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Train on rows."""

    def get_params(self, deep: bool = True) -> Any:
        """Return the parameters by name."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters, and return the estimator itself."""


class SparseRows(Protocol):
    """A sparse matrix or array of scipy."""

    @property
    def tocsr(self) -> Callable[..., Any]:
        """Return the same in rows."""


class Parametrized:
    """`sklearn.base.BaseEstimator`: what losses, optimizers and estimators have."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        raise NotImplementedError

    def set_params(self: Own, **params: Any) -> Own:
        """Set parameters, and return the object itself."""
        raise NotImplementedError

    @classmethod
    def _get_param_names(cls) -> list[str]:
        raise NotImplementedError

    def _validate_params(self) -> None:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        raise NotImplementedError

    def __sklearn_clone__(self: Own) -> Own:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        raise NotImplementedError

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


class Predictor(Parametrized):
    """An estimator that is fitted to rows and a target."""

    n_features_in_: int
    feature_names_in_: np.ndarray

    def get_metadata_routing(self) -> Any:
        """Return which metadata each method asks for."""
        raise NotImplementedError

    def set_fit_request(self: Own, *, sample_weight: bool | str | None = None) -> Own:
        """Say whether `fit` asks for sample weights."""
        raise NotImplementedError

    def set_partial_fit_request(
        self: Own,
        *,
        sample_weight: bool | str | None = None,
        classes: bool | str | None = None,
    ) -> Own:
        """Say whether `partial_fit` asks for sample weights and classes."""
        raise NotImplementedError

    def set_score_request(self: Own, *, sample_weight: bool | str | None = None) -> Own:
        """Say whether `score` asks for sample weights."""
        raise NotImplementedError

    def set_callbacks(self: Own, *callbacks: Any) -> Own:
        """Set scikit-learn's own callbacks; since scikit-learn 1.9."""
        raise NotImplementedError


class RegressorMixin:
    """`sklearn.base.RegressorMixin`."""

    def __sklearn_tags__(self) -> Any:
        raise NotImplementedError


class ClassifierMixin:
    """`sklearn.base.ClassifierMixin`."""

    def __sklearn_tags__(self) -> Any:
        raise NotImplementedError

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy."""
        raise NotImplementedError


class Search(Parametrized):
    """A search of `sklearn.model_selection`."""

    best_estimator_: Any
    best_index_: int
    best_params_: dict[str, Any]
    best_score_: float
    classes_: np.ndarray
    cv_results_: dict[str, Any]
    multimetric_: bool
    n_features_in_: int
    n_splits_: int
    refit_time_: float
    scorer_: Any

    def fit(self: Own, X: Any, y: Any = None, **params: Any) -> Own:
        """Run the search."""
        raise NotImplementedError

    def predict(self, X: Any) -> Any:
        """Predict with the best estimator."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the best estimator."""
        raise NotImplementedError

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of the best estimator."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> Any:
        """Return the raw scores of the best estimator."""
        raise NotImplementedError

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Return the score of the best estimator."""
        raise NotImplementedError

    def _run_search(
        self, evaluate_candidates: Callable[..., Any], *, callback_ctx: Any = None
    ) -> None:
        raise NotImplementedError


class GridSearchCV(Search):
    """`sklearn.model_selection.GridSearchCV`."""

    def __init__(  # noqa: PLR0913  # the parameters
        self,
        estimator: Estimator,
        param_grid: dict[str, Any] | Sequence[dict[str, Any]],
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., Any] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        raise NotImplementedError


class RandomizedSearchCV(Search):
    """`sklearn.model_selection.RandomizedSearchCV`."""

    def __init__(  # noqa: PLR0913  # the parameters
        self,
        estimator: Estimator,
        param_distributions: dict[str, Any] | Sequence[dict[str, Any]],
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool | str | Callable[..., Any] = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: int | np.random.RandomState | None = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        raise NotImplementedError
