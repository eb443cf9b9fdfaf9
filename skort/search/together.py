"""Which fits are made side by side, and which fit asks for one of them."""

import hashlib
import threading
from collections.abc import Iterable
from typing import Any

import joblib
import numpy as np

from skort.estimators.training.config import snapshot
from skort.search.batched_fits import OWN_PARAMETERS, joint_fits

# The attribute of an estimator that its next fit asks.
MARK = "_search"
# The values with which a fit does nothing but steps.
_PLAIN = {"average": False, "max_grad_norm": None, "trainable": None, "verbose": 0, "warm_start": False}


class Together:
    """Groups of estimators that are fitted together, while it is open, in the thread that made it."""

    # The first fit of a group to some data makes those of the whole group, and the others take theirs. A fit asks the
    # object that `mark` gave its estimator; clones have it, too.

    def __init__(self, estimators: Iterable[Any] = ()):
        #: The number of fits that were made together.
        self.n_made = 0
        self._thread = threading.get_ident()
        self._groups: list[tuple[Any, list[tuple[Any, Any]]]] = []
        # For the number of a group and the data of a fit: the fits that were made and not yet asked for.
        self._made: dict[int, dict[Any, dict[int, Any]]] = {}
        self.open(estimators)

    def __reduce__(self):
        # A fit in another process is made alone.
        return Together, ()

    def open(self, estimators: Iterable[Any]) -> None:
        """Let estimators, not fitted, be fitted together; they are not changed."""
        for estimator in estimators:
            if _is_plain(estimator):
                self._add(estimator)

    def close(self) -> None:
        """Let all fits from now on be made alone."""
        self._groups, self._made = [], {}

    def mark(self, estimator: Any) -> Any:
        """Let the next fit of an estimator, or of its clones, ask here; return it."""
        vars(estimator)[MARK] = self
        return estimator

    def unmark(self, estimator: Any) -> None:
        """Take back what `mark` did."""
        if vars(estimator).get(MARK) is self:
            del vars(estimator)[MARK]

    def _add(self, estimator):
        """Add an estimator to the group of those that differ from it in numbers only."""
        shared, own = _split(estimator)
        for key, members in self._groups:
            if _are_equal(key, shared):
                if not any(_are_equal(own, known) for known, _ in members):
                    members.append((own, estimator))
                return
        self._groups.append((shared, [(own, estimator)]))

    def take(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the result of a fit to some data, and what it has read of them; None where it is to be made alone."""
        if not self._groups or threading.get_ident() != self._thread:
            return None
        shared, own = _split(estimator)
        for group, (key, members) in enumerate(self._groups):
            if len(members) > 1 and _are_equal(key, shared):
                for place, (known, _) in enumerate(members):
                    if _are_equal(known, own):
                        return self._take(group, place, X, y, sample_weight)
        return None

    def _take(self, group, place, X, y, sample_weight):
        made, data = self._made.setdefault(group, {}), (_digest(X), _digest(y), _digest(sample_weight))
        if data not in made:
            if any(place in waiting for waiting in made.values()):
                # Steps before the model that draw numbers give each candidate other rows.
                return None
            made[data] = joint_fits([member for _, member in self._groups[group][1]], X, y, sample_weight)
            self.n_made += len(made[data])
        return made[data].pop(place, None)


def _is_plain(estimator):
    """Return whether nothing in the parameters of an estimator needs a fit of its own."""
    return (
        all(getattr(estimator, name) == value for name, value in _PLAIN.items())
        and not estimator.callbacks
        and estimator.solver in ("auto", "graph")
        and not isinstance(estimator.random_state, np.random.RandomState)
    )


def _split(estimator):
    """Return the parameters that fits made together share, and those that are their own, as values."""
    kind, parameters = snapshot(estimator)
    own = {name: value for name, value in parameters.items() if name in OWN_PARAMETERS}
    return (kind, {name: value for name, value in parameters.items() if name not in OWN_PARAMETERS}), own


def _are_equal(parameters, others):
    """Return whether parameters are equal; those that cannot be compared, such as a DataFrame, are not."""
    try:
        return parameters == others
    except ValueError:
        return False


def _digest(data):
    """Return what is equal for equal data."""
    if data is None:
        return None
    if type(data) is np.ndarray and not data.dtype.hasobject:
        values = np.ascontiguousarray(data)
        return values.shape, values.dtype.str, hashlib.sha256(values.reshape(-1).view(np.uint8).data).digest()
    return joblib.hash(data)
