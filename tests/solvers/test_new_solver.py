"""
A new solver is a backend, the models that it differentiates, and its requirements:
here, central differences.
"""

import numpy as np
import onnx
import pytest
from sklearn.datasets import load_diabetes
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor, Step
from skort.common.onnx_text import Fragment, inlined
from skort.graphs.gradient.reverse import rule_gradient
from skort.graphs.score_graph import set_batch_size
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SMOOTH, TARGET
from skort.optim.batches import HostBatch
from skort.runtime.sessions import ArraySession
from skort.solvers.base import Backend, Sums, flat, views
from skort.solvers.choice import ON_REQUEST, Solver


def objective_model(problem):
    """Return the model that maps X, target, sample weights and weights to loss and objective."""
    objective, fragment = problem.objective, Fragment(problem.objective.dtype)
    model = onnx.ModelProto()
    model.CopyFrom(problem.score_graph.structure)
    set_batch_size(model, problem.batch_size)
    objective.add_value(fragment, problem.score_graph.score_name)
    model.graph.node.extend(fragment.nodes)
    model.graph.input.extend(objective.inputs(problem.batch_size))
    model.graph.output.extend([objective.output(name) for name in (LOSS, SMOOTH, OBJECTIVE)])
    return inlined(model, fragment)


class DifferenceBackend(Backend):
    """
    Steps along central differences of the objective without its l1 term,
    which the update adds.
    """

    def __init__(self, problem):
        graph, dtype = problem.score_graph, problem.objective.dtype
        self.batch = HostBatch.empty(problem.batch_size, graph.n_features, graph.n_outputs, dtype)
        # The optimizer with clipping, decay, the terms of the penalty and the average around it.
        self.sums, self.rule = Sums(), problem.rule()
        self._initial = problem.weights
        self._flat = flat(self._initial)
        self._gradient = np.zeros_like(self._flat)
        self._scratch = np.zeros_like(self._flat)
        self._memory = self.rule.start(*problem.n_weights, dtype)
        self._model = objective_model(problem)
        self._session = ArraySession(self._model.SerializeToString())
        self._inputs = {
            graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
            **graph.frozen_arrays,
        }

    def _values(self, weights):
        inputs = {**self._inputs, **views(weights, self._initial)}
        return [float(value) for value in self._session.run([LOSS, SMOOTH, OBJECTIVE], inputs)]

    def run(self, eta, share):
        loss, _, objective = self._values(self._flat)
        for i, h in enumerate(1e-6 * np.maximum(1, abs(self._flat))):
            one = h * (np.arange(self._flat.size) == i)
            higher, lower = (
                self._values(weights)[1] for weights in (self._flat + one, self._flat - one)
            )
            self._gradient[i] = (higher - lower) / (2 * h)
        self.rule.update(self._flat, self._gradient, eta, self._memory, self._scratch)
        self.sums.add(share, objective, loss)

    def last_gradient(self):
        return self._gradient

    def training_graphs(self):
        return {"objective": self._model}

    def arrays(self):
        return {"weights": self._flat, **self._memory}


def needs_float64(solver, dtype, update):
    if dtype != np.float64:
        raise ValueError(f'solver="{solver}" needs dtype="float64".')


class Regressor(OrtSGDRegressor):
    """Takes the new name, too."""

    _parameter_constraints = {**OrtSGDRegressor._parameter_constraints, "solver": [str]}


@pytest.fixture(autouse=True)
def differences(monkeypatch):
    solver = Solver("differences", DifferenceBackend, rule_gradient, (needs_float64,))
    monkeypatch.setitem(ON_REQUEST, "differences", solver)


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": "elasticnet", "alpha": 1.0, "optimizer": "nesterov"},
        {"penalty": "l2", "alpha": 1.0, "optimizer": "lbfgs"},
    ],
    ids=["nesterov", "lbfgs"],
)
def test_it_ends_at_the_weights_of_the_other_solvers(options):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    network = MLPRegressor(hidden_layer_sizes=(3,), activation="tanh")
    options |= {"max_iter": 3, "tol": None, "dtype": "float64", "random_state": 0}
    slow = Regressor(network, solver="differences", **options).fit(X, y)
    fast = Regressor(network, solver="graph", **options).fit(X, y)
    for name, weights in slow.weights_.items():
        np.testing.assert_allclose(weights, fast.weights_[name], rtol=1e-5, err_msg=name)


def test_its_requirement_is_an_error_before_the_training():
    with pytest.raises(ValueError, match='solver="differences" needs dtype="float64"'):
        Regressor(solver="differences").fit(np.eye(4), np.arange(4.0))


def test_l_bfgs_asks_for_the_gradient_that_the_solver_does_not_have(monkeypatch):
    monkeypatch.delattr(DifferenceBackend, "last_gradient")
    model = Regressor(solver="differences", optimizer="lbfgs", dtype="float64")
    with pytest.raises(NotImplementedError, match="DifferenceBackend has no method last_gradient"):
        model.fit(np.eye(4), np.arange(4.0))


def test_a_step_by_hand_reads_the_rows_that_it_is_given():
    """The solver reads its own arrays, so that each batch is copied there."""
    X, y = np.eye(4), np.arange(4.0)
    slow, fast = (
        Step(
            Regressor(solver=solver, dtype="float64", standardize=False), n_features=4, batch_size=4
        )
        for solver in ("differences", "graph")
    )
    for rows in (X, 2 * X):
        losses = [step.step(rows, y, eta=0.1) for step in (slow, fast)]
        np.testing.assert_allclose(*losses, rtol=1e-6)
        np.testing.assert_allclose(
            slow.gradients()["coef"], fast.gradients()["coef"], rtol=1e-5, atol=1e-8
        )
