"""The graph that the user gave, with its trained weights; weights that the user gives."""

import copy
import pickle

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.optimizers import Momentum

NETWORK = """\
<ir_version: 7, opset_import: ["" : 15], producer_name: "somebody", model_version: 3>
network (float[N, 2] features) => (float[N, 1] price)
<float[2, 3] W1 = {1, 2, 3, -1, 0.5, 2}, float[3] b1 = {0.1, 0.2, 0.3}, float[3, 1] W2 = {1, 1, 1}>
{
    b2 = Constant <value = float[1] {0.5}> ()
    product = MatMul (features, W1)
    sum = Add (product, b1)
    hidden = Tanh (sum)
    last = MatMul (hidden, W2)
    price = Add (last, b2)
}"""
CLASSIFIER = """\
<ir_version: 7, opset_import: ["" : 15]>
classifier (float[N, 3] X) => (int64[N] label, float[N, 2] p) <float[3, 2] W = {0, 0, 0, 0, 0, 0},
float[2] b = {0, 0}>
{
    product = MatMul (X, W)
    scores = Add (product, b)
    p = Softmax <axis = 1> (scores)
    label = ArgMax <axis = 1, keepdims = 0> (p)
}"""
OPTIONS = {"eta0": 0.05, "learning_rate": "constant", "tol": None, "max_iter": 5, "random_state": 0}


def numbers(model):
    """Return the tensors of a model, by name, those of constants by the names of their outputs."""
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    constants = [node for node in model.graph.node if node.op_type == "Constant"]
    return arrays | {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in constants
    }


def blank(model):
    """Return the bytes of a model whose numbers are zero."""
    copied = copy.deepcopy(model)
    tensors = [
        *copied.graph.initializer,
        *(n.attribute[0].t for n in copied.graph.node if n.op_type == "Constant"),
    ]
    for tensor in tensors:
        tensor.float_data[:] = [0.0] * len(tensor.float_data)
        tensor.raw_data = bytes(len(tensor.raw_data))
    return copied.SerializeToString()


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_the_model_that_was_given_comes_back_with_its_trained_weights(offset, rng, run_onnx):
    X = rng.normal(size=(60, 2)).astype(np.float32) + np.float32(offset)
    y = rng.normal(size=60) * 10
    given = onnx.parser.parse_model(NETWORK)
    model = OrtSGDRegressor(given, trainable=["W*", "b1"], **OPTIONS).fit(X, y)
    original = model.to_onnx(original=True)
    assert blank(original) == blank(given) and original != given
    assert numbers(original)["b2"] == 0.5 and not np.array_equal(
        numbers(original)["W1"], numbers(given)["W1"]
    )
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if offset == 0 else {"atol": 0.5}
    np.testing.assert_allclose(
        run_onnx(original, features=X)["price"].ravel(), model.predict(X), **tolerance
    )
    again = pickle.loads(pickle.dumps(model)).to_onnx(original=True)
    assert again.SerializeToString() == original.SerializeToString()


