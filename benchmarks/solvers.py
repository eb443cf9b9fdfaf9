"""
Every solver against scikit-learn, torch, skorch and numpy:
steps of neural networks, and a large linear regression.

Run it with `python benchmarks/solvers.py`; peers that are not installed are left out. All run on
one thread. Unless noted, they make plain stochastic gradient descent in float32 without penalty
(scikit-learn's linear model: float64). Contenders take turns; the figures are the smallest CPU time
of five turns, and each peer's time divided by ours.
"""

import importlib.util
import time
import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from skort import OrtSGDRegressor
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L2, SquaredError
from skort.objective.objective import Objective
from skort.optim.update import Update
from skort.optimizers import SGD, Adam
from skort.solvers import available_solvers, make_step
from skort.solvers.base import Problem

REPEATS = 5
ETA = 1e-3
# Features, hidden units, rows per batch, batches per epoch, epochs.
NETWORKS = [(10, 20, 10, 1000, 5), (100, 100, 100, 100, 10), (100, 100, 1000, 20, 20)]
STEPS = {
    "": {"optimizer": SGD(), "penalty": None},
    ", l2": {"optimizer": SGD(), "penalty": L2(1e-4)},
    ", adam and l2": {"optimizer": Adam(), "penalty": L2(1e-4)},
}


def smallest_times(contenders):
    """
    Return the smallest CPU time of each contender in seconds,
    after one run that does not count.
    """
    times = {name: [] for name in contenders}
    for turn in range(REPEATS + 1):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            if turn:
                times[name].append(time.process_time() - start)
    return {name: min(values) for name, values in times.items()}


def show(times, unit, scale, ours):
    for name, seconds in times.items():
        ratios = (
            ""
            if name in ours
            else "  " + "  ".join(f"{seconds / times[o]:5.2f} x {o}" for o in ours)
        )
        print(f"  {name:<24} {scale * seconds:9.2f} {unit}{ratios}")


def torch_network(n_features, n_hidden):
    import torch

    torch.set_num_threads(1)
    layers = [torch.nn.Linear(n_features, n_hidden), torch.nn.ReLU(), torch.nn.Linear(n_hidden, 1)]
    return torch.nn.Sequential(*layers)


def torch_fit(X, y, network, batch_size, n_epochs):
    import torch

    X, y = torch.from_numpy(X), torch.from_numpy(y[:, None])
    optimizer, loss = torch.optim.SGD(network.parameters(), lr=ETA), torch.nn.MSELoss()
    for _ in range(n_epochs):
        for rows in torch.randperm(len(X)).split(batch_size):
            optimizer.zero_grad()
            loss(network(X[rows]), y[rows]).backward()
            optimizer.step()


def skorch_model(network, batch_size, n_epochs):
    import skorch
    import torch

    return skorch.NeuralNetRegressor(
        network, lr=ETA, max_epochs=n_epochs, batch_size=batch_size, optimizer=torch.optim.SGD,
        train_split=None, verbose=0, iterator_train__shuffle=True,
    )  # fmt: skip


def network_contenders(X, y, n_hidden, batch_size, n_epochs):
    inner = MLPRegressor(hidden_layer_sizes=(n_hidden,))
    options = {"batch_size": batch_size, "max_iter": n_epochs, "random_state": 0}
    peer = MLPRegressor(
        hidden_layer_sizes=(n_hidden,), solver="sgd", momentum=0, alpha=0, learning_rate_init=ETA,
        tol=0, n_iter_no_change=n_epochs, **options,
    )  # fmt: skip
    models = {
        solver: OrtSGDRegressor(
            inner,
            solver=solver,
            penalty=None,
            optimizer="sgd",
            learning_rate="constant",
            eta0=ETA,
            tol=None,
            **options,
        )
        for solver in available_solvers()
    }
    contenders = {
        name: partial(model.fit, X, y) for name, model in (models | {"scikit-learn": peer}).items()
    }
    n_features = X.shape[1]
    if importlib.util.find_spec("torch"):
        network = torch_network(n_features, n_hidden)
        contenders["torch"] = partial(torch_fit, X, y, network, batch_size, n_epochs)
    if importlib.util.find_spec("skorch"):
        network = skorch_model(torch_network(n_features, n_hidden), batch_size, n_epochs)
        contenders["skorch"] = partial(network.fit, X, y[:, None])
    return contenders


def networks():
    for n_features, n_hidden, batch_size, n_batches, n_epochs in NETWORKS:
        n_steps = n_batches * n_epochs
        print(
            f"MLP {n_features}-{n_hidden}-1, batches of {batch_size}: a step in a fit of {n_steps}"
        )
        rng = np.random.default_rng(0)
        X = rng.normal(size=(batch_size * n_batches, n_features)).astype(np.float32)
        y = (X[:, 0] + np.sin(X[:, 1])).astype(np.float32)
        times = smallest_times(network_contenders(X, y, n_hidden, batch_size, n_epochs))
        show(times, "us", 1e6 / n_steps, available_solvers())


