"""What can be trained, and the reasons for what cannot."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestRegressor, StackingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.svm import SVC

from skort.exceptions import NotTrainableError
from skort.graphs.trainable import check_trainable


class OwnRegressor(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


class ExponentialRegression(LinearRegression):
    def predict(self, X):
        return np.exp(super().predict(X))


@pytest.mark.parametrize(
    "model, message",
    [
        (RandomForestRegressor(), "RandomForestRegressor cannot be trained"),
        (SVC(), "SVC cannot be trained"),
        (OwnRegressor(), "OwnRegressor cannot be trained"),
        # It has `predict` only when it is fitted.
        (StackingRegressor([("a", LinearRegression())]), "StackingRegressor .* put OrtSGDRegressor inside it"),
        # It takes one column only.
        (IsotonicRegression(), "IsotonicRegression .* skl2onnx has no converter for it"),
        (ExponentialRegression(), "ExponentialRegression cannot be trained"),
        (LinearRegression(positive=True), r"LinearRegression\(positive=True\) cannot be trained"),
        (
            LogisticRegression(class_weight="balanced"),
            r"LogisticRegression\(class_weight='balanced'\) .* give class_weight to OrtSGDClassifier",
        ),
    ],
)
def test_models_that_cannot_be_trained_are_named(model, message):
    with pytest.raises(NotTrainableError, match=message):
        check_trainable(model)


def test_a_fitted_model_may_have_had_class_weights():
    check_trainable(LogisticRegression(class_weight="balanced"), is_fitted=True)
    with pytest.raises(NotTrainableError, match="positive=True"):
        check_trainable(LinearRegression(positive=True), is_fitted=True)


@pytest.mark.parametrize("hidden", [(3, 0), (-1,), (5.0,), (True,), "5"])
def test_layers_are_of_whole_units(hidden):
    with pytest.raises(ValueError, match=r"'?hidden_layer_sizes'? .*MLPRegressor must be"):
        check_trainable(MLPRegressor(hidden_layer_sizes=hidden))


def test_parameters_of_the_model_are_validated_by_scikit_learn():
    with pytest.raises(ValueError, match="'activation' parameter of MLPRegressor"):
        check_trainable(MLPRegressor(activation="swish"))
