"""Steps in the user's own loop: against the estimators' own, formulas and finite differences."""

import copy
import pickle

import numpy as np
import onnx.parser
import pytest
import scipy.sparse
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import HuberRegressor, LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.estimators.data.rows import as_array
from skort.estimators.planning import plan
from skort.objective import L2
from skort.optimizers import Nesterov
from skort.runtime.device import CPU, Device
from skort.runtime.installed import training_api
from skort.solvers import available_solvers

SOLVERS = available_solvers()
# Those that take every optimizer of skort, in both dtypes.
WHOLE = [name for name in SOLVERS if takes(name, Nesterov(), 0.5, "float64")]
EPOCHS, SIZE, ETA = 3, 10, 0.05
PLAIN = {
    "standardize": False, "shuffle": False, "learning_rate": "constant", "eta0": ETA,
    "max_iter": EPOCHS, "tol": None, "batch_size": SIZE, "random_state": 0,
}  # fmt: skip


def rows(n=25, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    return X, (X @ np.arange(1.0, n_features + 1) + 0.3 * rng.normal(size=n)).astype(np.float32)


def loop(step, X, y, sample_weight=None):
    for _ in range(EPOCHS):
        for i in range(0, len(X), SIZE):
            part = slice(i, i + SIZE)
            step.step(X[part], y[part], ETA, None if sample_weight is None else sample_weight[part])
    return step


def identical(weights, others):
    assert list(weights) == list(others)
    for name, array in weights.items():
        np.testing.assert_array_equal(array, others[name])


OPTIONS = [
    {},
    {"penalty": L2(0.3)},
    {"estimator": MLPRegressor(hidden_layer_sizes=(4,)), "optimizer": "sgd"},
    {"optimizer": "adam"},
    {"average": 2},
    {"penalty": "l1", "alpha": 0.01, "n_total": 25},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_loop_ends_at_the_weights_of_fit(solver, options):
    X, y = rows()
    estimator = OrtSGDRegressor(**{**PLAIN, "penalty": None, "solver": solver, **options})
    step = loop(Step(estimator, n_features=3), X, y)
    assert step.solver == solver
    identical(step.weights(), estimator.fit(X, y).weights_)


@pytest.mark.parametrize(
    "options", [{"optimizer": "nesterov"}, {"dtype": "float64", "max_grad_norm": 0.5}], ids=str
)
@pytest.mark.parametrize("name", WHOLE)
def test_a_loop_of_what_some_solvers_cannot_ends_at_the_weights_of_fit(name, options):
    X, y = rows()
    estimator = OrtSGDRegressor(**{**PLAIN, "penalty": None, "solver": name, **options})
    identical(loop(Step(estimator, n_features=3), X, y).weights(), estimator.fit(X, y).weights_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [None, MLPClassifier((4,))], ids=["linear", "network"])
def test_a_loop_over_labels_ends_at_the_weights_of_fit(solver, n_classes, model):
    X, y = rows()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-1, 1] if n_classes == 3 else [0])]
    estimator = OrtSGDClassifier(model, **PLAIN, optimizer="sgd", penalty=None, solver=solver)
    step = loop(Step(estimator, n_features=3, classes=labels), X, labels)
    identical(step.weights(), estimator.fit(X, labels).weights_)


def test_sample_weights_and_class_weights_count_as_they_are(solver):
    X, y = rows(20)
    labels, weight = (y > 0).astype(int), np.tile([1.0, 3.0], 10)
    estimator = OrtSGDClassifier(**PLAIN, penalty=None, solver=solver)
    step = loop(Step(estimator, n_features=3, classes=[0, 1]), X, labels, weight / 2)
    estimator.fit(X, labels, weight)
    for name, array in step.weights().items():
        np.testing.assert_allclose(array, estimator.weights_[name], rtol=1e-5, atol=1e-7)
    weighted = Step(estimator.set_params(class_weight={0: 1.0, 1: 2.0}), n_features=3)
    plain = Step(estimator.set_params(class_weight=None), n_features=3)
    by_class, by_row = (
        [s.step(X[:10], labels[:10], 0.1, w)]
        for s, w in ((weighted, None), (plain, 1 + labels[:10]))
    )
    assert by_class == pytest.approx(by_row, rel=1e-6)
    identical(weighted.weights(), plain.weights())


