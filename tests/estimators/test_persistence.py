"""Fitted estimators in files: pickle, skops."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor

X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
OPTIONS = {"max_iter": 3, "tol": None, "random_state": 0}
MODELS = [
    OrtSGDClassifier(**OPTIONS),
    OrtSGDClassifier(make_pipeline(StandardScaler(), MLPClassifier((3,))), optimizer="adam", **OPTIONS),
    OrtSGDRegressor(HuberRegressor(), **OPTIONS),
]


@pytest.mark.parametrize("model", MODELS, ids=["logistic", "pipeline", "huber"])
def test_files_of_skops_need_no_type_but_skorts_and_scikit_learns(model):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    fitted = model.fit(X, Y)
    written = io.dumps(fitted)
    types = io.get_untrusted_types(data=written)
    assert {name.partition(".")[0] for name in types} <= {"skort", "sklearn"}
    back = io.loads(written, trusted=types)
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    assert back.onnx_.SerializeToString() == fitted.onnx_.SerializeToString()
    if hasattr(fitted, "partial_fit"):
        np.testing.assert_array_equal(back.partial_fit(X, Y).predict(X), fitted.partial_fit(X, Y).predict(X))


@pytest.mark.parametrize("model", MODELS, ids=["logistic", "pipeline", "huber"])
@pytest.mark.parametrize("n_kept", [0, 100, -50])
def test_a_pickle_that_is_cut_off_is_an_error(model, n_kept):
    pickled = pickle.dumps(model.fit(X, Y))
    with pytest.raises((EOFError, pickle.UnpicklingError)):
        pickle.loads(pickled[:n_kept])


@pytest.mark.parametrize("options", [{}, {"early_stopping": True}, {"standardize": False}], ids=repr)
def test_a_pickle_has_the_weights_once(options):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 20)), rng.normal(size=100) + 3
    model = OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(1000,)), optimizer="adam", max_iter=3, tol=None, **options)
    model.set_params(random_state=0).fit(X, y)
    pickled = pickle.dumps(model)
    # Those of the training, and Adam's two means.
    assert len(pickled) <= 3.2 * sum(array.nbytes for array in model.weights_.values())
    again = pickle.loads(pickled)
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(again.weights_[name], array)
    model.set_params(early_stopping=False)
    again.set_params(early_stopping=False)
    for each in (model, again):
        each.partial_fit(X, y)
    for name, array in model.weights_.items():
        np.testing.assert_array_equal(again.weights_[name], array)
