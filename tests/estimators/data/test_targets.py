"""ONNX models of several outputs: a loss for each, y by columns or by name, predictions by name."""

import pickle
import warnings

import numpy as np
import onnx.parser
import pandas as pd
import pytest
import skl2onnx
from onnx import numpy_helper
from own_losses import FOURTH
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.multiclass import check_classification_targets

from skort import OrtSGDClassifier, OrtSGDRegressor, Step
from skort.estimators.data.targets import LabelEncoder
from skort.exceptions import NotTrainableError
from skort.objective import (
    AbsoluteError,
    ConcomitantHuber,
    Hinge,
    Huber,
    Loss,
    PoissonLoss,
    SquaredError,
    WeightedSum,
)

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
HEADS = """\
heads (float[N, 3] X) => (float[N, 1] price, int64[N] label, float[N, 2] parts, float[N] total)
<float[3, 4] W = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, 0.8, 0.9, -1, 1.1, 1.2},
 float[4] b = {0.1, 0.2, 0.3, 0.4},
 float[4, 1] V = {1, -1, 1, -1}, float[4, 2] U = {1, -1, 1, -1, 2, 2, 2, 2},
 float[2] u = {0.5, -0.5},
 float[4, 1] T = {1, 2, 3, 4}>
{
    hidden = Gemm (X, W, b)
    active = Tanh (hidden)
    price = MatMul (active, V)
    product = MatMul (active, U)
    parts = Add (product, u)
    label = ArgMax <axis = 1, keepdims = 0> (parts)
    column = MatMul (active, T)
    axis = Constant <value = int64[1] {1}> ()
    total = Squeeze (column, axis)
}"""
LOSSES = {"parts": AbsoluteError(), "price": Huber(0.5), "total": "squared_error"}
OPTIONS = {"eta0": 0.05, "learning_rate": "constant", "tol": None, "max_iter": 3, "random_state": 0}


@pytest.fixture
def model():
    return onnx.parser.parse_model(HEADER + HEADS)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    y = {
        "price": rng.normal(size=40),
        "total": rng.normal(size=(40, 1)),
        "parts": rng.normal(size=(40, 2)),
    }
    return X, y


def columns(y):
    return np.column_stack([y["parts"], y["price"], y["total"]])


def total_loss(outputs, y):
    """Return the sum of the losses of `LOSSES`, each the mean over rows and columns."""
    residual = abs(outputs["price"].ravel() - y["price"])
    huber = np.where(residual < 0.5, residual**2 / 2, 0.5 * residual - 0.125).mean()
    return (
        abs(outputs["parts"] - y["parts"]).mean()
        + huber
        + np.mean((outputs["total"].ravel() - y["total"].ravel()) ** 2) / 2
    )


