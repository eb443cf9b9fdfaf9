"""TrainingSession: objective, gradient and update in one graph."""

import numpy as np

from skort.descent.averaging import Average
from skort.descent.batches import Batch
from skort.descent.optimizers import SGD, Adam
from skort.exceptions import RuntimeNotAvailableError
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.initial import check_differentiable
from skort.objective.nodes import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.onnx_text import Fragment, inlined, rewritten
from skort.runtime.device import CPU
from skort.runtime.installed import training_api, why_missing
from skort.runtime.training_session import BoundTrainingSession, SessionOptimizer, adam_optimizer, training_graph
from skort.solvers.derived import check_loss
from skort.solvers.state import everything, flat, load, saved, views

__all__ = ["SessionSolver"]


def _sgd(optimizer, memory):
    return SessionOptimizer(), lambda eta: eta


def _adam(optimizer, memory):
    # The session computes 1 - beta in float32, of a beta in float32; the correction has to be that of the same beta.
    beta_1, beta_2 = (float(np.float32(beta)) for beta in (optimizer.beta_1, optimizer.beta_2))
    single = Adam(beta_1, beta_2)
    return adam_optimizer(beta_1, beta_2, optimizer.epsilon), lambda eta: single.corrected(eta, memory)


# Of each optimizer and its state: TrainingSession's own, and the learning rate that it needs for the same steps.
_OPTIMIZERS = {SGD: _sgd, Adam: _adam}

# The gradient of Relu takes longer in ONNX Runtime than the products of matrices, that of Mul does not.
_OPERATORS = {
    "Relu": """
relu (x) => (y) {
    zero = Constant <value = float {0}> ()
    positive = Greater (x, zero)
    slope = Cast <to = 1> (positive)
    y = Mul (x, slope)
}"""
}


class SessionSolver:
    """
    Steps through TrainingSession.

    ONNX Runtime differentiates the objective and makes the update itself: that of `SGD`, or of `Adam` without weight
    decay.

    Parameters
    ----------
    score_graph : ScoreGraph
        In float32.
    objective : Objective
    optimizer : SGD or Adam
    batch_size : int
    max_grad_norm, average, device, state
        As for `Solver`; gradients cannot be clipped.

    Raises
    ------
    RuntimeNotAvailableError
        Where the installed ONNX Runtime has no TrainingSession.
    NotTrainableError
        Where ONNX Runtime does not differentiate the loss.
    """

    @staticmethod
    def check(dtype, optimizer, max_grad_norm=None):
        """Raise an error where the installed ONNX Runtime cannot train so this way."""
        if dtype != np.float32:
            raise ValueError(
                f'solver="session" trains in float32 only, got dtype="{dtype}". Use dtype="float32" or solver="graph".'
            )
        if type(optimizer) not in _OPTIMIZERS or getattr(optimizer, "weight_decay", 0) > 0:
            raise ValueError(
                f'solver="session" has no optimizer={optimizer!r}: TrainingSession makes the update itself. '
                'Use solver="graph", or optimizer="sgd" or "adam" (without weight_decay).'
            )
        if any(np.float32(getattr(optimizer, beta, 0)) == 1 for beta in ("beta_1", "beta_2")):
            raise ValueError(
                f'solver="session" needs beta_1 and beta_2 that are below 1 in float32, got optimizer={optimizer!r}. '
                'Use smaller ones or solver="agent".'
            )
        if max_grad_norm is not None:
            raise ValueError(
                f'solver="session" cannot clip gradients (max_grad_norm={max_grad_norm}): TrainingSession makes the '
                'update itself. Use max_grad_norm=None or solver="graph".'
            )
        if "TrainingSession" not in training_api():
            raise RuntimeNotAvailableError(
                f'solver="session" needs TrainingSession; solver="graph" works here. {why_missing("TrainingSession")}'
            )

    @staticmethod
    def check_model(score_graph, objective, batch_size):
        """Raise an error where the model or the loss is not differentiated."""
        check_differentiable(score_graph, "session", runtime_gradient)
        check_loss(objective, batch_size, runtime_gradient)

    def __init__(
        self,
        score_graph,
        objective,
        optimizer,
        batch_size,
        *,
        max_grad_norm=None,
        average=False,
        device=CPU,
        state=None,
    ):
        check_loss(objective, batch_size, runtime_gradient)
        self._trainable = score_graph.trainable
        self._model = _objective_graph(score_graph, objective, batch_size)
        self.batch = Batch.empty(batch_size, score_graph.n_features, score_graph.n_outputs, objective.dtype)
        inputs = {
            score_graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
        }
        self._initial = score_graph.trained_arrays
        self._memory = optimizer.start(*score_graph.n_weights(), objective.dtype)
        self._optimizer, self._eta = _OPTIMIZERS[type(optimizer)](optimizer, self._memory)
        self._session = BoundTrainingSession(self._model, self._trainable, inputs, self._optimizer, device)
        self.gradient_norm = self._session.gradient_norm
        self.loss = self._session.value(LOSS)
        self._average = Average(average, sum(score_graph.n_weights()))
        if state is not None:
            self.restore(state)

    def step(self, eta):
        """Make one update with learning rate `eta`; return the objective on the batch before it."""
        objective = self._session.run(self._eta(eta))
        if self._average.count():
            self._average.add(self._vectors()["weights"])
        return objective

    def weights(self):
        """Return a copy of the trained weights, by name: of their mean where `average` has begun."""
        return views(self._average.mean(self._vectors()["weights"]), self._initial)

    def state(self):
        """Return a copy of everything that training goes on from, by name."""
        return saved(self._arrays(self._vectors()))

    def restore(self, state):
        """Go on from a state as from `state`."""
        vectors = self._vectors()
        load(self._arrays(vectors), state)
        self._session.load({what: views(vector, self._initial) for what, vector in vectors.items()})

    def _vectors(self):
        """Return what the session holds, as copies: the weights, and what its optimizer remembers of each."""
        return {what: flat(arrays) for what, arrays in self._session.state().items()}

    def _arrays(self, vectors):
        memory = self._memory | vectors
        return everything(memory.pop("weights"), memory, self._average)

    def training_graphs(self):
        """Return the objective's graph, and what TrainingSession makes of it."""
        return {"objective": self._model, "training": training_graph(self._model, self._trainable, self._optimizer)}


def _objective_graph(score_graph, objective, batch_size):
    """Return the model X, target, sample weight -> objective."""
    model = score_graph.with_batch_size(batch_size)
    fragment = Fragment(objective.dtype)
    objective.add_value(fragment, score_graph.score_name)
    model.graph.node.extend(fragment.nodes)
    model.graph.input.extend(objective.inputs(batch_size))
    model.graph.output[0].CopyFrom(objective.output(OBJECTIVE))
    model.graph.output.append(objective.output(LOSS))
    return rewritten(inlined(model, fragment), _OPERATORS, objective.dtype)
