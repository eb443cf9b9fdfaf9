"""Variables of a linear model in which the second derivative is about the identity."""

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.graphs.initialization import initial_score_graph
from skort.graphs.layers import Layer
from skort.graphs.score_graph import ScoreSpec
from skort.model_selection import OrtGridSearchCV
from skort.objective import L2, LogLoss, OneVsRestLogLoss, SquaredError, SquaredHinge
from skort.objective.objective import Objective
from skort.optim.batches import Batches
from skort.optim.descent import Point
from skort.optim.optimizers.lbfgs import LBFGS
from skort.optim.update import Update
from skort.solvers.base import Problem
from skort.solvers.full import _n_more
from skort.solvers.whitening import (
    Grams,
    Whitener,
    Whitening,
    coupled_gram,
    gram_diagonal,
    gram_matrix,
    upper_root,
)

# More than the two blocks of 1,024 rows whose products are added
N_ROWS = 2501


def data(n_columns=3, n_outputs=1, dtype="float64"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, n_columns)) * np.geomspace(0.1, 10, n_columns) + 1
    X[:, -1] += X[:, 0]
    y = rng.normal(size=(N_ROWS, n_outputs))
    weight = rng.uniform(0, 3, size=N_ROWS)
    return X.astype(dtype), y.astype(dtype), weight


def batches_of(X, y, weight):
    options = {"batch_size": 100, "shuffle": False, "random_state": np.random.RandomState(0)}
    return Batches(X, y, weight, **options)


def problem_of(n_columns, n_outputs, dtype="float64", alpha=0.1, loss=None, *, fit_intercept=True):
    model = LinearRegression(fit_intercept=fit_intercept)
    spec = ScoreSpec(n_columns, n_outputs, dtype)
    graph = initial_score_graph(model, spec, np.random.RandomState(0))
    loss = loss or SquaredError()
    objective = Objective(loss, L2(alpha), graph.coefficients, n_outputs, np.dtype(dtype))
    return Problem(graph, objective, Update(LBFGS()), 100)


def with_ones(X, *, has_intercept):
    return np.column_stack([X, np.ones(len(X))]) if has_intercept else X


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-12)])
def test_the_gram_matrix_is_that_of_weighted_rows(dtype, rtol, has_intercept):
    X, y, weight = data(dtype=dtype)
    batches = batches_of(X, y, weight)
    rows = with_ones(X.astype(float), has_intercept=has_intercept)
    relative = np.asarray(batches.sample_weight, float)
    expected = rows.T * relative @ rows / N_ROWS
    found = gram_matrix(batches, has_intercept=has_intercept)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [expected], rtol=rtol)
    np.testing.assert_allclose(
        gram_diagonal(batches, has_intercept=has_intercept), [np.diagonal(expected)], rtol=rtol
    )