def test_a_short_batch_is_filled_up_with_rows_of_no_weight(solver):
    X, y = rows(10)
    weight = np.zeros(10)
    weight[:4] = 1
    short, whole = (
        Step(LinearRegression(), n_features=3, batch_size=10, solver=solver) for _ in range(2)
    )
    loss = short.step(X[:4], y[:4], 0.1)
    assert (
        loss == whole.step(X, y, 0.1, weight) == pytest.approx(0.5 * np.mean(y[:4] ** 2), rel=1e-6)
    )
    identical(short.weights(), whole.weights())


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("n", [1, 7])
def test_a_loop_over_fewer_rows_than_a_batch_ends_at_the_weights_of_fit(solver, n, options):
    X, y = rows(n)
    options = options | ({"n_total": n} if "n_total" in options else {})
    estimator = OrtSGDRegressor(
        **{**PLAIN, "penalty": None, "solver": solver, **options, "batch_size": 15}
    )
    step = loop(Step(estimator, n_features=3), X, y)
    identical(step.weights(), estimator.fit(X, y).weights_)


def test_a_loop_over_fewer_weighted_rows_than_a_batch_ends_at_the_weights_of_fit(solver):
    X, y = rows(9)
    weight = np.tile([2.0, 0.0, 1.0], 3)
    estimator = OrtSGDRegressor(
        **{**PLAIN, "penalty": None, "solver": solver, "loss": "huber", "batch_size": 15}
    )
    step = loop(Step(estimator, n_features=3), X, y, weight / 1.5)
    estimator.fit(X, y, weight)
    for name, array in step.weights().items():
        np.testing.assert_allclose(array, estimator.weights_[name], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_batches_of_growing_size_are_the_same_steps(optimizer):
    X, y = rows(15)
    ours, padded = (
        Step(LinearRegression(), n_features=3, batch_size=15, optimizer=optimizer, solver="graph")
        for _ in range(2)
    )
    # The first batch of this one has room for all rows.
    padded.step(X, y, 0.0)
    padded.restore(ours.state())
    for n in (3, 2, 9, 15, 4):
        losses = [step.step(X[:n], y[:n], 0.1) for step in (ours, padded)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, array in ours.weights().items():
        np.testing.assert_allclose(array, padded.weights()[name], rtol=1e-5)


def test_a_step_is_the_gradient_of_the_objective_with_its_penalty():
    X, y = rows(SIZE)
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(3,), activation="tanh"),
        dtype="float64",
        penalty="l2",
        alpha=0.1,
        random_state=0,
    )
    for solver in WHOLE:
        step = Step(model, n_features=3, batch_size=SIZE, solver=solver)
        before = step.weights()

        def objective(weights):
            first, last, *intercepts = (
                weights[n] for n in ("coefficient", "coefficient1", "intercepts", "intercepts1")
            )
            score = np.tanh(X @ first + intercepts[0]) @ last + intercepts[1]
            penalty = 0.05 * sum(np.sum(w**2) for w in (first, last))
            return 0.5 * np.mean((score.ravel() - y) ** 2) + penalty

        loss = step.step(X, y, 0.1)
        assert step.objective == pytest.approx(objective(before), rel=1e-6)
        assert loss < step.objective
        for name, array in step.weights().items():
            moved = (before[name] - array) / 0.1
            for i in np.ndindex(array.shape):
                shifted = [{**before, name: before[name].copy()} for _ in range(2)]
                shifted[0][name][i] += 1e-5
                shifted[1][name][i] -= 1e-5
                expected = (objective(shifted[0]) - objective(shifted[1])) / 2e-5
                assert moved[i] == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.skipif("agent" not in SOLVERS, reason="needs TrainingAgent")
def test_forward_backward_and_update_are_a_step():
    X, y = rows(SIZE)
    weight = np.linspace(0.5, 2, SIZE)
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(4,)),
        optimizer="momentum",
        penalty="l2",
        alpha=0.1,
        random_state=0,
    )
    parts, whole = (Step(model, n_features=3, batch_size=SIZE, solver="agent") for _ in range(2))
    for _ in range(3):
        # An objective that is only looked at, and a score in between, change nothing.
        parts.forward(X, y, training=True)
        objective = parts.forward(X, y, weight, training=True)
        parts.forward(X)
        gradients = parts.backward()
        parts.update(0.1)
        whole.step(X, y, 0.1, weight)
        assert objective == parts.objective == whole.objective
        assert list(gradients) == list(parts.weights())
        identical(gradients, parts.gradients())
    identical(parts.state(), whole.state())


