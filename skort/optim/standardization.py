"""
A change of variables for the training:
columns of X and of y with mean zero and standard deviation one.
"""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from skort.common.blas import one_blas_thread
from skort.common.random_state import seeded
from skort.optim.row_change import difference

# Statistics of more values come from so many evenly spaced blocks of rows.
_MANY_VALUES = 2**22
_N_BLOCKS = 256
# The number of values that are converted to float64 at once.
_BLOCK = 2**18
# The most rows that tell how they spread, and the most that do so roughly.
_SOME_ROWS = 2000
_FEW_ROWS = 256
# Rows of so many values stay in the cache of a core.
_CACHED = 2**15
# The steps of the power method for an eigenvalue within a few percent, and for those that may be too
# small. The first ones find at least half of it, and k times as many the k-th root of a half. It is
# a margin: no benchmark chose it.
_STEPS = 20
_ROUGH_STEPS = 5
_MORE_STEPS = 10
_ROUGH_PART = 0.5
#: A sparse column is in another unit than the median one, and a stream's column in another unit
#: than before, if its values are so many times larger or smaller. Those of text differ by less.
FAR_UNITS = 20.0
_FEW_VALUES = 10
# Up to so many columns, all eigenvalues take less time than the power method. Up to more columns,
# the Gram matrix saves time in its steps.
_FEW_COLUMNS = 128
_MANY_COLUMNS = 257
# A direction in which columns vary less, relative to their mean variance, counts as if they varied
# so much: its steps become six times as long. On the tables of `python -m benchmarks.rules`, 1e-6 is
# not better. With it, a stream is slow where one of two columns that were alike is shifted.
_LEAST_VARIANCE = 1 / 36


@dataclass(frozen=True, eq=False)
class Standardization:
    """
    The means that a training subtracts from the columns of X and y, and the scales that divide
    these.
    """

    # It changes how fast a training gets to the minimum, not where that is: the fitted weights are
    # those of X and y.

    #: float64 of shape (n_features,), as `scale`. None: X is as it is.
    mean: np.ndarray | None
    scale: np.ndarray | None
    #: float64 of shape (n_outputs,). None: y is as it is.
    target_mean: np.ndarray | None
    #: The scale of all outputs; float64 of shape (n_outputs,) if they have several.
    target_scale: float | np.ndarray
    #: Whether the fitted model subtracts the mean from X itself: the mean is many standard
    #: deviations.
    is_offset: bool = False
    #: The columns that had one value in all rows, and drawn weights. None: there are none.
    constant: np.ndarray | None = None
    #: float64 of shape (n_features,). The standard deviations of the columns in the training, as a
    #: network learns more of larger ones. None: they are one.
    relevance: np.ndarray | None = None
    #: float64 of shape (n_features, n_features). In a linear stream, X' times this symmetric matrix
    #: has half of the correlation: its square multiplies a step. None: the step is as it is.
    decorrelation: np.ndarray | None = None

    @property
    def deviation(self) -> np.ndarray | None:
        """The standard deviations of the columns of X, or None."""
        if self.scale is None or self.relevance is None:
            return self.scale
        return self.scale * self.relevance

    @property
    def units(self) -> "Standardization":
        """The means and scales, without the matrix of the steps."""
        return dataclasses.replace(self, decorrelation=None)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields that are not None, as arrays by name. `of_arrays` is the inverse."""
        return {name: np.asarray(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> "Standardization | None":
        """Return the standardization of some arrays, or None if there are none."""
        values: dict[str, Any] = {
            name: array if array.ndim else array.item() for name, array in arrays.items()
        }
        return (
            cls(**{"mean": None, "scale": None, "target_mean": None} | values) if values else None
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Standardization):
            return NotImplemented

        mine = self.arrays()
        theirs = other.arrays()
        return mine.keys() == theirs.keys() and all(
            np.array_equal(mine[name], theirs[name]) for name in mine
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # Arrays can change.


def moments(
    X: Any, sample_weight: np.ndarray | None, n_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return weighted means and standard deviations of columns in float64. X may be a part of `n_rows`
    rows.
    """
    # With more than 2^22 values, 256 evenly spaced blocks of rows stand for all. A column that is
    # constant in them may vary elsewhere, so all of its rows are read.
    many_values = _MANY_VALUES if n_rows is None else _MANY_VALUES * X.shape[0] // n_rows
    blocks = _row_blocks(X.shape[0], X.shape[1], many_values)
    mean, deviation = _moments(X, sample_weight, blocks)

    # If squares overflow or are zero, multiples have better ones. Powers of two keep the bits.
    is_huge = ~np.isfinite(deviation)
    is_tiny = (deviation < 2.0**-500) & (np.abs(mean) < 2.0**-400)

    for are_extreme, factor in ((is_huge, 2.0**-600), (is_tiny, 2.0**600)):
        columns = np.flatnonzero(are_extreme)
        if len(columns):
            means, deviations = _moments(X, sample_weight, blocks, columns, factor)
            mean[columns] = means / factor
            deviation[columns] = deviations / factor

    constant = np.flatnonzero(~(deviation > 0))
    n_seen = sum(len(range(X.shape[0])[rows]) for rows in blocks)

    if len(constant) and n_seen < X.shape[0]:
        every_row = _row_blocks(X.shape[0], X.shape[1], np.inf)
        mean[constant], deviation[constant] = _moments(X, sample_weight, every_row, constant)

    return mean, deviation


