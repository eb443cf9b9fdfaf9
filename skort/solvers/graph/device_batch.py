"""A batch on a device: the numbers of its rows, where the device has all rows, or the rows themselves."""

import mmap

import numpy as np

from skort.optim.batches import HostBatch
from skort.runtime.device import Device

__all__ = ["DeviceBatch"]


class DeviceBatch:
    """
    The batch of a device.

    Rows in memory are taken there as a whole when a training begins; a sparse matrix or a memory map batch by batch.

    Parameters
    ----------
    device : Device
    batch_size : int
    n_columns : (int, int)
        Of X and of the target.
    dtype : dtype
    """

    #: Windows of rows are not copied: the device has all rows.
    in_place = True

    def __init__(self, device: Device, batch_size: int, n_columns: tuple[int, int], dtype):
        self._device = device
        self._host = HostBatch.empty(batch_size, n_columns[0], n_columns[1], dtype)
        self.sample_weight = self._host.sample_weight
        self._all = device.put(np.arange(batch_size))
        self._chosen = device.put(np.arange(batch_size))
        self.tables = [_Table(device, rows, self._all) for rows in (self._host.X, self._host.target)]

    def __len__(self):
        return len(self._host)

    def begin(self, data):
        """Take the rows of a training that are in memory to the device."""
        for table, rows in zip(self.tables, data, strict=False):
            table.take(rows, self._chosen, self._all)

    def fillers(self, data):
        """Return the functions that let the rows of some numbers be the batch."""
        host_fillers = self._host.fillers(data)
        fillers = [self._choose] if any(table.is_whole for table in self.tables) else []
        for table, fill in zip(self.tables, host_fillers, strict=False):
            if not table.is_whole:
                fillers += [fill, table.upload]
        # The sample weights of the rows, where these differ.
        return fillers + host_fillers[len(self.tables) :]

    def _choose(self, indices):
        self._device.fill(self._chosen, indices.astype(np.int64, copy=False))


class _Table:
    """
    Rows on a device, and which of them are the batch.

    Parameters
    ----------
    device : Device
    batch : ndarray of shape (batch_size, n_columns)
        The rows of a batch in memory.
    indices : array of the device
        From 0 to `batch_size`.
    """

    def __init__(self, device, batch, indices):
        self._device, self._batch = device, batch
        self.array, self.indices = device.put(batch), indices
        self.is_whole = False

    def take(self, rows, chosen, every):
        """Take all rows of a training, of which `chosen` will be the batch, or make room for one batch."""
        self.is_whole = _is_in_memory(rows)
        self.indices = chosen if self.is_whole else every
        self.array = self._device.put(np.asarray(rows, self._batch.dtype) if self.is_whole else self._batch)

    def upload(self, indices):
        """Copy the rows of the batch to the device."""
        self._device.fill(self.array, self._batch)


def _is_in_memory(rows):
    """Return whether rows are an ndarray that is no view of a file."""
    base = rows
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(rows, np.ndarray) and not isinstance(base, mmap.mmap)
