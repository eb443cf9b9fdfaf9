"""Solver "module": Module and Optimizer of the on-device training API."""

import pathlib
import tempfile
from typing import Any, cast

import numpy as np
import onnx

from skort.exceptions import NotTrainableError
from skort.graphs.score_graph import ScoreGraph
from skort.graphs.training_mode import WITHOUT_DROPOUT
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, TARGET
from skort.optim.transforms import norm
from skort.optim.update import Update, UpdateRule
from skort.runtime.checkpoint_file import (
    CheckpointFile,
    read_checkpoint,
    version_here,
    write_checkpoint,
)
from skort.runtime.device import value_vector
from skort.runtime.module import ModuleSession
from skort.solvers.base import HostBackend, Problem, flat, views
from skort.solvers.module.models import Blueprint, Term, optimizer_model, training_model

_TRAINING = "training_model.onnx"
_OPTIMIZER = "optimizer_model.onnx"
_CHECKPOINT = "checkpoint"
_MOMENTS = ("first_moment", "second_moment")


def needs_plain_gradient(solver: str, dtype: np.dtype, update: Update) -> None:
    """Raise an error for clipping."""
    if update.max_grad_norm is not None:
        raise ValueError(
            f'solver="{solver}" has no max_grad_norm={update.max_grad_norm!r}: the on-device API '
            'makes the update itself. Use solver="graph".'
        )


