"""
Steps on a device with memory of its own, here that of the CPU: those of solver "graph",
and what is copied.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.objective import L1, L2, ConcomitantHuber, Huber, Penalty, SquaredError, WeightedSum
from skort.objective.objective import Objective
from skort.optim.batches import Batches, WindowShape
from skort.optim.optimizers import OPTIMIZERS, SGD, Adam, Nesterov
from skort.optim.update import Update
from skort.runtime.device import CPU, Device
from skort.solvers import make_step
from skort.solvers.base import Problem
from skort.solvers.graph.backend import GraphBackend
from skort.solvers.graph.device_backend import DeviceGraphBackend

REMOTE = Device(is_remote=True)
RNG = np.random.default_rng(0)
X, TARGET = RNG.normal(size=(53, 6)), RNG.normal(size=(53, 2))
WEIGHTS = RNG.uniform(0, 2, 53) * (np.arange(53) % 7 > 0)


def make(
    device=CPU, *, dtype="float32", loss=None, penalty=None, optimizer=None, model=None, **options
):
    model = model or MLPRegressor(hidden_layer_sizes=(8,), activation="tanh")
    graph = initial_score_graph(model, ScoreSpec(6, 2, dtype), np.random.RandomState(0))
    loss = loss or SquaredError()
    objective = Objective(loss, penalty, graph.coefficients, 2, np.dtype(dtype))
    of_loss = {name: array.astype(dtype) for name, array in loss.initial_weights(TARGET).items()}
    problem = Problem(
        graph, objective, Update(optimizer or SGD(), **options), 10, device, loss_weights=of_loss
    )
    return make_step(problem, solver="graph")


def batches(rows=X, dtype="float32", sample_weight=WEIGHTS):
    options = {"batch_size": 10, "shuffle": True, "random_state": np.random.RandomState(0)}
    rows = rows if rows.dtype == dtype else rows.astype(dtype)
    return Batches(rows, TARGET.astype(dtype), sample_weight, **options)


def assert_equal(ours, theirs, rtol):
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert (array.dtype, array.shape) == (theirs[name].dtype, theirs[name].shape)
        np.testing.assert_allclose(array, theirs[name], rtol=rtol, atol=rtol)


def epochs(solver, data, n_epochs=3):
    """Make steps, read after each of them."""
    solver.batch.begin(data.data)
    for _ in range(n_epochs):
        for share, _ in data.epoch(solver.batch):
            solver.step(0.05, 1.0)
            _, loss = solver.means()
            yield share, solver.objective(), loss, solver.gradient_norm()


FOURTH_POWERS = """\
fourth_powers (weight) => (penalty) {
    square = Mul (weight, weight)
    fourth = Mul (square, square)
    penalty = ReduceSum <keepdims = 0> (fourth)
}"""
OPTIONS = [
    *(
        {"optimizer": cls(), "penalty": penalty}
        for cls in OPTIMIZERS.values()
        for penalty in (None, L2(0.1), L1(0.01))
    ),
    {"optimizer": Nesterov(), "penalty": L2(50.0)},
    {"optimizer": Adam(weight_decay=0.1)},
    {"max_grad_norm": 0.05},
    {"average": True},
    {"average": 9},
    {"loss": ConcomitantHuber(), "penalty": L2(0.1)},
    {"loss": Huber(0.5), "model": LinearRegression(fit_intercept=False)},
    {
        "loss": WeightedSum([(0.5, SquaredError()), ([1.0, 2.0], Huber(0.5))]),
        "penalty": Penalty(FOURTH_POWERS, alpha=0.1),
    },
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_steps_are_those_of_solver_graph(options, dtype):
    rtol = 2e-6 if dtype == "float32" else 1e-14
    near, far = make(dtype=dtype, **options), make(REMOTE, dtype=dtype, **options)
    steps = (epochs(solver, batches(dtype=dtype)) for solver in (near, far))
    for ours, theirs in zip(*steps, strict=True):
        assert ours == pytest.approx(theirs, rel=10 * rtol)
    assert_equal(far.weights(), near.weights(), rtol)
    assert_equal(far.state(), near.state(), rtol)


@pytest.mark.parametrize("average", [False, 4])
def test_a_state_goes_from_one_to_the_other(average):
    options = {"optimizer": Adam(), "average": average}
    whole = make(**options)
    data = batches()
    list(epochs(whole, data, 4))
    part, data = make(REMOTE, **options), batches()
    list(epochs(part, data, 1))
    for device in (CPU, REMOTE, CPU):
        state, part = part.state(), make(device, **options)
        part.restore(state)
        list(epochs(part, data, 1))
    assert_equal(part.state(), whole.state(), 2e-6)
    with pytest.raises(ValueError, match="state does not fit"):
        part.restore(make(REMOTE, average=average).state())


def test_means_of_an_epoch_are_added_up_on_the_device():
    near, far = make(penalty=L2(0.1)), make(REMOTE, penalty=L2(0.1))
    near_data, far_data = batches(), batches()
    # An epoch that was given up.
    before = far.state()
    far.batch.begin(far_data.data)
    far.step(0.05, next(batches().epoch(far.batch)).share)
    far.restore(before)
    for _ in range(2):
        steps = np.array(
            [
                (share * objective, share * loss)
                for share, objective, loss, _ in epochs(near, near_data, 1)
            ]
        )
        for share, _ in far_data.epoch(far.batch):
            far.step(0.05, share)
        assert far.means() == pytest.approx(steps.sum(axis=0), rel=1e-6)


@pytest.fixture
def memory_map(tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def test_rows_that_are_not_in_memory_are_copied_batch_by_batch(memory_map):
    whole = make(REMOTE)
    list(epochs(whole, batches()))
    # np.asarray of a memory map does not say that it is one.
    for rows in (scipy.sparse.csr_matrix(X), memory_map, np.asarray(memory_map)):
        solver = make(REMOTE)
        list(epochs(solver, batches(rows)))
        assert len(REMOTE.get(solver.batch.tables[0].array)) == 10
        assert_equal(solver.state(), whole.state(), 0)


def test_rows_that_were_written_over_are_taken_anew():
    # The same arrays, as a loop over chunks that are read into one buffer brings them.
    buffer, target = np.empty_like(X), np.empty_like(TARGET)
    near, far = make(dtype="float64"), make(REMOTE, dtype="float64")
    for order in (slice(None), slice(None, None, -1)):
        buffer[...], target[...] = X[order], 2 * TARGET[order]
        for solver in (near, far):
            options = {"batch_size": 10, "shuffle": True, "random_state": np.random.RandomState(0)}
            list(epochs(solver, Batches(buffer, target, None, **options), 1))
    assert_equal(far.state(), near.state(), 1e-12)


def test_data_of_any_form_may_follow_other_data():
    forms = [X, scipy.sparse.csr_matrix(X), X[::-1].copy(), X]
    near, far = make(), make(REMOTE)
    for rows in forms:
        for solver in (near, far):
            list(epochs(solver, batches(rows), 2))
    assert_equal(far.state(), near.state(), 2e-6)


@pytest.mark.parametrize(
    "sample_weight, etas, n_copies", [(None, [1], 1), (None, [1, 2], 2), (WEIGHTS + 1, [1], 2)]
)
def test_a_step_copies_the_numbers_of_its_rows_and_what_changed(
    sample_weight, etas, n_copies, monkeypatch
):
    solver, data = make(REMOTE), batches(sample_weight=sample_weight)
    solver.batch.begin(data.data)
    portions, etas = data.epoch(solver.batch), itertools.cycle(etas)
    for _ in range(2):
        solver.step(next(etas), next(portions).share)
    copied, fill = [], Device.fill
    monkeypatch.setattr(Device, "fill", lambda *args: copied.append(args[2].nbytes) or fill(*args))
    monkeypatch.setattr(Device, "get", lambda *args: pytest.fail("a step reads nothing"))
    for _ in range(3):
        solver.step(next(etas), next(portions).share)
    assert len(copied) == 3 * n_copies
    # The numbers of ten rows, in 64 bits.
    assert max(copied) == 10 * 8


def test_windows_of_many_rows_are_taken_on_the_device(monkeypatch):
    monkeypatch.setattr("skort.optim.batches.MANY_ROWS", 0)
    monkeypatch.setattr(
        WindowShape, "of", classmethod(lambda cls, n_features, batch_size: cls(10, 2))
    )
    near, far = make(), make(REMOTE)
    for solver in (near, far):
        list(epochs(solver, batches()))
    assert_equal(far.state(), near.state(), 2e-6)
    assert len(REMOTE.get(far.batch.tables[0].array)) == len(X)


def test_which_class_a_solver_is_on_a_device():
    assert type(make().backend) is GraphBackend
    assert type(make(REMOTE).backend) is DeviceGraphBackend
