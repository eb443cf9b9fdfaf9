"""A plain InferenceSession whose every run goes on from what the one before made."""

import itertools

import numpy as np

from skort.runtime.installed import load
from skort.runtime.sessions import PROVIDERS, session_options
from skort.runtime.values import borrow

__all__ = ["StepSession"]


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
    """

    def __init__(self, graph, inputs, outputs, state, next_names, parts=lambda arrays: {}):
        options = session_options()
        # Constant folding, common subexpressions, MatMul + Add as Gemm. More makes a slower start and no faster step.
        options.graph_optimization_level = load().GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._session = load().InferenceSession(graph, options, providers=PROVIDERS)
        buffers = [{name: array.copy() for name, array in state.items()} for _ in range(2)]
        self._borrowed = [inputs, outputs, buffers]
        bindings = []
        for before, after in (buffers, buffers[::-1]):
            binding = self._session.io_binding()
            for name, array in {**inputs, **before, **parts(before)}.items():
                binding.bind_ortvalue_input(name, borrow(array))
            for name, array in {**outputs, **{next_names[k]: a for k, a in after.items()}}.items():
                binding.bind_ortvalue_output(name, borrow(array))
            bindings.append(binding)
        # The wrapper's own run_with_iobinding costs a quarter of a small step, and a run without options makes its own.
        self._run, self._options = self._session._sess.run_with_iobinding, load().RunOptions()
        self._turns = itertools.cycle([(bindings[0]._iobinding, buffers[1]), (bindings[1]._iobinding, buffers[0])])
        self._kept = bindings
        #: The arrays that the next run reads, by the names of the inputs; what is written into them counts.
        self.state: dict[str, np.ndarray] = buffers[0]

    def run(self):
        """Run once."""
        binding, after = next(self._turns)
        self._run(binding, self._options)
        self.state = after