def test_the_curvatures_of_rows_are_weights():
    X, y, weight = data()
    batches = batches_of(X, y, weight)
    rows = with_ones(X, has_intercept=True)
    # The second output does not bend at most rows, nor at any of the first block.
    curvature = np.column_stack([np.linspace(0.1, 1, N_ROWS), np.arange(N_ROWS) // 2000])
    relative = batches.sample_weight[:, None] * curvature
    expected = np.array([rows.T * column @ rows for column in relative.T]) / N_ROWS

    def curvatures(block, numbers):
        np.testing.assert_array_equal(block, X[numbers])
        return curvature[numbers]

    found = gram_matrix(batches, curvatures, has_intercept=True)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    found = gram_diagonal(batches, curvatures, has_intercept=True)
    np.testing.assert_allclose(found, np.einsum("kii->ki", expected), rtol=1e-12)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_sparse_rows_have_the_diagonal_of_dense_ones(has_intercept):
    X, y, weight = data()
    X[X < 0.8] = 0
    expected = gram_diagonal(batches_of(X, y, weight), has_intercept=has_intercept)
    sparse = batches_of(scipy.sparse.csr_matrix(X), y, weight)
    found = gram_diagonal(sparse, has_intercept=has_intercept)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("is_diagonal", [False, True])
def test_the_second_derivative_by_the_variables_is_the_identity(
    is_diagonal, n_outputs, fit_intercept
):
    X, y, weight = data(4, n_outputs)
    batches = batches_of(X, y, weight)
    problem = problem_of(4, n_outputs, fit_intercept=fit_intercept)
    layer = problem.score_graph.first_layer
    made = Whitener(problem, layer, batches, 0.5, is_diagonal=is_diagonal).first()
    rows = with_ones(X, has_intercept=fit_intercept)
    curved = 0.5 * (rows.T * batches.sample_weight @ rows) / N_ROWS
    curved += np.diag([0.1] * 4 + [0.0] * fit_intercept)
    if is_diagonal:
        np.testing.assert_allclose(made.factors, [np.diagonal(curved) ** -0.5], rtol=1e-6)
        return

    (factor,) = made.factors
    np.testing.assert_allclose(factor.T @ curved @ factor, np.eye(len(curved)), atol=1e-8)


@pytest.mark.parametrize("loss, has_own", [(SquaredHinge(), True), (LogLoss(), False)])
def test_classes_against_the_rest_have_a_factor_each(loss, has_own):
    X, _, weight = data(4)
    rng = np.random.default_rng(2)
    Y = np.eye(3)[rng.integers(3, size=N_ROWS)]
    batches = batches_of(X, Y, weight)
    problem = problem_of(4, 3, loss=loss)
    whitener = Whitener(problem, problem.score_graph.first_layer, batches, 1.0, is_diagonal=False)
    assert whitener.is_whole is has_own
    weights = 0.1 * rng.normal(size=15)
    made = whitener.at(weights)
    rows = with_ones(X, has_intercept=True)
    scores = rows @ weights[made.places].T
    if has_own:
        curvatures = np.where((2 * Y - 1) * scores < 1, 2.0, 0.0)
    else:
        p = softmax(scores, axis=1)
        curvatures = (p * (1 - p)).mean(axis=1, keepdims=True)

    assert len(made.factors) == curvatures.shape[1]
    for factor, curvature in zip(made.factors, curvatures.T, strict=True):
        curved = (rows.T * (batches.sample_weight * curvature)) @ rows / N_ROWS
        curved += np.diag([0.1] * 4 + [0.0])
        np.testing.assert_allclose(factor.T @ curved @ factor, np.eye(5), atol=1e-8)


@pytest.mark.parametrize("is_diagonal", [False, True])
def test_a_fit_begins_with_the_curvatures_that_another_one_left(is_diagonal):
    X, _, weight = data(4)
    rng = np.random.default_rng(2)
    batches = batches_of(X, rng.integers(2, size=(N_ROWS, 1)).astype(float), weight)
    grams = Grams()

    def whitener(alpha):
        problem = problem_of(4, 1, loss=LogLoss(), alpha=alpha)
        layer = problem.score_graph.first_layer
        return Whitener(problem, layer, batches, 0.25, grams, is_diagonal=is_diagonal)

    weights = 0.1 * rng.normal(size=5)
    strong, weak = whitener(0.5), whitener(0.1)
    np.testing.assert_array_equal(weak.begin().factors, weak.first().factors)
    assert not weak.knows_curvatures
    expected = weak.at(weights).factors
    strong.at(weights)
    assert weak.knows_curvatures
    np.testing.assert_array_equal(weak.begin().factors, expected)
    # The strength of the penalty is its own.
    assert strong.begin().factors.flat[0] < expected.flat[0]


@pytest.mark.parametrize("is_diagonal", [False, True])
def test_an_output_that_bends_nowhere_has_finite_variables(is_diagonal):
    X, _, weight = data(4)
    batches = batches_of(X, np.ones((N_ROWS, 1)), weight)
    problem = problem_of(4, 1, alpha=0.0, loss=SquaredHinge())
    layer = problem.score_graph.first_layer
    whitener = Whitener(problem, layer, batches, 1.0, is_diagonal=is_diagonal)
    # All scores are far on the right side.
    made = whitener.at(np.array([0, 0, 0, 0, 1e4]))
    assert np.isfinite(made.factors).all()


@pytest.mark.parametrize("is_diagonal", [False, True])
def test_variables_and_weights_are_the_same_point(is_diagonal):
    X, y, weight = data(4, 2)
    problem = problem_of(4, 2)
    layer = problem.score_graph.first_layer
    made = Whitener(problem, layer, batches_of(X, y, weight), 1.0, is_diagonal=is_diagonal).first()
    rng = np.random.default_rng(1)
    weights, gradient = rng.normal(size=(2, 10))
    variables = made.variables(weights)
    np.testing.assert_allclose(made.weights(variables), weights, rtol=1e-10)
    # The chain rule: the same change of a linear function
    assert made.gradient(gradient) @ variables == pytest.approx(gradient @ weights, rel=1e-10)
    np.testing.assert_array_equal(made.variables(np.zeros(10)), 0)


def test_variables_of_outputs_with_a_factor_each_are_the_same_point():
    rng = np.random.default_rng(1)
    places = rng.permutation(8).reshape(2, 4)
    made = Whitening(places, np.triu(rng.uniform(1, 2, size=(2, 4, 4))))
    weights, gradient = rng.normal(size=(2, 9))
    variables = made.variables(weights)
    np.testing.assert_allclose(made.factors[1] @ variables[places[1]], weights[places[1]])
    np.testing.assert_allclose(made.weights(variables), weights)
    assert made.gradient(gradient) @ variables == pytest.approx(gradient @ weights)


def test_rows_of_a_transposed_layer_are_outputs():
    places = np.array([[0, 1, 2, 6], [3, 4, 5, 7]])
    factor = np.triu(np.arange(1.0, 17).reshape(4, 4))
    values = np.arange(8.0)
    found = Whitening(places, factor[None]).weights(values)
    expected = factor @ np.array([[0, 3], [1, 4], [2, 5], [6, 7.0]])
    np.testing.assert_allclose(found[:6].reshape(2, 3).T, expected[:3])
    np.testing.assert_allclose(found[6:], expected[3])


def test_the_places_of_a_transposed_layer_are_those_of_its_inputs():
    X, y, weight = data(3, 2)
    problem = problem_of(3, 2)
    layer = problem.score_graph.first_layer
    # The same matrix, as if its rows were outputs: it has other places.
    turned = Layer(layer.coefficient, None, transposed=not layer.transposed)
    plain = Layer(layer.coefficient, None, layer.transposed)
    numbers = np.arange(6).reshape(problem.weights[layer.coefficient].shape)
    for each in (turned, plain):
        made = Whitener(problem, each, batches_of(X, y, weight), 1.0, is_diagonal=True)
        np.testing.assert_array_equal(
            made._places - made._places.min(), numbers if each.transposed else numbers.T
        )


def test_columns_that_are_sums_of_others_have_a_finite_factor():
    X, y, weight = data(3)
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.zeros(N_ROWS), X[:, 0]])
    problem = problem_of(6, 1, alpha=0.0)
    layer = problem.score_graph.first_layer
    made = Whitener(problem, layer, batches_of(X, y, weight), 1.0, is_diagonal=False).first()
    assert np.isfinite(made.factors).all()
    # The directions that the rows have are of length one.
    (factor,) = made.factors
    (curved,) = gram_matrix(batches_of(X, y, weight), has_intercept=True)
    found = np.linalg.eigvalsh(factor.T @ curved @ factor)
    np.testing.assert_allclose(found[-4:], 1, rtol=1e-3)
    np.testing.assert_allclose(found[:3], 0, atol=1e-3)


