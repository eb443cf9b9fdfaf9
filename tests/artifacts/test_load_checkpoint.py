"""A checkpoint back in an estimator. Any ONNX Runtime reads it."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPRegressor

from skort import OrtSGDRegressor
from skort.artifacts import load_checkpoint, save_training_artifacts
from skort.runtime.checkpoint_file import CheckpointFile, read_checkpoint, write_checkpoint

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)) * [1, 10, 0.1] + [0, 5, 1]
y = X @ [1.0, 0.2, 3.0] + 4 + 0.1 * rng.normal(size=60)
OPTIONS = {
    "learning_rate": "constant",
    "eta0": 0.1,
    "max_iter": 2,
    "tol": None,
    "random_state": 0,
    "batch_size": 20,
}


def moved(folder, change):
    """Change the parameters of a checkpoint, as a device would."""
    path = folder / "checkpoint"
    old = read_checkpoint(path.read_bytes())
    new = {name: (array + change).astype(np.float32) for name, array in old.trainable.items()}
    path.write_bytes(write_checkpoint(CheckpointFile(old.version, new, old.frozen)))
    return new


def test_the_standardization_is_taken_back(tmp_path):
    model = OrtSGDRegressor(LinearRegression(), **OPTIONS).fit(X, y)
    save_training_artifacts(model, tmp_path, batch_size=20)
    new = moved(tmp_path, 0.125)
    back = load_checkpoint(tmp_path, model)
    s = model.standardization_
    slope = s.target_scale * new["coef"].ravel() / s.scale
    np.testing.assert_allclose(back.coef_, slope, rtol=1e-5)
    intercept = s.target_mean + s.target_scale * new["intercept"] - slope @ s.mean
    np.testing.assert_allclose(back.intercept_, intercept, rtol=1e-5)


def test_the_estimator_stays_as_it_was_and_the_copy_is_a_fitted_one(tmp_path):
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(4,)), **OPTIONS, optimizer="adam").fit(
        X, y
    )
    before = pickle.dumps(model.weights_)
    save_training_artifacts(model, tmp_path, batch_size=20)
    np.testing.assert_allclose(
        load_checkpoint(tmp_path, model).predict(X), model.predict(X), rtol=1e-5
    )
    moved(tmp_path, 0.01)
    back = load_checkpoint(tmp_path / "checkpoint", model)
    assert pickle.dumps(model.weights_) == before
    assert np.abs(back.predict(X) - model.predict(X)).max() > 1e-3
    np.testing.assert_allclose(pickle.loads(pickle.dumps(back)).predict(X), back.predict(X))
    np.testing.assert_allclose(back.to_sklearn().predict(X), back.predict(X), rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_partial_fit_goes_on_from_the_weights_of_the_device(optimizer, tmp_path):
    model = OrtSGDRegressor(LinearRegression(), **OPTIONS, optimizer=optimizer)
    model.partial_fit(X, y)
    save_training_artifacts(model, tmp_path, batch_size=20)
    moved(tmp_path, 0.5)
    back = load_checkpoint(tmp_path, model)
    tiny = copy.deepcopy(back).set_params(eta0=1e-9)
    np.testing.assert_allclose(tiny.partial_fit(X, y).coef_, back.coef_, rtol=1e-5)
    expected = model.coef_.copy()
    model.set_params(eta0=1e-9).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-5)


@pytest.mark.parametrize("standardize", ["auto", False])
def test_a_device_may_train_more_weights_than_the_fit_and_no_scales(standardize, tmp_path):
    network = MLPRegressor(hidden_layer_sizes=(4,))
    options = OPTIONS | {"eta0": 1e-4, "standardize": standardize}
    model = OrtSGDRegressor(network, **options, trainable="*1").fit(X, y)
    save_training_artifacts(model, tmp_path, batch_size=20, trainable="*")
    new = moved(tmp_path, 0.25)
    assert new.keys() == model.weights_.keys()
    back = load_checkpoint(tmp_path, model)
    for name in ("coefficient", "intercepts"):
        np.testing.assert_allclose(back.weights_[name], model.weights_[name] + 0.25, rtol=1e-6)


def test_all_weights_are_those_of_the_model_not_what_standardizes_them(tmp_path):
    model = OrtSGDRegressor(LinearRegression(fit_intercept=False), **OPTIONS).fit(X, y)
    save_training_artifacts(model, tmp_path, batch_size=20, trainable="*")
    assert read_checkpoint((tmp_path / "checkpoint").read_bytes()).trainable.keys() == {"coef"}
    moved(tmp_path, 0.125)
    s = model.standardization_
    slope = model.coef_ + 0.125 * s.target_scale / s.scale
    np.testing.assert_allclose(load_checkpoint(tmp_path, model).coef_, slope, rtol=1e-5)


def test_a_checkpoint_of_another_model_or_fit_is_refused(tmp_path):
    model = OrtSGDRegressor(LinearRegression(), **OPTIONS).fit(X, y)
    save_training_artifacts(model, tmp_path, batch_size=20)
    wider = OrtSGDRegressor(LinearRegression(), **OPTIONS).fit(X[:, :2], y)
    with pytest.raises(
        ValueError, match=r"checkpoint' is the checkpoint of another model: it has the parameters"
    ):
        load_checkpoint(tmp_path, wider)
    other = OrtSGDRegressor(LinearRegression(), **OPTIONS).fit(2 * X, y)
    message = "of another fit: the values of 'skort_X_mean', which is not trained, differ"
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path, other)


def test_a_missing_file_is_named(tmp_path):
    model = OrtSGDRegressor(**OPTIONS).fit(X, y)
    with pytest.raises(FileNotFoundError, match="checkpoint' does not exist"):
        load_checkpoint(tmp_path, model)
    with pytest.raises(
        FileNotFoundError, match="nowhere' does not exist: give a checkpoint, or the folder"
    ):
        load_checkpoint(tmp_path / "nowhere", model)


def test_another_kind_of_estimator_is_refused(tmp_path):
    with pytest.raises(
        ValueError,
        match=r"must be the fitted OrtSGDRegressor or OrtSGDClassifier .*LinearRegression",
    ):
        load_checkpoint(tmp_path, LinearRegression().fit(X, y))
    with pytest.raises(NotFittedError):
        load_checkpoint(tmp_path, OrtSGDRegressor())
