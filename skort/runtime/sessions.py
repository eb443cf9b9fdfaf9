"""Settings that all sessions share."""

from typing import Any

from skort.runtime.device import CPU, Device
from skort.runtime.installed import load

__all__ = ["inference_session", "session_options"]

_FATAL = 4
# In 1.16 these make nodes that have float32 kernels only, whatever the type of the model.
_FLOAT32_FUSIONS = ["GemmActivationFusion", "MatmulTransposeFusion"]


def inference_session(graph: bytes, *, float64: bool = False, device: Device = CPU, options: Any = None) -> Any:
    """
    Return a session of a serialised model.

    Parameters
    ----------
    graph : bytes
    float64 : bool, default=False
        Whether the model computes in float64.
    device : Device, default=CPU
    options : SessionOptions, default=None
        None: those of `session_options`.

    Raises
    ------
    RuntimeNotAvailableError
        If the device is not available.
    """
    disabled = {"disabled_optimizers": _FLOAT32_FUSIONS} if float64 else {}
    options = options or session_options(device)
    session = load().InferenceSession(graph, options, providers=device.providers(), **disabled)
    device.check_session(session)
    return session


def session_options(device: Device = CPU) -> Any:
    """
    Return the options of a session that logs nothing: its errors are exceptions.

    Threads spin within a run, because waking one costs as much as a small matrix product. They sleep between runs, to
    leave the cores to the caller.
    """
    options = load().SessionOptions()
    options.intra_op_num_threads = device.n_threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = _FATAL
    return options
