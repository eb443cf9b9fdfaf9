"""Validation of X and y for fits and predictions, statistics of rows, and rows in blocks."""

import functools
import itertools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from skort.common.blas import aligned
from skort.common.sklearn_private import num_samples
from skort.estimators.data.dates import check_dates
from skort.estimators.data.noise import noise_of
from skort.estimators.data.not_numbers import (
    check_table,
    fitted_text_error,
    infinity_error,
    ragged_error,
    target_error,
    text_error,
    with_lists_of_labels,
    with_ragged_rows,
)
from skort.estimators.data.relevance import explained_parts
from skort.estimators.data.row_forms import (
    as_rows,
    check_in_memory,
    flat_rows,
    has_masked,
    is_in_range,
    kept_dtypes,
    largest,
)
from skort.optim.row_change import is_in_memory
from skort.optim.standardization import (
    Standardization,
    column_sums,
    common_scale,
    eigenvalue_of_gram,
    gram_of_some,
    largest_eigenvalue,
    largest_norm,
    moments,
    relative_weights,
    robust_moments,
    unit_scales,
    usable_scale,
    without_means,
)

# The largest number of values in a block of rows: a few MB.
_BLOCK = 2**20
_ROWS = 4
# The errors of libraries that cannot share memory: for arrays on other devices, for tensors with a
# gradient, and for types that DLPack does not have.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError, AttributeError)
# The options with which scikit-learn validates X if there are no steps before the model.
_CHECKS: dict[str, Any] = {"order": "C", "accept_sparse": "csr"}


class TrainingData(NamedTuple):
    """The rows of a training: X (n_samples, n_features), target (n_samples, n_outputs), weights."""

    X: Any
    target: np.ndarray
    #: ndarray of shape (n_samples,). None: all rows count the same.
    sample_weight: np.ndarray | None

    def taken(self, rows: slice | np.ndarray) -> "TrainingData":
        """Return some of the rows."""
        weight = self.sample_weight
        return TrainingData(
            self.X[rows], self.target[rows], None if weight is None else weight[rows]
        )

    @property
    def n_rows(self) -> int:
        """The number of rows of positive sample weight."""
        return (
            self.X.shape[0]
            if self.sample_weight is None
            else int(np.count_nonzero(self.sample_weight))
        )

    def counted(self, part: Any) -> Any:
        """Return a part, such as the target, at the rows of positive sample weight."""
        if self.sample_weight is None or part is None:
            return part
        return part[self.sample_weight > 0]

    def after(self, first: "TrainingData | None") -> "TrainingData":
        """Return the rows of `first`, if there are any, and then these rows."""
        if first is None:
            return self

        parts = first.X, self.X
        dtype = self.X.dtype if self.is_sparse else first.X.dtype
        is_sparse = first.is_sparse or self.is_sparse
        X = scipy.sparse.vstack(parts, "csr", dtype) if is_sparse else np.concatenate(parts)
        weights = [
            np.ones(len(each.target)) if each.sample_weight is None else each.sample_weight
            for each in (first, self)
        ]

        return TrainingData(X, np.concatenate([first.target, self.target]), np.concatenate(weights))

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return scipy.sparse.issparse(self.X)


