"""
TrainingAgent: forward and backward of a model; TrainingSession: loss,
gradient and update in one session.
"""

import copy
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.runtime.device import CPU, Device, cpu_memory, ortvalue_views, value_vector
from skort.runtime.installed import c_api, load, require
from skort.runtime.sessions import io_binding, session_options

LEARNING_RATE = "Learning_Rate"
GRADIENT_NORM = "global_gradient_norm"
_ZERO = "skort_zero"


def gradient_graph(model: bytes, trainable: Sequence[str], inputs: Sequence[str] = ()) -> bytes:
    """
    Return the graph of an output and its gradients by weights and `inputs`.

    The gradient by `w` has the name ``w_grad``.
    """
    require("TrainingAgent")
    config = c_api().OrtModuleGraphBuilderConfiguration()
    config.initializer_names = list(trainable)
    config.initializer_names_to_train = list(trainable)

    # Without the gradient by X, a step has one matrix product less, and the graph exists in
    # float64, too.
    config.input_names_require_grad = list(inputs)
    config.build_gradient_graph = True
    builder = c_api().OrtModuleGraphBuilder()
    builder.initialize(with_statistics(model), config)
    builder.build(c_api().TrainingGraphTransformerConfiguration())

    return builder.get_gradient_model()


def with_statistics(model: bytes) -> bytes:
    """Return a model whose layer normalizations return statistics, which their gradient reads."""
    if b"LayerNormalization" not in model:
        return model

    made = onnx.load_from_string(model)
    for node in made.graph.node:
        if node.op_type == "LayerNormalization":
            node.output[1:] = [
                f"{node.output[0]}/{statistic}" for statistic in ("mean", "inverse_deviation")
            ]

    return made.SerializeToString()


class BoundTrainingAgent:
    """
    A TrainingAgent whose runs read `inputs` and write `outputs`.

    `returned` are the gradients by the results that a forward run yields after the scalar.
    """

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

        # The first gradient is that of the scalar by itself.
        returned = [np.ones((), dtype), *returned]
        memories = [cpu_memory()] * len(returned), [cpu_memory()] * len(output_names)
        self._agent = agent_class(
            self._session._sess, input_names, memories[0], output_names, memories[1], 0
        )
        self._state, self._vector = c_api().PartialGraphExecutionState, c_api().OrtValueVector
        self._read = dict(inputs)
        self._borrowed = [outputs, returned]
        self._input_names = input_names
        self._inputs = value_vector(inputs[name] for name in input_names)
        self._outputs = value_vector(outputs[name] for name in output_names)
        self._returned = value_vector(returned)

    def replace(self, name: str, array: np.ndarray) -> None:
        """
        Let the next runs read another array as the input `name`:
        C-contiguous, of the same shape and dtype.
        """
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
        """Write the outputs of the last forward run. Call it once after each forward run."""
        self._agent.run_backward(self._returned, self._outputs, self._running)


@dataclass(frozen=True)
class SessionOptimizer:
    """An optimizer of TrainingSession."""

    #: `SGDOptimizer` makes the update `w - eta * gradient`.
    operator: str = "SGDOptimizer"
    #: The float attributes of the operator.
    attributes: dict[str, float] = field(default_factory=dict)
    #: The integer attributes of the operator.
    int_attributes: dict[str, int] = field(default_factory=dict)
    #: The arrays that the session keeps for each weight besides its value: our name -> the prefix
    #: of the weight's name in the session's state.
    memory: dict[str, str] = field(default_factory=dict)


