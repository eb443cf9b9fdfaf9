import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = X @ [1.0, -2.0, 0.5, 3.0] + 1


class Looks:
    """Keeps what a callback sees of the model after each epoch."""

    def __init__(self, *names):
        self.names = names

    def on_train_begin(self, training):
        self.seen, self.expected, self.predictions = [], [], []

    def on_epoch_end(self, training):
        model = training.model
        self.seen.append({name: getattr(model, name) for name in self.names})
        self.expected.append(training.weights())
        self.predictions.append(model.predict(training.prepare(X)))


def test_a_callback_sees_the_weights_of_now():
    looks = Looks("coef_", "intercept_", "weights_")
    parameters = {"optimizer": "sgd", "max_iter": 3, "tol": None, "random_state": 0}
    model = OrtSGDRegressor(**parameters, callbacks=[looks]).fit(X, Y)
    for seen, expected, predictions in zip(
        looks.seen, looks.expected, looks.predictions, strict=True
    ):
        coefficient, intercept = expected.values()
        np.testing.assert_array_equal(seen["coef_"], coefficient.ravel())
        np.testing.assert_array_equal(seen["intercept_"], intercept)
        assert {name: array.tolist() for name, array in seen["weights_"].items()} == {
            name: array.tolist() for name, array in expected.items()
        }
        np.testing.assert_allclose(
            predictions, X @ seen["coef_"] + seen["intercept_"], rtol=1e-5, atol=1e-5
        )
    np.testing.assert_array_equal(looks.seen[-1]["coef_"], model.coef_)
    # Each epoch has its own.
    assert len({tuple(seen["coef_"].tolist()) for seen in looks.seen}) == 3


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        MLPRegressor(hidden_layer_sizes=(3,)),
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(3,))),
    ],
)
def test_the_last_preview_is_the_fitted_model(estimator):
    looks = Looks("weights_")
    model = OrtSGDRegressor(estimator, max_iter=2, tol=None, random_state=0, callbacks=[looks]).fit(
        X, Y
    )
    for name, array in looks.expected[-1].items():
        np.testing.assert_array_equal(model.weights_[name], array)
    np.testing.assert_allclose(looks.predictions[-1], model.predict(X), rtol=1e-5, atol=1e-5)
