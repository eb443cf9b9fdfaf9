"""Fitted estimators in files: pickle, skops."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor
from sklearn.neural_network import MLPClassifier
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
