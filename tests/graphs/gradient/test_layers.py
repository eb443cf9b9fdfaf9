"""
Networks of layers that scikit-learn lacks:
four steps of every solver against derivatives in numpy.
"""

import functools

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

from skort import OrtSGDRegressor

# A block of a transformer on two tokens of four numbers: attention and a dense layer, each behind a
# normalization.
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
    return (
        centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon) * scale + intercept
    )


def block_score(X, g1, b1, Q, K, V, g2, b2, U, D, w):
    t = X.reshape(-1, 2, 4)
    n = normalized(t, g1, b1)
    e = np.exp(n @ Q @ np.swapaxes(n @ K, 1, 2))
    r = t + e / e.sum(axis=-1, keepdims=True) @ (n @ V)
    s = r + np.tanh(normalized(r, g2, b2, 0.01) @ U) @ D
    return s.reshape(-1, 8) @ w


# A convolutional network on images of 6 x 6 numbers; the second convolution is of each
# channel alone.
IMAGES = """
<ir_version: 8, opset_import: ["" : 17]>
images (float[N, 36] X) => (float[N, 1] score)
<int64[4] shape = {-1, 1, 6, 6}, int64[8] pads = {0, 0, 0, 0, 0, 0, 1, 1}>
{
    image = Reshape (X, shape)
    c1 = Conv <pads = [1, 1, 1, 1]> (image, W1, b1)
    r1 = Relu (c1)
    highest = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r1)
    framed = Pad (highest, pads)
    mean = AveragePool <kernel_shape = [2, 2]> (framed)
    c2 = Conv <group = 3> (mean, W2, b2)
    r2 = Tanh (c2)
    means = GlobalAveragePool (r2)
    flat = Flatten (means)
    score = MatMul (flat, w)
}"""
IMAGES_SHAPES = {"W1": (3, 1, 3, 3), "b1": 3, "W2": (3, 1, 2, 2), "b2": 3, "w": (3, 1)}


def windows(x, *shape):
    return np.lib.stride_tricks.sliding_window_view(x, shape, axis=(2, 3))


def images_score(X, W1, b1, W2, b2, w):
    image = np.pad(X.reshape(-1, 1, 6, 6), [(0, 0), (0, 0), (1, 1), (1, 1)])
    c1 = np.einsum("nchwij,mcij->nmhw", windows(image, 3, 3), W1) + b1[:, None, None]
    pooled = windows(np.where(c1.real > 0, c1, 0), 2, 2)[:, :, ::2, ::2].reshape(len(X), 3, 3, 3, 4)
    highest = np.take_along_axis(pooled, pooled.real.argmax(axis=-1)[..., None], axis=-1)[..., 0]
    mean = windows(np.pad(highest, [(0, 0), (0, 0), (0, 1), (0, 1)]), 2, 2).mean(axis=(4, 5))
    c2 = np.einsum("nchwij,cij->nchw", windows(mean, 2, 2), W2[:, 0]) + b2[:, None, None]
    return np.tanh(c2).mean(axis=(2, 3)) @ w


# The largest of four scores of a row. ONNX Runtime 1.16 loses its position in so small a graph if
# nothing reads it.
LARGEST = """
<ir_version: 8, opset_import: ["" : 17]>
largest (float[N, 4] X) => (float[N, 1] score) <int64[4] shape = {-1, 1, 2, 2}>
{
    scores = MatMul (X, W)
    image = Reshape (scores, shape)
    highest = MaxPool <kernel_shape = [2, 2]> (image)
    flat = Flatten (highest)
    score = MatMul (flat, w)
}"""


def largest_score(X, W, w):
    scores = X @ W
    return np.take_along_axis(scores, scores.real.argmax(axis=1)[:, None], axis=1) @ w


def steps(score, weights, X, y, eta):
    """Return the weights after four steps on the squared error."""
    vector = np.concatenate([array.ravel() for array in weights.values()]).astype(complex)
    ends = np.cumsum([array.size for array in weights.values()])

    def parts():
        split = np.split(vector, ends[:-1])
        return {
            name: part.reshape(a.shape)
            for (name, a), part in zip(weights.items(), split, strict=True)
        }

    for _ in range(4):
        gradient = np.empty(vector.size)
        for i, kept in enumerate(vector):
            # The derivative of an analytic function is the imaginary part at a point that is moved
            # by a tiny i h.
            vector[i] += 1e-30j
            gradient[i] = ((score(X, **parts()).ravel() - y) ** 2).mean().imag / 2e-30
            vector[i] = kept
        vector -= eta * gradient
    return {name: part.real for name, part in parts().items()}


CASES = {
    "transformer": (BLOCK, BLOCK_SHAPES, block_score),
    "images": (IMAGES, IMAGES_SHAPES, images_score),
    "largest": (LARGEST, {"W": (4, 4), "w": (1, 1)}, largest_score),
}


@functools.cache
def case(name):
    """Return the model, data, and the weights before and after the steps."""
    rng = np.random.default_rng(0)
    text, shapes, score = CASES[name]
    model = onnx.parser.parse_model(text)
    weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    n_features = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    X, y = rng.normal(size=(5, n_features)).astype(np.float32), rng.normal(size=5)
    return model, X, y, weights, steps(score, weights, X.astype(float), y, 0.02)


@pytest.mark.parametrize("name", CASES)
def test_layers_train(name, solver):
    model, X, y, weights, expected = case(name)
    options = {
        "solver": solver,
        "max_iter": 4,
        "tol": None,
        "batch_size": 5,
        "penalty": None,
        "standardize": False,
    }
    options |= {"optimizer": "sgd", "learning_rate": "constant", "eta0": 0.02, "trainable": "*"}
    fitted = OrtSGDRegressor(model, **options).fit(X, y)
    assert fitted.weights_.keys() == expected.keys()
    for name, array in fitted.weights_.items():
        assert not np.allclose(array, weights[name], rtol=1e-3, atol=0)
        np.testing.assert_allclose(array, expected[name], rtol=2e-5, atol=2e-6, err_msg=name)