@dataclass(frozen=True, eq=False)
class DataStatistics:
    """The statistics of rows in memory, for the variables and the learning rate of a training."""

    #: All rows, or evenly spaced ones.
    some_rows: TrainingData
    #: The last result of `gram`, with the standardization that it is of.
    _known: list[Any] = field(default_factory=list, init=False, repr=False)

    @property
    def n_rows(self) -> int:
        """The number of rows of positive sample weight."""
        return self.some_rows.n_rows

    @property
    def mean_weight(self) -> float:
        """The mean of the positive sample weights."""
        weights = self.some_rows.counted(self.some_rows.sample_weight)
        return 1.0 if weights is None else float(weights.mean())

    @functools.cached_property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """The weighted means and standard deviations of the columns of X, see `moments`."""
        return moments(self.some_rows.X, self.some_rows.sample_weight)

    @functools.cached_property
    def targets(self) -> tuple[np.ndarray, np.ndarray]:
        """The weighted means and standard deviations of the target's columns, see `moments`."""
        return moments(self.some_rows.target, self.some_rows.sample_weight)

    @functools.cached_property
    def noise(self) -> float | None:
        """The noise of y in `some_rows`, see `noise_of`. None: they do not tell it."""
        rows = self.some_rows
        mean, deviation = self.columns
        return noise_of(*rows, mean, usable_scale(deviation, np.float64))

    @functools.cached_property
    def explained(self) -> np.ndarray | None:
        """The part of y that each column of `some_rows` explains, see `explained_parts`."""
        return None if self.some_rows.is_sparse else explained_parts(*self.some_rows)

    def robust_targets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the medians and scales of the target in `some_rows`, see `robust_moments`."""
        return robust_moments(self.some_rows.target, self.some_rows.sample_weight)

    def sparse_scale(self, batch_size: int) -> np.ndarray | float:
        """Return what divides a sparse X: `common_scale`, times the `unit_scales` of its columns."""
        scales = self.unit_scales()
        common = self.common_scale(batch_size, without_means(scales))
        return common if scales is None else common * scales

    def unit_scales(self) -> np.ndarray | None:
        """Return the scales of sparse columns in other units, see the function `unit_scales`."""
        return unit_scales(*column_sums(self.some_rows.X, self.some_rows.sample_weight))

    def common_scale(self, batch_size: int, used: Standardization | None) -> float:
        """Return the number that divides a sparse X, see the function `common_scale`."""
        return common_scale(self.some_rows.X, self.some_rows.sample_weight, batch_size, used)

    def largest_norm(self, used: Standardization | None, ones: float = 1.0) -> float:
        """Return the largest squared norm of a row times its relative weight."""
        shares = relative_weights(self.some_rows.sample_weight)
        return largest_norm(self.some_rows.X, shares, used, ones)

    def largest_eigenvalue(self, used: Standardization | None) -> float:
        """
        Return the largest eigenvalue of the weighted rows,
        see the function `largest_eigenvalue`.
        """
        gram = self.gram(used)
        if gram is not None:
            return eigenvalue_of_gram(gram)
        return largest_eigenvalue(
            self.some_rows.X, relative_weights(self.some_rows.sample_weight), used
        )

    def gram(self, used: Standardization | None) -> np.ndarray | None:
        """Return the Gram matrix of the weighted rows, see `gram_of_some`; None: it is not known."""
        if not (self._known and self._known[0] is used):
            rows = self.some_rows
            self._known[:] = used, gram_of_some(rows.X, rows.sample_weight, used)
        return self._known[1]


class Columns(NamedTuple):
    """The number and the names of the columns that an estimator was fitted on; None: not known."""

    n_features: int | None = None
    names: np.ndarray | None = None

    @classmethod
    def of(cls, estimator: Any) -> "Columns":
        """Return the columns that an estimator was fitted on."""
        known = vars(estimator)
        return cls(known.get("n_features_in_"), known.get("feature_names_in_"))

    @property
    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of scikit-learn that show the columns."""
        named = {"n_features_in_": self.n_features, "feature_names_in_": self.names}
        return {name: value for name, value in named.items() if value is not None}


def knowing(estimator: Any, columns: Columns) -> Any:
    """
    Return an unfitted copy of an estimator that knows some columns.

    scikit-learn's checks write the columns of X into the copy, and leave the estimator as it is.
    """
    probe = object.__new__(type(estimator))
    probe.__dict__ = {name: value for name, value in vars(estimator).items() if name[-1] != "_"}
    probe.__dict__.update(columns.attributes)
    return probe


def training_rows(
    estimator: Any, X: Any, y: Any, *, has_steps: bool, columns: Columns | None = None
) -> tuple[Any, np.ndarray, Columns]:
    """
    Return the validated X and y of a fit, and the columns of X.

    The columns must be the given ones, if there are any. `has_steps` says that steps before the
    model validate X themselves: an array, a CSR matrix or a DataFrame of any type. Otherwise the
    rows of X are flat.
    """
    if isinstance(y, Number | str | set | Mapping) or getattr(y, "shape", None) == ():
        raise _no_rows_error(X, y)
    check_form(X)
    X = _aligned_rows(X)
    y = aligned(y)
    reset = columns is None
    estimator = knowing(estimator, Columns() if columns is None else columns)

    if has_steps:
        try:
            X, y = validate_data(estimator, as_rows(X), y, reset=reset, skip_check_array=True)
            y = check_array(y, dtype=None, ensure_2d=False, input_name="y", estimator=estimator)
        except ValueError as error:
            raise target_error(fitted_text_error(error, X), y) from None
    else:
        if reset and isinstance(X, np.ndarray) and X.ndim == 2:
            estimator.n_features_in_ = X.shape[1]
        rows = plain_rows(estimator, X, estimator.dtype) if is_plain(y) else None
        if rows is None:
            X, y = _validated(estimator, X, y, reset=reset)
        elif len(rows) == len(y):
            return rows, y, Columns.of(estimator)

    try:
        check_consistent_length(X, y)
    except ValueError as error:
        raise ValueError(f"{error}: X has {num_samples(X)} rows, and y has {len(y)}.") from None
    return X, aligned(y), Columns.of(estimator)


