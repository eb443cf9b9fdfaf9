"""
The graph of a step, run by a plain session:
what training outside skort goes on from is all there.
"""

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L1, SquaredError
from skort.objective.objective import Objective
from skort.optim.optimizers import SGD, Adam
from skort.optim.update import Update
from skort.solvers import make_step
from skort.solvers.base import Problem

N_STEPS, FIRST = 6, 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("optimizer", [SGD(), Adam(weight_decay=0.1)], ids=repr)
def test_steps_outside_skort_end_at_the_same_bytes_the_mean_included(
    optimizer, dtype, rng, run_onnx
):
    model = MLPRegressor(hidden_layer_sizes=(8,), activation="tanh")
    graph = initial_score_graph(model, ScoreSpec(6, 2, dtype), np.random.RandomState(0))
    objective = Objective(SquaredError(), L1(0.01), graph.coefficients, 2, np.dtype(dtype))
    solver = make_step(
        Problem(graph, objective, Update(optimizer, max_grad_norm=0.5, average=FIRST), 10),
        solver="graph",
    )
    graphs = solver.training_graphs()
    given, after = run_onnx(graphs["start"]), []
    solver.batch.sample_weight[...] = 0.05
    for _ in range(N_STEPS):
        solver.batch.X[...], solver.batch.target[...] = (
            rng.normal(size=(10, 6)),
            rng.normal(size=(10, 2)),
        )
        solver.step(0.05, 1.0)
        batch = {"X": solver.batch.X, "skort_target": solver.batch.target}
        batch |= {
            "skort_sample_weight": solver.batch.sample_weight,
            "skort_learning_rate": np.array(0.05, dtype),
        }
        results = run_onnx(graphs["step"], **batch, **given)
        state = {
            name.removesuffix("_next"): a for name, a in results.items() if name.endswith("_next")
        }
        given |= state | run_onnx(graphs["split"], skort_weights=state["skort_weights"])
        after.append(state["skort_weights"].astype(np.float64))
    inside = solver.state()
    assert {"skort_weights", "skort_average_mean", "skort_average_n_updates"} <= state.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(array, inside[name.removeprefix("skort_")])
    mean = state["skort_average_mean"].astype(dtype)
    np.testing.assert_allclose(mean, np.mean(after[FIRST - 1 :], axis=0), rtol=1e-6)
    np.testing.assert_array_equal(
        mean, np.concatenate([w.ravel() for w in solver.weights().values()])
    )
