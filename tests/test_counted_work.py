"""
How much work is done, counted: runs of ONNX Runtime, conversions, arrays,
nodes, sessions, passes over X.

What a step or a call costs is too noisy to be tested by time. These are upper bounds: who does the
same with less lowers them. How many Python functions are called is free.
"""

import collections
import gc
import sys
import tracemalloc

import numpy as np
import onnx
import onnx.inliner
import onnx.parser
import onnx.shape_inference
import pytest
import skl2onnx.convert
import sklearn.utils.validation
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier, MLPRegressor
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.optimizers import Momentum
from skort.runtime.cache import forget
from skort.runtime.installed import load
from skort.solvers import SOLVERS

MODELS = {"linear": None, "MLP": MLPRegressor(hidden_layer_sizes=(8,))}
MANY = np.random.default_rng(0).normal(size=(2000, 100)).astype(np.float32)
X, Y = MANY[:200, :5].copy(), MANY[:200, 0].astype(np.float64)

# Methods of the runtime's own classes that run a graph, and that make a session.
RUNS = {
    "InferenceSession": (
        "run",
        "run_with_iobinding",
        "run_with_ort_values",
        "run_with_ortvaluevector",
    ),
    "TrainingAgent": ("run_forward", "run_backward"),
}
RUNS_OF_A_STEP = {
    "graph": {"run_with_iobinding"},
    "session": {"run_with_iobinding"},
    "agent": {"run_forward", "run_backward"},
}
SESSIONS = {
    "InferenceSession": ("initialize_session",),
    "TrainingSession": ("read_bytes", "load_model"),
}


@pytest.fixture(params=MODELS)
def inner(request):
    return MODELS[request.param]


@pytest.fixture
def counted(monkeypatch):
    """Count the calls of functions, (owner, name), in a Counter of names."""

    def count(functions, counts=lambda *args: True):
        calls = collections.Counter()
        for owner, name in functions:
            function = getattr(owner, name)

            def counting(*args, _function=function, _name=name, **kwargs):
                calls[_name] += counts(*args)
                return _function(*args, **kwargs)

            monkeypatch.setattr(owner, name, counting)
        return calls

    return count


def of_the_runtime(methods):
    """Return the methods, (class, name), that the classes of the installed runtime have."""
    load()
    from onnxruntime.capi import _pybind_state

    classes = {cls: vars(_pybind_state).get(cls) for cls in methods}
    return [
        (classes[cls], name)
        for cls, names in methods.items()
        for name in names
        if hasattr(classes[cls], name)
    ]


def of_one_step(work, model):
    """Return the work of a step: what an epoch of 20 of them takes beyond one of 10."""
    chunks = [(X[:n], Y[:n]) for n in (100, 200)]
    counts = []
    for chunk in chunks:
        # The first call makes the solver.
        model.partial_fit(*chunk)
        counts.append(work(lambda chunk=chunk: model.partial_fit(*chunk)))
    return (counts[1] - counts[0]) / 10


# --- a step


@pytest.mark.parametrize("solver", RUNS_OF_A_STEP, indirect=True)
def test_a_step_is_one_run_of_the_runtime(solver, inner, counted):
    calls = counted(of_the_runtime(RUNS))

    def work(call):
        before = calls.total()
        call()
        return calls.total() - before

    assert of_one_step(work, OrtSGDRegressor(inner, solver=solver, batch_size=10)) == len(
        RUNS_OF_A_STEP[solver]
    )
    assert {name for name, n in calls.items() if n} == RUNS_OF_A_STEP[solver]


class Allocations:
    """
    A callback that measures steps 101 to 200 by the peak of memory,
    and 301 to 800 by the blocks they leave.
    """

    def on_batch_end(self, training):
        if training.n_updates == 100:
            tracemalloc.start()
        elif training.n_updates == 200:
            self.peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        elif training.n_updates in (300, 800):
            gc.collect()
            self.n_left = sys.getallocatedblocks() - getattr(self, "n_left", 0)