def test_gradients_by_name_and_their_norm(solver):
    X, y = rows(SIZE)
    options = {"penalty": "l2", "alpha": 0.3, "max_grad_norm": 0.1}
    options = options if takes(solver, max_grad_norm=0.1) else {"penalty": None}
    step = Step(
        OrtSGDRegressor(LinearRegression(), solver=solver, **options), n_features=3, batch_size=SIZE
    )
    assert step.gradient_norm == 0
    step.step(X, y, 0.1)
    coef, intercept = (step.weights()[name].astype(float) for name in ("coef", "intercept"))
    step.step(X, y, 0.0)
    residual = X @ coef.ravel() + intercept - y
    by_coef = residual @ X / SIZE + (0.3 * coef.ravel() if "alpha" in options else 0)
    expected = np.append(by_coef, residual.mean())
    np.testing.assert_allclose(step.gradient_norm, np.linalg.norm(expected), rtol=1e-5)
    if solver == "session":
        with pytest.raises(ValueError, match='solver="session" does not show its gradients'):
            step.gradients()
    else:
        gradients = step.gradients()
        np.testing.assert_allclose(gradients["coef"], by_coef[:, None], rtol=1e-5)
        np.testing.assert_allclose(gradients["intercept"], residual.mean(keepdims=True), rtol=1e-5)
        gradients["coef"][...] = 0
        np.testing.assert_allclose(step.gradient_norm, np.linalg.norm(expected), rtol=1e-5)


def test_before_a_step_there_are_no_gradients():
    with pytest.raises(ValueError, match=r"Call step\(X, y, eta\) before gradients\(\)"):
        Step(LinearRegression(), n_features=3, solver="graph").gradients()


@pytest.mark.skipif("agent" not in SOLVERS, reason="needs TrainingAgent")
def test_gradients_may_be_changed_between_backward_and_update():
    X, y = rows(SIZE)
    step = Step(LinearRegression(), n_features=3, solver="agent", batch_size=SIZE)
    step.forward(X, y, training=True)
    gradients = step.backward()
    np.testing.assert_allclose(gradients["coef"].ravel(), -(y @ X) / SIZE, rtol=1e-5)
    gradients["coef"] = np.sign(gradients["coef"])
    gradients["intercept"] *= 0
    with pytest.raises(KeyError, match="slope"):
        gradients["slope"] = 1.0
    with pytest.raises(ValueError, match="could not broadcast"):
        gradients["coef"] = np.ones(7)
    step.update(0.5)
    np.testing.assert_array_equal(step.weights()["coef"].ravel(), 0.5 * np.sign(y @ X))
    np.testing.assert_array_equal(step.weights()["intercept"].ravel(), 0)


@pytest.mark.skipif("agent" not in SOLVERS, reason="needs TrainingAgent")
def test_the_parts_of_a_step_have_an_order():
    X, y = rows(SIZE)
    step = Step(LinearRegression(), n_features=3, solver="agent")
    with pytest.raises(
        ValueError, match=r"Call forward\(X, y, training=True\) before each backward"
    ):
        step.backward()
    step.forward(X, y, training=True)
    with pytest.raises(ValueError, match=r"Call backward\(\) before each update"):
        step.update(0.1)
    with pytest.raises(ValueError, match="y is needed with training=True"):
        step.forward(X, training=True)
    step.backward()
    step.update(0.1)
    with pytest.raises(ValueError, match=r"Call backward\(\) before each update"):
        step.update(0.1)
    with pytest.raises(
        ValueError, match='solver="graph" makes forward, backward and update in one run'
    ):
        Step(LinearRegression(), n_features=3, solver="graph").forward(X, y, training=True)


def test_the_score_is_that_before_the_update(solver):
    X, y = rows()
    labels = y > 0
    step = Step(
        LogisticRegression(), n_features=3, classes=[False, True], solver=solver, penalty=None
    )
    first, score = step.step(X, labels, 0.5, score=True)
    assert first == pytest.approx(np.log(2), rel=1e-6)
    np.testing.assert_array_equal(score, np.zeros((25, 1)))
    loss, score = step.step(X, labels, 0.5, score=True)
    weights = step.weights()
    assert loss == pytest.approx(
        np.mean(np.logaddexp(0, -np.where(labels, 1, -1) * score.ravel())), rel=1e-5
    )
    np.testing.assert_allclose(
        step.forward(X), X @ weights["coef"] + weights["intercept"], rtol=1e-5, atol=1e-6
    )
    # Any number of rows can be predicted, and nothing of that is kept.
    before = step.state()
    assert step.forward(np.tile(X, (20, 1))).shape == (500, 1)
    identical(before, step.state())


