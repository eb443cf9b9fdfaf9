"""A plain InferenceSession from arrays to arrays."""

from collections.abc import Sequence

import numpy as np

from skort.runtime.device import CPU, Device
from skort.runtime.installed import load
from skort.runtime.step_session import compiled
from skort.runtime.values import borrowed_vector, cpu_memory

__all__ = ["ArraySession"]


class ArraySession:
    """
    A session that takes and gives numpy arrays and keeps none of them: threads may share it.

    Parameters
    ----------
    graph : bytes
        A serialised model of standard operators.
    device : Device, default=CPU
        Of the CPU.

    Examples
    --------
    >>> import numpy as np
    >>> import onnx.parser
    >>> from skort.runtime.array_session import ArraySession
    >>> model = onnx.parser.parse_model('''
    ... <ir_version: 8, opset_import: ["" : 17]>
    ... twice (float[2] x) => (float[2] y) { y = Add (x, x) }''')
    >>> ArraySession(model.SerializeToString()).run(["y"], {"x": np.array([1, 2], np.float32)})
    [array([2., 4.], dtype=float32)]
    """

    def __init__(self, graph: bytes, device: Device = CPU):
        self._session = compiled(graph, device)
        # The wrapper's own run looks for missing inputs, and a run without options makes its own.
        self._options = load().RunOptions()
        self._run, self._run_into = self._session._sess.run, self._session._sess.run_with_ortvaluevector

    def run(self, outputs: Sequence[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        """
        Return some outputs as new arrays.

        Parameters
        ----------
        outputs : list of str
        inputs : dict of str to ndarray
            C-contiguous arrays, which are read in place, one for every input.
        """
        return self._run(outputs, inputs, self._options)

    def run_into(self, outputs: dict[str, np.ndarray], inputs: dict[str, np.ndarray]) -> None:
        """
        Write some outputs into arrays.

        Parameters
        ----------
        outputs : dict of str to ndarray
            C-contiguous arrays of the types and shapes of the outputs.
        inputs : dict of str to ndarray
            As for `run`.
        """
        if not all(array.flags.c_contiguous for array in outputs.values()):
            raise ValueError("only a C-contiguous array can be borrowed")
        given, results = (borrowed_vector(arrays.values()) for arrays in (inputs, outputs))
        memory = [cpu_memory()] * len(outputs)
        self._run_into(self._options, list(inputs), given, list(outputs), results, memory)
