"""The first pass over the user's batches: it collects sizes, labels, weights and some rows."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.utils import assert_all_finite

from skort.estimators.data.known_labels import model_labels
from skort.estimators.data.nesting import layers
from skort.estimators.data.not_numbers import FILL_BATCHES, missing_error
from skort.estimators.data.rows import as_array, check_form
from skort.estimators.data.sample_weight import check_not_negative, check_numbers
from skort.estimators.data.targets import check_target, class_labels, one_class_error, unknown_error

# The first pass keeps rows with at most so many values of X: 32 MB in float64.
_MANY_VALUES = 2**22
# The beginning of the names of targets if y is a dict.
_OUTPUT = "y of "


def repeatable(batches: Any) -> Callable[[], Iterator[Any]]:
    """Return a function that begins a new pass over the batches."""
    if callable(batches):
        return lambda: _iterator(batches())
    if not isinstance(batches, Iterable):
        raise ValueError(
            f"batches must be something to iterate over, got {type(batches).__name__}: a list, a "
            "DataLoader, or a function that returns an iterator."
        )
    if isinstance(batches, Iterator):
        raise ValueError(
            "batches is an iterator, which gives its batches only once, but every epoch reads "
            "them. Give a list, a DataLoader, or a function that returns a new iterator."
        )

    return lambda: iter(batches)


def _iterator(made):
    if not isinstance(made, Iterable):
        raise ValueError(
            f"batches: the function returned {made!r}, which cannot be iterated over. Return an "
            "iterator, or yield batches."
        )

    return iter(made)


def numbered(batches: Iterable[Any], encode: Callable[..., Any]) -> Iterator[Any]:
    """
    Yield the result of `encode(X, y)` or `encode(X, y, sample_weight)` for each batch.

    Its errors are raised with the number of the batch.
    """
    for number, batch in enumerate(batches):
        if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
            size = f" of {len(batch)}" if isinstance(batch, (tuple, list)) else ""
            raise ValueError(
                f"batches: batch {number} is a {type(batch).__name__}{size}, and not (X, y) or (X, "
                f"y, sample_weight).{_as_batch(batch)}"
            )

        try:
            yield encode(*batch)
        except ValueError as error:
            raise ValueError(f"batches: batch {number}: {error}") from error


def _as_batch(given):
    """Return how to make a batch of something else, as a sentence after a space."""
    if isinstance(given, str):
        return " These are names of columns: fit takes a DataFrame; batches is a list of (X, y)."
    if hasattr(given, "columns"):
        return ' Divide its columns: (batch.drop(columns="target"), batch["target"]).'
    if isinstance(given, Mapping) and len(given) > 1:
        return f" Give its values: ({', '.join(f'batch[{name!r}]' for name in [*given][:2])})."
    if isinstance(given, np.ndarray):
        return " fit takes X and y; batches is a list of (X, y)."
    return ""


def named_batch(
    batches: Iterable[Any], error: ValueError, again: Callable[[Any, Any], Any]
) -> ValueError:
    """
    Return an error of rows of all batches with the number of the first batch whose X and y alone
    give it in `again`, or the error as it is.
    """

    def check(X, y, sample_weight=None):
        try:
            again(as_array(X, "X"), y)
        except ValueError as of_batch:
            # A single batch may lack a class, or have rows of one kind. The cure, which follows the
            # first sentence, may depend on the rows.
            if _first_sentence(of_batch) == _first_sentence(error):
                raise

    try:
        for _ in numbered(batches, check):
            pass
    except ValueError as of_batch:
        return of_batch
    return error


def _first_sentence(error):
    """Return the first sentence of an error."""
    return str(error).partition(". ")[0]


@dataclass(frozen=True, eq=False)
class FirstPass:
    """The result of one pass over all batches."""

    #: Evenly spaced rows of all batches.
    X: Any
    #: The targets of these rows.
    y: Any
    #: The sample weights of these rows.
    sample_weight: np.ndarray | None
    #: ndarray of shape (n_samples,) or None. The labels of all rows, if each row has one label.
    all_labels: np.ndarray | None
    #: ndarray of shape (n_samples,) or None. The sample weights of all rows, if there are any.
    all_weights: np.ndarray | None
    #: The number of rows of each batch.
    sizes: list[int]

    @classmethod
    def over(
        cls, batches: Iterable[Any], *, has_labels: bool, has_steps: bool = False
    ) -> "FirstPass":
        """Read all batches once."""
        sample = _Sample()
        labels: list[np.ndarray] = []
        weights: list[np.ndarray] = []
        sizes: list[int] = []

        for X, y, sample_weight in numbered(
            batches, functools.partial(_as_arrays, has_labels=has_labels, has_steps=has_steps)
        ):
            sample.add(
                len(sizes),
                {"X": X} | y | ({} if sample_weight is None else {"sample_weight": sample_weight}),
            )
            if has_labels and all(each.ndim == 1 or each.shape[1:] == (1,) for each in y.values()):
                labels += [np.ravel(each) for each in y.values()]
            if sample_weight is not None:
                weights.append(sample_weight)
            sizes.append(X.shape[0])

        if not sum(sizes):
            raise ValueError("batches is empty: it gave no rows.")

        rows = sample.joined()
        X = rows.pop("X")
        sample_weight = rows.pop("sample_weight", None)
        y = (
            rows.pop("y")
            if "y" in rows
            else {name.removeprefix(_OUTPUT): column for name, column in rows.items()}
        )
        all_labels, all_weights = (
            np.concatenate(parts) if parts else None for parts in (labels, weights)
        )

        return cls(X, y, sample_weight, all_labels, all_weights, sizes)


def _as_arrays(X, y, sample_weight=None, *, has_labels, has_steps):
    """Return X, the arrays of y by name, and the sample weights, after checks of their values."""
    check_form(X)
    X = as_array(X, "X")
    named = (
        {f"{_OUTPUT}{name}": each for name, each in y.items()}
        if isinstance(y, Mapping)
        else {"y": y}
    )
    for name, each in named.items():
        check_target(each, is_labels=has_labels, name=name)
    y = {name: _target(each, name) for name, each in named.items()}
    checked = dict(y)

    if sample_weight is not None:
        sample_weight = as_array(sample_weight, "sample_weight")
        check_numbers(sample_weight)
        sample_weight = np.asarray(sample_weight, float)
        check_not_negative(sample_weight)
        checked["sample_weight"] = sample_weight

    for name, array in checked.items():
        if array.ndim == 0 or array.shape[:1] != X.shape[:1]:
            raise ValueError(
                f"X has the shape {X.shape}, but {name} has {array.shape}: they need the "
                "same number of rows."
            )

    if not has_steps:
        checked["X"] = X
    # Later, all kept rows are validated together. Only here is the number of the batch known.
    for name, array in checked.items():
        if getattr(array, "dtype", np.dtype(object)).kind == "f":
            _check_finite(array, name)

    return X.tocsr() if scipy.sparse.issparse(X) else X, y, sample_weight


def _check_finite(array, name):
    """Raise an error for NaN and infinity, which names the columns of X."""
    try:
        assert_all_finite(array, input_name=name)
    except ValueError as error:
        if name != "X":
            raise
        raise missing_error(error, array, FILL_BATCHES) from None


def _target(y, name):
    array = as_array(y, name)
    # Keep a DataFrame: the names of its columns may be the names of outputs.
    return array if hasattr(array, "columns") else np.asarray(array)


class _Sample:
    """Every k-th of the rows that were added."""

    def __init__(self):
        self._parts = []
        self._every = 1
        self._n_rows = 0
        self._n_values = 0

    def add(self, number, rows):
        """Add the rows of a batch, arrays by name, after a comparison with the first batch."""
        if self._parts:
            _check_alike(number, self._parts[0][1], rows)
        X = rows["X"]
        self._keep(np.arange(self._n_rows, self._n_rows + X.shape[0]), rows)
        self._n_rows += X.shape[0]

        while self._n_values > _MANY_VALUES:
            self._every *= 2
            parts = self._parts
            self._parts = []
            self._n_values = 0
            for numbers, kept in parts:
                self._keep(numbers, kept)

    def _keep(self, numbers, rows):
        chosen = np.flatnonzero(numbers % self._every == 0)
        # Most of many small batches have no chosen row. The first batch always has one.
        if not len(chosen) and self._parts:
            return

        is_all = len(chosen) == len(numbers)
        kept = {
            name: each.copy() if is_all else getattr(each, "iloc", each)[chosen]
            for name, each in rows.items()
        }
        self._parts.append((numbers[chosen], kept))
        X = kept["X"]

        # Sparse rows count the values that they store.
        self._n_values += max(
            X.nnz if scipy.sparse.issparse(X) else int(np.prod(X.shape)), len(chosen)
        )

    def joined(self):
        """Return the kept rows, as arrays by name."""
        return {
            name: _joined([kept[name] for _, kept in self._parts]) for name in self._parts[0][1]
        }


def _check_alike(number, first, rows):
    """Raise an error if a batch has other arrays or other columns than the first batch."""
    if rows.keys() != first.keys():
        if rows.keys() ^ first.keys() == {"sample_weight"}:
            raise ValueError(
                f"batches: batch {number}: either all batches have a sample_weight, or none."
            )

        raise ValueError(
            f"batches: batch {number} has {', '.join(rows)}, and the first one {', '.join(first)}."
        )

    for name, now in rows.items():
        if now.shape[1:] != first[name].shape[1:]:
            raise ValueError(
                f"batches: batch {number}: {name} has the shape {now.shape}, the first one "
                f"{first[name].shape}: all need the same columns."
            )


def _joined(parts):
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts, ignore_index=True)
    return np.concatenate(parts)


def known_classes(
    estimator: Any, classes: ArrayLike | None, labels: np.ndarray | None
) -> np.ndarray | None:
    """Return the given classes, else those of the model inside, else those in the batches."""
    *_, (model, is_fitted) = layers(estimator)
    if classes is None:
        classes = model_labels(model, is_fitted, labels)
    known = None if classes is None else class_labels(classes)
    if labels is None:
        return known

    seen = np.unique(labels)
    known = seen if known is None else known
    unknown = np.setdiff1d(seen, known)
    if unknown.size:
        raise unknown_error(unknown, known)
    if len(known) < 2:
        raise one_class_error(known)
    return known