def test_a_state_goes_on_to_the_last_bit(solver, tmp_path):
    X, y = rows()
    make = lambda: Step(LinearRegression(), n_features=3, solver=solver, optimizer="adam")  # noqa: E731
    whole, first, second = make(), make(), make()
    losses = [whole.step(X, y, 0.1) for _ in range(6)]
    for _ in range(3):
        first.step(X, y, 0.1)
    np.savez(tmp_path / "state.npz", **first.state())
    with np.load(tmp_path / "state.npz") as state:
        second.restore(dict(state))
    assert [second.step(X, y, 0.1) for _ in range(3)] == losses[3:]
    identical(second.weights(), whole.weights())
    before = second.state()
    with pytest.raises(ValueError, match="state does not fit"):
        second.restore(Step(LinearRegression(), n_features=3, solver=solver).state())
    identical(before, second.state())


def test_onnx_predicts_with_the_present_weights(run_onnx):
    X, y = rows()
    step = loop(Step(LinearRegression(), n_features=3, batch_size=SIZE), X, y)
    (predicted,) = run_onnx(step.to_onnx(), X=X).values()
    np.testing.assert_allclose(predicted, step.forward(X), rtol=1e-5, atol=1e-6)
    labels = np.where(y > 0, "yes", "no")
    step = loop(
        Step(LogisticRegression(), n_features=3, classes=["no", "yes"], penalty=None), X, labels
    )
    predicted, probabilities = run_onnx(step.to_onnx(), X=X).values()
    assert predicted.tolist() == np.where(step.forward(X).ravel() > 0, "yes", "no").tolist()
    np.testing.assert_allclose(probabilities[:, 1], expit(step.forward(X)).ravel(), rtol=1e-5)
    assert "step" in Step(LinearRegression(), n_features=3, solver="graph").training_graphs()


def test_a_fitted_estimator_goes_on_from_its_weights():
    X, y = rows()
    fitted = OrtSGDRegressor(eta0=0.1, tol=1e-4, random_state=0).fit(X, y)
    step = Step(fitted, penalty=None)
    identical(step.weights(), fitted.weights_)
    best = LinearRegression().fit(X, y)
    for _ in range(200):
        step.step(X, y, 0.3)
    np.testing.assert_allclose(step.weights()["coef"].ravel(), best.coef_, rtol=1e-4)
    # Neither the fitted estimator nor its parameters are changed.
    assert fitted.penalty == "auto"
    assert not np.array_equal(fitted.weights_["coef"], step.weights()["coef"])
    assert Step(fitted, n_features=3, n_outputs=1).weights()["coef"].shape == (3, 1)
    two = Step(FrozenEstimator(LinearRegression().fit(X, np.c_[y, 2 * y])))
    np.testing.assert_allclose(two.forward(X[:2])[:, 0] * 2, two.forward(X[:2])[:, 1], rtol=1e-4)
    frozen = Step(FrozenEstimator(best))
    np.testing.assert_allclose(frozen.weights()["coef"].ravel(), best.coef_, rtol=1e-6)
    labels = np.where(y > 0, "yes", "no")
    classifier = Step(OrtSGDClassifier(eta0=0.1, random_state=0).fit(X, labels))
    assert classifier.step(X, labels, 0.1) < 0.5