def numpy_step(graph, batch):
    """
    Return one step by numpy with the least work: three matrix products,
    and no new array as large as the batch.
    """
    w1, w2, b1, b2 = (array.copy() for array in graph.weights().values())
    X, target, weight = batch.X, batch.target, batch.sample_weight
    hidden, back = (np.empty((len(X), w1.shape[1]), np.float32) for _ in range(2))
    active, score, by_w1 = (
        np.empty(hidden.shape, bool),
        np.empty((len(X), 1), np.float32),
        np.empty_like(w1),
    )

    def step():
        np.dot(X, w1, out=hidden)
        np.add(hidden, b1, out=hidden)
        np.maximum(hidden, 0, out=hidden)
        np.dot(hidden, w2, out=score)
        residual = score + b2 - target
        gradient = weight * residual
        objective = 0.5 * float((gradient * residual).sum())
        np.dot(gradient, w2.T, out=back)
        np.greater(hidden, 0, out=active)
        np.multiply(back, active, out=back)
        by_w2, by_b2, by_b1 = hidden.T @ gradient, gradient.sum(axis=0), back.sum(axis=0)
        np.dot(X.T, back, out=by_w1)
        for w, by_w in ((w1, by_w1), (w2, by_w2), (b1, by_b1), (b2, by_b2)):
            w -= ETA * by_w
        return objective

    return step


def repeat(n_times, action):
    for _ in range(n_times):
        action()


def steps():
    for n_features, n_hidden, batch_size, *_ in NETWORKS:
        print(f"MLP {n_features}-{n_hidden}-1, batches of {batch_size}: a step alone")
        inner = MLPRegressor(hidden_layer_sizes=(n_hidden,))
        graph = initial_score_graph(
            inner, ScoreSpec(n_features, 1, "float32"), np.random.RandomState(0)
        )
        n_steps, contenders = 300_000 // (batch_size * n_hidden) + 100, {}
        for label, options in STEPS.items():
            for name in available_solvers():
                solver = filled_solver(name, graph, batch_size, **options)
                contenders[name + label] = partial(
                    repeat, n_steps, partial(solver.step, ETA, 1 / n_steps)
                )
        contenders["numpy, in place"] = partial(repeat, n_steps, numpy_step(graph, solver.batch))
        show(smallest_times(contenders), "us", 1e6 / n_steps, available_solvers())


def filled_solver(name, graph, batch_size, optimizer, penalty):
    objective = Objective(SquaredError(), penalty, graph.coefficients, 1, np.dtype("float32"))
    problem = Problem(graph, objective, Update(optimizer), batch_size)
    solver, rng = make_step(problem, solver=name), np.random.default_rng(0)
    solver.batch.X[...] = rng.normal(size=solver.batch.X.shape)
    solver.batch.sample_weight[...] = 1 / batch_size
    return solver


def linear():
    print("Linear regression, 100,000 x 100, one epoch")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 100))
    y = X @ rng.normal(size=100) + 0.5 * rng.normal(size=100_000)
    single = X.astype(np.float32)
    models = {
        solver: OrtSGDRegressor(
            solver=solver,
            penalty=None,
            eta0=0.1,
            batch_size=250,
            max_iter=1,
            tol=None,
            random_state=0,
        )
        for solver in available_solvers()
    }
    contenders = {name: partial(model.fit, single, y) for name, model in models.items()}
    models["SGDRegressor"] = SGDRegressor(max_iter=1, tol=None, random_state=0)
    contenders["SGDRegressor"] = partial(models["SGDRegressor"].fit, X, y)
    show(smallest_times(contenders), "ms", 1e3, available_solvers())
    errors = {
        name: np.mean((model.predict(single if name in available_solvers() else X) - y) ** 2)
        for name, model in models.items()
    }
    print(
        "  mean squared error:", ", ".join(f"{name} {error:.4f}" for name, error in errors.items())
    )


def fixed_cost():
    print("fit of 100 x 5 rows with max_iter=1, MLP of 10 hidden units")
    X = np.random.default_rng(0).normal(size=(100, 5)).astype(np.float32)
    inner = MLPRegressor(hidden_layer_sizes=(10,))
    contenders = {}
    for solver in available_solvers():
        model = OrtSGDRegressor(inner, solver=solver, max_iter=1, tol=None)
        contenders[solver] = partial(model.fit, X, X[:, 0])
    show(smallest_times(contenders), "ms", 1e3, available_solvers())


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    with threadpool_limits(1):
        networks()
        steps()
        linear()
        fixed_cost()
