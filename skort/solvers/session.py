"""Solver "session": TrainingSession runs objective, gradient and update in one graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from skort.common.formulas import function_text
from skort.common.node_phases import mark_rest
from skort.common.onnx_text import Fragment, infos, inlined, rewritten
from skort.common.parametrized_graph import Program
from skort.objective.objective import LOSS, OBJECTIVE, SMOOTH
from skort.optim.optimizers import Adam
from skort.optim.update import PenaltyStrengths, Update, UpdateRule
from skort.runtime.cache import POOL
from skort.runtime.training_api import (
    BoundTrainingSession,
    SessionOptimizer,
    training_graph,
    training_session,
)
from skort.solvers.base import HostBackend, Problem, flat, is_small, views
from skort.solvers.graph.backend import constants_graph


def _adam(optimizer):
    # The session rounds beta to float32. The bias correction has to use the same beta.
    beta_1, beta_2 = (float(np.float32(beta)) for beta in (optimizer.beta_1, optimizer.beta_2))
    attributes = {
        "alpha": beta_1,
        "beta": beta_2,
        "epsilon": float(optimizer.epsilon),
        "lambda": 0.0,
    }

    # The session would correct before it adds epsilon, scikit-learn corrects after. So the
    # correction of the session is off, and the learning rate includes it.
    uncorrected = {"do_bias_correction": 0, "weight_decay_mode": 0}
    memory = {"first_moment": "Moment_1_", "second_moment": "Moment_2_"}
    made = SessionOptimizer("AdamOptimizer", attributes, uncorrected, memory)
    return made, Adam(beta_1=beta_1, beta_2=beta_2).corrected


# For the runtime's name of an update: the optimizer of TrainingSession, and the function that
# returns the learning rate with which it makes the same steps.
_OPTIMIZERS: dict[str | None, Callable] = {
    "SGD": lambda optimizer: (SessionOptimizer(), lambda eta, memory: eta),
    "AdamW": _adam,
}

# In ONNX Runtime, the gradient of Relu takes longer than the products of matrices. The gradient of
# Mul does not.
_OPERATORS = {"Relu": function_text("relu (x) => (y)", "y = x * Cast(Greater(x, 0), to=1)")}

# The session minimises the first output. Only this one lacks the l1 term.
_OUTPUTS = (SMOOTH, OBJECTIVE, LOSS)


def needs_corrections(solver: str, dtype: np.dtype, update: Update) -> None:
    """Raise an error if the correction of Adam's moments would divide by zero in float32."""
    optimizer: Any = update.optimizer
    if update.tags.runtime == "AdamW" and 1 in np.asarray(
        [optimizer.beta_1, optimizer.beta_2], np.float32
    ):
        raise ValueError(
            f'solver="{solver}" needs beta_1 and beta_2 that are below 1 in float32, got '
            f'optimizer={optimizer!r}. Use smaller ones or solver="agent".'
        )


def needs_no_clipping(solver: str, dtype: np.dtype, update: Update) -> None:
    """Raise an error for clipping."""
    if update.max_grad_norm is not None:
        raise ValueError(
            f'solver="{solver}" cannot clip gradients (max_grad_norm={update.max_grad_norm}): '
            'TrainingSession makes the update itself. Use max_grad_norm=None or solver="graph".'
        )


