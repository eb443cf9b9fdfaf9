"""A model as a layer of torch."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnx.parser
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier
from skort.exceptions import NotTrainableError
from skort.gradients import initial_model

torch = pytest.importorskip("torch", reason="needs torch")
from torch import nn  # noqa: E402

from skort.torch import OnnxModule  # noqa: E402

ACTIVATIONS = {"identity": nn.Identity, "logistic": nn.Sigmoid, "relu": nn.ReLU, "tanh": nn.Tanh}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def module(activation="tanh", dtype="float64", sizes=(3, 5, 4, 2)):
    n_features, *hidden, n_outputs = sizes
    model = MLPRegressor(hidden_layer_sizes=hidden, activation=activation)
    return OnnxModule(initial_model(model, n_features, n_outputs, dtype=dtype, random_state=0))


def twin(onnx_module, activation="tanh"):
    """Return the same layers of torch."""
    parts = onnx_module.named_weights()
    coefs, intercepts = (
        [p for n, p in parts.items() if n.startswith(k)] for k in ("coefficient", "intercepts")
    )
    layers = []
    for coef, intercept in zip(coefs, intercepts, strict=True):
        linear = nn.Linear(*coef.shape, dtype=coef.dtype)
        with torch.no_grad():
            linear.weight.copy_(coef.T)
            linear.bias.copy_(intercept[0])
        layers += [linear, ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


def flat_gradient(sequential):
    """Return the gradient of `twin` in the order of the module."""
    linears = [layer for layer in sequential if isinstance(layer, nn.Linear)]
    return torch.cat(
        [layer.weight.grad.T.ravel() for layer in linears] + [layer.bias.grad for layer in linears]
    )


def functional(onnx_module):
    return lambda X, weights: torch.func.functional_call(onnx_module, {"weights": weights}, (X,))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradcheck_in_float64(activation):
    layer = module(activation)
    X = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(functional(layer), (X, layer.weights))


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_gradients_are_those_of_torch(activation, dtype, tolerance):
    layer = module(activation, dtype, (30, 20, 10, 4))
    same = twin(layer, activation)
    gradients = []
    data = torch.randn(50, 30, dtype=getattr(torch, dtype))
    for each in (layer, same):
        X = data.clone().requires_grad_()
        loss = nn.functional.cross_entropy(each(torch.sin(X)), torch.arange(50) % 4)
        loss.backward()
        gradients.append((loss.detach(), X.grad))
    for ours, theirs in [*zip(*gradients, strict=True), (layer.weights.grad, flat_gradient(same))]:
        assert torch.linalg.vector_norm(ours - theirs) <= tolerance * torch.linalg.vector_norm(
            theirs
        )


def test_it_trains_between_other_layers_as_torch_does():
    X, y = torch.randn(40, 6, dtype=torch.float64), torch.randn(40, 1, dtype=torch.float64)
    layer = module()
    first, last = nn.Linear(6, 3, dtype=torch.float64), nn.Linear(2, 1, dtype=torch.float64)
    losses = []
    for middle in (layer, twin(layer)):
        network = copy.deepcopy(
            nn.Sequential(first, nn.ReLU(), middle, nn.ReLU(inplace=True), last)
        )
        optimizer, curve = torch.optim.Adam(network.parameters(), lr=0.01), []
        for _ in range(100):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(network(X), y)
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
        losses.append(curve)
    np.testing.assert_allclose(*losses, rtol=1e-9)
    assert losses[0][-1] < 0.8 * losses[0][0]


def test_several_calls_in_one_graph_add_up():
    layer, same = module("relu"), None
    same = twin(layer, "relu")
    X, X2 = torch.randn(4, 3, dtype=torch.float64), torch.randn(7, 3, dtype=torch.float64)
    for each in (layer, same):
        (each(X).square().sum() + each(X2).sum() + each(X).sum()).backward()
    torch.testing.assert_close(layer.weights.grad, flat_gradient(same))
    layer(X).sum().backward()
    same(X).sum().backward()
    torch.testing.assert_close(layer.weights.grad, flat_gradient(same))


def test_a_recurrent_use_goes_through_itself():
    layer = module(sizes=(2, 5, 2))
    same = twin(layer)
    for each in (layer, same):
        state = torch.ones(3, 2, dtype=torch.float64)
        for _ in range(4):
            state = each(state)
        state.sum().backward()
    torch.testing.assert_close(layer.weights.grad, flat_gradient(same))


def test_threads_train_copies_of_their_own():
    layer = module()

    def train(seed):
        mine = copy.deepcopy(layer)
        generator = torch.Generator().manual_seed(seed)
        X = torch.randn(5, 3, dtype=torch.float64, generator=generator)
        for _ in range(20):
            mine.zero_grad()
            mine(X).square().sum().backward()
            with torch.no_grad():
                mine.weights -= 0.01 * mine.weights.grad
        return mine.weights.detach().numpy()

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(train, range(6)))
    for seed, weights in enumerate(together):
        np.testing.assert_array_equal(weights, train(seed))


def test_threads_share_one_module():
    layer = module()
    X = [torch.randn(n, 3, dtype=torch.float64) for n in range(1, 7)]

    def gradient(X):
        return torch.autograd.grad(layer(X).sum(), layer.weights)[0].numpy()

    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for ours, x in zip(pool.map(gradient, X), X, strict=True):
                np.testing.assert_array_equal(ours, gradient(x))


@pytest.mark.slow
def test_the_layers_around_it_are_compiled():
    layer, X = module(), torch.randn(4, 5, dtype=torch.float64)
    first = nn.Linear(5, 3, dtype=torch.float64)
    compiled = torch.compile(
        nn.Sequential(first, torch.compiler.disable(layer), nn.Tanh()), backend="eager"
    )
    gradients = []
    for network in (compiled, nn.Sequential(first, layer, nn.Tanh())):
        network.zero_grad()
        network(X).sum().backward()
        gradients.append(torch.cat([layer.weights.grad, first.bias.grad]))
    torch.testing.assert_close(*gradients)


def test_a_second_derivative_is_refused():
    layer, X = module(), torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    by_X, by_weights = torch.autograd.grad(layer(X).sum(), [X, layer.weights], create_graph=True)
    torch.testing.assert_close(by_weights, torch.autograd.grad(layer(X).sum(), layer.weights)[0])
    for gradient in (by_X, by_weights):
        with pytest.raises(RuntimeError, match="OnnxModule has no second derivative"):
            gradient.sum().backward()
    # What does not depend on it is differentiated.
    (by_X.detach().sum() * X.sum()).backward()
    torch.testing.assert_close(X.grad, torch.ones_like(X) * by_X.sum().detach())


def test_without_grad_nothing_is_kept():
    layer, X = module(), torch.randn(4, 3, dtype=torch.float64)
    with_graph = layer(X)
    assert with_graph.requires_grad
    with torch.no_grad():
        score = layer(X)
    assert score.grad_fn is None
    torch.testing.assert_close(score, with_graph.detach())
    layer.eval()
    torch.testing.assert_close(layer(X), with_graph)
    with torch.inference_mode():
        torch.testing.assert_close(layer(X), score)
    layer.requires_grad_(False)
    assert not layer(X).requires_grad


def test_frozen_weights_still_pass_a_gradient_on():
    layer, X = module(), torch.randn(4, 3, dtype=torch.float64)
    gradients = []
    for each in (layer, twin(layer)):
        each.requires_grad_(False)
        X = X.detach().requires_grad_()
        each(X).square().sum().backward()
        gradients.append(X.grad)
    torch.testing.assert_close(*gradients)
    assert layer.weights.grad is None


def test_what_is_kept_goes_after_the_backward():
    layer = module()
    X = torch.randn(4, 3, dtype=torch.float64)
    score = layer(X)
    kept = weakref.ref(X)
    del X
    gc.collect()
    assert kept() is not None
    loss = score.sum()
    loss.backward()
    gc.collect()
    assert kept() is None
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_weights_that_change_before_the_backward_are_found():
    layer = module()
    score = layer(torch.randn(4, 3, dtype=torch.float64))
    with torch.no_grad():
        layer.weights.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        score.sum().backward()


def test_named_weights_are_views():
    layer = module()
    parts = layer.named_weights()
    assert {name: tuple(part.shape) for name, part in parts.items()} == {
        "coefficient": (3, 5),
        "coefficient1": (5, 4),
        "coefficient2": (4, 2),
        "intercepts": (1, 5),
        "intercepts1": (1, 4),
        "intercepts2": (1, 2),
    }
    assert all(
        np.shares_memory(part.detach().numpy(), layer.weights.detach().numpy())
        for part in parts.values()
    )
    assert np.shares_memory(
        np.from_dlpack(parts["coefficient"].detach()), layer.weights.detach().numpy()
    )
    parts["coefficient1"].square().sum().backward()
    gradients = layer.named_weights(layer.weights.grad)
    torch.testing.assert_close(gradients["coefficient1"], 2 * parts["coefficient1"])
    assert not gradients["coefficient"].any()


def test_weights_that_are_replaced_are_read_where_they_are():
    layer, X = module(), torch.randn(4, 3, dtype=torch.float64)
    layer(X)
    with torch.no_grad():
        layer.weights.data = torch.zeros_like(layer.weights)
        assert not layer(X).any()
        layer.weights = nn.Parameter(torch.ones_like(layer.weights))
        assert layer(X).all()


@pytest.mark.parametrize(
    "copied",
    [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_is_on_its_own(copied):
    layer, X = module(), torch.randn(4, 3, dtype=torch.float64)
    layer(X).sum().backward()
    other = copied(layer)
    torch.testing.assert_close(other(X), layer(X))
    with torch.no_grad():
        other.weights.zero_()
    assert not other(X).any()
    assert layer(X).all()


def test_state_dict_goes_round(tmp_path):
    layer, other, X = module(), module(), torch.randn(4, 3, dtype=torch.float64)
    with torch.no_grad():
        layer.weights.normal_()
    torch.save(layer.state_dict(), tmp_path / "state.pt")
    assert not torch.equal(other(X), layer(X))
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(other(X), layer(X))
    with pytest.raises(RuntimeError, match="size mismatch for weights"):
        module(sizes=(3, 4, 2)).load_state_dict(layer.state_dict())


def fitted_classifier():
    X, y = load_iris(return_X_y=True)
    X = X.astype(np.float32)
    model = make_pipeline(StandardScaler(), MLPClassifier((5,)))
    options = {
        "eta0": 0.1,
        "learning_rate": "constant",
        "tol": None,
        "max_iter": 3,
        "random_state": 0,
    }
    return OrtSGDClassifier(model, **options).fit(X, y), X, y


def test_an_estimator_is_trained_further_and_comes_back(run_onnx):
    estimator, X, y = fitted_classifier()
    layer = OnnxModule(estimator)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)
    np.testing.assert_allclose(
        layer(rows).detach(), estimator.decision_function(X), rtol=1e-4, atol=1e-5
    )
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(layer(rows), labels, label_smoothing=0.1).backward()
        optimizer.step()
    back = layer.to_estimator()
    assert back.score(X, y) > 0.95 > estimator.score(X, y)
    score = layer(rows).detach().numpy()
    np.testing.assert_allclose(back.decision_function(X), score, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        run_onnx(layer.to_onnx(), X=X).popitem()[1], score, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        back.to_sklearn().predict_proba(X), back.predict_proba(X), rtol=1e-4, atol=1e-5
    )
    # What comes back is a copy.
    with torch.no_grad():
        layer.weights.zero_()
    assert back.score(X, y) > 0.95


def test_frozen_weights_are_a_buffer():
    estimator, X, _ = fitted_classifier()
    layer = OnnxModule(estimator)
    scaler = estimator.to_sklearn()[0]
    np.testing.assert_allclose(layer.frozen, [*scaler.mean_, *scaler.scale_], rtol=1e-6)
    tuned = OnnxModule(estimator, trainable=["standardscaler/*", "intercepts1"])
    assert list(tuned.named_weights()) == [
        "intercepts1",
        "standardscaler/offset",
        "standardscaler/scale",
    ]
    torch.testing.assert_close(tuned(torch.from_numpy(X)), layer(torch.from_numpy(X)))
    with pytest.raises(ValueError, match="weights of steps before the model"):
        tuned.to_estimator()


def test_an_exported_layer_of_torch_is_the_same_layer():
    linear = nn.Linear(3, 2)
    text = """<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 3] X) => (float[N, 2] y) <float[2, 3] weight = {0}, float[2] bias = {0}>
    { y = Gemm <transB = 1> (X, weight, bias) }"""
    model = onnx.parser.parse_model(text)
    for item, values in zip(model.graph.initializer, (linear.weight, linear.bias), strict=True):
        item.CopyFrom(onnx.numpy_helper.from_array(values.detach().numpy(), item.name))
    layer, X = OnnxModule(model), torch.randn(5, 3, requires_grad=True)
    torch.testing.assert_close(layer(X), linear(X))
    layer(X).square().sum().backward()
    linear(X).square().sum().backward()
    torch.testing.assert_close(
        layer.named_weights(layer.weights.grad)["weight"], linear.weight.grad
    )
    with pytest.raises(ValueError, match="use to_onnx"):
        layer.to_estimator()


BAD = {
    "no tensor": (lambda X: X.numpy(), "X must be a tensor, got ndarray"),
    "dtype": (
        lambda X: X.float(),
        "X has the dtype torch.float32, and the model computes in torch.float64",
    ),
    "device": (lambda X: X.to("meta"), "X is on the device meta: OnnxModule computes on the CPU"),
    "columns": (lambda X: X[:, :2], r"X has the shape \(4, 2\), and the model takes \(any, 3\)"),
    "three axes": (lambda X: X[None], r"X has the shape \(1, 4, 3\)"),
    "no rows": (lambda X: X[:0], "X has no rows"),
    "sparse": (lambda X: X.to_sparse(), "X is a sparse tensor: use .to_dense"),
}


@pytest.mark.parametrize("bad, message", BAD.values(), ids=BAD)
def test_a_wrong_X_is_named(bad, message):
    with pytest.raises(ValueError, match=message):
        module()(bad(torch.randn(4, 3, dtype=torch.float64)))


def test_a_vector_that_is_no_gradient_is_named():
    layer = module()
    with pytest.raises(
        ValueError,
        match=r"vector must be a tensor of shape \(54,\), got None. weights.grad is None",
    ):
        layer.named_weights(layer.weights.grad)
    with pytest.raises(ValueError, match=r"got a tensor of shape \(3,\)"):
        layer.named_weights(torch.zeros(3))


def test_a_module_that_was_moved_is_named():
    X = torch.randn(4, 3, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"The module has the dtype torch\.float32, and the model"):
        module().float()(X)
    with pytest.raises(ValueError, match="The module is on the device meta"):
        module().to("meta")(X)


def test_weights_of_another_kind_are_named():
    layer, X = module(), torch.randn(4, 3, dtype=torch.float64)
    for bad in (torch.ones(3, dtype=torch.float64), torch.ones((), dtype=torch.float64).expand(54)):
        with pytest.raises(ValueError, match="weights must be a contiguous vector of 54 numbers"):
            functional(layer)(X, bad)


def test_models_that_cannot_be_trained_are_named():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 2] X) => (float[N, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { a = MatMul (X, w)
    y = Round (a) }"""
    with pytest.raises(NotTrainableError, match="the operator Round"):
        OnnxModule(onnx.parser.parse_model(text))
    with pytest.raises(ValueError, match="matches no weight"):
        OnnxModule(initial_model(LinearRegression(), 3), trainable="nothing")


def test_repr_says_the_shapes():
    assert repr(module()) == "OnnxModule(3, 2, n_weights=54)"
