"""Running an ONNX model."""

import copy

import onnx
import onnx.helper

from skort.runtime.device import CPU
from skort.runtime.sessions import inference_session

__all__ = ["InferenceModel"]


class InferenceModel:
    """
    An ONNX model and the sessions that run it, one a device.

    A session is made at the first run on its device, and again in every copy: pickle, deepcopy and joblib see the model
    only.

    Parameters
    ----------
    model : onnx.ModelProto
        It is kept, not copied.
    inner_results : tuple of str, default=()
        Names of results inside the model that may be asked for as well as its outputs.
    weights : dict of str to ndarray, default=None
        Values in place of initializers. They may be replaced, under the same names, between runs.
    """

    def __init__(self, model, inner_results=(), weights=None):
        self.model = model
        self.inner_results = inner_results
        self.weights = weights or {}
        self._sessions = {}

    def __getstate__(self):
        return {**vars(self), "_sessions": {}}

    def run(self, output, inputs, device=CPU):
        """Return the output, or inner result, of that name for `inputs`, name -> array."""
        session = self._sessions.get(device)
        if session is None:
            session = self._sessions[device] = self._make_session(device)
        return session.run([output], {**inputs, **self.weights})[0]

    def _make_session(self, device):
        model = copy.deepcopy(self.model)
        for weight in [i for i in model.graph.initializer if i.name in self.weights]:
            model.graph.initializer.remove(weight)
            info = onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
            model.graph.input.append(info)
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.inner_results)
        float64 = any(i.data_type == onnx.TensorProto.DOUBLE for i in model.graph.initializer)
        return inference_session(model.SerializeToString(), float64=float64, device=device)
