"""TrainingSession: objective, gradient and update in one graph."""

import numpy as np

from skort.descent.batches import Batch
from skort.exceptions import RuntimeNotAvailableError
from skort.objective.nodes import SAMPLE_WEIGHT, TARGET
from skort.onnx_text import Fragment, inlined
from skort.runtime.installed import training_api, why_missing
from skort.runtime.training_session import BoundTrainingSession, training_graph
from skort.solvers.derived import check_differentiable

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

    Raises
    ------
    RuntimeNotAvailableError
        Where the installed ONNX Runtime has no TrainingSession.
    NotTrainableError
        Where ONNX Runtime does not differentiate the loss.
    """

    @staticmethod
    def check(dtype):
        """Raise an error where the installed ONNX Runtime cannot train in `dtype` this way."""
        if dtype != np.float32:
            raise ValueError(
                f'solver="session" trains in float32 only, got dtype="{dtype}". Use dtype="float32" or solver="agent".'
            )
        api = training_api()
        if "TrainingSession" not in api:
            advice = '; solver="agent" works here' if "TrainingAgent" in api else ""
            raise RuntimeNotAvailableError(
                f'solver="session" needs TrainingSession{advice}. {why_missing("TrainingSession")}'
            )

    def __init__(self, score_graph, objective, optimizer, batch_size):
        check_differentiable(objective, batch_size)
        self._trainable = score_graph.trainable
        self._model = _objective_graph(score_graph, objective, batch_size)
        self.batch = Batch.empty(batch_size, score_graph.n_features, score_graph.n_outputs, objective.dtype)
        inputs = {
            score_graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
        }
        self._session = BoundTrainingSession(self._model, self._trainable, inputs)
        self.step = self._session.run
        self.weights = self._session.weights

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
    model.graph.output[0].CopyFrom(objective.output())
    return inlined(model, fragment)