def test_a_root_in_float32_is_that_of_float64():
    (curved,) = gram_matrix(batches_of(*data(3)), has_intercept=True)
    strengths = np.array([0.5, 1.0, 2.0, 0.0])
    root = upper_root(curved, 1e-6, strengths, "float32")
    assert root.dtype == np.float32
    np.testing.assert_allclose(root.T @ root, curved + np.diag(strengths), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(root, upper_root(curved, 1e-6, strengths), rtol=1e-5, atol=1e-6)


def test_a_root_that_float32_does_not_tell_is_one_of_float64():
    # It has a negative eigenvalue, -1e-3, so that no small number makes it definite.
    matrix = np.array([[1.0, 1.001], [1.001, 1.0]])
    root = upper_root(matrix, 1e-6, dtype="float32")
    assert root.dtype == np.float64
    np.testing.assert_allclose(root.T @ root, matrix + 1e-2 * np.eye(2), rtol=1e-12)


@pytest.mark.parametrize("n_columns", [255, 301])
def test_many_columns_end_at_the_optimum(n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(701, n_columns)) * np.geomspace(0.01, 100, n_columns)
    y = X @ np.geomspace(100, 0.01, n_columns) * 0.1 + rng.normal(size=701)
    expected = LinearRegression().fit(X, y).predict(X)
    model = OrtSGDRegressor(LinearRegression(), random_state=0).fit(X, y)
    error = model.predict(X) - expected
    assert np.sqrt(np.mean(error**2)) < 1e-4 * expected.std()
    # Variables that are uncorrelated make one step of a squared error.
    assert (model.n_iter_ <= 3) is (n_columns <= 255)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_that_are_sums_of_others_end_where_float32_tells_no_more(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1001, 6))
    X = np.hstack([X, X @ rng.normal(size=(6, 6))])
    y = np.digitize(X[:, 0] + rng.normal(size=1001), np.linspace(-1, 1, n_classes + 1)[1:-1])
    inner = LogisticRegression(C=1e6)
    model = OrtSGDClassifier(inner, random_state=0).fit(X, y)
    assert model.n_iter_ < 50
    assert model.stopping_reason_ == (
        "The gradient tells that the objective is within 1e-09 of the least one."
    )

    exact = OrtSGDClassifier(inner, dtype="float64", random_state=0).fit(X, y)
    proba = exact.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), proba, atol=1e-4)
    losses = [log_loss(y, each.predict_proba(X)) for each in (model, exact)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-8)