class SessionBackend(HostBackend):
    """
    Steps of TrainingSession.

    For weight decay, some penalties and correlated columns, numpy changes the weights and writes
    them back.
    """

    def __init__(self, problem: Problem):
        super().__init__(problem)
        update = problem.update
        terms = problem.terms
        self._optimizer, correction = _OPTIMIZERS[update.tags.runtime](update.optimizer)
        self.session: BoundTrainingSession = self._bound_session()
        self._is_on_host = (
            terms.l1 is not None
            or update.is_stiff(terms)
            or update.tags.weight_decay > 0
            or problem.decorrelation is not None
        )
        self._made = made = _SessionUpdate(
            update.optimizer, self.session, correction, problem.decorrelation
        )

        # TrainingSession makes the update. Without decay and such penalties, the only
        # transformation around it is the mean of the weights.
        self.rule: UpdateRule = update.rule(terms if self._is_on_host else PenaltyStrengths(), made)
        self._average = self.rule.averaging
        self._run_session = made.run
        self._flat = flat(problem.weights)
        self._no_gradient, self._scratch, made.held = (np.zeros_like(self._flat) for _ in range(3))
        self._memory = self.rule.start(*problem.n_weights, self._flat.dtype)
        if problem.decorrelation is not None:
            problem.decorrelation.start(*problem.n_weights, self._flat.dtype)
        self.load({"weights": self._flat, **self._memory})
        self._values = self.session.value(OBJECTIVE), self.session.value(LOSS)

    def _bound_session(self):
        """Return a session for the structure of the problem, bound to the problem's numbers."""
        problem, trainable = self._problem, tuple(self._problem.weights)
        self._program = Program(problem.objective.dtype, problem.batch_size, "value")
        problem.objective.add_value(self._program, problem.score_graph.score_name)

        def make():
            return training_session(self._model(), trainable, self._optimizer, problem.device)

        key = problem.structure, self._program.structure, repr(self._optimizer)
        session = POOL.borrow(("session", *key), self, make) if is_small(problem) else make()
        return BoundTrainingSession(
            session, _OUTPUTS, trainable, {**self.inputs, **self._numbers()}, self._optimizer
        )

    def _numbers(self):
        return {**self._program.parameters, **self._problem.score_graph.frozen_arrays}

    def _model(self):
        """Return the graph of the objective for the session, with numbers as inputs."""
        problem = self._problem
        model = problem.score_graph.with_frozen_inputs(problem.batch_size)
        objective, fragment = problem.objective, Fragment(problem.objective.dtype)
        self._program.write(fragment)
        model.graph.node.extend(fragment.nodes)
        model.graph.input.extend(objective.inputs(problem.batch_size))
        initializers = [
            numpy_helper.from_array(array, name) for name, array in problem.loss_weights.items()
        ]
        model.graph.initializer.extend(initializers)
        del model.graph.output[:]
        model.graph.output.extend(objective.output(name) for name in _OUTPUTS)
        model = rewritten(inlined(model, fragment), _OPERATORS, objective.dtype)
        model.graph.input.extend(infos(self._program.parameters))

        return mark_rest(model)

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        if self._is_on_host:
            self._made.held[...] = self._flat
            self.rule.update(self._flat, self._no_gradient, eta, self._memory, self._scratch)
            self.session.load({"weights": views(self._flat, self._problem.weights)})
        else:
            self._run_session(eta, self._memory)
            if self._average is not None and self._average.count(self._memory):
                # Read the weights only if they count: reading takes longer than many steps.
                self._average.move(_vectors(self.session)["weights"], self._memory)

        objective, loss = self._values
        self.sums.add(share, objective(), loss())

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient; 0 before the first step."""
        return self.session.gradient_norm()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the rule's state."""
        return self._memory | _vectors(self.session)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Overwrite the weights and the rule's state."""
        for name, array in self._memory.items():
            array[...] = arrays[name]
        self._flat[...] = arrays["weights"]
        held = {what: vector for what, vector in arrays.items() if what in self.session.holds}
        self.session.load(
            {what: views(vector, self._problem.weights) for what, vector in held.items()}
        )

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return the graph of the objective, TrainingSession's graph from it, and their numbers."""
        model = self._model()
        training = training_graph(model, tuple(self._problem.weights), self._optimizer)
        return {
            "objective": model,
            "training": mark_rest(training),
            "start": constants_graph(model, self._numbers()),
        }


class _SessionUpdate:
    """TrainingSession's own update in the form of an optimizer, for transformations around it."""

    def __init__(self, optimizer, session, correction, decorrelation=None):
        self._session = session
        self._correction = correction
        self._decorrelation = decorrelation
        #: The weights that the session holds before the update, as a vector.
        self.held = np.zeros(0)
        self.start, self.step_length, self._add_step = (
            optimizer.start,
            optimizer.step_length,
            optimizer.update,
        )

    def run(self, eta, state):
        """Make the update in the session alone."""
        self._session.run(self._correction(eta, state))

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update. `gradient` adds to the session's own; it is zero except for `SGD`."""
        # The session does not know the change of the weights before its update, by weight decay.
        np.subtract(weights, self.held, out=scratch)
        self.run(eta, state)
        held = _vectors(self._session)
        made = held.pop("weights")
        if self._decorrelation is not None:
            # The session has made the step of the gradient as it is.
            made = self._decorrelation.after_step(self.held, made)
        np.add(made, scratch, out=weights)
        for name, vector in held.items():
            state[name][...] = vector
        if gradient.any():
            self._add_step(weights, gradient, eta, state, scratch)


def _vectors(session):
    """Return copies of a session's weights and of its optimizer's state, as vectors by name."""
    return {what: flat(arrays) for what, arrays in session.state().items()}
