"""Several threads use one estimator, or clones of it."""

import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)).astype(np.float32)
OPTIONS = {"max_iter": 3, "tol": None, "random_state": 0, "batch_size": 30, "eta0": 0.1}


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function"]
)
def test_a_prediction_during_fits_is_that_of_one_of_them(method):
    # Two and three classes with other labels: a mixture has other shapes, other labels or
    # other numbers.
    targets = np.where(X[:, 0] > 0, "yes", "no"), np.digitize(X[:, 1], [-0.5, 0.5]) + 7
    fits = [OrtSGDClassifier(**OPTIONS).fit(X, y) for y in targets]
    expected = [getattr(fit, method)(X) for fit in fits]
    model = clone(fits[0]).fit(X, targets[0])
    seen, done = set(), threading.Event()

    def predict():
        while not done.is_set():
            prediction = getattr(model, method)(X)
            seen.add(
                tuple(
                    prediction.dtype == one.dtype and np.array_equal(prediction, one)
                    for one in expected
                )
            )

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for fits_of_both in range(1, 501):
        for y in targets[::-1]:
            model.fit(X, y)
        # A busy machine may let no thread predict during the first ones.
        if fits_of_both >= 10 and len(seen) == 2:
            break
    done.set()
    for thread in threads:
        thread.join()
    assert seen <= {(True, False), (False, True)}
    assert len(seen) == 2


@pytest.mark.parametrize(
    "model",
    [
        OrtSGDRegressor(),
        OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(5,))),
        OrtSGDClassifier(MLPClassifier((5,))),
    ],
)
def test_fits_and_predictions_in_threads_have_the_bytes_of_serial_ones(model, solver):
    model = clone(model).set_params(solver=solver, **OPTIONS)
    y = (X[:, 0] > 0).astype(int)

    def fit(seed):
        fitted = clone(model).set_params(random_state=seed).fit(X, y)
        return fitted.onnx_.SerializeToString(), fitted.predict(X)

    serial = [fit(seed) for seed in range(12)]
    parallel = joblib.Parallel(n_jobs=8, backend="threading")(
        joblib.delayed(fit)(seed) for seed in range(12)
    )
    for (ours, prediction), (theirs, expected) in zip(parallel, serial, strict=True):
        assert ours == theirs
        np.testing.assert_array_equal(prediction, expected)