def test_raw_columns_take_few_iterations():
    X, y = load_breast_cancer(return_X_y=True)
    model = OrtSGDClassifier(LogisticRegression(), random_state=0).fit(X, y)
    assert model.n_iter_ < 30


@pytest.mark.parametrize("loss", ["squared_hinge", "modified_huber", OneVsRestLogLoss()])
def test_one_class_against_the_rest_ends_at_its_optimum(loss):
    # Raw columns, where rows that are flat at one point bend on the way to the next.
    X, y = load_iris(return_X_y=True)
    options = {"loss": loss, "alpha": 1e-6, "random_state": 0}
    model = OrtSGDClassifier(**options).fit(X, y)
    exact = OrtSGDClassifier(**options, dtype="float64", optimizer="lbfgs", tol=1e-10).fit(X, y)
    assert model.loss_ == pytest.approx(exact.loss_, rel=1e-5)
    assert model.n_iter_ < 150


@pytest.mark.parametrize("name", ["squared_hinge", "log_loss"])
def test_the_optimum_of_one_class_against_the_rest_is_that_of_scipy(name):
    X, y = load_breast_cancer(return_X_y=True)
    sign = 2.0 * y - 1
    Z = np.column_stack([StandardScaler().fit_transform(X), np.ones(len(X))])
    strengths = 1e-6 / np.append(X.std(axis=0) ** 2, np.inf)
    slope = {
        "squared_hinge": lambda z: (np.maximum(1 - z, 0) ** 2, -2 * np.maximum(1 - z, 0)),
        "log_loss": lambda z: (np.logaddexp(0, -z), -expit(-z)),
    }[name]

    def objective(v):
        value, derivative = slope(sign * (Z @ v))
        gradient = Z.T @ (sign * derivative) / len(Z) + strengths * v
        return value.mean() + 0.5 * strengths @ v**2, gradient

    options = {"maxiter": 100_000, "maxfun": 10**6, "ftol": 0, "gtol": 1e-8, "maxcor": 50}
    least = minimize(objective, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", options=options)
    model = OrtSGDClassifier(loss=name, alpha=1e-6, random_state=0).fit(X, y)
    assert model.history_["objective"][-1] <= (1 + 2e-5) * least.fun
    assert model.n_iter_ < 80


def test_stages_of_variables_keep_what_lbfgs_has_learnt(monkeypatch):
    # Many classes that depend on each other share variables, which fit none of them well.
    monkeypatch.setattr("skort.solvers.whitening._MOST_COUPLED", 0)
    X, y = load_iris(return_X_y=True)
    assert OrtSGDClassifier(random_state=0).fit(X, y).n_iter_ < 80


def softmax_case(*, alpha=0.1, grams=None):
    """Return a whitener of three classes, its batches, and weights."""
    X, _, weight = data(4)
    rng = np.random.default_rng(2)
    batches = batches_of(X, np.eye(3)[rng.integers(3, size=N_ROWS)], weight)
    problem = problem_of(4, 3, loss=LogLoss(), alpha=alpha)
    layer = problem.score_graph.first_layer
    whitener = Whitener(problem, layer, batches, 0.5, grams, is_diagonal=False)
    return whitener, batches, 0.1 * rng.normal(size=15)


def probabilities_at(X, weights):
    """Return the probabilities of rows: weights are the rows of the coefficients, then intercepts."""
    return softmax(X @ weights[:12].reshape(4, 3) + weights[12:], axis=1)


def test_the_second_derivative_of_a_softmax_by_the_variables_is_the_identity(monkeypatch):
    monkeypatch.setattr("skort.solvers.whitening._BLOCK_ROWS", 1000)
    monkeypatch.setattr("skort.solvers.whitening._SURE", 0.0)
    whitener, batches, weights = softmax_case()
    made = whitener.at(weights, couples=True)
    X = with_ones(batches.data[0], has_intercept=True)
    p = probabilities_at(X[:, :4], weights)

    # diag(p) - p p^T, and a little where all scores change alike
    alike = (1 - (p * p).sum(axis=1)) / 9
    bends = p[:, :, None] * np.eye(3) - p[:, :, None] * p[:, None] + alike[:, None, None]
    curved = np.einsum("i,ikl,ia,ib->kalb", batches.sample_weight, bends, X, X).reshape(15, 15)
    curved = curved / N_ROWS + np.diag([0.1, 0.1, 0.1, 0.1, 0.0] * 3)
    (root,) = made.factors
    np.testing.assert_allclose(root.T @ root, curved, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.tril(root, -1), 0)
    variables = made.variables(weights)
    np.testing.assert_allclose(made.weights(variables), weights, rtol=1e-10)
    # The chain rule: the same change of a linear function
    gradient = np.random.default_rng(1).normal(size=15)
    assert made.gradient(gradient) @ variables == pytest.approx(gradient @ weights, rel=1e-10)


def test_the_second_derivative_of_a_softmax_is_the_change_of_its_gradient():
    whitener, batches, weights = softmax_case(alpha=0.0)
    made = whitener.at(weights, couples=True)
    X, target, *_ = batches.data
    step = 1e-5 * np.random.default_rng(3).normal(size=(4, 3))
    step = np.vstack([step, np.zeros(3)])
    # All classes alike change nothing.
    step -= step.mean(axis=1, keepdims=True)

    def gradient(sign):
        moved = weights + sign * step.ravel()
        weighted = batches.sample_weight[:, None] * (probabilities_at(X, moved) - target)
        return with_ones(X, has_intercept=True).T @ weighted / N_ROWS

    change = (gradient(1) - gradient(-1)).ravel() / 2
    # H = L L^T, and u = L^T v.
    variables = made.variables(step.ravel())
    expected = variables @ variables
    assert change @ step.ravel() == pytest.approx(expected, rel=1e-2)


def test_rows_of_a_sure_class_count_next_to_nothing():
    rng = np.random.default_rng(4)
    batches = batches_of(rng.normal(size=(N_ROWS, 2)), np.zeros((N_ROWS, 2)), np.ones(N_ROWS))
    unsure = np.arange(N_ROWS) % 3 == 0
    p = np.where(unsure, 0.5, 1e-4)
    p = np.column_stack([p, 1 - p])
    found = coupled_gram(batches, lambda X, rows: p[rows], has_intercept=False)
    X = batches.data[0][unsure]
    # 1/4 where both scores are the same and -1/4 where not, and 1/2 / 4 everywhere
    bends = np.array([[3, -1], [-1, 3]]) / 8
    np.testing.assert_allclose(found[0], np.kron(bends, X.T @ X / N_ROWS), atol=1e-12)


def test_a_class_that_no_row_has_bends_as_all_alike():
    rng = np.random.default_rng(6)
    batches = batches_of(rng.normal(size=(N_ROWS, 2)), np.zeros((N_ROWS, 3)), np.ones(N_ROWS))
    p = np.full((N_ROWS, 3), 0.5) * [0, 1, 1]
    found = coupled_gram(batches, lambda X, rows: p[rows], has_intercept=False)
    X = batches.data[0]
    bends = np.array([[0, 0, 0], [0, 1, -1], [0, -1, 1]]) / 4 + 1 / 18
    np.testing.assert_allclose(found[0], np.kron(bends, X.T @ X / N_ROWS), atol=1e-12)


def test_rows_without_weight_do_not_count_where_outputs_are_coupled(monkeypatch):
    monkeypatch.setattr("skort.solvers.whitening._SURE", 0.0)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N_ROWS, 2))
    p = softmax(rng.normal(size=(N_ROWS, 3)), axis=1)
    counted = np.arange(N_ROWS) % 4 > 0

    def of(rows, weights):
        batches = batches_of(X[rows], np.zeros((len(X[rows]), 3)), weights)
        return coupled_gram(batches, lambda X, part: p[rows][part], has_intercept=True)

    found = of(np.arange(N_ROWS), counted.astype(float))
    # Weights are relative to their mean.
    expected = of(counted, np.ones(counted.sum()))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-15)


