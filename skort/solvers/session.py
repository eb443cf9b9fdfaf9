"""TrainingSession: objective, gradient and update in one graph."""

import numpy as np

from skort.descent.averaging import Average
from skort.descent.batches import Batch
from skort.descent.optimizers import SGD
from skort.exceptions import RuntimeNotAvailableError
from skort.objective.nodes import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.onnx_text import Fragment, inlined
from skort.runtime.installed import training_api, why_missing
from skort.runtime.training_session import BoundTrainingSession, training_graph
from skort.solvers.state import load, saved, views

__all__ = ["SessionSolver"]


class SessionSolver:
    """
    Steps through TrainingSession.

    ONNX Runtime differentiates the objective and makes the update `w - eta * gradient` itself.

    Parameters
    ----------
    score_graph : ScoreGraph
        In float32.
    objective : Objective
    optimizer : SGD
    batch_size : int
    max_grad_norm : None
    average : bool or int, default=False
        See `Average`.
    state : dict of str to ndarray, default=None
        As from `state`: what to go on from. None: the weights of `score_graph`.

    Raises
    ------
    RuntimeNotAvailableError
        Where the installed ONNX Runtime has no TrainingSession.
    """

    @staticmethod
    def check(dtype, optimizer, max_grad_norm=None):
        """Raise an error where the installed ONNX Runtime cannot train so this way."""
        if dtype != np.float32:
            raise ValueError(
                f'solver="session" trains in float32 only, got dtype="{dtype}". Use dtype="float32" or solver="agent".'
            )
        if not isinstance(optimizer, SGD):
            raise ValueError(
                f'solver="session" has no optimizer={optimizer!r}: TrainingSession makes the update itself. '
                'Use optimizer="sgd" or solver="agent".'
            )
        if max_grad_norm is not None:
            raise ValueError(
                f'solver="session" cannot clip gradients (max_grad_norm={max_grad_norm}): TrainingSession makes the '
                'update itself. Use max_grad_norm=None or solver="agent".'
            )
        api = training_api()
        if "TrainingSession" not in api:
            advice = '; solver="agent" works here' if "TrainingAgent" in api else ""
            raise RuntimeNotAvailableError(
                f'solver="session" needs TrainingSession{advice}. {why_missing("TrainingSession")}'
            )

    def __init__(self, score_graph, objective, optimizer, batch_size, *, max_grad_norm=None, average=False, state=None):
        self._trainable = score_graph.trainable
        self._model = _objective_graph(score_graph, objective, batch_size)
        self.batch = Batch.empty(batch_size, score_graph.n_features, score_graph.n_outputs, objective.dtype)
        inputs = {
            score_graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
        }
        self._session = BoundTrainingSession(self._model, self._trainable, inputs)
        self.gradient_norm = self._session.gradient_norm
        self.loss = self._session.value(LOSS)
        self._average = Average(average, len(self._flat()))
        if state is not None:
            self.restore(state)

    def step(self, eta):
        """Make one update with learning rate `eta`; return the objective on the batch before it."""
        objective = self._session.run(eta)
        if self._average.count():
            self._average.add(self._flat())
        return objective

    def weights(self):
        """Return a copy of the trained weights, by name: of their mean where `average` has begun."""
        return views(self._average.mean(self._flat()), self._session.weights())

    def state(self):
        """Return a copy of everything that training goes on from, by name."""
        return saved(self._arrays())

    def restore(self, state):
        """Go on from a state as from `state`."""
        arrays = self._arrays()
        load(arrays, state)
        self._session.load(views(arrays["weights"], self._session.weights()))

    def _arrays(self):
        return {"weights": self._flat(), **self._average.arrays()}

    def _flat(self):
        return np.concatenate([w.ravel() for w in self._session.weights().values()])

    def training_graphs(self):
        """Return the objective's graph, and what TrainingSession makes of it."""
        return {"objective": self._model, "training": training_graph(self._model, self._trainable)}


def _objective_graph(score_graph, objective, batch_size):
    """Return the model X, target, sample weight -> objective."""
    model = score_graph.with_batch_size(batch_size)
    fragment = Fragment(objective.dtype)
    objective.add_value(fragment, score_graph.score_name)
    model.graph.node.extend(fragment.nodes)
    model.graph.input.extend(objective.inputs(batch_size))
    model.graph.output[0].CopyFrom(objective.output(OBJECTIVE))
    model.graph.output.append(objective.output(LOSS))
    return inlined(model, fragment)