def onnx_line(n_features="3"):
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        line (float[N, {n_features}] X) => (float[N, 2] score)
            <float[3, 2] w = {{0, 0, 0, 0, 0, 0}}> {{
            score = MatMul (X, w)
        }}"""
    )


def test_an_onnx_model_says_its_sizes():
    X, y = rows()
    step = Step(onnx_line())
    loss = step.step(X, np.c_[y, 2 * y], 0.1)
    # The mean over outputs.
    assert loss == pytest.approx(0.5 * np.mean((y**2 + 4 * y**2) / 2), rel=1e-5)
    with pytest.raises(ValueError, match="Give n_features"):
        Step(onnx_line("F"))
    assert Step(onnx_line("F"), n_features=3).weights()["w"].shape == (3, 2)
    classifier = Step(onnx_line(), classes=["a", "b"])
    assert classifier.step(X, np.where(y > 0, "a", "b"), 0.1) == pytest.approx(np.log(2), rel=1e-6)


class Shared:
    """An array of another library, on the CPU."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_arrays_with_dlpack_are_read_where_they_are():
    X, y = rows()
    assert np.shares_memory(as_array(Shared(X), "X"), X)
    ours, theirs = (Step(LinearRegression(), n_features=3) for _ in range(2))
    losses = [ours.step(X, y, 0.1), ours.step(X, y, 0.1)]
    assert [theirs.step(Shared(X), Shared(y), 0.1, Shared(np.ones(25))) for _ in range(2)] == losses
    np.testing.assert_array_equal(theirs.forward(Shared(X)), ours.forward(X))


def test_a_whole_batch_is_read_where_it_is(solver):
    X, y = rows(20)
    step = Step(LinearRegression(), n_features=3, batch_size=10, solver=solver)
    same = Step(LinearRegression(), n_features=3, batch_size=10, solver=solver)
    fixed = X[:10].copy()
    fixed.flags.writeable = False
    # Whole batches, a short one, of another dtype or order, and of arrays that nobody else holds.
    for part in (fixed, X[10:], X[:4], X[10:].astype(float), np.asfortranarray(X[:10]), X[:10] * 1):
        losses = [
            each.step(given, y[: len(part)], 0.1)
            for each, given in ((step, part), (same, part.tolist()))
        ]
        assert losses[0] == losses[1]
        identical(step.weights(), same.weights())
    if solver == "agent":
        # What is read is the memory of the caller, also after the call.
        mine = X[:10].copy()
        objective = step.forward(mine, y[:10], training=True)
        mine[...] = 0
        (gradient, _) = step.backward().values()
        np.testing.assert_array_equal(gradient, 0)
        assert objective > 0


def test_sparse_rows_and_frames():
    X, y = rows(10)
    ours, theirs = (Step(LinearRegression(), n_features=3) for _ in range(2))
    loss = ours.step(X, y, 0.1)
    assert theirs.step(scipy.sparse.csr_matrix(X), y, 0.1) == loss
    np.testing.assert_array_equal(theirs.forward(scipy.sparse.csr_matrix(X)), ours.forward(X))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    assert ours.step(frame, pandas.Series(y), 0.1) == theirs.step(X, y, 0.1)
    np.testing.assert_array_equal(ours.forward(frame), theirs.forward(X))
    fitted = OrtSGDRegressor(eta0=0.1, max_iter=2, tol=None).fit(frame, y)
    assert Step(fitted).step(frame, y, 0.1) == Step(fitted).step(X, y, 0.1)


def test_several_labels_a_row_of_a_fitted_network():
    X, _ = rows()
    labels = (X[:, :2] > 0).astype(int)
    fitted = OrtSGDClassifier(
        MLPClassifier((4,)), eta0=0.1, max_iter=2, tol=None, random_state=0
    ).fit(X, labels)
    step = Step(fitted)
    score = step.forward(X)
    expected = np.mean(np.logaddexp(0, np.where(labels, -score, score)), axis=0).sum()
    assert step.step(X, labels, 0.1) == pytest.approx(expected, rel=1e-5)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    X, y = rows()
    step = Step(LinearRegression(), n_features=3)
    assert step.step(torch.tensor(X), torch.tensor(y), 0.1) == pytest.approx(
        0.5 * np.mean(y**2), rel=1e-5
    )
    with pytest.raises(ValueError, match=r"X cannot be read as a numpy array: .*requires grad"):
        step.step(torch.tensor(X, requires_grad=True), y, 0.1)


