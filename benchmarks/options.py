"""
The cost per step of each option, compared with plain gradient descent, on one thread.

Run it with `python benchmarks/options.py`. In every round the solvers take turns to make some
steps. The figures are medians over the rounds: microseconds per step, and their ratio to plain
gradient descent in the same round.
"""

import statistics
import time

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import SquaredError
from skort.objective.objective import Objective
from skort.objective.penalties import L2
from skort.optim.update import Update
from skort.optimizers import SGD, Adam, Momentum, Nesterov
from skort.solvers import SOLVERS, available_solvers, make_step
from skort.solvers.base import Problem

N_ROUNDS, N_STEPS = 100, 200

PLAIN = "sgd"
OPTIONS = {
    PLAIN: {},
    "momentum": {"optimizer": Momentum()},
    "nesterov": {"optimizer": Nesterov()},
    "adam": {"optimizer": Adam()},
    "adam, weight_decay": {"optimizer": Adam(weight_decay=0.01)},
    "max_grad_norm, clipped": {"max_grad_norm": 1e-9},
    "max_grad_norm, not": {"max_grad_norm": 1e9},
    "average": {"average": True},
    "penalty": {"penalty": L2(1e-4)},
}

MODELS = {
    "linear, 10 features, batches of 10": (LinearRegression(), 10, 10),
    "MLP 10-20-1, batches of 10": (MLPRegressor(hidden_layer_sizes=(20,)), 10, 10),
    "MLP 100-100-1, batches of 100": (MLPRegressor(hidden_layer_sizes=(100,)), 100, 100),
}


def make(
    solver, graph, batch_size, *, penalty=None, optimizer=None, max_grad_norm=None, average=False
):
    """Return a solver with a filled batch; None if it does not have the option."""
    update = Update(optimizer or SGD(), max_grad_norm, average)
    try:
        SOLVERS[solver].check(np.dtype("float32"), update)
    except ValueError:
        return None
    objective = Objective(
        SquaredError(), penalty, graph.coefficients, graph.n_outputs, np.dtype("float32")
    )
    made = make_step(Problem(graph, objective, update, batch_size), solver=solver)
    rng = np.random.default_rng(0)
    made.batch.X[...] = rng.normal(size=made.batch.X.shape)
    made.batch.target[...] = rng.normal(size=made.batch.target.shape)
    made.batch.sample_weight[...] = 1 / batch_size
    return made


def microseconds(solver):
    """Return the time of a step."""
    step = solver.step
    start = time.perf_counter()
    for _ in range(N_STEPS):
        step(1e-5, 1 / N_STEPS)
    return 1e6 * (time.perf_counter() - start) / N_STEPS


def main():
    for title, (model, n_features, batch_size) in MODELS.items():
        graph = initial_score_graph(
            model, ScoreSpec(n_features, 1, "float32"), np.random.RandomState(0)
        )
        for name in available_solvers():
            print(f"{title}, solver={name!r}: microseconds a step")
            solvers = {
                option: make(name, graph, batch_size, **given) for option, given in OPTIONS.items()
            }
            times = {option: [] for option, solver in solvers.items() if solver is not None}
            for _ in range(N_ROUNDS):
                for option, values in times.items():
                    values.append(microseconds(solvers[option]))
            for option, values in times.items():
                ratios = [value / base for value, base in zip(values, times[PLAIN], strict=True)]
                print(
                    f"  {option:<24} {statistics.median(values):7.1f}   "
                    f"{statistics.median(ratios):5.2f}"
                )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
