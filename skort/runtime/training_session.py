"""TrainingSession: loss, gradient and update in one session."""

import copy
import pathlib
import tempfile
from dataclasses import dataclass, field

import numpy as np
import onnx

from skort.runtime.installed import require
from skort.runtime.sessions import PROVIDERS, session_options
from skort.runtime.values import borrow

__all__ = ["BoundTrainingSession", "SessionOptimizer", "adam_optimizer", "training_graph"]

LEARNING_RATE = "Learning_Rate"
GRADIENT_NORM = "global_gradient_norm"


@dataclass(frozen=True)
class SessionOptimizer:
    """
    An optimizer of TrainingSession.

    Parameters
    ----------
    operator : str, default="SGDOptimizer"
        `SGDOptimizer` makes the update `w - eta * gradient`.
    attributes : dict of str to float
        Of the operator.
    int_attributes : dict of str to int
        Of the operator.
    memory : dict of str to str
        What the session remembers of each weight, besides its value: our name -> what stands before the weight's name
        in its state.
    """

    operator: str = "SGDOptimizer"
    attributes: dict[str, float] = field(default_factory=dict)
    int_attributes: dict[str, int] = field(default_factory=dict)
    memory: dict[str, str] = field(default_factory=dict)


def adam_optimizer(beta_1, beta_2, epsilon):
    """Return Adam; the learning rate is to bring the correction for moments that began at zero."""
    return SessionOptimizer(
        "AdamOptimizer",
        {"alpha": float(beta_1), "beta": float(beta_2), "epsilon": float(epsilon), "lambda": 0.0},
        # Its own correction comes before epsilon is added, scikit-learn's after.
        {"do_bias_correction": 0, "weight_decay_mode": 0},
        {"first_moment": "Moment_1_", "second_moment": "Moment_2_"},
    )


class BoundTrainingSession:
    """
    A TrainingSession over arrays that stay where they are.

    Parameters
    ----------
    model : onnx.ModelProto
        A model with fixed shapes; its one output is a float32 scalar to be minimised. The trained weights are
        initializers.
    trainable : list of str
        The initializers to be trained.
    inputs : dict of str to ndarray
        C-contiguous float32 arrays, one for every input of the model. A run reads them where they are. The arrays
        are kept.
    optimizer : SessionOptimizer
    """

    def __init__(self, model, trainable, inputs, optimizer):
        self._session = _training_session(model, trainable, optimizer)
        self._trainable = list(trainable)
        self._prefixes = {"weights": "", **optimizer.memory}
        self._eta = np.zeros(1, np.float32)
        self._gradient_norm = np.zeros((), np.float32)
        self._outputs = {output.name: np.zeros((), np.float32) for output in model.graph.output}
        self._objective = self._outputs[model.graph.output[0].name]
        self._borrowed = [inputs]
        binding = self._session.io_binding()
        for name, array in {**inputs, LEARNING_RATE: self._eta}.items():
            binding.bind_ortvalue_input(name, borrow(array))
        for name, array in self._outputs.items():
            binding.bind_ortvalue_output(name, borrow(array))
        binding.bind_ortvalue_output(GRADIENT_NORM, borrow(self._gradient_norm))
        # The wrapper's own run_with_iobinding costs a quarter of a small step.
        self._run, self._binding = self._session._sess.run_with_iobinding, binding._iobinding

    def run(self, eta):
        """Make one update of every trained weight; return the objective before it, a float."""
        self._eta[0] = eta
        self._run(self._binding, None)
        return float(self._objective)

    def value(self, output):
        """Return the function that gives an output of the last run, a float."""
        return self._outputs[output].item

    def gradient_norm(self):
        """Return the Euclidean norm of the last run's gradient, a float; 0 before the first run."""
        return float(self._gradient_norm)

    def state(self):
        """Return copies of the trained weights, as "weights", and of the optimizer's memory: what -> name -> array."""
        state, names = self._session.get_state(), self._trainable
        return {what: {name: state[prefix + name] for name in names} for what, prefix in self._prefixes.items()}

    def load(self, state):
        """Go on from another state, as from `state`."""
        arrays = {self._prefixes[what] + name: a for what, part in state.items() for name, a in part.items()}
        self._session.load_state(arrays, False)


def training_graph(model, trainable, optimizer):
    """Return the graph that TrainingSession makes of `model`: forward, backward and update (an `onnx.ModelProto`)."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "training.onnx")
        _training_session(model, trainable, optimizer, str(path))
        return onnx.load(path)


def _training_session(model, trainable, optimizer, graph_path=None):
    session_class = require("TrainingSession")
    from onnxruntime.capi import _pybind_state

    parameters = _pybind_state.TrainingParameters()
    parameters.loss_output_name = model.graph.output[0].name
    parameters.use_mixed_precision = False
    parameters.weights_to_train = set(trainable)
    parameters.training_optimizer_name = optimizer.operator
    # Both maps need an entry for every weight.
    parameters.optimizer_attributes_map = dict.fromkeys(trainable, optimizer.attributes)
    parameters.optimizer_int_attributes_map = dict.fromkeys(trainable, optimizer.int_attributes)
    if graph_path is not None:
        parameters.model_with_training_graph_path = graph_path
    model = _with_overridable_weights(model, trainable)
    return session_class(model.SerializeToString(), parameters, session_options(), providers=PROVIDERS)


def _with_overridable_weights(model, trainable):
    # The session takes an initializer for a constant: it merges small ones, losing the weight, and pre-packs those of
    # MatMul and Gemm, so that the forward pass never sees an update. It does neither to an initializer that is also
    # listed as an input.
    listed = copy.deepcopy(model)
    for weight in model.graph.initializer:
        if weight.name in trainable:
            info = onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims)
            listed.graph.input.append(info)
    return listed
