"""The graph behind the first product gives the loss, and its gradients."""

import numpy as np
from sklearn.linear_model import LinearRegression

from skort.graphs.after_first_matmul import after_first_product, product_layer
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import SquaredError
from skort.objective.objective import Objective
from skort.optim.optimizers import SGD
from skort.optim.update import Update
from skort.solvers.base import Problem
from skort.solvers.sparse.backend import ProductGradientGraph

N_ROWS = 8


def test_the_graph_gives_the_gradients(run_onnx, rng):
    graph = initial_score_graph(LinearRegression(), ScoreSpec(4, 2, "float64"), np.random.RandomState(0))
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
