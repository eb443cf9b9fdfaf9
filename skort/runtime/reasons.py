"""What an error of ONNX Runtime says, without the place in its C++ sources."""

import re

__all__ = ["reason"]

_PLACE = re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : |\S+\.(?:cc|h):\d+ .*?\)(?:::\S+| const)* ")


def reason(error: Exception) -> str:
    """
    Return the first line of what an error says, as a sentence without its end.

    Parameters
    ----------
    error : Exception

    Examples
    --------
    >>> from skort.runtime.reasons import reason
    >>> reason(RuntimeError("/src/sub.cc:83 void f(int) [ONNXRuntimeError] : 6 : FAIL : There are no rows."))
    'There are no rows'
    """
    text = str(error).strip() or "no reason given"
    return _PLACE.sub("", text.splitlines()[0]).strip().rstrip(".")