def _no_rows_error(X, y):
    """Return the error, which names y, of one value or one group of values."""
    given = "a single value"
    cure = ""
    if isinstance(y, set | Mapping):
        given = f"a {type(y).__name__}"
    elif isinstance(y, str):
        given = repr(y)
        if y in getattr(X, "columns", ()):
            cure = f" Give X[{y!r}], and an X without it."

    return ValueError(f"y should be an array of one or two dimensions, got {given}.{cure}")


def _with_order(error, X, y):
    """Return an error that asks whether X and y are in each other's place, or the given error."""
    if np.ndim(X) != 1 or np.ndim(y) != 2:
        return error
    cure = "X has one dimension and y has two: are they in each other's place?"
    return type(error)(f"{error} {cure}")


def _validated(estimator, X, y, *, reset):
    """Return X and y as scikit-learn validates them. Its errors get a cure."""
    check_table(X)
    check_dates(X)
    given = X
    checks = (
        {"dtype": kept_dtypes(X, estimator.dtype), **_CHECKS},
        {"dtype": None, "ensure_2d": False},
    )

    # No warning: after an overflow, an error follows.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            X, y = validate_data(estimator, X, y, reset=reset, validate_separately=checks)
        except (ValueError, TypeError) as error:
            if "inhomogeneous" in str(error):
                is_list = not is_classifier(estimator) and isinstance(y, (list, tuple))
                of_numbers = ragged_error(y) if is_list else None
                of_labels = of_numbers or with_lists_of_labels(error, y)
                raise with_ragged_rows(of_labels, X) from None
            if (of_y := _of_y(error, y)) is not None:
                raise of_y from None
            if reset:
                raise text_error(_with_order(error, X, y), X, estimator) from None
            raise fitted_text_error(error, X) from None

        X = _aligned_rows(_in_range(X, estimator.dtype, estimator, given))
        _check_no_column_is_lost(given, X)

    return X, y


def prepared(estimator: Any, model: Any, X: Any) -> Any:
    """Return X for `Model.run`: validated, and transformed by the steps before the model."""
    dtype = model.preprocessing.dtype
    if not model.has_steps:
        X = flat_rows(model.inner.model, X)
    check_form(X)
    X = _aligned_rows(X)

    if model.has_steps:
        try:
            rows = validate_data(estimator, as_rows(X), reset=False, skip_check_array=True)
        except ValueError as error:
            raise fitted_text_error(error, X) from None
    elif (rows := plain_rows(estimator, X, dtype)) is None:
        check_table(X)
        check_dates(X)
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                rows = validate_data(
                    estimator, X, reset=False, dtype=kept_dtypes(X, dtype), **_CHECKS
                )
            except (ValueError, TypeError) as error:
                raise fitted_text_error(error, X) from None

            rows = _aligned_rows(_in_range(rows, dtype, estimator, X))

    return model.transform(rows)


def _check_no_column_is_lost(given, rows):
    """Raise a ValueError if a cast made all values of a column of a sparse X zero."""
    if (
        not scipy.sparse.issparse(given)
        or given.dtype == rows.dtype
        or rows.count_nonzero() == given.count_nonzero()
    ):
        return

    lost = np.setdiff1d(given.tocsr().nonzero()[1], rows.nonzero()[1])
    if len(lost):
        raise ValueError(
            f"X: the values of column {lost[0]} are too small for {rows.dtype}. Multiply it by a "
            'constant, or use dtype="float64".'
        )


def _aligned_rows(X: Any) -> Any:
    """Return rows as `aligned` does, but a view of a file as it is: batches copy its rows."""
    return X if isinstance(X, np.ndarray) and not is_in_memory(X) else aligned(X)


def _in_range(rows, dtype, estimator, given):
    """Return the rows; raise an error with the columns of X if a number is infinite in a dtype."""
    if is_in_range(rows, dtype):
        return rows
    try:
        return check_array(rows, dtype=dtype, input_name="X", estimator=estimator)
    except ValueError as error:
        raise infinity_error(error, given) from None


def _of_y(error, y):
    """Return the error to raise for an error about y, or None for one about X."""
    is_complex = getattr(y, "dtype", None) is not None and getattr(y.dtype, "kind", "") == "c"
    is_of_y = is_complex or str(error).startswith("Input y ")
    return target_error(error, y) if is_of_y else None


def plain_rows(estimator: Any, X: Any, dtype: DTypeLike) -> np.ndarray | None:
    """
    Return X as `validate_data` would, but in less time.

    Return None if X is not an array of numbers with the known columns, and `validate_data` has to
    decide.
    """
    known = vars(estimator)
    if (
        type(X) is not np.ndarray
        or X.shape[1:] != (known.get("n_features_in_"),)
        or X.dtype.kind not in "biuf"
        or "feature_names_in_" in known
    ):
        return None

    kept = kept_dtypes(X, dtype)
    rows = np.ascontiguousarray(X, X.dtype if X.dtype in kept else kept[0])
    # Most rows need one pass: if their sum of squares is in range, they are finite and in range.
    is_taken = is_plain(rows, largest(dtype)) or (is_plain(rows) and is_in_range(rows, dtype))

    return rows if is_taken else None