BAD = [
    ({"X": np.zeros((5, 2), np.float32)}, "X has 2 features, but OrtSGDRegressor is expecting 3"),
    ({"X": np.full((5, 3), np.nan)}, "Input X contains NaN"),
    ({"X": np.full((5, 3), "a")}, "X has text in columns 0, 1, 2"),
    ({"X": np.zeros(3)}, "Expected 2D array, got 1D array"),
    ({"X": np.zeros((0, 3)), "y": np.zeros(0)}, r"Found array with 0 sample"),
    ({"y": np.zeros(4)}, "inconsistent numbers of samples"),
    ({"y": np.full(5, np.inf)}, "Input y contains infinity"),
    ({"y": np.zeros((5, 2))}, "y has 2 outputs, but the model has 1"),
    ({"eta": np.nan}, "eta must be a finite number that is not negative, got nan"),
    ({"eta": -0.1}, "eta must be a finite number"),
    ({"eta": "constant"}, "eta must be a finite number"),
    ({"sample_weight": [-1, 1, 1, 1, 1]}, "Negative values in data passed to `sample_weight`"),
    ({"sample_weight": np.zeros(5)}, "at least one non-zero number"),
    ({"sample_weight": np.ones(4)}, r"sample_weight.shape == \(4,\)"),
    ({"X": np.zeros((11, 3)), "y": np.zeros(11)}, "X has 11 rows, but batch_size=10"),
]


@pytest.mark.parametrize("bad, message", BAD)
def test_bad_rows_are_named_and_change_nothing(bad, message):
    X, y = rows(5)
    step, same = (
        Step(LinearRegression(), n_features=3, batch_size=10, solver="graph") for _ in range(2)
    )
    for each in (step, same):
        each.step(X, y, 0.1)
    with pytest.raises(ValueError, match=message):
        step.step(**{"X": X, "y": y, "eta": 0.1, **bad})
    identical(step.state(), same.state())
    assert step.step(X, y, 0.1) == same.step(X, y, 0.1)


