"""Settings that all sessions share."""

from skort.runtime.installed import load

__all__ = ["PROVIDERS", "inference_session", "session_options"]

PROVIDERS = ["CPUExecutionProvider"]

_FATAL = 4
# They make nodes that have float32 kernels only, whatever the type of the model, in 1.16.
_FLOAT32_FUSIONS = ["GemmActivationFusion", "MatmulTransposeFusion"]


def inference_session(graph, *, float64):
    """Return a session of a serialised model, which computes in float64 or in float32."""
    disabled = {"disabled_optimizers": _FLOAT32_FUSIONS} if float64 else {}
    return load().InferenceSession(graph, session_options(), providers=PROVIDERS, **disabled)


def session_options():
    """Return options of a session that runs on the caller's thread and logs nothing: its errors are exceptions."""
    options = load().SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    return options
