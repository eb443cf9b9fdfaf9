"""Forward and backward on arrays."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx.checker
import onnx.parser
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier
from skort.exceptions import NotTrainableError
from skort.gradients import ForwardBackward, gradient_graphs, initial_model

ACTIVATIONS = ["identity", "logistic", "relu", "tanh"]


def network(activation="tanh", dtype="float64"):
    return initial_model(
        MLPRegressor(hidden_layer_sizes=(5, 4), activation=activation),
        3,
        2,
        dtype=dtype,
        random_state=0,
    )


@pytest.fixture
def batch(rng):
    return rng.normal(size=(6, 3)), rng.normal(size=(6, 2))


def numeric_gradient(function, array, eps=1e-6):
    gradient = np.zeros_like(array)
    for i in np.ndindex(array.shape):
        before = array[i]
        ends = []
        for end in (before + eps, before - eps):
            array[i] = end
            ends.append(function())
        array[i] = before
        gradient[i] = (ends[0] - ends[1]) / (2 * eps)
    return gradient


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_gradients_are_finite_differences(activation, batch):
    X, dy = batch
    layer = ForwardBackward(network(activation), input_gradient=True)
    _, saved = layer.forward(X)
    gradients = layer.backward(saved, dy)

    def value():
        return np.sum(dy * layer.forward(X, training=False)[0])

    np.testing.assert_allclose(
        gradients.weights, numeric_gradient(value, layer.weights), rtol=1e-6, atol=1e-8
    )
    np.testing.assert_allclose(gradients.X, numeric_gradient(value, X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_samples", [1, 2, 7])
def test_any_number_of_rows_and_float32(activation, n_samples, rng):
    X, dy = rng.normal(size=(n_samples, 3)), rng.normal(size=(n_samples, 2))
    results = []
    for dtype in ("float32", "float64"):
        layer = ForwardBackward(network(activation, dtype), input_gradient=True)
        score, saved = layer.forward(X.astype(dtype))
        results.append([score, *layer.backward(saved, dy.astype(dtype))])
    for single, double in zip(*results, strict=True):
        np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-6)
        assert single.dtype == np.float32


def test_the_forward_without_training_gives_the_same_score(batch):
    layer = ForwardBackward(network())
    score, saved = layer.forward(batch[0], training=False)
    assert saved is None
    np.testing.assert_allclose(score, layer.forward(batch[0])[0])


def test_forwards_may_come_before_their_backwards(batch):
    X, dy = batch
    layer = ForwardBackward(network())
    apart = [layer.backward(layer.forward(part)[1], dy[:4]).weights for part in (X[:4], 2 * X[:4])]
    first, second = (layer.forward(part)[1] for part in (X[:4], 2 * X[:4]))
    np.testing.assert_array_equal(layer.backward(second, dy[:4]).weights, apart[1])
    np.testing.assert_array_equal(layer.backward(first, dy[:4]).weights, apart[0])


def test_what_a_forward_kept_goes_with_its_backward(batch):
    X, dy = batch
    layer = ForwardBackward(network())
    _, saved = layer.forward(X)
    first = layer.backward(saved, dy, keep=True)
    assert not saved.is_released
    # An error leaves it as it is.
    with pytest.raises(
        ValueError, match=r"score_gradient has the shape \(6, 1\), and the model takes \(6, 2\)"
    ):
        layer.backward(saved, dy[:, :1])
    np.testing.assert_array_equal(layer.backward(saved, dy).weights, first.weights)
    assert saved.is_released
    with pytest.raises(ValueError, match="released by an earlier backward"):
        layer.backward(saved, dy)


def test_what_a_forward_kept_is_freed(batch):
    layer, freed = ForwardBackward(network()), []
    X = batch[0].copy()
    weakref.finalize(X, freed.append, "X")
    _, saved = layer.forward(X)
    del X
    gc.collect()
    assert freed == []
    layer.backward(saved, batch[1])
    gc.collect()
    assert freed == ["X"]


def test_views_are_the_parts_of_the_vector():
    model = network()
    layer = ForwardBackward(model)
    values = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    for name, part in layer.views().items():
        np.testing.assert_array_equal(part, values[name])
        assert np.shares_memory(part, layer.weights)
        part[...] = 0
    assert not layer.weights.any()
    assert list(layer.views(np.arange(layer.weights.size))) == list(values)


def test_weights_may_be_given(batch):
    layer = ForwardBackward(network())
    zeros, _ = layer.forward(batch[0], weights=np.zeros_like(layer.weights), training=False)
    np.testing.assert_array_equal(zeros, np.zeros((6, 2)))
    assert layer.weights.any()


def test_gradient_descent_reaches_the_least_squares(rng):
    X = rng.normal(size=(60, 3))
    y = X @ [[1.0], [2.0], [3.0]] + 4 + 0.1 * rng.normal(size=(60, 1))
    layer = ForwardBackward(initial_model(LinearRegression(), 3, dtype="float64"))
    for _ in range(300):
        score, saved = layer.forward(X)
        layer.weights -= 0.5 * layer.backward(saved, (score - y) / len(y)).weights
    best = LinearRegression().fit(X, y)
    np.testing.assert_allclose(layer.views()["coef"].T, best.coef_, rtol=1e-9)
    np.testing.assert_allclose(layer.views()["intercept"], best.intercept_, rtol=1e-9)
    session = onnx.reference.ReferenceEvaluator(layer.to_onnx())
    np.testing.assert_allclose(session.run(None, {"X": X})[0], best.predict(X), rtol=1e-9)


def test_a_step_from_a_fitted_estimator_is_that_of_solver_graph(rng):
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    options = {
        "learning_rate": "constant",
        "eta0": 0.1,
        "tol": None,
        "standardize": False,
        "shuffle": False,
    }
    fitted = OrtSGDClassifier(
        MLPClassifier((5,), alpha=0), **options, solver="graph", batch_size=150, random_state=0
    )
    fitted.set_params(optimizer="sgd")
    fitted.partial_fit(X, y, classes=[0, 1, 2])
    layer = ForwardBackward(fitted)
    score, saved = layer.forward(X)
    powers = np.exp(score - score.max(axis=1, keepdims=True))
    residual = powers / powers.sum(axis=1, keepdims=True) - np.eye(3, dtype=np.float32)[y]
    layer.weights -= np.float32(0.1) * layer.backward(saved, residual / 150).weights
    np.testing.assert_allclose(
        layer.to_estimator().predict_proba(X), fitted.partial_fit(X, y).predict_proba(X), 1e-5
    )


def test_frozen_weights_have_no_gradient(batch):
    X, dy = batch
    whole, part = ForwardBackward(network()), ForwardBackward(network(), trainable="coefficient2")
    gradients = [layer.backward(layer.forward(X)[1], dy).weights for layer in (whole, part)]
    assert list(part.views()) == ["coefficient2"]
    np.testing.assert_allclose(
        part.views(gradients[1])["coefficient2"], whole.views(gradients[0])["coefficient2"]
    )


def test_the_graphs_are_models_of_their_own(run_onnx, rng):
    fitted = LogisticRegression(max_iter=1000).fit(*load_iris(return_X_y=True))
    forward, backward = gradient_graphs(fitted, batch_size=4, input_gradient=True, dtype="float64")
    X, dy = rng.normal(size=(4, 4)), rng.normal(size=(4, 3))
    inputs = {"X": X, "coef": fitted.coef_.T, "intercept": fitted.intercept_}
    results = run_onnx(forward, **inputs)
    np.testing.assert_allclose(results[forward.graph.output[0].name], fitted.decision_function(X))
    given = {"skort_score_gradient": dy, **inputs, **results}
    gradients = run_onnx(backward, **{i.name: given[i.name] for i in backward.graph.input})
    np.testing.assert_allclose(gradients["coef_gradient"], X.T @ dy)
    np.testing.assert_allclose(gradients["intercept_gradient"], dy.sum(axis=0))
    np.testing.assert_allclose(gradients["X_gradient"], dy @ fitted.coef_)


class OtherArray:
    """An array of another framework."""

    def __init__(self, array, kind=1):
        self._array, self._kind = array, kind

    def __dlpack__(self, **options):
        if self._kind != 1:
            raise BufferError("no memory of the CPU")
        return self._array.__dlpack__(**options)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("it is on cuda:0, copy it to the CPU")

    def __dlpack_device__(self):
        return (self._kind, 0)


def test_arrays_that_speak_dlpack_are_read_in_place(batch):
    X, dy = batch
    layer = ForwardBackward(network())
    gradients = []
    for kind in (np.asarray, OtherArray):
        score, saved = layer.forward(kind(X))
        gradients.append(layer.backward(saved, kind(dy)).weights)
        assert np.from_dlpack(score).shape == (6, 2)
    np.testing.assert_array_equal(*gradients)
    np.testing.assert_array_equal(layer.forward(X.T.copy().T)[0], score)


BAD = {
    "dtype": (
        lambda X: X.astype(np.float32),
        "X has the dtype float32, and the model computes in float64",
    ),
    "columns": (lambda X: X[:, :2], r"X has the shape \(6, 2\), and the model takes \(any, 3\)"),
    "one row": (lambda X: X[0], r"X has the shape \(3,\)"),
    "no rows": (lambda X: X[:0], "X has no rows"),
    "device": (
        lambda X: OtherArray(X, 2),
        "X cannot be read as a numpy array: it is on cuda:0, copy it",
    ),
    "ragged": (lambda X: [[1.0, 2.0, 3.0], [1.0]], "X cannot be read as a numpy array: "),
    "text": (lambda X: [["a", "b", "c"]], "X has the dtype <U1"),
}


@pytest.mark.parametrize("bad, message", BAD.values(), ids=BAD)
def test_a_wrong_X_is_named(bad, message, batch):
    with pytest.raises(ValueError, match=message):
        ForwardBackward(network()).forward(bad(batch[0]))


def test_wrong_weights_and_saved_are_named(batch):
    layer = ForwardBackward(network())
    with pytest.raises(
        ValueError, match=r"weights has the shape \(3,\), and the model takes \(54,\)"
    ):
        layer.forward(batch[0], weights=np.zeros(3))
    layer.weights = layer.weights.astype(np.float32)
    with pytest.raises(
        ValueError, match="weights has the dtype float32, and the model computes in float64"
    ):
        layer.forward(batch[0])
    with pytest.raises(ValueError, match="saved must be the second value that forward"):
        layer.backward(batch[0], batch[1])


def test_what_another_object_kept_is_refused(batch):
    X, dy = batch
    layers = [ForwardBackward(network()) for _ in range(2)]
    _, saved = layers[0].forward(X)
    with pytest.raises(ValueError, match="saved comes from another ForwardBackward"):
        layers[1].backward(saved, dy)
    assert layers[0].backward(saved, dy).weights.shape == (54,)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_compute_the_same_and_have_weights_of_their_own(copied, batch):
    layer = ForwardBackward(network())
    other = copied(layer)
    np.testing.assert_array_equal(other.forward(batch[0])[0], layer.forward(batch[0])[0])
    other.weights[...] = 0
    assert layer.weights.all()


@pytest.mark.parametrize("batch_size", [0, -1, 2.0, None])
def test_a_wrong_batch_size_is_named(batch_size):
    with pytest.raises(ValueError, match="batch_size must be an int of at least 1"):
        gradient_graphs(network(), batch_size=batch_size)


def test_an_unknown_weight_is_named():
    with pytest.raises(
        ValueError, match=r"trainable=\['nothing'\] matches no weight. The weights are \['coeff"
    ):
        ForwardBackward(network(), trainable=["coefficient", "nothing"])


def test_an_operator_without_a_rule_is_named():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 2] X) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { a = MatMul (X, w)
    y = Round (a) }"""
    with pytest.raises(NotTrainableError, match="the operator Round"):
        ForwardBackward(onnx.parser.parse_model(text))


def test_what_is_no_estimator_is_refused():
    with pytest.raises(ValueError, match="must be an estimator of scikit-learn"):
        initial_model(network(), 3)
    with pytest.raises(NotTrainableError, match="KNeighborsRegressor"):
        from sklearn.neighbors import KNeighborsRegressor

        initial_model(KNeighborsRegressor(), 3)
    with pytest.raises(ValueError, match="dtype must be"):
        initial_model(LinearRegression(), 3, dtype="float16")


def test_threads_share_one_object(rng):
    layer = ForwardBackward(network())

    def run(seed):
        generator = np.random.default_rng(seed)
        X, dy = generator.normal(size=(4, 3)), generator.normal(size=(4, 2))
        return [layer.backward(layer.forward(X)[1], dy).weights for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(run, range(8)))
    for seed, results in enumerate(together):
        np.testing.assert_array_equal(results, run(seed))


def test_to_estimator_of_scikit_learn(rng):
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    layer = ForwardBackward(Ridge().fit(X, y), dtype="float64")
    layer.weights *= 2
    back = layer.to_estimator()
    layer.weights *= 0
    np.testing.assert_allclose(back.predict(X), 2 * Ridge().fit(X, y).predict(X))
