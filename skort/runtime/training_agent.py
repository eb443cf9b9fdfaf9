"""TrainingAgent: the gradient graph of a model, and one forward and backward run of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skort.runtime.device import cpu_memory, value_vector
from skort.runtime.installed import c_api, require


def gradient_graph(model: bytes, trainable: Sequence[str], inputs: Sequence[str] = ()) -> bytes:
    """Return the graph that yields an output and gives its gradients by weights and `inputs`: ``w_grad`` by `w`."""
    require("TrainingAgent")
    config = c_api().OrtModuleGraphBuilderConfiguration()
    config.initializer_names = list(trainable)
    config.initializer_names_to_train = list(trainable)
    # Without the gradient by X a step has one matrix product less, and the graph can be made in float64 too.
    config.input_names_require_grad = list(inputs)
    config.build_gradient_graph = True
    builder = c_api().OrtModuleGraphBuilder()
    builder.initialize(model, config)
    builder.build(c_api().TrainingGraphTransformerConfiguration())
    return builder.get_gradient_model()


class BoundTrainingAgent:
    """A TrainingAgent: a run reads `inputs`, writes `outputs`; `returned` are gradients by what it yields."""

    def __init__(
        self,
        session: Any,
        inputs: dict[str, np.ndarray],
        outputs: dict[str, np.ndarray],
        returned: Sequence[np.ndarray] = (),
    ):
        agent_class = require("TrainingAgent")
        dtype = next(iter(outputs.values())).dtype
        self._session = session
        input_names = [i.name for i in self._session.get_inputs()]
        output_names = [o.name for o in self._session.get_outputs()]
        # The first one is the derivative of the scalar by itself.
        returned = [np.ones((), dtype), *returned]
        memories = [cpu_memory()] * len(returned), [cpu_memory()] * len(output_names)
        self._agent = agent_class(self._session._sess, input_names, memories[0], output_names, memories[1], 0)
        self._state, self._vector = c_api().PartialGraphExecutionState, c_api().OrtValueVector
        self._read, self._borrowed, self._input_names = dict(inputs), [outputs, returned], input_names
        self._inputs = value_vector(inputs[name] for name in input_names)
        self._outputs = value_vector(outputs[name] for name in output_names)
        self._returned = value_vector(returned)

    def replace(self, name: str, array: np.ndarray) -> None:
        """Let the next runs read another array as the input `name`: C-contiguous, of the same shape and dtype."""
        if array is not self._read[name]:
            self._read[name] = array
            self._inputs = value_vector(self._read[each] for each in self._input_names)

    def run(self) -> float:
        """Run forward and backward; return the yielded scalar."""
        value = self.forward()
        self.backward()
        return value

    def forward(self) -> float:
        """Run forward, and keep what the backward run needs; return the yielded scalar."""
        self._running, yielded = self._state(), self._vector()
        self._agent.run_forward(self._inputs, yielded, self._running, None)
        # Read before the backward run, which may reuse its memory.
        return float(yielded[0].numpy())

    def backward(self) -> None:
        """Write the outputs of the last forward run; once for each of them."""
        self._agent.run_backward(self._returned, self._outputs, self._running)
