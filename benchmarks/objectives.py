"""
The cost per step of each loss and penalty, compared with the squared error without penalty,
and of derived gradients.

Run it with `python benchmarks/objectives.py`. Steps of a linear model of 20 features and 3 outputs,
batches of 100, solver "agent", one thread; the contenders run in turn, seven times, the figures are
medians in microseconds.
"""

import statistics
import time

import numpy as np
from sklearn.linear_model import LinearRegression

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L1, L2, ElasticLoss, ElasticPenalty, Loss, SquaredError
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.objective.objective import Objective
from skort.optim.update import Update
from skort.optimizers import SGD
from skort.solvers import make_step
from skort.solvers.base import Problem

STEPS, REPEATS = 2000, 7


def step(loss, penalty=None):
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(20, 3, "float32"), np.random.RandomState(0)
    )
    objective = Objective(loss, penalty, graph.coefficients, 3, np.dtype("float32"))
    solver = make_step(Problem(graph, objective, Update(SGD()), 100), solver="agent")
    rng = np.random.default_rng(0)
    solver.batch.X[...] = rng.normal(size=(100, 20))
    solver.batch.target[...] = np.eye(3)[rng.integers(0, 3, 100)]
    solver.batch.sample_weight[...] = loss.weight_scale(3) / 100
    return solver.step


def microseconds(run):
    start = time.perf_counter()
    for _ in range(STEPS):
        run(1e-4, 1 / STEPS)
    return 1e6 * (time.perf_counter() - start) / STEPS


contenders = {"squared_error": step(SquaredError())}
losses = REGRESSION_LOSSES | {
    f"{name} of labels" if name in REGRESSION_LOSSES else name: loss
    for name, loss in CLASSIFICATION_LOSSES.items()
}
contenders |= {name: step(loss()) for name, loss in losses.items()}
contenders["ElasticLoss"] = step(ElasticLoss())
contenders |= {
    f"{name}, gradient derived": step(Loss(losses[name]().value_function(3)))
    for name in ("squared_error", "absolute_error", "hinge", "log_loss")
}
contenders |= {
    f"squared_error, {p}": step(SquaredError(), p) for p in (L2(), L1(), ElasticPenalty())
}
times = {name: [] for name in contenders}
for _ in range(REPEATS):
    for name, run in contenders.items():
        times[name].append(microseconds(run))
base = statistics.median(times["squared_error"])
for name, values in times.items():
    median = statistics.median(values)
    print(
        f"{name:<42} {median:6.1f} us ({min(values):.1f} to {max(values):.1f})   "
        f"+{median - base:.1f}"
    )
