"""A batch on a device: the numbers of its rows, where the device has all rows, or the rows themselves."""

from typing import Any

import numpy as np

from skort.objective.objective import TARGET
from skort.optim.batches import HostBatch
from skort.optim.rows import is_in_memory
from skort.runtime.device import Device, DeviceArray
from skort.solvers.graph.step_graph import SUMS, indices_name, rows_name


class DeviceSums:
    """What the steps of an epoch add up to, on a device: copied when it is asked for."""

    def __init__(self, device: Device, session: Any, objective: DeviceArray):
        self._device, self._session, self._objective = device, session, objective

    def last(self) -> float:
        """Return the objective of the last step."""
        return self._device.get(self._objective).item()

    def take(self) -> tuple[float, float]:
        """Return objective and loss, each added up since the last call."""
        sums = self._session.state[SUMS]
        objective, loss = self._device.get(sums).tolist()
        self._device.fill(sums, np.zeros(2))
        return objective, loss


class DeviceRows:
    """The batch of a device, which gets all rows in memory at the beginning, and those of a file batch by batch."""

    #: Windows of rows are not copied: the device has all rows.
    in_place = True

    def __init__(self, device: Device, host: HostBatch):
        self._device, self._host, self.sample_weight = device, host, host.sample_weight
        self._all, self._chosen = (device.put(np.arange(len(host))) for _ in range(2))
        self.tables = [_Table(device, rows, self._all) for rows in (host.X, host.target)]

    def arrays(self, input_name: str) -> dict[str, DeviceArray]:
        """Return the arrays that hold the data, by their names as inputs; `input_name` is that of X."""
        tables = dict(zip((input_name, TARGET), self.tables, strict=True))
        arrays = {rows_name(name): table.array for name, table in tables.items()}
        return arrays | {indices_name(name): table.indices for name, table in tables.items()}

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
    """Rows on a device, and which of them are the batch: those of the numbers `indices`, at first all."""

    def __init__(self, device, batch, indices):
        self._device, self._batch = device, batch
        self.array, self.indices = device.put(batch), indices
        self.is_whole = False

    def take(self, rows, chosen, every):
        """Take all rows of a training, of which `chosen` will be the batch, or make room for one batch."""
        self.is_whole = is_in_memory(rows)
        self.indices = chosen if self.is_whole else every
        self.array = self._device.put(np.asarray(rows, self._batch.dtype) if self.is_whole else self._batch)

    def upload(self, indices):
        """Copy the rows of the batch to the device."""
        self._device.fill(self.array, self._batch)
