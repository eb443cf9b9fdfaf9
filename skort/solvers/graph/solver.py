"""The whole step as one graph on any ONNX Runtime."""

import numpy as np

from skort.graphs.gradient.reverse import rule_gradient
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.transforms import norm
from skort.runtime.cache import LRUCache
from skort.runtime.installed import load
from skort.runtime.sessions import compiled
from skort.runtime.step_session import StepSession
from skort.solvers.base import BaseSolver, Problem, is_small
from skort.solvers.flat_weights import views
from skort.solvers.graph.step_graph import (
    ETA,
    GRADIENT,
    WEIGHTS,
    StepGraph,
    constants_graph,
    next_name,
    split_graph,
    state_name,
)

__all__ = ["GraphSolver"]

# A search has few structures. A session of a small step keeps about a MB.
_SESSIONS: LRUCache = LRUCache(16)


class GraphSolver(BaseSolver):
    """
    Steps through one plain InferenceSession.

    skort differentiates the score itself, by one rule an operator, and writes forward, backward, penalty, clipping and
    update as one graph of standard operators, which any ONNX Runtime runs. All weights are one vector, as are all
    gradients: penalty and update are a few nodes, whatever the model.

    Parameters
    ----------
    problem : Problem
        Its optimizer is an `OnnxOptimizer`.

    Raises
    ------
    RuntimeNotAvailableError
        Where ONNX Runtime is not installed.
    NotTrainableError
        Where the model, or a loss that brings no gradient, has an operator without a rule.
    """

    name = "graph"
    gradient = staticmethod(rule_gradient)

    @classmethod
    def check(cls, dtype, update):
        """Raise an error where the installed ONNX Runtime cannot train so this way."""
        load()
        if not _is_onnx(update.optimizer):
            raise ValueError(
                f'solver="graph" needs an optimizer with a method onnx_update, got optimizer={update.optimizer!r}. Use '
                'solver="agent", or write its own update as ONNX text, see skort.optimizers.OnnxOptimizer.'
            )

    def __init__(self, problem: Problem):
        super().__init__(problem)
        graph, dtype = problem.score_graph, problem.objective.dtype
        self._problem = problem
        # What an update does not change of it is part of the graph.
        self._memory = self._rule.start(*problem.n_weights(), dtype)
        self.batch = HostBatch.empty(problem.batch_size, graph.n_features, graph.n_outputs, dtype)
        self._eta, self._last_objective, loss = (np.zeros((), dtype) for _ in range(3))
        self._loss = loss.item

        def compile_step():
            graph = step.model()
            return compiled(graph.SerializeToString(), problem.device), frozenset(i.name for i in graph.graph.input)

        self._step = step = StepGraph.of(problem, self._rule, self._memory)
        session, names = _SESSIONS.get(step.key, compile_step) if is_small(problem) else compile_step()
        self._gradient = np.zeros_like(step.states[WEIGHTS])
        inputs = {
            graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
            ETA: self._eta,
            **{name: array for name, array in step.parameters.items() if name in names},
        }
        outputs = {LOSS: loss, OBJECTIVE: self._last_objective, GRADIENT: self._gradient}
        next_names = {name: next_name(name) for name in step.states}
        # The session reads every weight where it is in the vector.
        self._session = StepSession(session, inputs, outputs, step.states, next_names, self._parts, problem.device)

    def _parts(self, states):
        return views(states[WEIGHTS], self._initial)

    def step(self, eta, share):
        """Make one update with learning rate `eta` on the batch, which is this part of the epoch."""
        self._eta[...] = eta
        self._session.run()
        self._add(share, self._last_objective.item(), self._loss())

    def read(self, X):
        """Let the next steps read the rows of X where they are; None: those of `batch`."""
        self._session.replace(self._problem.score_graph.input_name, self.batch.X if X is None else X)

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""
        return norm(self._gradient)

    def _read(self):
        current, device = self._session.state, self._problem.device
        memory = {name: current.get(state_name(name), array) for name, array in self._memory.items()}
        arrays = {"weights": current[WEIGHTS], **memory}
        return {name: array if isinstance(array, np.ndarray) else device.get(array) for name, array in arrays.items()}

    def _write(self, state):
        current, device = self._session.state, self._problem.device
        for name, array in state.items():
            input_name = WEIGHTS if name == "weights" else state_name(name)
            if input_name in current:
                device.fill(current[input_name], array)

    def training_graphs(self):
        """Return the graph of the whole step, what the next step reads beside a batch, and how weights are split."""
        step, arrays = self._step.model(), self._read()
        states = {WEIGHTS if name == "weights" else state_name(name): array for name, array in arrays.items()}
        weights = views(arrays["weights"], self._initial)
        start = constants_graph(step, {**states, **weights, **self._step.parameters})
        return {"step": step, "start": start, "split": split_graph(weights)}


def _is_onnx(optimizer):
    """Return whether the ONNX text of an optimizer is that of its update: no subclass has replaced the update alone."""
    for cls in type(optimizer).__mro__:
        if "onnx_update" in vars(cls):
            return True
        if "update" in vars(cls) or "step_length" in vars(cls):
            return False
    return False
