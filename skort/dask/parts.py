"""Dask collections as aligned partitions: what each task gets."""

import math
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np

__all__ = ["Part", "check_rows", "delayed_parts", "is_collection"]


class Part(NamedTuple):
    """
    The rows of one partition.

    Parameters
    ----------
    number : int
        Its place among the partitions.
    X, y : object
        As the collections hold them.
    sample_weight : object or None
    """

    number: int
    X: Any
    y: Any
    sample_weight: Any

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.X.shape[0]


def check_rows(name: str, X: Any) -> None:
    """Raise a ValueError where an array has no columns."""
    if isinstance(X, da.Array) and X.ndim == 1:
        raise ValueError(
            f"{name} has 1 dimension, expected rows and columns: use {name}.reshape(-1, 1) for one column."
        )


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask array or DataFrame."""
    return isinstance(X, da.Array) or _is_frame(X)


def delayed_parts(X: Any, y: Any, sample_weight: Any = None, names: tuple[str, str] = ("X", "y")) -> list[Any]:
    """
    Return the partitions of aligned collections.

    Where all sizes are known, y and the sample weights are cut as X is. Otherwise they must have as many partitions.

    Parameters
    ----------
    X : dask Array of shape (n_samples, n_features), or DataFrame
    y : dask Array of shape (n_samples,) or (n_samples, n_outputs), Series or DataFrame
    sample_weight : dask Array of shape (n_samples,), Series, or None
    names : (str, str), default=("X", "y")
        The names of X and y in messages.

    Returns
    -------
    parts : list of Delayed
        Each a `Part`; a ValueError where X, y and the sample weights have different numbers of rows in it.

    Raises
    ------
    TypeError
        For anything but Dask collections.
    ValueError
        Where they are not aligned.
    """
    given = {names[0]: X, names[1]: y, "sample_weight": sample_weight}
    given = {name: collection for name, collection in given.items() if collection is not None}
    for name, collection in given.items():
        if not is_collection(collection):
            raise TypeError(
                f"{name} is of type {type(collection).__name__}: skort.dask trains on Dask arrays and DataFrames. Use "
                f"dask.array.from_array({name}, chunks=...), or the estimators of skort itself."
            )
    check_rows(names[0], X)
    columns = [_blocks(name, collection) for name, collection in _aligned(given, names[0]).items()]
    columns += [[None] * len(columns[0])] * (3 - len(columns))
    part = dask.delayed(_part, pure=False)
    return [part(names, number, *blocks) for number, blocks in enumerate(zip(*columns, strict=True))]


def _part(names, number, X, y, sample_weight):
    """Return a partition whose rows are aligned."""
    n, lengths = X.shape[0], {names[1]: y, "sample_weight": sample_weight}
    for name, values in lengths.items():
        if values is not None and len(values) != n:
            raise ValueError(
                f"Partition {number} of {names[0]} has {n} rows, that of {name} has {len(values)}: they are not "
                "aligned. Divide both alike, for instance with rechunk after compute_chunk_sizes()."
            )
    return Part(number, X, y, sample_weight)


def _aligned(given, first):
    """Return collections whose partitions have the same rows, as far as their sizes are known."""
    sizes = {name: _sizes(collection) for name, collection in given.items()}
    expected = sizes[first]
    lengths = {name: sum(size) for name, size in sizes.items()}
    known = {name: n for name, n in lengths.items() if not math.isnan(n)}
    if len(set(known.values())) > 1:
        raise ValueError(f"The collections have different numbers of rows: {_listed(known)}. They need the same rows.")
    aligned = dict(given)
    for name, size in sizes.items():
        if name in known and first in known:
            aligned[name] = given[name] if size == expected else given[name].rechunk({0: expected})
        elif len(size) != len(expected):
            counts = {name: len(size) for name, size in sizes.items()}
            raise ValueError(
                f"The collections have different numbers of partitions: {_listed(counts)}, and not all sizes are "
                "known, so that they cannot be aligned. Call compute_chunk_sizes() of the arrays, or divide all alike."
            )
    return aligned


def _sizes(collection):
    """Return the number of rows of each partition; NaN where it is not known."""
    return (math.nan,) * collection.npartitions if _is_frame(collection) else collection.chunks[0]


def _blocks(name, collection):
    """Return the partitions of a collection."""
    if _is_frame(collection):
        return collection.to_delayed()
    if collection.ndim > 2:
        raise ValueError(f"{name} has {collection.ndim} dimensions, expected at most 2.")
    if collection.ndim == 2 and len(collection.chunks[1]) > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def _is_frame(collection):
    return hasattr(collection, "to_delayed") and hasattr(collection, "divisions")


def _listed(numbers):
    return ", ".join(f"{name} has {n}" for name, n in numbers.items())