def _moments(X, sample_weight, blocks, columns=slice(None), factor=1.0):
    """
    Return the moments of some columns, times a factor, over blocks of rows. They are not finite if
    squares overflow.
    """
    total = 0.0
    sums: Any = 0.0
    squares: Any = 0.0

    # With a large mean, sums of differences from a row keep their digits.
    at = 0 if sample_weight is None else int(np.argmax(sample_weight > 0))
    first = dense(X[at : at + 1])[0, columns].astype(np.float64) * factor

    with one_blas_thread(X.shape[0] * X.shape[1]), np.errstate(over="ignore", invalid="ignore"):
        for rows in blocks:
            block = dense(X[rows])[:, columns]
            block = difference(block if factor == 1.0 else block.astype(np.float64) * factor, first)
            weights = np.ones(len(block)) if sample_weight is None else sample_weight[rows]

            total += weights.sum()
            # BLAS takes less time than numpy's own sums.
            sums += weights @ block
            squares += weights @ np.square(block, out=block)

        shift = sums / total
        variance = np.maximum(squares / total - np.square(shift), 0.0)
        # Rounding leaves a little of the variance of a constant column.
        variance[variance <= 1e-14 * (squares / total)] = 0.0
        return first + shift, np.sqrt(variance)


def robust_moments(
    columns: np.ndarray, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted medians, and interquartile ranges divided by 1.349, in float64."""
    # A normal distribution has this range / 1.349 as its standard deviation. If the quartiles are
    # equal, the scale is the standard deviation itself.
    weights = np.ones(len(columns)) if sample_weight is None else sample_weight
    # The share of a row is that of the weight up to its middle, in the order of the values.
    orders = np.argsort(columns, axis=0)
    quartiles = np.empty((3, columns.shape[1]))

    for j, order in enumerate(orders.T):
        order = order[weights[order] > 0]
        ordered = weights[order]
        shares = (np.cumsum(ordered) - 0.5 * ordered) / ordered.sum()
        quartiles[:, j] = np.interp([0.25, 0.5, 0.75], shares, columns[order, j].astype(np.float64))

    spread = (quartiles[2] - quartiles[0]) / 1.349
    return quartiles[1], np.where(spread > 0, spread, moments(columns, sample_weight)[1])


def usable_scale(deviation: Any, dtype: Any) -> np.ndarray:
    """Return standard deviations to divide by, with one in place of those whose inverse overflows."""
    with np.errstate(over="ignore", divide="ignore"):
        usable = np.isfinite(np.divide(1, deviation).astype(dtype)) & np.isfinite(deviation)
    return np.where(usable, deviation, 1.0)


def dense(rows: Any) -> np.ndarray:
    """Return rows as an array. Even a stream that began with arrays may bring sparse rows."""
    return rows.toarray() if scipy.sparse.issparse(rows) else np.asarray(rows)


def of_unit_size(columns: np.ndarray) -> np.ndarray:
    """Return columns in float64, divided by their largest size: squares of 1e200 would overflow."""
    exact = columns.astype(np.float64)
    exact /= max(np.abs(exact).max(), np.finfo(np.float64).tiny)
    return exact


def deviation_of_all(deviation: np.ndarray) -> Any:
    """Return one deviation for all outputs."""
    # Squares of numbers such as 1e200 overflow, and those of 1e-200 are zero. Powers of two keep
    # the bits.
    largest = np.max(deviation)
    unit = 1.0
    if largest > 2.0**500:
        unit = 2.0**600
    elif 0 < largest < 2.0**-500:
        unit = 2.0**-600
    return unit * np.sqrt(np.mean(np.square(deviation / unit)))


def _row_blocks(n_rows, n_columns, many_values):
    """Return slices of rows that stand for all. Each fits into a cache."""
    length = max(1, _BLOCK // n_columns)
    if n_rows <= _N_BLOCKS or n_rows * n_columns <= many_values:
        return [slice(start, start + length) for start in range(0, n_rows, length)]

    length = max(1, min(length, many_values // (_N_BLOCKS * n_columns)))
    # Each is in the middle of one of as many equal parts.
    starts = ((np.arange(_N_BLOCKS) + 0.5) * (n_rows / _N_BLOCKS) - length / 2).astype(int)
    return [slice(start, start + length) for start in starts]


def smoothness(
    X: Any,
    sample_weight: np.ndarray | None,
    batch_size: int,
    used: Standardization | None,
    ones: float = 1.0,
) -> float:
    """
    Return how fast the gradient of a linear model's mean loss changes along a step on a batch, b of
    n rows.
    """
    # This is the expected smoothness of sampling without replacement (Gower et al.,
    # arXiv:1901.09401, proposition 3.8), for X' with a column of `ones` and a loss whose second
    # derivative is one. `batch_smoothness` has it from the largest eigenvalue of X'^T X' / n and
    # the largest squared norm of a row. A row counts s_i / mean(s) times.
    shares = relative_weights(sample_weight)
    n = X.shape[0] if shares is None else int(np.count_nonzero(shares))
    b = min(batch_size, n)
    largest = largest_eigenvalue(X, shares, used, ones)
    norm = largest_norm(X, shares, used, ones) if b < n else 0.0

    return batch_smoothness(largest, norm, n, b)


def batch_smoothness(largest: float, norm: float, n: int, b: int) -> float:
    """
    Return the smoothness of batches, b of n rows, from the largest eigenvalue and the largest
    squared norm.
    """
    return largest if b == n else (n * (b - 1) * largest + (n - b) * norm) / (b * (n - 1))


def largest_eigenvalue(
    X: Any, sample_weight: np.ndarray | None, used: Standardization | None, ones: float = 1.0
) -> float:
    """
    Return the largest eigenvalue of X'^T S X' / n within a few percent, from at most 2,000 rows. S
    has the relative sample weights.
    """
    return _eigenvalue(_some_rows(X, sample_weight, used, ones))


def _eigenvalue(rows):
    """Return the largest eigenvalue of rows^T rows / n, within a few percent."""
    n, n_columns = rows.shape
    if scipy.sparse.issparse(rows) or min(n, n_columns) > _MANY_COLUMNS:
        return _powers(rows, _STEPS)
    return eigenvalue_of_gram(_gram(rows if n_columns <= n else rows.T, n))


def _gram(rows, n_rows):
    """Return rows^T rows / n."""
    with one_blas_thread(rows.size * rows.shape[1]), np.errstate(over="ignore", invalid="ignore"):
        return rows.T @ rows / n_rows


def gram_of_some(
    X: Any, sample_weight: np.ndarray | None, used: Standardization | None
) -> np.ndarray | None:
    """
    Return X'^T S X' / n of at most 2,000 weighted rows with a column of ones. None: the rows are
    sparse, or fewer than the columns, or the columns are many.
    """
    if scipy.sparse.issparse(X) or not X.shape[1] < min(_MANY_COLUMNS, X.shape[0]):
        return None
    rows = _some_rows(X, relative_weights(sample_weight), used, 1.0)
    return _gram(rows, len(rows)) if rows.shape[1] <= len(rows) else None


def half_decorrelation(
    X: np.ndarray, sample_weight: np.ndarray | None, used: Standardization
) -> np.ndarray | None:
    """
    Return S^(-1/4) of the covariance S of at most 2,000 weighted rows of X', shrunk by the rule of
    Ledoit and Wolf. A column that does not vary stays as it is. None: S is a multiple of the
    identity, or not finite.
    """
    # The square of the mean distance between S and its estimate is (E|x|^4 - |S|^2) / n. The
    # estimate moves to a multiple of I by the share of this in their distance (J. Multivariate Anal.
    # 88, 2004).
    rows = _some_rows(X, relative_weights(sample_weight), used, 1.0)[:, :-1]
    columns = np.flatnonzero(rows.any(axis=0))
    rows = rows[:, columns]
    if len(columns) < 2:
        return None

    with one_blas_thread(rows.size * len(columns)), np.errstate(over="ignore", invalid="ignore"):
        covariance = _gram(rows, len(rows))
        fourth = np.mean(np.square(np.einsum("ij,ij->i", rows, rows)))
        size = np.sum(np.square(covariance))
        if not np.isfinite(fourth + size):
            return None
        mean = np.trace(covariance) / len(columns)
        distance = len(rows) * (size - len(columns) * mean**2)
        if distance <= fourth - size:
            return None
        share = (fourth - size) / distance
        covariance *= 1 - share
        covariance[np.diag_indices(len(columns))] += share * mean
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, _LEAST_VARIANCE * mean)
        root = np.eye(X.shape[1])
        root[np.ix_(columns, columns)] = (vectors * values**-0.25) @ vectors.T
    return root


def eigenvalue_of_gram(gram: np.ndarray) -> float:
    """
    Return the largest eigenvalue of a Gram matrix, within a few percent; infinity if a square of
    its rows is infinite.
    """
    with one_blas_thread(gram.size * len(gram)):
        if len(gram) <= _FEW_COLUMNS:
            try:
                return float(np.linalg.eigvalsh(gram)[-1])
            except np.linalg.LinAlgError:
                return np.inf
        return _largest(gram.__matmul__, len(gram), _STEPS)


def _powers(rows, n_steps):
    """Return the largest eigenvalue of rows^T rows / n, or less, from steps of the power method."""
    return _more_powers(rows, _first_direction(rows.shape[1]), n_steps)[0]


def _more_powers(rows, direction, n_steps):
    """Return the same from steps that begin with a direction, and the direction after them."""
    n, n_columns = rows.shape
    transposed = rows.T
    with one_blas_thread(n * n_columns * min(n, n_columns)):
        return _steps(lambda each: transposed @ (rows @ each) / n, direction, n_steps)


def _largest(product, n_columns, n_steps):
    """Return the largest eigenvalue of a matrix, or less, from products of the matrix and vectors."""
    return _steps(product, _first_direction(n_columns), n_steps)[0]


def _first_direction(n_columns):
    return seeded(0).standard_normal(n_columns)


def _steps(product, direction, n_steps):
    """Return the length of the last product of the power method, and its direction."""
    length = 0.0
    for _ in range(n_steps):
        direction = product(direction)
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            break
        direction /= length

    return length, direction


def spread_of_gram(gram: np.ndarray) -> tuple[float, float] | None:
    """
    Return the largest eigenvalue of X^T S X / n, or less, and the trace, which is the mean squared
    norm of the rows. None: they are not finite.
    """
    norm = float(np.trace(gram))
    if not math.isfinite(norm):
        return None
    with one_blas_thread(gram.size):
        return _largest(gram.__matmul__, len(gram), _ROUGH_STEPS), norm


def column_sums(
    X: scipy.sparse.csr_matrix, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the sums of the absolute values of each column of a sparse X, and the numbers of its
    values that are not zero. Rows of weight zero do not count.
    """
    if sample_weight is not None and not sample_weight.all():
        X = X[np.flatnonzero(sample_weight)]

    values = np.abs(X.data, dtype=np.float64)
    n_columns = X.shape[1]
    return (
        np.bincount(X.indices, values, n_columns),
        np.bincount(X.indices, values > 0, n_columns),
    )


def unit_scales(sums: np.ndarray, counts: np.ndarray) -> np.ndarray | None:
    """
    Return the scales of sparse columns, from their `column_sums`. None if no column is in another
    unit.

    A column is in another unit if the mean size of its values is above twenty times the median
    column's, or below a twentieth. Its scale is its size over the median one. All other scales are
    one.
    """
    sizes = np.divide(sums, counts, where=counts > 0, out=np.zeros(len(sums)))
    found = sizes[sizes > 0]
    if not len(found):
        return None

    median = np.median(found)
    # A few small values weigh little, and may be small by chance.
    are_small = (sizes < median / FAR_UNITS) & (counts >= _FEW_VALUES)
    are_far = (sizes > FAR_UNITS * median) | are_small
    return np.where(are_far, sizes / median, 1.0) if are_far.any() else None


def without_means(scale: np.ndarray | None) -> Standardization | None:
    """Return what only divides the columns of X, or None for None."""
    return None if scale is None else Standardization(np.zeros(len(scale)), scale, None, 1.0)


def common_scale(
    X: scipy.sparse.csr_matrix,
    sample_weight: np.ndarray | None,
    batch_size: int,
    used: Standardization | None = None,
) -> float:
    """
    Return the number that divides a sparse X, so that its smoothness is one without a column of
    ones.
    """
    # Small values of X, as of text, would make the column of ones nearly all of the smoothness.
    # Then the learning rate would be too small for all other columns.
    return float(np.sqrt(smoothness(X, sample_weight, batch_size, used, ones=0.0)))


def relative_weights(sample_weight: np.ndarray | None) -> np.ndarray | None:
    """Return sample weights divided by the mean of those above zero, or None for None."""
    return (
        None if sample_weight is None else sample_weight / sample_weight[sample_weight > 0].mean()
    )


def largest_norm(
    X: Any, sample_weight: np.ndarray | None, used: Standardization | None, ones: float = 1.0
) -> float:
    """
    Return the largest squared norm of a row of X' with a column of ones, times the row's relative
    weight.
    """
    norm = 0.0
    n_values = -(-X.nnz // X.shape[0]) + 1 if scipy.sparse.issparse(X) else X.shape[1]

    for rows in _row_blocks(X.shape[0], n_values, _MANY_VALUES):
        if (part := _scaled(X[rows], used)) is not None:
            norms = np.asarray(part.multiply(part).sum(axis=1)).ravel() + ones**2
        else:
            part = _standardized(X[rows], used, ones)
            norms = np.einsum("ij,ij->i", part, part)

        norm = max(
            norm, float(np.max(norms if sample_weight is None else norms * sample_weight[rows]))
        )

    return norm


def spreads_of_some(
    X: Any, sample_weight: np.ndarray | None, used: Standardization | None
) -> Iterator[tuple[tuple[float, float], float]]:
    """
    Yield the largest eigenvalue of weighted rows of X' with a column of ones, and the mean of their
    squared norms, weighted by these norms themselves; and the part of the true eigenvalue that this
    one surely has.

    The last ones are those of at most 2,000 rows. The first eigenvalue takes least time: it is that of
    at most 256 rows, and may be too small.
    """
    shares = relative_weights(sample_weight)
    rows = _some_rows(X, shares, used, 1.0, _FEW_ROWS)
    are_all = X.shape[0] <= _FEW_ROWS
    with np.errstate(over="ignore", invalid="ignore"):
        # A large row may not be among a few ones.
        squares = _squares(rows) if are_all else squared_norms(X, shares, used)
        # The error of a step grows with E|x|^4 / E|x|^2. A few large rows of a long tail are most of
        # it.
        norm = np.average(squares, weights=squares)
        norm = float(np.nan_to_num(norm, nan=np.inf, posinf=np.inf))
        largest, direction = _more_powers(rows, _first_direction(rows.shape[1]), _ROUGH_STEPS)
    yield (largest, norm), _ROUGH_PART

    n_steps = _ROUGH_STEPS
    if not are_all:
        rows = _some_rows(X, shares, used, 1.0)
        n_steps, direction = 0, _first_direction(rows.shape[1])

    if not scipy.sparse.issparse(rows):
        with np.errstate(over="ignore", invalid="ignore"):
            largest = _eigenvalue(rows)
        yield (largest, norm), 1.0
        return

    for until in (_MORE_STEPS, _STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            largest, direction = _more_powers(rows, direction, until - n_steps)
        n_steps = until
        yield (largest, norm), _ROUGH_PART ** (_ROUGH_STEPS / n_steps)


def squared_norms(X: Any, shares: np.ndarray | None, used: Standardization | None) -> np.ndarray:
    """
    Return the squared norms of at most 2,000 rows of X' with a column of ones, each times its
    relative weight.
    """
    numbers = some_numbers(X, shares, _SOME_ROWS)
    length = max(1, _CACHED // X.shape[1])
    with np.errstate(over="ignore"):
        squares = np.concatenate(
            [
                _squares(_standardized(_taken(X, numbers[start : start + length]), used, 1.0))
                for start in range(0, len(numbers), length)
            ]
        )
        return squares if shares is None else squares * shares[numbers]


def _squares(rows):
    """Return the squared norms of rows."""
    if scipy.sparse.issparse(rows):
        numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        return np.bincount(numbers, np.square(rows.data), rows.shape[0])
    return np.einsum("ij,ij->i", rows, rows)


def some_numbers(X: Any, sample_weight: np.ndarray | None, most: int) -> np.ndarray:
    """Return the numbers of at most so many evenly spaced rows that count."""
    if sample_weight is None:
        return evenly_spaced(X.shape[0], most)
    numbers = np.flatnonzero(sample_weight)
    return numbers[evenly_spaced(len(numbers), most)]


def evenly_spaced(n_rows: int, most: int) -> np.ndarray:
    """Return at most so many evenly spaced ones of the numbers from 0 to n_rows - 1."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(int)


def _taken(X, numbers):
    """Return the rows of these rising numbers. They are not copied if nothing is left out."""
    if len(numbers) == X.shape[0]:
        return X
    first, last = numbers[0], numbers[-1]
    return X[first : last + 1] if last - first + 1 == len(numbers) else X[numbers]


def _some_rows(X, shares, used, ones, most=_SOME_ROWS):
    """Return at most so many standardized rows, each times the root of its relative weight."""
    numbers = some_numbers(X, shares, most)
    some = _standardized(_taken(X, numbers), used, ones)
    if shares is None:
        return some

    roots = np.sqrt(shares[numbers])[:, None]
    return some.multiply(roots).tocsr() if scipy.sparse.issparse(some) else some * roots


def _standardized(X, used, ones):
    """Return the rows of X', with a column that has the number `ones`."""
    rows = _scaled(X, used)
    if rows is not None:
        return _with_column(rows, ones)

    rows = np.full((X.shape[0], X.shape[1] + 1), ones)
    if used is None or used.scale is None:
        rows[:, :-1] = X
    else:
        rows[:, :-1] = difference(dense(X), used.mean)
        rows[:, :-1] /= used.scale
        if used.decorrelation is not None:
            with one_blas_thread(rows.size * rows.shape[1]):
                rows[:, :-1] = rows[:, :-1] @ used.decorrelation

    return rows


def _with_column(rows, number):
    """Return sparse rows with one more column, of a number."""
    # It takes less time than `scipy.sparse.hstack`.
    rows.sum_duplicates()
    n_rows, n_columns = rows.shape
    ends = rows.indptr[1:]
    indptr = rows.indptr.copy()
    indptr[1:] += np.arange(1, n_rows + 1, dtype=indptr.dtype)
    parts = np.insert(rows.data, ends, number), np.insert(rows.indices, ends, n_columns), indptr
    return scipy.sparse.csr_matrix(parts, shape=(n_rows, n_columns + 1))


def _scaled(X, used):
    """Return sparse rows of X', or None if X or X' is not sparse."""
    is_changed = used is not None and used.scale is not None
    if not scipy.sparse.issparse(X) or (is_changed and used.mean.any()):
        return None
    return X.multiply(1 / used.scale[None]).tocsr() if is_changed else X.astype(np.float64)