def test_the_objective_is_the_sum_of_the_losses(solver, model, data, run_onnx):
    X, y = data
    fitted = OrtSGDRegressor(model, solver=solver, loss=LOSSES, batch_size=40, **OPTIONS).fit(X, y)
    assert fitted.loss_curve_[0] == pytest.approx(total_loss(run_onnx(model, X=X), y), rel=1e-5)
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]
    predicted = fitted.predict(X)
    assert {name: array.shape for name, array in predicted.items()} == {
        "parts": (40, 2),
        "price": (40,),
        "total": (40, 1),
    }
    served, original = run_onnx(fitted.onnx_, X=X), run_onnx(fitted.to_onnx(original=True), X=X)
    assert list(served) == ["parts", "price", "total"]
    for name, array in predicted.items():
        np.testing.assert_allclose(served[name].ravel(), array.ravel(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(original[name].ravel(), array.ravel(), rtol=1e-4, atol=1e-6)


def test_the_first_step_is_that_of_finite_differences(solver, model, data, run_onnx):
    X, y = data
    options = OPTIONS | {
        "max_iter": 1,
        "standardize": False,
        "batch_size": 40,
        "shuffle": False,
        "optimizer": "sgd",
    }
    fitted = OrtSGDRegressor(model, solver=solver, loss=LOSSES, **options).fit(X, y)
    before = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for name, index in (
        ("W", (0, 1)),
        ("V", (2, 0)),
        ("U", (1, 1)),
        ("u", (1,)),
        ("T", (3, 0)),
        ("b", (2,)),
    ):
        values = []
        for step in (1e-3, -1e-3):
            moved = before[name].copy()
            moved[index] += step
            copied = onnx.ModelProto()
            copied.CopyFrom(model)
            (tensor,) = [i for i in copied.graph.initializer if i.name == name]
            tensor.CopyFrom(numpy_helper.from_array(moved, name))
            values.append(total_loss(run_onnx(copied, X=X), y))
        slope = (values[0] - values[1]) / 2e-3
        assert (before[name] - fitted.weights_[name])[index] / 0.05 == pytest.approx(
            slope, rel=0.03, abs=2e-3
        )


def test_y_by_columns_is_the_same_training(model, data):
    X, y = data
    by_name = OrtSGDRegressor(model, loss=LOSSES, **OPTIONS).fit(X, y)
    for given in (columns(y), columns(y).tolist()):
        by_column = OrtSGDRegressor(model, loss=LOSSES, **OPTIONS).fit(X, given)
        predicted = by_column.predict(X)
        assert predicted.shape == (40, 4)
        np.testing.assert_array_equal(predicted, columns(by_name.predict(X)))
        assert (
            by_column.score(X, given)
            == by_column.score(X, y)
            == by_name.score(X, given)
            == by_name.score(X, y)
        )
    two = {"total": "squared_error", "price": "squared_error"}
    frame = pd.DataFrame({"price": y["price"], "total": y["total"].ravel()})
    first, second = (
        OrtSGDRegressor(model, loss=two, **OPTIONS).fit(X, each)
        for each in (frame, frame[["total", "price"]])
    )
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    assert first.predict(X).shape == (40, 2)
    scores = cross_val_score(first, X, frame, scoring="neg_mean_squared_error", cv=2)
    assert np.isfinite(scores).all()


def test_outputs_without_a_loss_stay_as_they_are(model, data, run_onnx):
    X, y = data
    fitted = OrtSGDRegressor(model, loss={"total": "squared_error"}, **OPTIONS).fit(
        X, {"total": y["total"]}
    )
    assert fitted.predict(X).keys() == {"total"}
    assert set(fitted.trainable_) == {"W", "b", "T"}
    original = fitted.to_onnx(original=True)
    arrays, before = (
        {i.name: numpy_helper.to_array(i) for i in m.graph.initializer} for m in (original, model)
    )
    assert all(np.array_equal(arrays[name], before[name]) for name in ("U", "u", "V"))
    np.testing.assert_allclose(
        run_onnx(original, X=X)["total"], fitted.predict(X)["total"].ravel(), rtol=1e-4, atol=1e-5
    )


def test_a_weighted_average_of_two_outputs(model, data):
    X, y = data
    loss = {
        "price": WeightedSum([(0.4, SquaredError())]),
        "parts": WeightedSum([(0.6, SquaredError())]),
    }
    given = {"price": y["price"], "parts": y["parts"]}
    fitted = OrtSGDRegressor(model, loss=loss, batch_size=40, **OPTIONS | {"max_iter": 400}).fit(
        X, given
    )
    predicted = fitted.predict(X)
    expected = sum(
        w * np.mean((predicted[n] - given[n]) ** 2) / 2 for n, w in (("price", 0.4), ("parts", 0.6))
    )
    assert fitted.loss_ == pytest.approx(expected, rel=1e-3)


def test_links_and_losses_of_the_users_own(model, data, run_onnx):
    X, y = data
    given = {"total": abs(y["total"].ravel()), "price": y["price"]}
    loss = {"total": PoissonLoss(), "price": Loss(FOURTH)}
    fitted = OrtSGDRegressor(model, loss=loss, batch_size=40, **OPTIONS | {"eta0": 0.01}).fit(
        X, given
    )
    before = run_onnx(model, X=X)
    poisson = np.mean(np.exp(before["total"]) - given["total"] * before["total"])
    assert fitted.loss_curve_[0] == pytest.approx(
        poisson + np.mean((before["price"].ravel() - y["price"]) ** 4), rel=1e-4
    )
    np.testing.assert_allclose(
        np.log(fitted.predict(X)["total"]),
        run_onnx(fitted.to_onnx(original=True), X=X)["total"],
        rtol=1e-3,
        atol=1e-5,
    )
    with pytest.raises(ValueError, match="output 'total': "):
        fitted.fit(X, given | {"total": -given["total"]})


def test_validation_sets_streams_and_pickles(model, data):
    X, y = data
    for scoring in (None, "neg_mean_absolute_error"):
        fitted = OrtSGDRegressor(model, loss=LOSSES, scoring=scoring, **OPTIONS)
        given = fitted.fit(X, y, X_val=X, y_val=y).validation_scores_
        assert len(given) == 3
    with pytest.warns(ConvergenceWarning, match="no better than a constant prediction"):
        held_out = fitted.set_params(early_stopping=True, scoring=None).fit(X, y).validation_scores_
    assert len(held_out) == 3
    stream = OrtSGDRegressor(model, loss=LOSSES, **OPTIONS)
    for _ in range(2):
        stream.partial_fit(X, y)
    again = pickle.loads(pickle.dumps(stream))
    for name, array in stream.predict(X).items():
        np.testing.assert_array_equal(again.predict(X)[name], array)
    np.testing.assert_array_equal(
        again.partial_fit(X, columns(y)).predict(X), columns(stream.partial_fit(X, y).predict(X))
    )


@pytest.mark.parametrize(
    "loss, change, message",
    [
        (
            "squared_error",
            {},
            "y is a dict of the outputs price, total, parts: give loss as a dict by the same names",
        ),
        (
            {"cost": "huber"},
            {},
            r"loss names the output 'cost', but the outputs of floats .* are price, parts, total",
        ),
        ({"label": "huber"}, {}, "loss names the output 'label'"),
        ({}, {}, "loss is an empty dict: give a loss for one of the outputs price, parts, total"),
        ({"price": "huber"}, {}, "y has the outputs price, total, parts, but loss has price"),
        (
            LOSSES,
            {"parts": np.zeros(40)},
            r"y\['parts'\] has 1 columns, but that output of the ONNX model has 2",
        ),
        (LOSSES, {"price": np.zeros(39)}, "inconsistent numbers of samples"),
        (LOSSES, {"price": np.full(40, np.nan)}, "contains NaN"),
        (LOSSES | {"price": "hubert"}, {}, "loss: 'hubert' is none of squared_error"),
        (LOSSES | {"price": Hinge()}, {}, r"loss\['price'\]: Hinge is not a loss of a regressor"),
        (LOSSES | {"price": Huber(-1)}, {}, "'epsilon' parameter of Huber"),
        (LOSSES | {"price": Huber}, {}, r"loss\['price'\] takes instances of losses"),
        (
            LOSSES | {"price": ConcomitantHuber()},
            {},
            r"loss\['price'\] cannot hold a loss with weights of its own",
        ),
    ],
)
def test_bad_names_targets_and_losses_are_named(loss, change, message, model, data):
    X, y = data
    with pytest.raises(ValueError, match=message):
        OrtSGDRegressor(model, loss=loss, **OPTIONS).fit(X, y | change)


def test_bad_columns_and_estimators_are_named(model, data):
    X, y = data
    with pytest.raises(
        ValueError,
        match=r"y has 3 columns, but the outputs have 4: parts \(2\), price \(1\), total \(1\)",
    ):
        OrtSGDRegressor(model, loss=LOSSES, **OPTIONS).fit(X, columns(y)[:, :3])
    for estimator in (None, LinearRegression()):
        with pytest.raises(
            ValueError, match=r"needs an estimator that is an onnx\.ModelProto, got"
        ):
            OrtSGDRegressor(estimator, loss=LOSSES, **OPTIONS).fit(X, y)
    with pytest.raises(
        NotTrainableError,
        match=r'or give a regressor a loss for each output: loss=\{"name": "squared_error"\}',
    ):
        OrtSGDRegressor(model, **OPTIONS).fit(X, columns(y))
    with pytest.raises(ValueError, match="The 'loss' parameter of OrtSGDClassifier"):
        OrtSGDClassifier(model, loss=LOSSES, **OPTIONS).fit(X, y["price"] > 0)


def test_batches_by_name_are_the_training_of_fit(model, data):
    X, y = data
    options = OPTIONS | {"shuffle": False, "batch_size": 10}
    fitted = OrtSGDRegressor(model, loss=LOSSES, **options).fit(X, y)
    frame = pd.DataFrame({"total": y["total"].ravel(), "price": y["price"]})
    two = {name: LOSSES[name] for name in frame}
    parts = [slice(i, i + 10) for i in range(0, 40, 10)]
    for loss, target, expected in (
        (LOSSES, [{name: array[part] for name, array in y.items()} for part in parts], fitted),
        (LOSSES, [columns(y)[part] for part in parts], fitted),
        (dict(reversed(two.items())), [frame[part] for part in parts], None),
    ):
        ours = OrtSGDRegressor(model, loss=loss, **options)
        expected = expected or OrtSGDRegressor(model, loss=loss, **options).fit(X, frame)
        ours.fit_batches(list(zip([X[part] for part in parts], target, strict=True)))
        assert ours.loss_curve_ == expected.loss_curve_
        for name, array in ours.weights_.items():
            np.testing.assert_array_equal(array, expected.weights_[name])
        assert isinstance(ours.predict(X), dict) == isinstance(target[0], dict)


def test_an_explicit_step_takes_columns_or_names(solver, model, data, run_onnx):
    X, y = data
    step, same = (Step(model, loss=LOSSES, solver=solver, batch_size=40) for _ in range(2))
    assert step.step(X, columns(y), 0.1) == pytest.approx(
        total_loss(run_onnx(model, X=X), y), rel=1e-5
    )
    same.step(X, y, 0.1)
    for name, array in step.weights().items():
        np.testing.assert_array_equal(array, same.weights()[name])
    with pytest.raises(ValueError, match="y has 1 columns, but the outputs have 4"):
        step.step(X, y["price"], 0.1)
    with pytest.raises(ValueError, match="y has 3 columns, but the outputs have 4"):
        Step(model, loss=LOSSES, solver=solver, n_outputs=3)
    with pytest.raises(
        ValueError, match="y is a dict of the outputs price, total, parts: give loss as a dict"
    ):
        Step(LinearRegression(), n_features=3, solver=solver).step(X, y, 0.1)


def test_a_stream_keeps_the_order_of_its_outputs(model, data):
    X, y = data
    stream = OrtSGDRegressor(model, loss=LOSSES, **OPTIONS).partial_fit(X, y)
    for loss in (dict(reversed(LOSSES.items())), "squared_error", {"price": "huber"}):
        given = {name: y[name] for name in loss} if isinstance(loss, dict) else columns(y)
        with pytest.raises(
            ValueError,
            match=r"earlier calls had parts, price, total, in this order|y has 1 outputs, ear",
        ):
            stream.set_params(loss=loss).partial_fit(X, given)
    other_losses = dict.fromkeys(LOSSES, "huber")
    assert stream.set_params(loss=other_losses).partial_fit(X, y).n_iter_ == 2


def test_skl2onnx_writes_all_columns_of_a_regressor_inside_another_model(model, data, run_onnx):
    X, y = data
    fitted = OrtSGDRegressor(model, loss=LOSSES, **OPTIONS).fit(X, columns(y))
    converted = skl2onnx.to_onnx(fitted, X[:1], target_opset=17)
    (result,) = run_onnx(converted, X=X).values()
    np.testing.assert_allclose(result, fitted.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_labels", [2, 7, 9, 10, 11, 20])
def test_scikit_learn_warns_of_a_label_for_every_other_row(n_labels):
    y = np.arange(20) % n_labels
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        check_classification_targets(y)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        encoded = LabelEncoder("float32").encode(y, None)
    assert [str(each.message) for each in found] == [str(each.message) for each in expected]
    np.testing.assert_array_equal(encoded.classes, np.arange(n_labels))