def test_outputs_are_coupled_where_iterations_take_as_long():
    whitener, *_ = softmax_case()
    # 15 weights: 15 / 32 iterations
    assert whitener.couples(1, 0.5)
    assert not whitener.couples(0, 0.5)
    assert not whitener.couples(1, 0.4)


@pytest.mark.parametrize("loss, n_outputs", [(OneVsRestLogLoss(), 3), (LogLoss(), 1)])
def test_a_sigmoid_couples_no_outputs(loss, n_outputs):
    X, _, weight = data(4)
    problem = problem_of(4, n_outputs, loss=loss)
    batches = batches_of(X, np.zeros((N_ROWS, n_outputs)), weight)
    layer = problem.score_graph.first_layer
    assert not Whitener(problem, layer, batches, 0.25, is_diagonal=False).couples(99, 99)


def test_a_fit_begins_with_the_coupled_curvatures_of_another_one():
    grams = Grams()
    strong, _, weights = softmax_case(alpha=0.5, grams=grams)
    weak, *_ = softmax_case(alpha=0.1, grams=grams)
    expected = weak.at(weights, couples=True).factors
    assert weak.is_coupled and weak.is_whole
    np.testing.assert_array_equal(weak.begin().factors, expected)
    assert strong.begin().factors.flat[0] > expected.flat[0]