def test_an_unknown_label_is_named():
    step = Step(LogisticRegression(), n_features=3, classes=["a", "b"], penalty=None)
    with pytest.raises(ValueError, match=r"labels \['c'\], and the known classes are \['a', 'b'\]"):
        step.step(np.zeros((2, 3)), ["a", "c"], 0.1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Step(LinearRegression()), "Give n_features"),
        (lambda: Step(LogisticRegression(), n_features=3, penalty=None), "Give classes"),
        (
            lambda: Step(LinearRegression(), n_features=3, classes=[0, 1]),
            "OrtSGDRegressor for regressors",
        ),
        (
            lambda: Step(OrtSGDRegressor(), n_features=3, classes=[0, 1]),
            "classes is for classifiers",
        ),
        (
            lambda: Step(LogisticRegression(), n_features=3, classes=[0, 1], n_outputs=2),
            "n_outputs is for regressors",
        ),
        (
            lambda: Step(Ridge(), n_features=3),
            "penalty: the one of Ridge is divided by the number of rows",
        ),
        (
            lambda: Step(make_pipeline(StandardScaler(), LinearRegression()), n_features=3),
            "transform.* whole data",
        ),
        (
            lambda: Step(FrozenEstimator(LinearRegression().fit(*rows())), n_features=2),
            "but the model has 3 features",
        ),
        (lambda: Step(LinearRegression(), n_features=3, loss="squared"), "loss"),
        (lambda: Step(LinearRegression(), n_features=3, batch_size=0), "batch_size"),
        (lambda: Step(OrtSGDRegressor(loss=None), n_features=3), "loss"),
        (
            lambda: Step(onnx_line(), loss="log_loss"),
            "Give classes: loss='log_loss' is that of a classifier",
        ),
        (
            lambda: Step(LinearRegression(), n_features=0),
            "n_features must be a positive int, got 0",
        ),
        (
            lambda: Step(LinearRegression(), n_features=3, n_outputs="2"),
            "n_outputs must be a positive int, got '2'",
        ),
        (
            lambda: Step(
                OrtSGDClassifier(class_weight="balanced", penalty=None),
                n_features=3,
                classes=[0, 1],
            ),
            "needs the labels of all rows",
        ),
        (lambda: Step(HuberRegressor(), n_features=3, penalty=None), "has weights of its own"),
        (
            lambda: Step(OrtSGDRegressor().fit(*rows()), n_features=2),
            "n_features=2, but the fitted estimator has 3",
        ),
        (
            lambda: Step(OrtSGDRegressor().fit(*rows()), n_outputs=2),
            "n_outputs=2, but the fitted estimator has 1",
        ),
        (
            lambda: Step(OrtSGDRegressor().fit(*rows()), classes=[0, 1]),
            "classes is for classifiers",
        ),
        (
            lambda: Step(OrtSGDClassifier().fit(rows()[0], rows()[1] > 0), classes=["no", "yes"]),
            r"classes=\['no' 'yes'\], but the fitted estimator has \[False  True\]",
        ),
        (
            lambda: Step(LinearRegression(), n_features=3).restore({"weights": [1, 2]}),
            "state does not fit",
        ),
        (lambda: Step(LinearRegression(), n_features=3).restore([1]), "state must be what state"),
    ],
)
def test_what_a_step_needs_is_asked_for(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_a_copy_is_refused_in_words(copied):
    with pytest.raises(TypeError, match=r"Keep its state\(\)"):
        copied(Step(LinearRegression(), n_features=3))


def test_steps_before_a_fitted_model_are_refused():
    fitted = OrtSGDRegressor(
        make_pipeline(StandardScaler(), LinearRegression()), eta0=0.1, tol=1e-4
    ).fit(*rows())
    with pytest.raises(ValueError, match="steps before the model"):
        Step(fitted)


def test_steps_and_batches_on_a_device_with_memory_of_its_own(monkeypatch):
    X, y = rows()
    batches = [(X[i : i + SIZE], y[i : i + SIZE]) for i in range(0, 25, SIZE)]
    results = []
    for device in (CPU, Device(is_remote=True)):
        # Here its memory is that of the CPU.
        monkeypatch.setattr(plan, "training_device", lambda estimator, device=device: device)
        estimator = OrtSGDRegressor(**PLAIN, penalty=None, solver="graph")
        step = loop(Step(estimator, n_features=3), X, y, np.linspace(0.5, 2, 25))
        loss = step.step(X[:4], y[:4], 0.0)
        results.append(
            [step.weights()["coef"], loss, estimator.fit_batches(batches).weights_["coef"]]
        )
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.skipif("Module" not in training_api(), reason="needs the on-device API")
def test_the_on_device_api_makes_the_same_steps():
    X, y = rows()
    ours, theirs = (
        Step(LinearRegression(), n_features=3, batch_size=SIZE, solver=name)
        for name in ("module", "graph")
    )
    for step in (ours, theirs):
        loop(step, X, y, np.linspace(0.5, 2, 25))
        step.step(X[:SIZE].tolist(), y[:SIZE], 0.1)
    for name, array in ours.weights().items():
        np.testing.assert_allclose(array, theirs.weights()[name], rtol=1e-5)


def test_a_step_reads_the_sizes_of_a_training_graph(rng):
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 5] X, float[N, 1] label) => (float loss, float[N, 1] score)
    <float[5, 1] coef = {0, 0, 0, 0, 0}, float[1] intercept = {0}> {
        product = MatMul (X, coef)
        score = Add (product, intercept)
        residual = Sub (score, label)
        square = Mul (residual, residual)
        loss = ReduceMean <keepdims = 0> (square)
    }"""
    X = rng.normal(size=(10, 5)).astype(np.float32)
    y = X[:, 0].copy()
    step = Step(onnx.parser.parse_model(text), loss=None, batch_size=10)
    assert step.step(X, y, 0.1) == pytest.approx(np.mean(y**2), rel=1e-5)
    expected = 0.1 * 2 * X.T @ y / 10
    np.testing.assert_allclose(step.weights()["coef"].ravel(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "model, options, ours",
    [
        (Ridge(), {}, "OrtSGDRegressor"),
        (LogisticRegression(), {"classes": [0, 1]}, "OrtSGDClassifier"),
    ],
)
def test_a_penalty_of_all_rows_needs_their_number(model, options, ours):
    inside = type(model).__name__
    told = rf"Give {ours}\({inside}\(\.\.\.\), n_total=\.\.\.\) .*, or penalty=None"
    with pytest.raises(ValueError, match=told):
        Step(model, n_features=3, **options)

    X, y = rows()
    y = (y > 0).astype(int) if options else y
    kind = OrtSGDClassifier if options else OrtSGDRegressor
    whole = kind(model, n_total=1000, dtype="float64")
    weighed = Step(whole, n_features=3, **options)
    free = Step(kind(model, dtype="float64"), n_features=3, penalty=None, **options)
    for step in (weighed, free, weighed, free):
        step.step(X, y, eta=ETA)
    # Both have the same weights w after the first step, which began at zeros. The gradient of the
    # penalty in the second one is w / 1000.
    first = Step(model, n_features=3, penalty=None, **options)
    first.step(X, y, eta=ETA)
    change = -ETA * len(X) / 200 * first.weights()["coef"] / 1000
    gap = weighed.weights()["coef"] - free.weights()["coef"]
    np.testing.assert_allclose(gap, change, rtol=1e-3)
