"""Scores that are put together from partitions, without gathering a row."""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from skort.dask.facts import Moments

__all__ = ["SCORES", "Tally", "check_scoring", "merged_tallies", "tally"]


def _accuracy(model, X, y):
    is_right = model.predict(X) == y
    return is_right.all(axis=1) if is_right.ndim == 2 else is_right


def _log_probability(model, X, y):
    unknown = np.setdiff1d(y, model.classes_)
    if unknown.size:
        raise ValueError(f"y contains labels that are not among the known classes: {unknown.tolist()}.")
    return model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]


def _square(model, X, y):
    return -np.square(y - model.predict(X))


def _distance(model, X, y):
    return -np.abs(y - model.predict(X))


#: What of each row a score is the mean of.
SCORES: dict[str, Callable] = {
    "accuracy": _accuracy,
    "neg_log_loss": _log_probability,
    "neg_mean_squared_error": _square,
    "neg_root_mean_squared_error": _square,
    "neg_mean_absolute_error": _distance,
    "r2": _square,
}
_OF_CLASSIFIERS = ("accuracy", "neg_log_loss")


def check_scoring(estimator: Any, scoring: Any) -> str:
    """
    Return the name of a score; that of `score` for None.

    Raises
    ------
    ValueError
        Where it cannot be put together from partitions.
    """
    names = [name for name in SCORES if (name in _OF_CLASSIFIERS) == is_classifier(estimator)]
    name = ("accuracy" if is_classifier(estimator) else "r2") if scoring is None else scoring
    if name not in names:
        raise ValueError(
            f"scoring={scoring!r} cannot be put together from partitions. Use one of {', '.join(map(repr, names))}, or "
            "the callback EpochScoring with rows in memory."
        )
    return name


class Tally(NamedTuple):
    """
    What a score is computed from.

    Parameters
    ----------
    values : ndarray of shape (n_outputs,)
        The weighted sums of what each row has of the score.
    total : float
        The sum of the sample weights.
    targets : Moments or None
        Those of y, where the score is relative to them.
    """

    values: np.ndarray
    total: float
    targets: Moments | None

    def score(self, name: str) -> float:
        """
        Return the score of a name.

        Examples
        --------
        >>> import numpy as np
        >>> from skort.dask.facts import Moments
        >>> from skort.dask.scores import Tally
        >>> Tally(np.array([-1.0]), 4.0, Moments(4.0, np.array([0.0]), np.array([4.0]))).score("r2")
        0.75
        """
        if name == "r2":
            assert self.targets is not None
            squares = self.targets.squares
            ratios = np.where(squares > 0, self.values / np.where(squares > 0, squares, 1.0), -1.0 * (self.values < 0))
            return float(np.mean(1 + ratios))
        means = self.values / self.total
        return float(np.mean(-np.sqrt(-means) if name == "neg_root_mean_squared_error" else means))


def tally(model: Any, X: Any, y: Any, sample_weight: np.ndarray | None, name: str) -> Tally | None:
    """Return what a score is computed from, of the rows of a partition; None where it has none."""
    if X.shape[0] == 0:
        return None
    y = np.asarray(y)
    y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 and np.ndim(model.predict(X[:1])) == 1 else y
    values = SCORES[name](model, X, y).astype(np.float64).reshape(len(y), -1)
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    total, targets = float(weights.sum()), None
    if name == "r2" and total > 0:
        columns = y.astype(np.float64).reshape(len(y), -1)
        mean = weights @ columns / total
        targets = Moments(total, mean, weights @ np.square(columns - mean))
    return None if total == 0 else Tally(weights @ values, total, targets)


def merged_tallies(tallies: Sequence[Tally | None]) -> Tally | None:
    """Return the tally of several partitions."""
    some = [each for each in tallies if each is not None]
    if not some:
        return None
    targets = [each.targets for each in some if each.targets is not None]
    return Tally(
        functools.reduce(operator.add, [each.values for each in some]),
        sum(each.total for each in some),
        functools.reduce(Moments.merged, targets) if targets else None,
    )
