"""Settings that all sessions share."""

from skort.runtime.installed import load

__all__ = ["PROVIDERS", "session_options"]

PROVIDERS = ["CPUExecutionProvider"]

_FATAL = 4


def session_options():
    """Return options of a session that runs on the caller's thread and logs nothing: its errors are exceptions."""
    options = load().SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    return options