class ModuleBackend(HostBackend):
    """Steps of the on-device training API. It reads its files from a temporary folder."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.rule: UpdateRule = problem.rule()
        check_dropout(problem.score_graph, 'use solver="graph"; or ')
        _check_terms(problem)
        self._graphs = self.training_graphs()
        self._memory = self.rule.start(*problem.n_weights, problem.objective.dtype)
        self._has_moments = _MOMENTS[0] in self._memory
        if self.rule.implicit is not None:
            self._scratch = np.empty_like(self.rule.implicit.stiff)

        # The decay of the API's optimizer would include intercepts.
        self._decayed = (
            problem.score_graph.trained.coefficients if problem.update.tags.weight_decay > 0 else ()
        )
        self._has_step = False
        self.load({"weights": flat(self._problem.weights), **self._memory})

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        self._session.learning_rate = eta
        objective, loss = self._session.add_gradients_bound(self._values)
        for name in self._decayed:
            self._session.scale(name, 1 - eta * self._problem.update.tags.weight_decay)
        self._update(eta)
        averaging = self.rule.averaging
        if averaging is not None and averaging.count(self._memory):
            averaging.move(self._weights(), self._memory)
        self._has_step = True
        self.sums.add(share, objective.item(), loss.item())

    def _update(self, eta):
        """Let the API update the weights. Stiff l2 terms make implicit steps."""
        decorrelation = self._problem.decorrelation
        if decorrelation is not None:
            # The API makes the step of the gradient as it is. No stiff l2 term goes with the change.
            before = self._weights()
            self._session.update()
            weights = decorrelation.after_step(before, self._weights())
            for name, array in views(weights, self._problem.weights).items():
                self._session.set_parameter(name, array)
            return

        implicit = self.rule.implicit
        if implicit is None or not implicit.is_any_stiff(eta, self._scratch):
            self._session.update()
            return

        # The gradient g + b w has the term. Before the update, w (1 + eta b) makes up for it:
        # the update gives w - eta g, which is divided by 1 + eta b.
        factors = views(1 + eta * implicit.stiff, self._problem.weights)
        for name, factor in factors.items():
            self._session.scale(name, factor)
        self._session.update()
        for name, factor in factors.items():
            self._session.scale(name, 1 / factor)

    def read(self, X: np.ndarray | None) -> None:
        """Let the next steps read the rows of X in place, or with None the rows of `batch`."""
        _, *others = self.inputs.values()
        # The values borrow the memory of X, so X has to live.
        self._X = self.batch.X if X is None else X
        self._values = value_vector([self._X, *others])

    def last_gradient(self) -> np.ndarray:
        """Return the last step's gradient."""
        return flat({name: self._session.gradient(name) for name in self._problem.weights})

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient; 0 before the first step."""
        return norm(self.last_gradient()) if self._has_step else 0.0

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return the training model and the optimizer model."""
        problem = self._problem
        update = self._problem.update
        graph = problem.score_graph
        objective = problem.objective
        optimizer = cast(Any, update.optimizer)
        blueprint = Blueprint(
            structure=graph.structure,
            trainable=problem.weights,
            frozen=graph.frozen_arrays,
            terms=(Term(graph.score_name, TARGET, SAMPLE_WEIGHT, objective),),
            outputs=(OBJECTIVE, LOSS),
            inputs=tuple(objective.inputs(problem.batch_size)),
            penalized=objective,
        )

        return {
            "training": training_model(blueprint, problem.batch_size),
            "optimizer": optimizer_model(
                update.tags.runtime or "", optimizer.get_params() | {"weight_decay": 0.0}
            ),
        }

    def _weights(self):
        """Return the vector of weights."""
        return flat({name: self._session.parameter(name) for name in self._problem.weights})

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the rule's state. The moments come from a checkpoint file."""
        weights = self._weights()
        if not (self._has_moments and self._has_step):
            return {"weights": weights, **self._memory}

        with tempfile.TemporaryDirectory(prefix="skort-") as folder:
            path = pathlib.Path(folder, _CHECKPOINT)
            self._session.save(path, with_optimizer=True)
            saved = read_checkpoint(path.read_bytes())

        moments = {
            moment: flat({name: saved.moments[name][i] for name in self._problem.weights})
            for i, moment in enumerate(_MOMENTS)
        }
        return {
            "weights": weights,
            **self._memory,
            **moments,
            "n_updates": np.array([saved.n_steps]),
        }

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """
        Continue from a state.

        The session is made again, since the API reads moments only from a file.
        """
        self._memory = {name: arrays[name].copy() for name in self._memory}
        moments = {}
        n_steps = 0
        if self._has_moments:
            parts = [views(arrays[moment], self._problem.weights) for moment in _MOMENTS]
            moments = {name: tuple(part[name] for part in parts) for name in self._problem.weights}
            n_steps = int(arrays["n_updates"][0])

        weights = views(arrays["weights"], self._problem.weights)
        frozen = self._problem.score_graph.frozen_arrays
        checkpoint = CheckpointFile(version_here(), weights, frozen, moments, n_steps)
        contents = {_TRAINING: self._graphs["training"], _OPTIMIZER: self._graphs["optimizer"]}

        with tempfile.TemporaryDirectory(prefix="skort-") as folder:
            paths: dict[str, Any] = {
                name: pathlib.Path(folder, name) for name in (*contents, _CHECKPOINT)
            }
            for name, model in contents.items():
                paths[name].write_bytes(model.SerializeToString())
            paths[_CHECKPOINT].write_bytes(write_checkpoint(checkpoint))
            self._session = ModuleSession(
                paths[_TRAINING],
                paths[_CHECKPOINT],
                optimizer=paths[_OPTIMIZER],
                device=self._problem.device,
            )

        self._has_step = False
        self.read(None)


def check_dropout(score_graph: ScoreGraph, other: str = "") -> None:
    """Raise an error for a model with Dropout, whose masks change with each step; `other`: a cure."""
    if score_graph.dropout:
        raise NotTrainableError(
            "estimator: the model has a Dropout in training mode, whose masks on-device training "
            f"does not draw: {other}{WITHOUT_DROPOUT}."
        )


def _check_terms(problem):
    """Raise an error for a penalty that is not just a part of the gradient."""
    terms = problem.terms
    if terms.l1 is not None:
        raise ValueError(
            f'solver="module" has no l1 term, got penalty={problem.objective.penalty!r}: the '
            'on-device API makes the update itself. Use solver="graph".'
        )
