"""A plain InferenceSession from arrays to arrays."""

from collections.abc import Sequence

import numpy as np

from skort.runtime.device import CPU, Device
from skort.runtime.installed import load
from skort.runtime.step_session import compiled

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
        self._run, self._options = self._session._sess.run, load().RunOptions()

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
