"""TrainingAgent: the gradient graph of a model, and one forward and backward run of it."""

import numpy as np

from skort.runtime.device import CPU
from skort.runtime.installed import require
from skort.runtime.sessions import inference_session
from skort.runtime.values import borrow

__all__ = ["BoundTrainingAgent", "gradient_graph"]


def gradient_graph(model, trainable):
    """
    Return the graph that computes a model's output, yields, and goes on to the gradients of its weights.

    Parameters
    ----------
    model : bytes
        A serialised model with one output and fixed shapes.
    trainable : list of str
        Initializers to be differentiated by. They become inputs; the gradient of `w` is the output ``w_grad``.

    Returns
    -------
    graph : bytes
        A serialised model with one `YieldOp` that takes the output and gives its gradient.
    """
    require("TrainingAgent")
    from onnxruntime.capi import _pybind_state

    config = _pybind_state.OrtModuleGraphBuilderConfiguration()
    config.initializer_names = list(trainable)
    config.initializer_names_to_train = list(trainable)
    # No gradient by X: one matrix product less a step, and a graph that exists in float64.
    config.input_names_require_grad = []
    config.build_gradient_graph = True
    builder = _pybind_state.OrtModuleGraphBuilder()
    builder.initialize(model, config)
    builder.build(_pybind_state.TrainingGraphTransformerConfiguration())
    return builder.get_gradient_model()


class BoundTrainingAgent:
    """
    A TrainingAgent over arrays that stay where they are.

    A run reads `inputs` and writes `outputs` in place, and makes no other array than those of the yielded values. The
    arrays are kept.

    Parameters
    ----------
    graph : bytes
        As from `gradient_graph`, with a `YieldOp` whose first value is a scalar.
    inputs : dict of str to ndarray
        C-contiguous arrays, one for every input of the graph.
    outputs : dict of str to ndarray
        C-contiguous arrays, one for every output of the graph.
    returned : sequence of ndarray, default=()
        What the `YieldOp` gives the backward part for each value that is yielded after the first one.
    device : Device, default=CPU
        Its threads count.
    """

    def __init__(self, graph, inputs, outputs, returned=(), device=CPU):
        agent_class = require("TrainingAgent")
        from onnxruntime.capi import _pybind_state

        dtype = next(iter(outputs.values())).dtype
        self._session = inference_session(graph, float64=dtype == np.float64, device=device)
        input_names = [i.name for i in self._session.get_inputs()]
        output_names = [o.name for o in self._session.get_outputs()]
        memory = _pybind_state.OrtDevice(_pybind_state.OrtDevice.cpu(), _pybind_state.OrtDevice.default_memory(), 0)
        # First, the derivative of the scalar by itself.
        returned = [np.ones((), dtype), *returned]
        memories = [memory] * len(returned), [memory] * len(output_names)
        self._agent = agent_class(self._session._sess, input_names, memories[0], output_names, memories[1], 0)
        self._vector, self._state = _pybind_state.OrtValueVector, _pybind_state.PartialGraphExecutionState
        self._borrowed = [inputs, outputs, returned]

        def values(arrays):
            vector = self._vector()
            for array in arrays:
                vector.push_back(borrow(array)._ortvalue)
            return vector

        self._inputs = values(inputs[name] for name in input_names)
        self._outputs = values(outputs[name] for name in output_names)
        self._returned = values(returned)

    def run(self):
        """Run forward and backward; return the scalar that is yielded, a float."""
        state, yielded = self._state(), self._vector()
        self._agent.run_forward(self._inputs, yielded, state, None)
        # Read before the backward run, which may reuse its memory.
        value = float(yielded[0].numpy())
        self._agent.run_backward(self._returned, self._outputs, state)
        return value