def check_form(X: Any) -> None:
    """
    Raise an error for a Dask DataFrame, and for a sparse X whose indices point outside it.

    Such indices could end the process.
    """
    if type(X) is np.ndarray and X.dtype.names is None:
        return
    check_in_memory(X)
    if has_masked(X):
        raise ValueError(
            "X has masked values. Give X.filled(numpy.nan), with an imputer in the pipeline inside, or "
            "leave out these rows."
        )
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        raise ValueError("X is a structured array, and no matrix: give pandas.DataFrame(X).")
    if not scipy.sparse.issparse(X) or X.ndim != 2:
        return

    for indices, n in _indices(X):
        if len(indices) and (indices.min() < 0 or indices.max() >= n):
            raise ValueError(
                f"X: its indices are from {indices.min()} to {indices.max()}, but X has the shape "
                f"{X.shape}. Build X again, with the right shape."
            )


def _indices(X):
    """Return the arrays of indices of a sparse matrix, each with the upper limit of its values."""
    n_rows, n_columns = X.shape
    if X.format == "coo":
        return [(X.row, n_rows), (X.col, n_columns)]
    if X.format == "lil":
        return [(np.fromiter(itertools.chain.from_iterable(X.rows), np.int64), n_columns)]
    if X.format not in ("csr", "csc", "bsr"):
        return []

    n_along, n_others = (n_columns, n_rows) if X.format == "csc" else (n_rows, n_columns)
    if X.format == "bsr":
        n_along = n_along // X.blocksize[0]
        n_others = n_others // X.blocksize[1]

    indptr = X.indptr
    is_wrong = len(indptr) != n_along + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any()
    if is_wrong or indptr[-1] > min(len(X.indices), len(X.data)):
        raise ValueError(
            "X: its indptr does not have the length that fits the shape, does not begin at 0, "
            "falls, or points beyond the last value. Build X again."
        )

    return [(X.indices, n_others)]


def is_plain(array: Any, most: float = sys.float_info.max) -> bool:
    """
    Return whether `check_array` would return a matrix or vector unchanged.

    The sum of its squares must also be at most `most`.
    """
    if (
        type(array) is not np.ndarray
        or array.ndim not in (1, 2)
        or not array.size
        or not array.flags.aligned
    ):
        return False

    # A number that is not finite makes the sum of squares not finite, since squares cannot cancel.
    # `vdot` raises no warning.
    return array.dtype.kind in "biuU" or (
        array.dtype.kind == "f" and float(np.vdot(array, array)) <= most
    )


def blocks(X: Any, matrix: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """
    Yield the rows of an array or CSR matrix as C-contiguous arrays of a few MB.

    The number of rows of each block is a multiple of four. Copies of the last row fill the last
    block. With a matrix, yield the products of the rows and the matrix.
    """
    # ONNX Runtime computes four rows at a time, and rounds the remaining rows differently. But the
    # prediction of a row must not depend on the other rows.
    width = X.shape[1] if matrix is None else matrix.shape[1]
    n_rows = max(_ROWS, _BLOCK // width // _ROWS * _ROWS)
    whole = X.shape[0] // _ROWS * _ROWS
    for start in range(0, whole, n_rows):
        yield _dense(X[start : min(start + n_rows, whole)], matrix)
    if whole < X.shape[0]:
        rest = _dense(X[whole:], matrix)
        filled = np.empty((_ROWS, width), rest.dtype)
        filled[: len(rest)], filled[len(rest) :] = rest, rest[-1]
        yield filled


def _dense(rows, matrix):
    """Return the rows, or their product with a matrix, as an array."""
    if matrix is not None:
        return rows @ matrix
    return rows.toarray() if scipy.sparse.issparse(rows) else rows


def as_array(value: Any, name: str) -> Any:
    """
    Return a value as an aligned numpy array.

    Nothing is copied if another library shares the memory by DLPack.
    """
    if isinstance(value, np.ndarray) or scipy.sparse.issparse(value) or hasattr(value, "iloc"):
        return aligned(value)

    if hasattr(value, "__dlpack__"):
        try:
            return aligned(np.from_dlpack(value))
        except _REFUSALS:
            pass  # numpy's own conversion below may succeed, and its error says more.

    try:
        return aligned(np.asarray(value))
    except _REFUSALS as error:
        raise ValueError(f"{name} cannot be read as a numpy array: {error}") from error