def test_the_next_fit_on_the_same_rows_couples_outputs_where_the_last_took_long():
    grams = Grams()
    last, _, weights = softmax_case(grams=grams)
    following, *_ = softmax_case(alpha=0.05, grams=grams)
    last.took(99)
    # No curvature is known yet: weights may be far from any optimum.
    assert not following.couples_again()
    last.at(weights)
    assert following.couples_again()
    last.took(0)
    assert not following.couples_again()


def test_fits_along_a_path_take_fewer_iterations_with_coupled_outputs(monkeypatch):
    X, y = load_wine(return_X_y=True)
    strengths = np.logspace(-2, 4, 13)

    def search(most):
        monkeypatch.setattr("skort.solvers.whitening._MOST_COUPLED", most)
        found = []

        def scoring(model, X, y):
            found.append((model.n_iter_, model.predict_proba(X)))
            return 0.0

        grid = {"estimator__C": strengths}
        model = OrtSGDClassifier(LogisticRegression())
        OrtGridSearchCV(model, grid, cv=2, scoring=scoring, refit=False).fit(X, y)
        counts, probabilities = zip(*found, strict=True)
        return sum(counts), np.concatenate(probabilities)

    n_separate, separate = search(0)
    n_coupled, coupled = search(1000)
    assert n_coupled < 0.6 * n_separate
    # At large C, classes are apart: the objective is nearly zero.
    np.testing.assert_allclose(coupled[: len(X)], separate[: len(X)], atol=1e-4)