def test_steps_make_no_arrays_and_leave_nothing_behind(solver, inner):
    big = None if inner is None else MLPRegressor(hidden_layer_sizes=(500,))
    rows, allocations = np.tile(MANY, (8, 1)), Allocations()
    # 800 steps an epoch: no epoch ends between the first and the last of those that are measured.
    model = OrtSGDRegressor(big, solver=solver, batch_size=20, eta0=1e-6, max_iter=1, tol=None)
    # TrainingSession knows no weight decay as that of a network: it goes through arrays.
    model.set_params(callbacks=[allocations], optimizer="sgd")
    # The first agent of a process keeps 100 bytes a step for some hundred steps; other threads make
    # objects, too. What every step leaves behind is there in each of the fits.
    left, peaks = [], []
    for _ in range(4):
        model.fit(rows, rows[:, 0])
        left.append(allocations.n_left)
        peaks.append(allocations.peak)
        allocations.n_left = 0
    # A batch is 8 KB, the weights of the network are 200 KB.
    assert min(peaks[1:]) < 2000
    assert min(left[1:]) < 50


@pytest.mark.parametrize("options", [{"eta0": 0.01}, {"eta0": "auto"}])
@pytest.mark.parametrize("is_large", [False, True])
def test_an_epoch_makes_the_order_of_the_rows_and_one_copy_of_them_at_most(
    solver, options, is_large, monkeypatch
):
    rows = np.tile(MANY, (25, 1))
    monkeypatch.setattr("skort.optim.row_change._LARGE", rows.nbytes - is_large)
    model = OrtSGDRegressor(solver=solver, **options).partial_fit(rows, rows[:, 0])
    tracemalloc.start()
    model.partial_fit(rows, rows[:, 0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The copy is standardized, and large rows are in the batches. Statistics take a block of 2 MB
    # at a time, however many rows there are. y, its weight, its place in the order and in the
    # batches are numbers of 8 bytes.
    assert peak < (not is_large) * rows.nbytes + 60 * len(rows) + 1.1 * 2**21


# Standardized columns add none.
@pytest.mark.parametrize("standardize", [False, "auto"])
@pytest.mark.parametrize(
    "estimator_class, inner, n_classes, n_nodes",
    [
        (OrtSGDRegressor, None, 0, 20),
        (OrtSGDRegressor, MLPRegressor(hidden_layer_sizes=(8,)), 0, 29),
        (OrtSGDClassifier, None, 2, 29),
        (OrtSGDClassifier, MLPClassifier(hidden_layer_sizes=(8,)), 2, 38),
        (OrtSGDClassifier, None, 3, 22),
        (OrtSGDClassifier, MLPClassifier(hidden_layer_sizes=(8,)), 3, 32),
    ],
)
def test_the_step_of_solver_graph_has_few_nodes(
    estimator_class, inner, n_classes, n_nodes, standardize, monkeypatch, tmp_path
):
    make, path = load().InferenceSession, tmp_path / "optimised.onnx"

    def saving(graph, options, **kwargs):
        options.optimized_model_filepath = str(path)
        return make(graph, options, **kwargs)

    forget()
    monkeypatch.setattr(load(), "InferenceSession", saving)
    y = np.arange(200) % n_classes if n_classes else Y
    settings = {
        "solver": "graph",
        "optimizer": "sgd",
        "max_iter": 1,
        "tol": None,
        "standardize": standardize,
    }
    estimator_class(inner, **settings).fit(X, y)
    assert len(onnx.load(path).graph.node) <= n_nodes


# --- a fit, a partial_fit, a prediction


def test_a_fit_makes_one_session_and_predictions_one_more(solver, inner, counted):
    forget()
    sessions = counted(of_the_runtime(SESSIONS))
    model = OrtSGDRegressor(inner, solver=solver, max_iter=2, tol=None).fit(X, Y)
    assert sessions.total() == 1
    for _ in range(3):
        model.predict(X)
    assert sessions.total() == 2
    for _ in range(3):
        model.partial_fit(X, Y)
    # The first call after the fit compares the loss of a network with a constant's.
    assert sessions.total() <= 3 + 2 * (inner is not None)


# What is made of a structure: ONNX text is parsed, nodes are made and inlined, shapes are inferred,
# sessions are made.
BUILDING = [
    (onnx.parser, "parse_function"),
    (onnx.helper, "make_node"),
    (onnx.helper, "make_graph"),
    (onnx.inliner, "inline_local_functions"),
    (onnx.shape_inference, "infer_shapes"),
    (skl2onnx.convert, "convert_topology"),
]
NUMBERS = [
    {"alpha": 0.02, "l1_ratio": 0.3},
    {"eta0": 0.02, "max_iter": 3, "learning_rate": "invscaling"},
    {"epsilon": 0.3},
    {"max_grad_norm": 0.07},
    {"average": 7},
]


def test_a_fit_that_differs_in_numbers_builds_nothing(solver, inner, counted):
    rest = {
        "loss": "huber",
        "penalty": "elasticnet",
        "alpha": 0.01,
        "max_iter": 2,
        "tol": None,
        "average": 3,
    }
    if takes(solver, Momentum(), max_grad_norm=0.05):
        rest |= {"max_grad_norm": 0.05, "optimizer": "momentum"}
    rest |= {"eta0": 0.01, "batch_size": 20, "random_state": 0}
    model = OrtSGDRegressor(inner, solver=solver, **rest).fit(X, Y)
    work = counted([*BUILDING, *of_the_runtime(SESSIONS)])
    fits = [
        clone(model).set_params(**numbers)
        for numbers in NUMBERS[: 5 if "max_grad_norm" in rest else 3]
    ]
    if "optimizer" in rest:
        fits.append(clone(model).set_params(optimizer=Momentum(momentum=0.5)))
    weights = [fit.fit(X + 1, Y).weights_ for fit in fits]
    assert work.total() == 0
    # All of these numbers count.
    flat = [np.concatenate([array.ravel() for array in of_one.values()]) for of_one in weights]
    assert len({array.tobytes() for array in flat}) == len(fits)


def test_a_large_step_is_not_held_on_to(counted):
    network = MLPRegressor(hidden_layer_sizes=(8,))
    model = OrtSGDRegressor(network, solver="graph", batch_size=3000, max_iter=1, tol=None)
    sessions = counted(of_the_runtime(SESSIONS))
    for _ in range(2):
        model.fit(np.tile(MANY, (2, 1)), np.tile(MANY[:, 0], 2))
    assert sessions.total() == 2


def test_a_structure_is_converted_once(solver, inner, counted):
    # No other test has these numbers of features: the structure is new. Every conversion goes
    # through this function.
    rows = MANY[:200, : 20 + list(SOLVERS).index(solver)]
    conversions = counted([(skl2onnx.convert, "convert_topology")])
    model = OrtSGDRegressor(inner, solver=solver, max_iter=1, tol=None).fit(rows, Y)
    for alpha in (0.0, 0.1):
        model.set_params(alpha=alpha).fit(rows, Y).predict(rows)
    assert conversions.total() == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_X_is_validated_once_in_a_fit_and_never_twice(solver, dtype, counted):
    rows = X.astype(dtype)
    looks = counted(
        [(sklearn.utils.validation, "_assert_all_finite"), (np, "vdot")],
        lambda X, *_: np.size(X) == rows.size,
    )
    model = OrtSGDRegressor(solver=solver, max_iter=2, tol=None).fit(rows, Y)
    assert looks.total() == 1
    model.predict(rows)
    assert looks.total() == 2
    model.partial_fit(rows, Y)
    assert looks.total() == 3


def test_a_fit_unpacks_no_weight_from_a_graph(solver, counted):
    network = MLPRegressor(hidden_layer_sizes=(8,))
    n_weights = len(X[0]) * 8
    model = OrtSGDRegressor(network, solver=solver, max_iter=2, tol=None).fit(X, Y)
    unpacked = counted(
        [(onnx.numpy_helper, "to_array")], lambda tensor, *_: np.prod(tensor.dims) >= n_weights
    )
    model.fit(X, Y)
    model.partial_fit(X, Y)
    assert model.weights_["coefficient"].size == n_weights
    assert unpacked.total() == 0