class BoundTrainingSession:
    """
    A TrainingSession that reads the same arrays in every run;
    the first of `outputs` is the scalar to minimise.
    """

    def __init__(
        self,
        session: Any,
        outputs: Sequence[str],
        trainable: Iterable[str],
        inputs: dict[str, np.ndarray],
        optimizer: SessionOptimizer,
    ):
        self._session = session
        self._trainable = list(trainable)
        self._prefixes = {"weights": "", **optimizer.memory}

        #: The keys of the dict that `state` returns.
        self.holds: frozenset[str] = frozenset(self._prefixes)
        self._eta = np.zeros(1, np.float32)
        self._gradient_norm = np.zeros((), np.float32)
        self._outputs = {name: np.zeros((), np.float32) for name in outputs}
        self._objective = self._outputs[outputs[0]]
        self._read = dict(inputs)
        inputs, written = (
            {**inputs, LEARNING_RATE: self._eta},
            {**self._outputs, GRADIENT_NORM: self._gradient_norm},
        )
        self._binding = io_binding(session, ortvalue_views(inputs), ortvalue_views(written))

        # The wrapper's own run_with_iobinding costs a quarter of a small step, and a run without
        # options makes its own.
        self._run, self._options = self._session._sess.run_with_iobinding, load().RunOptions()

    def replace(self, name: str, array: np.ndarray) -> None:
        """
        Let the next runs read another array as the input `name`:
        C-contiguous, of the same shape and dtype.
        """
        if array is not self._read[name]:
            self._read[name] = array
            self._binding.bind_ortvalue_input(name, ortvalue_views({name: array})[name])

    def run(self, eta: float) -> float:
        """Make one update of every trained weight; return the objective before it."""
        self._eta[0] = eta
        self._run(self._binding, self._options)
        return self._objective.item()

    def value(self, output: str) -> Callable[[], float]:
        """Return a function that returns the output of that name from the last run."""
        return self._outputs[output].item

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last run's gradient; 0 before the first run."""
        return float(self._gradient_norm)

    def state(self) -> dict[str, dict[str, np.ndarray]]:
        """
        Return copies of the trained weights, as "weights", and of the optimizer's memory:
        kind -> name -> array.
        """
        state = self._session.get_state()
        names = self._trainable
        return {
            what: {name: state[prefix + name] for name in names}
            for what, prefix in self._prefixes.items()
        }

    def load(self, state: dict[str, dict[str, np.ndarray]]) -> None:
        """Continue from a state that `state` returned."""
        arrays = {
            self._prefixes[what] + name: a
            for what, part in state.items()
            for name, a in part.items()
        }
        self._session.load_state(arrays, False)


def training_graph(
    model: onnx.ModelProto, trainable: Iterable[str], optimizer: SessionOptimizer
) -> onnx.ModelProto:
    """Return the graph that TrainingSession makes of `model`: forward, backward and update."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "training.onnx")
        training_session(model, trainable, optimizer, graph_path=str(path))
        return onnx.load(path)


def training_session(
    model: onnx.ModelProto,
    trainable: Iterable[str],
    optimizer: SessionOptimizer,
    device: Device = CPU,
    graph_path: str | None = None,
) -> Any:
    """
    Return a TrainingSession of a model with fixed shapes,
    whose first output is the scalar to minimise.
    """
    session_class = require("TrainingSession")
    parameters = c_api().TrainingParameters()
    parameters.loss_output_name = model.graph.output[0].name
    parameters.use_mixed_precision = False
    parameters.weights_to_train = set(trainable)
    parameters.training_optimizer_name = optimizer.operator

    # Both maps need an entry for every weight.
    parameters.optimizer_attributes_map = dict.fromkeys(trainable, optimizer.attributes)
    parameters.optimizer_int_attributes_map = dict.fromkeys(trainable, optimizer.int_attributes)
    if graph_path is not None:
        parameters.model_with_training_graph_path = graph_path
    model = _with_copied(model, trainable)
    options = session_options(device)

    return session_class(
        with_statistics(model.SerializeToString()),
        parameters,
        options,
        providers=device.providers(),
    )


def _with_copied(model, weights):
    # The session updates a weight in place as soon as its gradient is computed. Gradients of
    # earlier weights that are computed later would then be those at the new weight. So the graph
    # reads a copy: the weight plus a zero, which the session does not know to be constant.
    model = copy.deepcopy(model)
    copies = {name: f"skort_copy/{name}" for name in _read_late(model.graph, weights)}
    for node in model.graph.node:
        node.input[:] = [copies.get(name, name) for name in node.input]
    nodes = [helper.make_node("Add", [name, _ZERO], [copied]) for name, copied in copies.items()]
    nodes.extend(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((), np.float32), _ZERO))

    # The session folds initializers as constants and merges small ones, which loses the weights. It
    # does neither to an initializer that is also listed as an input.
    for initializer in model.graph.initializer:
        if initializer.name in (*weights, _ZERO):
            info = helper.make_tensor_value_info(
                initializer.name, initializer.data_type, initializer.dims
            )
            model.graph.input.append(info)

    return model


def _read_late(graph, weights):
    """
    Return the weights that other gradients may still read
    after their own gradients are computed.
    """
    reached = set(weights)
    for node in graph.node:
        if not reached.isdisjoint(node.input):
            reached.update(node.output)

    late = []
    for name in weights:
        readers = [node for node in graph.node if name in node.input]
        others = {other for node in readers for other in node.input if other != name}
        operators = [node.op_type for node in readers]

        # The gradient of a sum reads none of its terms. In a product, only the gradient by the
        # other factor reads the weight, and it is not computed if that factor depends on no weight.
        # The result of another operator, such as Identity, may be the weight itself, which later
        # nodes read.
        is_first = operators in (["MatMul"], ["Gemm"]) and reached.isdisjoint(others)
        if operators != ["Add"] and not is_first:
            late.append(name)

    return late
