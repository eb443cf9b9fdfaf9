"""A first run of an ONNX model in a process of its own, which may end without harm."""

import hashlib
import io
import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np

# In seconds. It holds the start of a process, too.
_PATIENCE = 300
# Models that were tried, by digest: a search fits one model many times.
_TRIED: dict[bytes, str | None] = {}
_CODE = "from skort.runtime import trial; trial.main()"


def reason_of_death(model: bytes, batches: Sequence[np.ndarray]) -> str | None:
    """
    Return in words how a process ends that runs a serialised model on some batches.

    None is returned if it survives. An error that the runtime raises is no death. A system that
    starts no processes gives None, too.
    """
    file = io.BytesIO()
    np.savez(file, np.frombuffer(model, np.uint8), *batches)
    digest = hashlib.sha256(file.getbuffer()).digest()
    if digest not in _TRIED:
        _TRIED[digest] = _reason(file.getbuffer())
    return _TRIED[digest]


def _reason(given):
    # The child imports what this process imports.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CODE],
            input=given,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"did not end in {_PATIENCE} seconds"
    except (OSError, ValueError, TypeError):
        return None

    # Any Python error is raised again, and told, where the model runs next.
    return f"ended with status {child.returncode}" if child.returncode not in (0, 1) else None


def main() -> None:
    """Run the model that comes from the standard input."""
    from skort.runtime.sessions import inference_session

    arrays = list(np.load(io.BytesIO(sys.stdin.buffer.read())).values())
    session = inference_session(arrays[0].tobytes())
    for rows in arrays[1:]:
        session.run(None, {session.get_inputs()[0].name: rows})
