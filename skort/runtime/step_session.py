"""A plain InferenceSession whose every run goes on from what the one before made."""

import functools
import itertools
from typing import Any

from skort.runtime.device import CPU
from skort.runtime.installed import load
from skort.runtime.sessions import inference_session, session_options

__all__ = ["StepSession"]

# Bytes of graph, inputs and state: the memory that a session holds on to is a few times as much at most.
_SMALL = 2**20


class StepSession:
    """
    An InferenceSession over arrays that stay where they are.

    What a run changes has two arrays each, which alternate: one run reads the first and writes the second, the next one
    the other way round.

    Parameters
    ----------
    graph : bytes
        A serialised model with fixed shapes, of standard operators.
    inputs : dict of str to ndarray
        C-contiguous arrays, one for every input that no run changes. A run reads them where they are. The arrays are
        kept.
    outputs : dict of str to ndarray
        C-contiguous arrays, one for every output that is not read by the next run; overwritten.
    state : dict of str to ndarray
        The inputs that the next run takes from the outputs of this one, with their first values.
    next_names : dict of str to str
        The names of those outputs.
    parts : callable, optional
        Arrays of the state, by name -> further inputs, name -> views of them.
    device : Device, default=CPU
        Of any other, `inputs`, `outputs` and the attribute `state` are its arrays; the argument `state` is copied.
    """

    def __init__(self, graph, inputs, outputs, state, next_names, parts=lambda arrays: {}, device=CPU):
        self._device = device
        self._session = _shared_session(graph) if _is_small(graph, device, inputs, state) else _session(graph, device)
        buffers = [{name: device.put(array) for name, array in state.items()} for _ in range(2)]
        self._inputs, self._borrowed = dict(inputs), [outputs, buffers]
        self._bindings = bindings = []
        for before, after in (buffers, buffers[::-1]):
            binding = self._session.io_binding()
            for name, array in {**inputs, **before, **parts(before)}.items():
                binding.bind_ortvalue_input(name, device.value(array))
            for name, array in {**outputs, **{next_names[k]: a for k, a in after.items()}}.items():
                binding.bind_ortvalue_output(name, device.value(array))
            bindings.append(binding)
        # The wrapper's own run_with_iobinding costs a quarter of a small step, and a run without options makes its own.
        self._run, self._options = self._session._sess.run_with_iobinding, load().RunOptions()
        self._turns = itertools.cycle([(bindings[0]._iobinding, buffers[1]), (bindings[1]._iobinding, buffers[0])])
        #: The arrays that the next run reads, by the names of the inputs; what is written into them counts.
        self.state: dict[str, Any] = buffers[0]

    def replace(self, name, array):
        """Read another array of the device in place of the input of that name, which no run changes."""
        if array is not self._inputs[name]:
            self._inputs[name] = array
            for binding in self._bindings:
                binding.bind_ortvalue_input(name, self._device.value(array))

    def run(self):
        """Run once."""
        binding, after = next(self._turns)
        self._run(binding, self._options)
        self.state = after


def _is_small(graph, device, inputs, state):
    """Return whether a session holds on to little, and to no threads, which a process that is forked has not."""
    return device == CPU and len(graph) + sum(array.nbytes for array in [*inputs.values(), *state.values()]) < _SMALL


def _session(graph, device=CPU):
    options = session_options(device)
    # Constant folding, common subexpressions, MatMul + Add as Gemm. More makes a slower start and no faster step.
    options.graph_optimization_level = load().GraphOptimizationLevel.ORT_ENABLE_BASIC
    return inference_session(graph, device=device, options=options)


# To make a session takes as long as hundreds of small steps, and the fits of a search mostly have the same graph. All
# that a run reads and writes is bound by who runs it, so that sessions are shared, by threads too.
_shared_session = functools.lru_cache(maxsize=4)(_session)
