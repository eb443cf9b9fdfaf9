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


def session_options(device=CPU):
    """
    Return options of a session that logs nothing: its errors are exceptions.

    Several threads wait for the next operator of a run awake, as to wake one takes as long as a small product of
    matrices; between runs they sleep: awake they would take the core that the caller goes on with.
    """
    options = load().SessionOptions()
    options.intra_op_num_threads = device.n_threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.log_severity_level = _FATAL
    return options