def test_iterations_to_come_are_those_of_a_steady_fall():
    def point(gradient):
        return Point(np.zeros(2), 1.0, np.array([gradient, -gradient / 2]))

    assert _n_more(point(1.0), point(1e-2), 1e-4, 7) == pytest.approx(7)
    assert _n_more(point(1.0), point(1e-3), 1e-4, 9) == pytest.approx(3)
    assert _n_more(point(1.0), point(2.0), 1e-4, 9) == np.inf


def test_many_coupled_weights_take_few_iterations():
    X, y = load_digits(return_X_y=True)
    model = OrtSGDClassifier(LogisticRegression()).fit(X, y)
    # With variables of each class alone: 113.
    assert model.n_iter_ < 50
    # That of a fit in float64, which ends by its gradient
    assert model.history_["objective"][-1] == pytest.approx(0.0094782149, rel=1e-6)


def test_where_few_rows_bend_variables_are_found_sooner():
    X, y = load_digits(return_X_y=True)
    model = OrtSGDClassifier(loss="modified_huber", alpha=1e-6).fit(X, y)
    # With variables that stay for ten iterations, it ends at 1,000 of them.
    assert model.n_iter_ < 600
    # That of a fit in float64, which ends by its gradient.
    assert model.history_["objective"][-1] == pytest.approx(0.100316105, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_few_rows_that_bend_end_as_near_to_the_optimum(epsilon):
    random = np.random.default_rng(0)
    X = random.normal(size=(2001, 8))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    y = 30 * X.sum(axis=1) + 100 * random.standard_t(2, size=len(X))
    model = OrtSGDRegressor(loss="huber", epsilon=epsilon).fit(X, y)
    exact = OrtSGDRegressor(loss="huber", epsilon=epsilon, dtype="float64", tol=1e-11).fit(X, y)
    predictions = exact.predict(X)
    distance = np.sqrt(np.mean((model.predict(X) - predictions) ** 2)) / predictions.std()
    assert distance < 1e-4


def test_the_share_of_losses_that_bend():
    X, _, weight = data(4)
    Y = np.eye(2)[np.arange(N_ROWS) % 2]
    batches = batches_of(X, Y, weight)
    problem = problem_of(4, 2, loss=SquaredHinge())
    whitener = Whitener(problem, problem.score_graph.first_layer, batches, 1.0, is_diagonal=False)
    # The scores are 10 and 0.5: the first output bends at its negative rows, the second at all.
    places = whitener.first().places
    weights = np.zeros(10)
    weights[places[:, -1]] = [10.0, 0.5]
    whitener.at(weights)
    assert whitener.share == (N_ROWS // 2 + N_ROWS) / (2 * N_ROWS)


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_half_a_square_ends_at_its_optimum_in_one_iteration(n_outputs):
    X, y, weight = data(n_outputs=n_outputs)
    y += X[:, :1]
    model = OrtSGDRegressor().fit(X, y if n_outputs > 1 else y[:, 0], sample_weight=weight)
    exact = LinearRegression().fit(X, y, weight)
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.predict(X).reshape(-1, n_outputs), exact.predict(X), atol=1e-4)


def test_a_nearly_separable_softmax_ends_where_float32_tells_no_more():
    X, y = load_digits(return_X_y=True)
    weak = OrtSGDClassifier(LogisticRegression(C=1e4))
    exact = OrtSGDClassifier(LogisticRegression(C=1e4), dtype="float64")
    ends = []
    for rows, _ in StratifiedKFold(5).split(X, y):
        weak.fit(X[rows], y[rows])
        least = exact.fit(X[rows], y[rows]).history_["objective"][-1]
        assert weak.history_["objective"][-1] == pytest.approx(least, rel=1e-3)
        ends.append(weak.n_iter_)
    # With variables from far away, two of them made 1,000 iterations.
    assert max(ends) < 200
