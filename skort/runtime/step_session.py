"""A plain InferenceSession whose runs continue from each other: each reads the state that the last one wrote."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from skort.runtime.device import CPU, Device, DeviceArray
from skort.runtime.installed import load
from skort.runtime.sessions import inference_session, session_options

__all__ = ["StepSession"]

# Bytes of graph, inputs and state together. A session keeps a few times as much memory at most.
_SMALL = 2**20


class StepSession:
    """
    An InferenceSession that reads and writes the same arrays in every run.

    Each part of the state has two arrays: one run reads the first and writes the second, the next run does the reverse.

    Parameters
    ----------
    graph : bytes
        A serialised model with fixed shapes, of standard operators.
    inputs : dict of str to ndarray
        C-contiguous arrays, one for every input that no run changes. A run reads them in place; the session keeps them
        alive.
    outputs : dict of str to ndarray
        C-contiguous arrays, one for every output that the next run does not read. Each run overwrites them.
    state : dict of str to ndarray
        The inputs that the next run takes from the outputs of this one, with their first values.
    next_names : dict of str to str
        The names of those outputs.
    parts : callable, optional
        Takes the arrays of the state, returns views of them as further inputs (both name -> array).
    device : Device, default=CPU
        `inputs`, `outputs` and the attribute `state` are its arrays. The argument `state` is copied to it.
    """

    def __init__(
        self,
        graph: bytes,
        inputs: dict[str, DeviceArray],
        outputs: dict[str, DeviceArray],
        state: dict[str, np.ndarray],
        next_names: dict[str, str],
        parts: Callable[[dict[str, DeviceArray]], dict[str, DeviceArray]] = lambda arrays: {},
        device: Device = CPU,
    ):
        self._device = device
        self._session = _shared_session(graph) if _is_small(graph, device, inputs, state) else _session(graph, device)
        buffers = [{name: device.put(array) for name, array in state.items()} for _ in range(2)]
        self._inputs, self._borrowed = dict(inputs), [outputs, buffers]
        self._bindings: list[Any] = []
        for before, after in (buffers, buffers[::-1]):
            binding = self._session.io_binding()
            for name, array in {**inputs, **before, **parts(before)}.items():
                binding.bind_ortvalue_input(name, device.value(array))
            for name, array in {**outputs, **{next_names[k]: a for k, a in after.items()}}.items():
                binding.bind_ortvalue_output(name, device.value(array))
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


def _is_small(graph, device, inputs, state):
    """Return whether a session keeps little memory, and no threads, which a forked process would not have."""
    return device == CPU and len(graph) + sum(array.nbytes for array in [*inputs.values(), *state.values()]) < _SMALL


def _session(graph, device=CPU):
    options = session_options(device)
    # Constant folding, common subexpressions, MatMul + Add as Gemm. More makes a slower start and no faster step.
    options.graph_optimization_level = load().GraphOptimizationLevel.ORT_ENABLE_BASIC
    return inference_session(graph, device=device, options=options)


# Making a session takes as long as hundreds of small steps, and most fits of a search have the same graph. Fits share
# sessions, in several threads too: each binds its own arrays.
_shared_session = functools.lru_cache(maxsize=4)(_session)
