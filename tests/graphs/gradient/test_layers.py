"""Networks of layers that scikit-learn lacks: four steps of every solver against derivatives in numpy."""

import functools

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

from skort import OrtSGDRegressor

# A block of a transformer on two tokens of four numbers: attention and a dense layer, each behind a normalization.
BLOCK = """
<ir_version: 8, opset_import: ["" : 17]>
block (float[N, 8] X) => (float[N, 1] score)
<int64[3] tokens = {-1, 2, 4}, int64[2] rows = {-1, 8}>
{
    t = Reshape (X, tokens)
    n1 = LayerNormalization (t, g1, b1)
    q = MatMul (n1, Q)
    k = MatMul (n1, K)
    v = MatMul (n1, V)
    kt = Transpose <perm = [0, 2, 1]> (k)
    products = MatMul (q, kt)
    attention = Softmax <axis = -1> (products)
    h = MatMul (attention, v)
    r = Add (t, h)
    n2 = LayerNormalization <axis = 2, epsilon = 0.01> (r, g2, b2)
    u = MatMul (n2, U)
    f = Tanh (u)
    o = MatMul (f, D)
    s = Add (r, o)
    flat = Reshape (s, rows)
    score = MatMul (flat, w)
}"""
BLOCK_SHAPES = {"g1": 4, "b1": 4, "Q": (4, 2), "K": (4, 2), "V": (4, 4)}
BLOCK_SHAPES |= {"g2": 4, "b2": 4, "U": (4, 3), "D": (3, 4), "w": (8, 1)}


def normalized(x, scale, intercept, epsilon=1e-5):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * scale + intercept


def block_score(X, g1, b1, Q, K, V, g2, b2, U, D, w):
    t = X.reshape(-1, 2, 4)
    n = normalized(t, g1, b1)
    e = np.exp(n @ Q @ np.swapaxes(n @ K, 1, 2))
    r = t + e / e.sum(axis=-1, keepdims=True) @ (n @ V)
    s = r + np.tanh(normalized(r, g2, b2, 0.01) @ U) @ D
    return s.reshape(-1, 8) @ w


def steps(score, weights, X, y, eta):
    """Return the weights after four steps on the squared error."""
    vector = np.concatenate([array.ravel() for array in weights.values()]).astype(complex)
    ends = np.cumsum([array.size for array in weights.values()])

    def parts():
        split = np.split(vector, ends[:-1])
        return {name: part.reshape(a.shape) for (name, a), part in zip(weights.items(), split, strict=True)}

    for _ in range(4):
        gradient = np.empty(vector.size)
        for i, kept in enumerate(vector):
            # The derivative of an analytic function is the imaginary part at a point that is moved by a tiny i h.
            vector[i] += 1e-30j
            gradient[i] = ((score(X, **parts()).ravel() - y) ** 2).mean().imag / 2e-30
            vector[i] = kept
        vector -= eta * gradient
    return {name: part.real for name, part in parts().items()}


CASES = {"transformer": (BLOCK, BLOCK_SHAPES, block_score)}


@functools.cache
def case(name):
    """Return the model, data, and the weights before and after the steps."""
    rng = np.random.default_rng(0)
    text, shapes, score = CASES[name]
    model = onnx.parser.parse_model(text)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    n_features = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    X, y = rng.normal(size=(5, n_features)).astype(np.float32), rng.normal(size=5)
    return model, X, y, weights, steps(score, weights, X.astype(float), y, 0.02)


@pytest.mark.parametrize("name", CASES)
def test_layers_train(name, solver):
    model, X, y, weights, expected = case(name)
    options = {"solver": solver, "max_iter": 4, "tol": None, "batch_size": 5, "penalty": None, "standardize": False}
    options |= {"optimizer": "sgd", "learning_rate": "constant", "eta0": 0.02, "trainable": "*"}
    fitted = OrtSGDRegressor(model, **options).fit(X, y)
    assert fitted.weights_.keys() == expected.keys()
    for name, array in fitted.weights_.items():
        assert not np.allclose(array, weights[name], rtol=1e-3, atol=0)
        np.testing.assert_allclose(array, expected[name], rtol=2e-5, atol=2e-6, err_msg=name)
