"""Sessions of models, and the settings that all of them share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skort.runtime.device import CPU, Device
from skort.runtime.installed import c_api, load

_FATAL = 4
# In 1.16 these make nodes that have float32 kernels only, whatever the type of the model.
_FLOAT32_FUSIONS = ["GemmActivationFusion", "MatmulTransposeFusion"]


def inference_session(graph: bytes, *, float64: bool = False, device: Device = CPU, options: Any = None) -> Any:
    """Return a session of a serialised model, with `session_options` or others."""
    disabled = {"disabled_optimizers": _FLOAT32_FUSIONS} if float64 else {}
    options = options or session_options(device)
    session = load().InferenceSession(graph, options, providers=device.providers(), **disabled)
    device.check_session(session)
    return session


def session_options(device: Device = CPU) -> Any:
    """Return the options of a session that logs nothing: its errors are exceptions."""
    options = load().SessionOptions()
    options.intra_op_num_threads = device.n_threads
    options.inter_op_num_threads = 1
    # To wake a thread costs as much as a small product; between runs the caller has the cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = _FATAL
    return options


def compiled(graph: bytes, device: Device = CPU) -> Any:
    """Return the session of a step: of a serialised model with fixed shapes, of standard operators."""
    options = session_options(device)
    # Constant folding, common subexpressions, MatMul + Add as Gemm. More makes a slower start and no faster step.
    options.graph_optimization_level = load().GraphOptimizationLevel.ORT_ENABLE_BASIC
    return inference_session(graph, device=device, options=options)


def io_binding(session: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """Return what a session reads and writes in a run: values by name, as from `Device.value`."""
    binding = c_api().SessionIOBinding(session._sess)
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    for name, value in outputs.items():
        binding.bind_ortvalue_output(name, value)
    return binding


class ArraySession:
    """A session from numpy arrays to numpy arrays, which keeps none of them: threads may share it."""

    def __init__(self, graph: bytes, device: Device = CPU):
        self._session = compiled(graph, device)
        # The wrapper's own run looks for missing inputs, and a run without options makes its own.
        self._run, self._options = self._session._sess.run, load().RunOptions()

    def run(self, outputs: Sequence[str], inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Return some outputs as new arrays; `inputs` are all inputs, C-contiguous, and are read in place."""
        return self._run(outputs, inputs, self._options)
