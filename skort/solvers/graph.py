"""The whole step as one graph on any ONNX Runtime."""

import functools

import numpy as np

from skort.descent.averaging import Average
from skort.descent.batches import Batch
from skort.descent.clipping import norm
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.initial import check_differentiable
from skort.objective.nodes import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.runtime.device import CPU
from skort.runtime.installed import load as load_onnxruntime
from skort.runtime.step_session import StepSession
from skort.solvers.derived import check_loss
from skort.solvers.state import everything, flat, load, saved, views
from skort.solvers.step_graph import ETA, GRADIENT, WEIGHTS, next_name, start_graph, state_name, step_graph

__all__ = ["GraphSolver"]


class GraphSolver:
    """
    Steps through one plain InferenceSession.

    skort differentiates the score itself, by one rule an operator, and writes forward, backward, penalty, clipping and
    update as one graph of standard operators, which any ONNX Runtime runs. All weights are one vector, as are all
    gradients: penalty and update are a few nodes, whatever the model.

    Parameters
    ----------
    score_graph : ScoreGraph
    objective : Objective
    optimizer : OnnxOptimizer
    batch_size : int
    max_grad_norm, average, device, state
        As for `Solver`.

    Raises
    ------
    RuntimeNotAvailableError
        Where ONNX Runtime is not installed.
    NotTrainableError
        Where the model, or a loss that brings no gradient, has an operator without a rule.
    """

    @staticmethod
    def check(dtype, optimizer, max_grad_norm=None):
        """Raise an error where the installed ONNX Runtime cannot train so this way."""
        load_onnxruntime()
        if not _is_onnx(optimizer):
            raise ValueError(
                f'solver="graph" needs an optimizer with a method onnx_update, got optimizer={optimizer!r}. Use '
                'solver="agent", or write its own update as ONNX text, see skort.optimizers.OnnxOptimizer.'
            )

    @staticmethod
    def check_model(score_graph, objective, batch_size):
        """Raise an error where the model or the loss is not differentiated."""
        check_differentiable(score_graph, "graph", rule_gradient)
        if objective.loss.gradient_function(objective.n_outputs) is None:
            check_loss(objective, batch_size, rule_gradient)

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
        self.batch = Batch.empty(batch_size, score_graph.n_features, score_graph.n_outputs, objective.dtype)
        self._initial = score_graph.weights()
        weights = flat(self._initial)
        self._memory = optimizer.start(*score_graph.n_weights(), objective.dtype)
        self._average = Average(average, len(weights))
        arguments = score_graph, objective, optimizer, batch_size, self._memory, max_grad_norm
        self._graph = functools.partial(step_graph, *arguments)
        self._eta, self._objective, loss = (np.zeros((), objective.dtype) for _ in range(3))
        self._gradient = np.zeros_like(weights)
        self.loss = loss.item
        inputs = {
            score_graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
            ETA: self._eta,
        }
        outputs = {LOSS: loss, OBJECTIVE: self._objective, GRADIENT: self._gradient}
        states = {WEIGHTS: weights, **{state_name(name): array for name, array in self._memory.items()}}
        # The session reads every weight where it is in the vector.
        model = self._graph(unpack=False)
        given = {i.name for i in model.graph.input}
        states = {name: array for name, array in states.items() if name in given}
        next_names = {name: next_name(name) for name in states}
        self._session = StepSession(model.SerializeToString(), inputs, outputs, states, next_names, self._parts, device)
        if state is not None:
            self.restore(state)

    def _parts(self, states):
        return views(states[WEIGHTS], self._initial)

    def step(self, eta):
        """Make one update with learning rate `eta`; return the objective on the batch before it."""
        self._eta[...] = eta
        self._session.run()
        if self._average.count():
            self._average.add(self._session.state[WEIGHTS])
        return self._objective.item()

    def weights(self):
        """Return a copy of the trained weights, by name: of their mean where `average` has begun."""
        return views(self._average.mean(self._session.state[WEIGHTS]), self._initial)

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""
        return norm(self._gradient)

    def state(self):
        """Return a copy of everything that training goes on from, by name."""
        return saved(self._arrays())

    def restore(self, state):
        """Go on from a state as from `state`."""
        load(self._arrays(), state)

    def _arrays(self):
        current = self._session.state
        memory = {name: current.get(state_name(name), array) for name, array in self._memory.items()}
        return everything(current[WEIGHTS], memory, self._average)

    def training_graphs(self):
        """Return the graph of the whole step, and one that gives what the next step goes on from."""
        return {"step": self._graph(), "start": start_graph(self._session.state)}


def _is_onnx(optimizer):
    """Return whether an optimizer has ONNX text, and no subclass has an update of its own beside it."""
    for cls in type(optimizer).__mro__:
        if "onnx_update" in vars(cls):
            return True
        if "update" in vars(cls) or "step_length" in vars(cls):
            return False
    return False
