"""Mini-batches: every epoch uses every row once, in seeded random order."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from skort.common.random_state import seeded
from skort.optim.row_change import SparseRows, UnchangedRows, source_rows

#: A larger number of rows is shuffled in windows.
MANY_ROWS = 2**17
# The rows and values of a block in a pass over all rows: what a step computes from it should stay
# in the cache.
_BLOCK_ROWS = 2**15
_BLOCK_VALUES = 2**20
# From so many columns on, products of sparse rows are the fastest up to this share of values that
# are not zero.
_MANY_COLUMNS = 1000
_SHARE = 0.1


class Portion(NamedTuple):
    """How large a batch is, as a part of the epoch, and as a part of a whole batch."""

    #: The part of the epoch's rows.
    share: float
    #: The part of `batch_size` rows, and so of the rate: a row counts the same in every batch.
    part: float


class Batch(Protocol):
    """The rows that the next step reads."""

    #: The factor of each row's loss, of shape (batch_size, 1). It is zero for rows that only fill
    #: up the batch.
    sample_weight: np.ndarray
    #: Whether the batch reads single rows from X. If not, windows of many rows are copied first.
    in_place: bool

    def __len__(self) -> int:
        """Return the number of rows."""

    def begin(self, data: list[Any]) -> None:
        """Begin a training on data: X, the target and, unless all are equal, the sample weights."""
        return

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """
        Return the functions that put rows, by number, into the batch. All of them are called, in
        this order.
        """


@dataclass(frozen=True, eq=False)
class HostBatch(Batch):
    """Arrays in memory that the next step reads. Each step overwrites them, and none replaces them."""

    #: ndarray of shape (batch_size, n_features).
    X: np.ndarray
    #: ndarray of shape (batch_size, n_outputs).
    target: np.ndarray
    #: ndarray of shape (batch_size, 1).
    sample_weight: np.ndarray
    in_place = False

    @classmethod
    def empty(
        cls, batch_size: int, n_features: int, n_outputs: int, dtype: DTypeLike
    ) -> "HostBatch":
        """Return a batch of zeros."""
        return cls(
            *(np.zeros((batch_size, n_columns), dtype) for n_columns in (n_features, n_outputs, 1))
        )

    def __len__(self) -> int:
        return len(self.X)

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """Return the functions that copy rows, by number, into the arrays."""
        outs = self.X, self.target, self.sample_weight
        return [filler(rows, out) for rows, out in zip(data, outs, strict=False)]


@dataclass(frozen=True)
class WindowShape:
    """The order of many rows: blocks of consecutive rows, in windows of about 2^20 values of X."""

    # Reading a single row costs a cache miss, or a page of a memory map, so windows are copied as a
    # whole. X is divided into K = `n_blocks` regions, and a window has a random block of each. If f
    # is the share of the variance s^2 within regions, the mean over m rows has the variance s^2 / m
    # (1 - (1 - f) m / K). That is at most the variance of a permutation (two-stage sampling:
    # Cochran, Sampling Techniques, 1977).

    #: The largest number of blocks in a window.
    n_blocks: int
    #: The number of rows of a block.
    length: int

    @classmethod
    def of(cls, n_features: int, batch_size: int) -> "WindowShape":
        """
        Return windows of about 2^20 values. They have at least as many blocks as a batch has rows,
        so that few of these share a block.
        """
        n_blocks = max(256, batch_size)
        return cls(n_blocks, max(1, 2**20 // (n_blocks * n_features)))

    def rows(self, blocks: np.ndarray) -> np.ndarray:
        """Return the numbers of the rows of some blocks, block by block."""
        return (blocks[:, None] * self.length + np.arange(self.length)).ravel()

    def divide(self, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the numbers of blocks with rows of positive weight, and the numbers of such rows at
        the end that fill no block.
        """
        n_blocks = len(sample_weight) // self.length
        in_blocks = n_blocks * self.length
        blocks = sample_weight[:in_blocks].reshape(n_blocks, self.length)
        return np.flatnonzero(blocks.any(axis=1)), in_blocks + np.flatnonzero(
            sample_weight[in_blocks:]
        )

    def draw(self, blocks: np.ndarray, random_state: np.random.RandomState) -> Iterator[np.ndarray]:
        """Yield the blocks of each window, in ascending order. Each block is in one window."""
        # Consecutive blocks form strata. A window gets a random block of each, and so its part of
        # every region.
        n_windows = -(-len(blocks) // self.n_blocks)
        n_strata = -(-len(blocks) // n_windows)
        places = np.argsort(random_state.random_sample((n_strata, n_windows)), axis=1)
        places += n_windows * np.arange(n_strata)[:, None]
        for window in places.T:
            yield blocks[window[window < len(blocks)]]

    def deal(self, n_more: int, n_blocks: int, random_state: np.random.RandomState) -> np.ndarray:
        """
        Return a random order of the rows of a window. As `copier` copies them, single rows come
        first, then blocks.
        """
        # The blocks are dealt out like cards: one row of each in random order, then another one of
        # each.
        turns = np.tile(random_state.permutation(self.length), 2)
        first_turns = random_state.randint(self.length, size=n_blocks)
        order = turns.take(np.arange(self.length)[:, None] + first_turns)
        order += n_more + self.length * random_state.permutation(n_blocks)

        return np.insert(
            order.ravel(), random_state.randint(order.size + 1, size=n_more), np.arange(n_more)
        )

    def copier(
        self, rows: np.ndarray, n_more: int
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """
        Return a function from numbers of single rows, at most `n_more`, and of blocks to a copy of
        these rows. The next call overwrites the copy.
        """
        copies = np.empty((n_more + self.n_blocks * self.length, rows.shape[1]), rows.dtype)
        rows, out = as_taken(rows, copies)
        n_whole = len(rows) // self.length
        whole = rows[: n_whole * self.length].reshape(n_whole, -1)

        def copy(more, blocks):
            begin = len(more)
            end = begin + len(blocks) * self.length
            rows.take(more, axis=0, out=out[:begin], mode="clip")
            whole.take(blocks, axis=0, out=out[begin:end].reshape(len(blocks), -1), mode="clip")
            return copies[:end]

        return copy


def as_taken(rows: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return views for `rows.take(..., out=out)`, which then copies only the rows that it takes."""
    # If numbers are not aligned, `take` first copies all rows. It does not if they are bytes.
    if rows.flags.aligned or not rows.flags.c_contiguous or rows.dtype != out.dtype:
        return rows, out
    return rows.view(np.uint8), out.view(np.uint8)


class Batches:
    """
    The training data. In a batch of m rows, row i counts s_i / (m mean(s)), where s are all
    positive sample weights. An epoch has `copies` of each row.
    """

    # So the gradient of a random batch is, on average, that of the weighted mean over all rows. The
    # graph of a solver has one shape, so rows of weight zero fill up the last batch.

    def __init__(  # noqa: PLR0913  # rows, and how they are dealt out
        self,
        X: Any,
        target: np.ndarray,
        sample_weight: np.ndarray | None,
        *,
        batch_size: int,
        shuffle: bool,
        random_state: np.random.RandomState,
        sample_weight_scale: float = 1.0,
        copies: int = 1,
        rows_of_a_step: int | None = None,
    ):
        self.random_state = random_state
        self.shuffle = shuffle
        self._rows_of_a_step = int(rows_of_a_step or batch_size)
        self.sample_weight: np.ndarray
        self.n_rows: int
        #: How many orders were drawn.
        self.n_drawn: int = 0

        self._weighted = sample_weight is not None
        if sample_weight is None:
            self.sample_weight = np.broadcast_to(float(sample_weight_scale), X.shape[0])
            self.n_rows = X.shape[0]
        else:
            largest, mean = relative_mean(sample_weight)
            # s_i / mean(s), times the scale
            self.sample_weight = (
                np.asarray(sample_weight, np.float64) / largest * (sample_weight_scale / mean)
            )
            self.n_rows = int(np.count_nonzero(self.sample_weight))

        n_in_epoch = copies * self.n_rows
        #: The rows of the largest batch.
        self.batch_size: int = min(int(batch_size), n_in_epoch)
        #: The batches of an epoch, the short one included.
        self.n_batches: int = -(-n_in_epoch // self.batch_size)

        #: X, the target and, unless all are equal, the sample weights.
        self.data: list[Any] = [X, target]
        if self._weighted:
            self.data.append((self.sample_weight / self.batch_size).astype(target.dtype)[:, None])

        self._windows = WindowShape.of(X.shape[1], self.batch_size)
        is_long = self.n_rows > MANY_ROWS and copies == 1
        self._in_windows = shuffle and is_long and self._windows.length > 1

        if self._in_windows:
            self._blocks, self._rest = self._windows.divide(self.sample_weight)
        else:
            counted = (
                np.nonzero(self.sample_weight)[0]
                if self._weighted
                else np.arange(X.shape[0], dtype=np.intp)
            )
            self._rows = np.tile(counted, copies) if copies > 1 else counted

    @property
    def are_sparse(self) -> bool:
        """Whether sparse rows are the fastest way to multiply the batches."""
        return has_few_values(source_rows(self.data[0]))

    def order(self, *, in_place: bool = False) -> Iterable[tuple[list[Any], np.ndarray]]:
        """Draw the order of the next epoch."""
        self.n_drawn += 1
        drawn = self.draw(self.random_state)
        return self._parts(drawn, in_place) if self._in_windows else [(self.data, drawn)]

    def draw(self, random_state: np.random.RandomState) -> Any:
        """Return all that the order of one epoch takes from a generator."""
        if self._in_windows:
            return random_state.randint(2**32, dtype=np.uint32)
        return random_state.permutation(self._rows) if self.shuffle else self._rows

    def _parts(self, seed, in_place):
        """Yield the parts of an epoch, window by window. Rows that fill no batch go to the next part."""
        random_state = seeded(seed)
        windows = self._windows
        size = self.batch_size
        rest = self._rest
        copiers = (
            []
            if in_place
            else [_copier(windows, rows, max(size, windows.length)) for rows in self.data]
        )

        for blocks in windows.draw(self._blocks, random_state):
            rows = np.concatenate([rest, windows.rows(blocks)])
            order = windows.deal(len(rest), len(blocks), random_state)
            if self._weighted:
                order = order[self.sample_weight[rows[order]] > 0]
            order, left = np.split(order, [len(order) - len(order) % size])
            yield (
                (self.data, rows[order])
                if in_place
                else ([copy(rest, blocks) for copy in copiers], order)
            )
            rest = rows[left]

        yield self.data, rest

    @property
    def are_plain(self) -> bool:
        """Whether a step can read all rows of X where they are."""
        X, target, *_ = self.data
        return (
            isinstance(X, np.ndarray)
            and X.flags.c_contiguous
            and X.flags.aligned
            and X.dtype == target.dtype
            and self.n_rows == len(X)
        )

    def epoch(self, batch: Batch) -> Iterator[Portion]:
        """Fill `batch` with each batch of an epoch in turn."""
        size = self.batch_size
        whole = Portion(size / self.n_rows, size / self._rows_of_a_step)
        # If all sample weights are equal, the data have none.
        batch.sample_weight[...] = self.sample_weight[0] / size

        # Copying the rows of a sparse matrix takes as long as making them dense.
        in_place = batch.in_place or scipy.sparse.issparse(source_rows(self.data[0]))
        for data, order in self.order(in_place=in_place):
            fillers = batch.fillers(data)
            n_last = len(order) % size

            for indices in order[: len(order) - n_last].reshape(-1, size):
                for fill in fillers:
                    fill(indices)
                yield whole

            if n_last:
                last = order[-n_last:]
                indices = np.resize(np.concatenate([last, order]), size)
                for fill in fillers:
                    fill(indices)
                batch.sample_weight[:n_last, 0] = self.sample_weight[last] / n_last
                batch.sample_weight[n_last:] = 0
                yield Portion(n_last / self.n_rows, n_last / self._rows_of_a_step)


def _copier(windows, rows, n_more):
    """Return the function that copies rows of windows into the variables of the training."""
    copy = windows.copier(source_rows(rows), n_more)
    if not isinstance(rows, UnchangedRows):
        return copy

    def changed(*numbers):
        # Changing a whole window costs a tenth of changing its batches.
        copied = copy(*numbers)
        rows.change.in_place(copied)
        return copied

    return changed


def block_size(n_rows: int, n_values: int) -> int:
    """
    Return the number of rows in a block of a pass over all rows of so many values. The blocks are
    as few as possible, and of about the same size.
    """
    n_blocks = max(-(-n_rows // _BLOCK_ROWS), -(-n_rows * n_values // _BLOCK_VALUES))
    return -(-n_rows // n_blocks)


def relative_mean(sample_weight: np.ndarray) -> tuple[float, float]:
    """
    Return the largest sample weight, and the mean of the positive ones as a part of it. So no sum
    overflows.
    """
    largest = float(np.max(sample_weight))
    relative = np.asarray(sample_weight, dtype=np.float64) / largest
    return largest, float(np.mean(relative[relative > 0]))


def is_wide(X: Any) -> bool:
    """Return whether X is sparse and has many columns."""
    return scipy.sparse.issparse(X) and X.shape[1] >= _MANY_COLUMNS


def has_few_values(X: Any) -> bool:
    """Return whether X is sparse, and its products are the fastest if it stays so."""
    return is_wide(X) and X.nnz <= _SHARE * X.shape[0] * X.shape[1]


def filler(rows: Any, out: np.ndarray) -> Callable[[np.ndarray], None]:
    """Return the function that copies rows, by number, into `out`."""
    if isinstance(rows, UnchangedRows):
        copy = filler(rows.rows, out)
        change = rows.change.in_place

        def fill(indices):
            copy(indices)
            change(out)

        return fill
    if scipy.sparse.issparse(rows):
        taken = SparseRows(len(out), out.shape[1], out.dtype)

        def fill_dense(indices):
            taken.take(rows, indices)
            taken.write(out)

        return fill_dense

    rows, out = as_taken(rows, out)
    # mode="clip" writes straight into `out`; the default mode needs a buffer. functools.partial
    # would be slower.
    take = rows.take
    return lambda indices: take(indices, 0, out, "clip")


def fill(
    batch: Any,
    X: Any,
    target: np.ndarray,
    sample_weight: np.ndarray | None,
    scale: float,
    read: Callable[[np.ndarray | None], None] | None = None,
) -> int:
    """
    Put rows into a batch. Each of the m rows with a weight s_i > 0 counts scale s_i / m, and the
    others fill up the batch. Return m.
    """
    n_rows = len(target)
    is_whole = n_rows == len(batch) and isinstance(X, np.ndarray) and X.flags.aligned

    if read is not None and is_whole:
        read(X)
        batch.target[...] = target
    else:
        if read is not None:
            read(None)
        batch.begin([X, target])
        indices = np.resize(np.arange(n_rows), len(batch))
        for put in batch.fillers([X, target]):
            put(indices)

    count = n_rows if sample_weight is None else int(np.count_nonzero(sample_weight))
    if sample_weight is None:
        batch.sample_weight[:n_rows] = scale / n_rows
    else:
        batch.sample_weight[:n_rows, 0] = sample_weight * scale / max(count, 1)

    batch.sample_weight[n_rows:] = 0
    return count


class EpochSize(NamedTuple):
    """The numbers of rows and batches in an epoch of a user's batches."""

    #: The rows whose sample weight is not zero.
    n_rows: int
    #: The batches that the user gives.
    n_batches: int
    #: The rows of the largest part that a step takes.
    batch_size: int
    #: The rows that make a step at the whole rate.
    rows_of_a_step: int


class UserBatches:
    """
    The batches of a user, in parts of `batch_size` rows. `sample_weight` are those of all rows, in
    any order, or None.
    """

    def __init__(
        self,
        epoch: Callable[[], Iterable[tuple[Any, np.ndarray, np.ndarray | None]]],
        size: EpochSize,
        *,
        sample_weight: np.ndarray | None,
        sample_weight_scale: float,
        random_state: np.random.RandomState,
    ):
        self._epoch = epoch
        self.n_rows: int = size.n_rows
        self.n_batches: int = size.n_batches
        self.batch_size: int = size.batch_size
        self._rows_of_a_step = size.rows_of_a_step

        self._largest, mean = (1.0, 1.0) if sample_weight is None else relative_mean(sample_weight)
        self._scale = sample_weight_scale / mean
        self.random_state = random_state

        #: How many orders were drawn: none.
        self.n_drawn: int = 0
        #: Whether sparse rows are the fastest way: never, as every batch is made dense.
        self.are_sparse = False

        #: The rows that a device could copy as a whole: none.
        self.data: list[Any] = []

    def epoch(self, batch: Batch) -> Iterator[Portion]:
        """Fill `batch` with each batch of an epoch in turn."""
        n_rows = 0
        for X, target, sample_weight in self._epoch():
            for start in range(0, len(target), self.batch_size):
                part = slice(start, start + self.batch_size)
                weight = None if sample_weight is None else sample_weight[part] / self._largest
                count = len(target[part]) if weight is None else int(np.count_nonzero(weight))
                n_rows += count

                if count and n_rows <= self.n_rows:
                    fill(batch, X[part], target[part], weight, self._scale)
                    yield Portion(count / self.n_rows, count / self._rows_of_a_step)

        if n_rows != self.n_rows:
            raise ValueError(
                f"batches gave {n_rows} rows of positive sample weight in an epoch, and "
                f"{self.n_rows} when they were read first. Every pass must give the same "
                "rows, in any order."
            )
