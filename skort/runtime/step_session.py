"""A plain InferenceSession whose runs continue from each other: each reads the state that the last one wrote."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from skort.runtime.device import CPU, Device, DeviceArray
from skort.runtime.installed import load


class StepSession:
    """
    A session that reads and writes the same arrays in every run.

    Each part of the state has two arrays: one run reads the first and writes the second, the next run does the reverse.
    `next_names` are the outputs that it takes the state from; `parts` makes views of its arrays, which are further
    inputs. Several of these objects may share a session from `compiled`, in several threads too.
    """

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
        self._device = device
        self._session = session
        buffers = [{name: device.put(array) for name, array in state.items()} for _ in range(2)]
        self._inputs, self._borrowed = dict(inputs), [outputs, buffers]
        self._bindings: list[Any] = []
        fixed_inputs, fixed_outputs = (
            {name: device.value(array) for name, array in arrays.items()} for arrays in (inputs, outputs)
        )
        for before, after in (buffers, buffers[::-1]):
            binding = self._session.io_binding()
            read = {name: device.value(array) for name, array in {**before, **parts(before)}.items()}
            for name, value in {**fixed_inputs, **read}.items():
                binding.bind_ortvalue_input(name, value)
            written = {next_names[name]: device.value(array) for name, array in after.items()}
            for name, value in {**fixed_outputs, **written}.items():
                binding.bind_ortvalue_output(name, value)
            self._bindings.append(binding)
        # The wrapper's own run_with_iobinding costs a quarter of a small step, and a run without options makes its own.
        self._run, self._options = self._session._sess.run_with_iobinding, load().RunOptions()
        first, second = (binding._iobinding for binding in self._bindings)
        self._turns = itertools.cycle([(first, buffers[1]), (second, buffers[0])])
        #: The arrays that the next run reads, by the names of the inputs. Writing into them changes that run.
        self.state: dict[str, Any] = buffers[0]

    def replace(self, name: str, array: DeviceArray) -> None:
        """Let the next runs read another array of the device as the input `name`, one of `inputs`."""
        if array is not self._inputs[name]:
            self._inputs[name] = array
            for binding in self._bindings:
                binding.bind_ortvalue_input(name, self._device.value(array))

    def run(self) -> None:
        """Run once."""
        binding, after = next(self._turns)
        self._run(binding, self._options)
        self.state = after
