"""Settings that all sessions share."""

from skort.runtime.device import CPU
from skort.runtime.installed import load

__all__ = ["inference_session", "session_options"]

_FATAL = 4
# They make nodes that have float32 kernels only, whatever the type of the model, in 1.16.
_FLOAT32_FUSIONS = ["GemmActivationFusion", "MatmulTransposeFusion"]


def inference_session(graph, *, float64=False, device=CPU, options=None):
    """
    Return a session of a serialised model.

    Parameters
    ----------
    graph : bytes
    float64 : bool, default=False
        Whether it computes in float64.
    device : Device
    options : SessionOptions, default=None
        As from `session_options`, which None stands for.

    Raises
    ------
    RuntimeNotAvailableError
        Where the device is not there.
    """
    disabled = {"disabled_optimizers": _FLOAT32_FUSIONS} if float64 else {}
    options = options or session_options(device)
    session = load().InferenceSession(graph, options, providers=device.providers(), **disabled)
    device.check_session(session)
    return session


def session_options(device=CPU, *, spinning=False):
    """
    Return options of a session that logs nothing: its errors are exceptions.

    Parameters
    ----------
    device : Device, default=CPU
    spinning : bool, default=False
        Whether several threads wait for work awake. It pays where runs follow each other at once: to wake a thread
        takes as long as a small product of matrices. It takes their cores from other processes.
    """
    options = load().SessionOptions()
    options.intra_op_num_threads = device.n_threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    options.log_severity_level = _FATAL
    return options
