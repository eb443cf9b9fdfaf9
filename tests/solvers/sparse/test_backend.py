"""
Steps of sparse rows are those of dense ones,
and the graph behind the first product gives gradients.
"""

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.graphs.standardized import after_first_product, product_layer
from skort.objective import L1, L2, SquaredError
from skort.objective.objective import Objective
from skort.optim.optimizers import SGD, Adam, Momentum
from skort.optim.update import Update
from skort.solvers import SOLVERS, available_solvers, has_sparse_steps, make_step
from skort.solvers.base import Problem
from skort.solvers.sparse.backend import ProductGradientGraph

N_FEATURES, N_ROWS, FACTOR = 40, 8, 0.5
X = scipy.sparse.random(60, N_FEATURES, 0.1, format="csr", random_state=0)
Y = np.random.RandomState(0).normal(size=(60, 2))
SOLVER_NAMES = [name for name in SOLVERS if has_sparse_steps(name) and name in available_solvers()]
UPDATES = [
    (Update(SGD(), largest_rate=0.1), L2(0.1)),
    (Update(SGD(), average=3, largest_rate=0.1), None),
    (Update(Momentum(), average=2, largest_rate=0.05), L2(0.1)),
    (Update(SGD(), max_grad_norm=0.01), L1(0.01)),
    (Update(Adam()), L2(0.1)),
]
MODELS = [LinearRegression(), MLPRegressor(hidden_layer_sizes=(5,), activation="tanh")]


def problem_of(model, update, penalty, **options):
    graph = initial_score_graph(
        model, ScoreSpec(N_FEATURES, 2, "float64"), np.random.RandomState(0)
    )
    objective = Objective(SquaredError(), penalty, graph.coefficients, 2, np.dtype("float64"))
    return Problem(graph, objective, update, N_ROWS, **options)


def make_steps(solver, steps, *, dense):
    """Make steps on given rows; return the objective and the norm of the gradient of each."""
    seen = []
    data = [FACTOR * X.toarray() if dense else X, Y]
    solver.batch.sample_weight[...] = 1 / N_ROWS
    fillers = solver.batch.fillers(data)
    for numbers in steps:
        for fill in fillers:
            fill(numbers)
        solver.step(0.05, 0.25)
        seen.append((solver.objective(), solver.gradient_norm()))
    return seen


@pytest.mark.parametrize("name", SOLVER_NAMES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("update, penalty", UPDATES)
def test_states_are_those_of_dense_steps_and_go_on_either_way(name, model, update, penalty, rng):
    steps = rng.integers(0, 60, (12, N_ROWS))
    dense, other_dense = (
        make_step(problem_of(model, update, penalty), solver=name) for _ in range(2)
    )
    sparse, other_sparse = (
        make_step(problem_of(model, update, penalty, row_factor=FACTOR), solver=name) for _ in "ab"
    )
    first = [make_steps(solver, steps[:6], dense=solver is dense) for solver in (sparse, dense)]
    np.testing.assert_allclose(*first, rtol=1e-9)
    np.testing.assert_allclose(sparse.means(), dense.means(), rtol=1e-9)
    # Each goes on from the state of the other.
    other_sparse.restore(dense.state())
    other_dense.restore(sparse.state())
    rest = [
        make_steps(s, steps[6:], dense=s is other_dense)
        for s in (sparse, other_sparse, other_dense)
    ]
    for seen in rest[1:]:
        np.testing.assert_allclose(seen, rest[0], rtol=1e-9)
    for solver in (other_sparse, other_dense):
        for weight, array in sparse.weights().items():
            np.testing.assert_allclose(solver.weights()[weight], array, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", SOLVER_NAMES)
@pytest.mark.parametrize("update, penalty", UPDATES)
def test_a_restored_state_makes_the_same_steps_to_the_last_bit(name, update, penalty, rng):
    steps = rng.integers(0, 60, (12, N_ROWS))
    one, other = (
        make_step(problem_of(MODELS[1], update, penalty, row_factor=FACTOR), solver=name)
        for _ in "ab"
    )
    make_steps(one, steps[:6], dense=False)
    other.restore(one.state())
    assert make_steps(one, steps[6:], dense=False) == make_steps(other, steps[6:], dense=False)
    for weight, array in one.weights().items():
        np.testing.assert_array_equal(other.weights()[weight], array)


@pytest.mark.parametrize("name", SOLVER_NAMES)
def test_numbers_that_are_not_finite_are_found(name):
    solver = make_step(problem_of(MODELS[0], *UPDATES[0], row_factor=1.0), solver=name)
    assert solver.is_finite()
    state = solver.state()
    state["weights"][-1] = np.nan
    solver.restore(state)
    assert not solver.is_finite()


N_ROWS = 8


def test_the_graph_gives_the_gradients(run_onnx, rng):
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(4, 2, "float64"), np.random.RandomState(0)
    )
    objective = Objective(SquaredError(), None, graph.coefficients, 2, np.dtype("float64"))
    rest = after_first_product(graph, product_layer(graph))
    made = ProductGradientGraph(Problem(rest, objective, Update(SGD()), N_ROWS))
    product, target = rng.normal(size=(2, N_ROWS, 2))
    weight = np.full((N_ROWS, 1), 1 / N_ROWS)
    intercept = np.array([1.0, -1.0])
    batch = {"skort_product": product, "skort_target": target, "skort_sample_weight": weight}
    results = run_onnx(made.model(), **batch, intercept=intercept, **made.parameters)
    residual = product + intercept - target
    # The mean over two outputs is in the sample weights.
    np.testing.assert_allclose(results["skort_loss"], 0.5 * (residual**2).mean(axis=0).sum())
    np.testing.assert_allclose(results["skort_gradient_of/skort_product"], residual / N_ROWS)
    np.testing.assert_allclose(results["skort_gradient_of/intercept"], residual.mean(axis=0))
