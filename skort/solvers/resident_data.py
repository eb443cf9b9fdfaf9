"""Training data on a device: the whole of it, of which a step takes its rows, or batch by batch."""

import mmap

import numpy as np

__all__ = ["Rows", "Table"]


class Rows:
    """
    The numbers of the rows of a batch on a device.

    Parameters
    ----------
    device : Device
    batch_size : int
    """

    def __init__(self, device, batch_size):
        self._device = device
        self._last = None
        #: From 0 to `batch_size`.
        self.all = device.put(np.arange(batch_size))
        #: Those of the batch.
        self.chosen = device.put(np.arange(batch_size))

    def fill(self, indices):
        """Let these be the rows."""
        # All tables are told the same.
        if indices is not self._last:
            self._device.fill(self.chosen, indices.astype(np.int64, copy=False))
            self._last = indices


class Table:
    """
    What a batch has in place of an ndarray, where its rows are on a device.

    Rows in memory are taken there as a whole, by the first batch; a sparse matrix or a memory map batch by batch.

    Parameters
    ----------
    device : Device
    rows : Rows
    shape : tuple of int
        Of a batch.
    dtype : dtype
    """

    def __init__(self, device, rows, shape, dtype):
        self._device, self._rows = device, rows
        self._batch = np.zeros(shape, dtype)
        self._source = None
        #: The rows that are on the device, and which of them are the batch.
        self.array, self.indices = device.put(self._batch), rows.all

    def __len__(self):
        return len(self._batch)

    def filler(self, rows, host_filler):
        """
        Return the function that lets the rows of some indices be the batch.

        Parameters
        ----------
        rows : ndarray or CSR matrix of shape (n_samples, n_columns)
        host_filler : callable
            Rows, ndarray -> the same function for that array.
        """
        if not _is_in_memory(rows):
            return self._batch_filler(rows, host_filler)
        if rows is not self._source:
            self._source, self.indices = rows, self._rows.chosen
            self.array = self._device.put(np.asarray(rows, self._batch.dtype))
        return self._rows.fill

    def _batch_filler(self, rows, host_filler):
        if self._source is not None:
            self._source, self.indices = None, self._rows.all
            self.array = self._device.put(self._batch)
        fill_batch = host_filler(rows, self._batch)

        def fill(indices):
            fill_batch(indices)
            self._device.fill(self.array, self._batch)

        return fill


def _is_in_memory(rows):
    """Return whether rows are an ndarray that is no view of a file."""
    base = rows
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(rows, np.ndarray) and not isinstance(base, mmap.mmap)