def test_a_classifier_of_two_columns_comes_back(rng, run_onnx):
    X = rng.normal(size=(80, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    given = onnx.parser.parse_model(CLASSIFIER)
    model = OrtSGDClassifier(given, optimizer="sgd", **OPTIONS).fit(X, y)
    original = model.to_onnx(original=True)
    assert blank(original) == blank(given)
    outputs = run_onnx(original, X=X)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    np.testing.assert_allclose(outputs["p"], model.predict_proba(X), atol=1e-5)
    assert model.score(X, y) > 0.8


def test_what_is_no_onnx_model_has_no_original(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    with pytest.raises(ValueError, match="estimator=LinearRegression is not one"):
        OrtSGDRegressor(LinearRegression(), **OPTIONS).fit(X, y).to_onnx(original=True)
    given = OrtSGDRegressor(onnx.parser.parse_model(NETWORK), **OPTIONS)
    with pytest.raises(NotFittedError):
        given.to_onnx(original=True)
    with pytest.raises(ValueError, match="leave out target_opset=15"):
        given.fit(X, y).to_onnx(15, original=True)


def test_set_weights_predicts_and_exports_with_them(rng, run_onnx):
    X, y = rng.normal(size=(20, 2)).astype(np.float32), rng.normal(size=20)
    model = OrtSGDRegressor(**OPTIONS).fit(X, y)
    assert model.trainable_ == ("coef", "intercept")
    assert model.set_weights({"coef": [[3.0], [-1.0]], "intercept": [7.0]}) is model
    expected = X @ [3.0, -1.0] + 7
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)
    np.testing.assert_allclose(run_onnx(model.onnx_, X=X)["variable"].ravel(), expected, rtol=1e-5)
    np.testing.assert_array_equal(model.coef_, [3.0, -1.0])
    np.testing.assert_allclose(model.to_sklearn().predict(X), expected, rtol=1e-5)
    model.set_weights({"intercept": [8.0]})
    np.testing.assert_allclose(model.predict(X), expected + 1, rtol=1e-5)
    assert len(model.loss_curve_) == 5


@pytest.mark.parametrize(
    "options", [{}, {"optimizer": "momentum", "average": True}, {"penalty": "l1", "alpha": 0.1}]
)
def test_partial_fit_goes_on_from_the_weights_that_were_set(solver, options, rng):
    if "optimizer" in options and not takes(solver, Momentum()):
        pytest.skip("it has no momentum")
    X, y = rng.normal(size=(20, 2)) * [1, 5] + 2, rng.normal(size=20) * 9
    weights = {"coef": [[3.0], [-1.0]], "intercept": [7.0]}
    model = OrtSGDRegressor(
        LinearRegression(), solver=solver, batch_size=20, **options, **OPTIONS
    ).partial_fit(X, y)
    used = model.standardization_
    model.set_weights(weights).partial_fit(X, y)
    begun = np.mean((y - X @ [3.0, -1.0] - 7) ** 2) / 2 + options.get("alpha", 0) * 4
    assert model.loss_ == pytest.approx(begun, rel=1e-5)
    again = OrtSGDRegressor(LinearRegression(), solver=solver, batch_size=20, **options, **OPTIONS)
    again.fit(X, y, coef_init=[3.0, -1.0], intercept_init=7.0)
    assert np.array_equal(again.standardization_.scale, used.scale)
    assert model.loss_curve_[-1] == pytest.approx(again.loss_curve_[0], rel=1e-5)


def test_bad_weights_change_nothing(rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = OrtSGDRegressor(make_pipeline(StandardScaler(), LinearRegression()), **OPTIONS).fit(
        X, y
    )
    before = model.onnx_.SerializeToString()
    for bad, message in (
        (
            {"coef": [[1.0], [1.0]], "standardscaler/offset": [0.0, 0.0]},
            r"'standardscaler/offset'.* coef, intercept",
        ),
        (
            {"intercept": [1.0], "coef": [1.0, 1.0]},
            r"weights\['coef'\] has shape \(2,\), but the weight has \(2, 1\)",
        ),
        (
            {"coef": [[np.nan], [1.0]]},
            r"weights\['coef'\] has numbers that are not finite in float32",
        ),
        ({"coef": [[1e300], [1.0]]}, "not finite in float32"),
        (
            {"coef": [[1.0], [1.0, 2.0]]},
            r"weights\['coef'\] is not an array of numbers: .*inhomogeneous",
        ),
        ([1.0, 1.0], "weights must be a dict: name -> array, got list"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_weights(bad)
    assert model.onnx_.SerializeToString() == before
    with pytest.raises(NotFittedError):
        OrtSGDRegressor().set_weights({})


def test_training_graphs_are_saved(tmp_path, solver, rng):
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(3,)), solver=solver, trainable="*1", **OPTIONS
    ).fit(X, y)
    assert model.trainable_ == ("coefficient1", "intercepts1")
    paths = model.save_training_graphs(tmp_path / "graphs")
    graphs = model.training_graphs()
    assert [path.name for path in paths] == [f"{name}.onnx" for name in graphs]
    for path, graph in zip(paths, graphs.values(), strict=True):
        loaded = onnx.load(path)
        # ONNX Runtime numbers some results of its own graphs anew.
        assert [n.op_type for n in loaded.graph.node] == [n.op_type for n in graph.graph.node]
        assert [i.name for i in loaded.graph.input] == [i.name for i in graph.graph.input]
    # All of them or none.
    folder = tmp_path / "other"
    (folder / paths[-1].name).mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        model.save_training_graphs(folder)
    assert [path.name for path in folder.iterdir()] == [paths[-1].name]
