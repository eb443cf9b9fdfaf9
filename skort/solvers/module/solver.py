"""Module and Optimizer: the on-device training API."""

import pathlib
import tempfile
from typing import Any

import numpy as np

from skort.exceptions import NotTrainableError, RuntimeNotAvailableError
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.score_graph import ScoreGraph
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.batches import HostBatch
from skort.optim.transforms import norm
from skort.runtime.checkpoint_file import CheckpointFile, read_checkpoint, version_here, write_checkpoint
from skort.runtime.installed import training_api, why_missing
from skort.runtime.module import ModuleSession
from skort.solvers.base import BaseSolver, Problem
from skort.solvers.flat_weights import flat, views
from skort.solvers.module.models import optimizer_model, training_model
from skort.solvers.module.plan import Plan, Term

__all__ = ["ModuleSolver", "check_dropout"]

_TRAINING, _OPTIMIZER, _CHECKPOINT = "training_model.onnx", "optimizer_model.onnx", "checkpoint"
_MOMENTS = ("first_moment", "second_moment")


class ModuleSolver(BaseSolver):
    """
    Steps through the on-device training API, from the models that `skort.artifacts` writes for a batch size.

    skort's rules differentiate the score. ONNX Runtime makes the update itself: that of `SGD`, or of `Adam` without
    weight decay. The API reads files, which live in a temporary folder for as long as it takes.

    Parameters
    ----------
    problem : Problem
        In float32. Its penalty has no l1 term, and no l2 term that may need implicit steps.

    Raises
    ------
    ValueError
        For such a penalty.
    RuntimeNotAvailableError
        Where the installed ONNX Runtime is no build for training.
    NotTrainableError
        Where the model, or a loss that brings no gradient, has an operator without a rule, and for a Dropout.
    """

    name = "module"
    gradient = staticmethod(rule_gradient)

    @classmethod
    def check(cls, dtype, update):
        """Raise an error where the installed ONNX Runtime cannot train so this way."""
        if dtype != np.float32:
            raise ValueError(
                f'solver="module" trains in float32 only, got dtype="{dtype}". Use dtype="float32" or solver="graph".'
            )
        if update.tags.runtime is None or update.tags.weight_decay > 0:
            raise ValueError(
                f'solver="module" has no optimizer={update.optimizer!r}: the on-device API makes the update itself. '
                'Use solver="graph", or optimizer="sgd" or "adam" (without weight_decay).'
            )
        for name, value in (("max_grad_norm", update.max_grad_norm), ("average", update.average or None)):
            if value is not None:
                raise ValueError(
                    f'solver="module" has no {name}={value!r}: the on-device API makes the update itself. Use '
                    'solver="graph".'
                )
        if "Module" not in training_api():
            raise RuntimeNotAvailableError(
                f'solver="module" needs the on-device API; solver="graph" works here. {why_missing("Module")}'
            )

    def __init__(self, problem: Problem):
        super().__init__(problem)
        check_dropout(problem.score_graph)
        _check_terms(problem)
        graph, dtype = problem.score_graph, problem.objective.dtype
        self._problem = problem
        self.batch = HostBatch.empty(problem.batch_size, graph.n_features, graph.n_outputs, dtype)
        self._graphs = self.training_graphs()
        self._memory = self._rule.start(*problem.n_weights(), dtype)
        self._has_step = False
        self._write({"weights": flat(self._initial), **self._memory})

    def step(self, eta, share):
        """Make one update with learning rate `eta` on the batch, which is this part of the epoch."""
        self._session.learning_rate = eta
        objective, loss = self._session.add_gradients_bound(self._inputs)
        self._session.update()
        self._has_step = True
        self._add(share, objective.item(), loss.item())

    def read(self, X):
        """Let the next steps read the rows of X where they are; None: those of `batch`."""
        # The inputs borrow its memory.
        self._X = self.batch.X if X is None else X
        self._inputs = self._session.bound([self._X, self.batch.target, self.batch.sample_weight])

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient; 0 before the first step."""
        if not self._has_step:
            return 0.0
        return norm(flat({name: self._session.gradient(name) for name in self._initial}))

    def training_graphs(self):
        """Return the training model and the optimizer model."""
        update = self._problem.update
        optimizer: Any = update.optimizer
        return {
            "training": training_model(_plan(self._problem), self._problem.batch_size),
            "optimizer": optimizer_model(update.tags.runtime or "", optimizer.get_params()),
        }

    def _read(self):
        weights = flat({name: self._session.parameter(name) for name in self._initial})
        if not self._memory or not self._has_step:
            return {"weights": weights, **self._memory}
        with tempfile.TemporaryDirectory(prefix="skort-") as folder:
            path = pathlib.Path(folder, _CHECKPOINT)
            self._session.save(path, with_optimizer=True)
            saved = read_checkpoint(path.read_bytes())
        moments = {
            moment: flat({name: saved.moments[name][i] for name in self._initial}) for i, moment in enumerate(_MOMENTS)
        }
        return {"weights": weights, **moments, "n_updates": np.array([saved.n_steps])}

    def _write(self, state):
        """Begin anew from a state: the API takes moments from a file only."""
        self._memory = {name: state[name].copy() for name in self._memory}
        moments, n_steps = {}, 0
        if self._memory:
            parts = [views(state[moment], self._initial) for moment in _MOMENTS]
            moments = {name: tuple(part[name] for part in parts) for name in self._initial}
            n_steps = int(state["n_updates"][0])
        weights, frozen = views(state["weights"], self._initial), self._problem.score_graph.frozen_arrays
        checkpoint = CheckpointFile(version_here(), weights, frozen, moments, n_steps)
        contents = {_TRAINING: self._graphs["training"], _OPTIMIZER: self._graphs["optimizer"]}
        with tempfile.TemporaryDirectory(prefix="skort-") as folder:
            paths: dict[str, Any] = {name: pathlib.Path(folder, name) for name in (*contents, _CHECKPOINT)}
            for name, model in contents.items():
                paths[name].write_bytes(model.SerializeToString())
            paths[_CHECKPOINT].write_bytes(write_checkpoint(checkpoint))
            self._session = ModuleSession(
                paths[_TRAINING], paths[_CHECKPOINT], optimizer=paths[_OPTIMIZER], device=self._problem.device
            )
        self._has_step = False
        self._inputs = self._session.bound([self.batch.X, self.batch.target, self.batch.sample_weight])


def check_dropout(score_graph: ScoreGraph) -> None:
    """Raise an error where masks are to be drawn for every step."""
    if score_graph.dropout:
        raise NotTrainableError(
            "estimator: the ONNX model has a Dropout in training mode, whose masks on-device training does not draw. "
            "Export the model in evaluation mode."
        )


def _plan(problem):
    """Return a problem as what the on-device API trains."""
    graph, objective = problem.score_graph, problem.objective
    return Plan(
        structure=graph.structure,
        trainable=problem.weights,
        frozen=graph.frozen_arrays,
        terms=(Term(graph.score_name, TARGET, SAMPLE_WEIGHT, objective),),
        outputs=(OBJECTIVE, LOSS),
        inputs=tuple(objective.inputs(problem.batch_size)),
        penalized=objective,
    )


def _check_terms(problem):
    """Raise an error where the penalty is more than a part of the gradient."""
    terms = problem.terms
    if terms.l1 is not None:
        raise ValueError(
            f'solver="module" has no l1 term, got penalty={problem.objective.penalty!r}: the on-device API makes the '
            'update itself. Use solver="graph".'
        )
    if problem.update.is_stiff(terms):
        raise ValueError(
            'solver="module" may overshoot zero with an l2 penalty as strong as this at this learning rate. Lower eta0 '
            'or alpha, or use solver="graph".'
        )
