"""Running an ONNX model."""

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.helper

from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device
from skort.runtime.sessions import inference_session


class InferenceModel:
    """An ONNX model and its session on each device, made by the first run; copies and pickles make their own."""

    def __init__(
        self,
        model: onnx.ModelProto | Callable[[], onnx.ModelProto],
        inner_results: Sequence[str] = (),
        weights: dict[str, np.ndarray] | None = None,
        structure: Hashable = None,
    ):
        self.model = model
        self.inner_results = inner_results
        self.weights = weights or {}
        self._structure = structure
        self._sessions: dict[Device, Any] = {}

    def __getstate__(self):
        return {**vars(self), "_sessions": {}}

    def run(self, output: str, inputs: dict[str, np.ndarray], device: Device = CPU) -> Any:
        """Return the output, or inner result, named `output` for some inputs (name -> array)."""
        session = self._sessions.get(device)
        if session is None:
            session = self._sessions[device] = self._session(device)
        return session.run([output], {**inputs, **self.weights})[0]

    def _session(self, device):
        # Threads would not be there in a forked process.
        if self._structure is None or device != CPU:
            return self._make_session(device)
        return COMPILED.get(
            ("inference", self._structure, tuple(self.inner_results)), lambda: self._make_session(device)
        )

    def _make_session(self, device):
        model = copy.deepcopy(self.model() if callable(self.model) else self.model)
        for weight in [i for i in model.graph.initializer if i.name in self.weights]:
            model.graph.initializer.remove(weight)
            info = onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
            model.graph.input.append(info)
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in self.inner_results)
        types = [i.data_type for i in model.graph.initializer]
        types += [i.type.tensor_type.elem_type for i in model.graph.input]
        float64 = onnx.TensorProto.DOUBLE in types
        return inference_session(model.SerializeToString(), float64=float64, device=device)
