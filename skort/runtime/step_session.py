"""A plain InferenceSession whose runs continue from each other: each reads the state that the last one wrote."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skort.runtime.device import CPU, Device, DeviceArray
from skort.runtime.installed import load
from skort.runtime.sessions import io_binding


class StepSession:
    """A session whose runs go on from each other: of two arrays for a part of the state, one is read, one written."""

    def __init__(
        self,
        session: Any,
        inputs: dict[str, DeviceArray],
        outputs: dict[str, DeviceArray],
        state: dict[str, np.ndarray],
        next_names: dict[str, str],
        parts: Callable[[dict[str, DeviceArray]], dict[str, DeviceArray]] = lambda arrays: {},
        device: Device = CPU,
    ):
        self._session, self._device, self._parts = session, device, parts
        self._buffers = [{name: device.put(array) for name, array in state.items()} for _ in range(2)]
        self._inputs, self._outputs, self._next_names = dict(inputs), outputs, next_names
        # The wrapper's own run_with_iobinding costs a quarter of a small step, and a run without options makes its own.
        self._run, self._options = session._sess.run_with_iobinding, load().RunOptions()
        self._bindings = [self._binding(*self._buffers)]
        self._turns: Iterator[Any] = iter([(self._bindings[0], self._buffers[1])])
        #: The arrays that the next run reads, by the names of the inputs. Writing into them changes that run.
        self.state: dict[str, Any] = self._buffers[0]

    def _binding(self, before, after):
        """Return what a run reads and writes that goes on from some buffers."""
        value = self._device.value
        read = {**self._inputs, **before, **self._parts(before)}
        written = {**self._outputs, **{self._next_names[name]: array for name, array in after.items()}}
        ends = ({name: value(array) for name, array in end.items()} for end in (read, written))
        return io_binding(self._session, *ends)

    def replace(self, name: str, array: DeviceArray) -> None:
        """Let the next runs read another array of the device as the input `name`, one of `inputs`."""
        if array is not self._inputs[name]:
            self._inputs[name] = array
            for binding in self._bindings:
                binding.bind_ortvalue_input(name, self._device.value(array))

    def run(self) -> None:
        """Run once."""
        binding, after = next(self._turns, None) or self._second()
        self._run(binding, self._options)
        self.state = after

    def _second(self):
        """Return the binding of the second run, which many a training does not make, and what it writes."""
        first, second = self._buffers
        self._bindings.append(self._binding(second, first))
        self._turns = itertools.cycle([(self._bindings[0], second), (self._bindings[1], first)])
        next(self._turns)
        return next(self._turns)
