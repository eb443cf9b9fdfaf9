"""Running an ONNX model."""

from skort.runtime.installed import load
from skort.runtime.sessions import PROVIDERS, session_options

__all__ = ["InferenceModel"]


class InferenceModel:
    """
    An ONNX model and the session that runs it.

    The session is made at the first run, and again in every copy: pickle, deepcopy and joblib see the bytes only.

    Parameters
    ----------
    model : bytes
        A serialised `onnx.ModelProto` with one input.
    """

    def __init__(self, model):
        self.model = model
        self._session = None

    def __getstate__(self):
        return {"model": self.model, "_session": None}

    def run(self, output, X):
        """Return the model's output of that name for the input `X`."""
        if self._session is None:
            self._session = load().InferenceSession(self.model, session_options(), providers=PROVIDERS)
        return self._session.run([output], {self._session.get_inputs()[0].name: X})[0]
