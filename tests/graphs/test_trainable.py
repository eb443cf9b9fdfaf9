"""What can be trained, and the reasons for what cannot."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from skort.exceptions import NotTrainableError
from skort.graphs.initialization import initial_score_graph
from skort.graphs.score_graph import ScoreSpec
from skort.graphs.sklearn.transformers import trainable_steps
from skort.graphs.trainable import check_trainable, select_trainable


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
        *(
            (
                each(),
                rf"{each.__name__} .* computes with the operator TreeEnsemble\w+, which has no",
            )
            for each in (HistGradientBoostingRegressor, HistGradientBoostingClassifier)
        ),
        (SVC(), "SVC cannot be trained"),
        (OwnRegressor(), "OwnRegressor cannot be trained"),
        # It has `predict` only when it is fitted.
        (
            StackingRegressor([("a", LinearRegression())]),
            "StackingRegressor .* put OrtSGDRegressor inside it",
        ),
        # It takes one column only.
        (IsotonicRegression(), "IsotonicRegression .* skl2onnx has no converter for it"),
        (ExponentialRegression(), "ExponentialRegression cannot be trained"),
        (LinearRegression(positive=True), r"LinearRegression\(positive=True\) cannot be trained"),
    ],
)
def test_models_that_cannot_be_trained_are_named(model, message):
    with pytest.raises(NotTrainableError, match=message):
        check_trainable(model)


@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_model_may_have_class_weights(is_fitted):
    check_trainable(LogisticRegression(class_weight="balanced"), is_fitted=is_fitted)


@pytest.mark.parametrize("hidden", [(3, 0), (-1,), (5.0,), (True,), "5"])
def test_layers_are_of_whole_units(hidden):
    with pytest.raises(ValueError, match=r"'?hidden_layer_sizes'? .*MLPRegressor must be"):
        check_trainable(MLPRegressor(hidden_layer_sizes=hidden))


def test_parameters_of_the_model_are_validated_by_scikit_learn():
    with pytest.raises(ValueError, match="'activation' parameter of MLPRegressor"):
        check_trainable(MLPRegressor(activation="swish"))


def linear_with_steps(*steps, rng):
    """Return the score graph of a linear model, and the steps before it."""
    transformers = make_pipeline(*steps).fit(rng.normal(size=(20, 3)))
    graph = initial_score_graph(
        LinearRegression(), ScoreSpec(3, 1, "float32"), np.random.RandomState(0)
    )
    return graph, trainable_steps(transformers, "float32")


@pytest.mark.parametrize(
    "patterns, first, trained",
    [
        ("coef", None, {"coef"}),
        (["coef", "inter*"], None, {"coef", "intercept"}),
        ("standardscaler/*", 1, {"standardscaler/offset", "standardscaler/scale"}),
        (("*/offset", "coef"), 0, {"minmaxscaler/offset", "standardscaler/offset", "coef"}),
    ],
)
def test_weights_are_selected_from_the_first_step_that_has_one(patterns, first, trained, rng):
    graph, steps = linear_with_steps(MinMaxScaler(), StandardScaler(), rng=rng)
    position, selected = select_trainable(graph, steps, patterns)
    assert position == first
    assert set(selected.trainable) == trained
    assert selected.input_name == "X"
    joined_steps = [
        name
        for i, step in steps.graphs.items()
        if first is not None and i >= first
        for name in step.arrays
    ]
    assert set(selected.arrays) == {*joined_steps, "coef", "intercept"}


def test_missing_weights_are_explained(rng):
    graph, steps = linear_with_steps(FunctionTransformer(np.cbrt), StandardScaler(), rng=rng)
    with pytest.raises(ValueError) as caught:
        select_trainable(graph, steps, "functiontransformer/*")
    message = str(caught.value)
    assert message.startswith(
        "trainable=['functiontransformer/*'] matches no weight. The weights are "
        "['standardscaler/offset', 'standardscaler/scale', 'coef', 'intercept']. Those of the "
        "step 'functiontransformer', and of the steps before it, are not available: skl2onnx "
        "gives no graph of it: "
    )
    graph, steps = linear_with_steps(StandardScaler(), rng=rng)
    with pytest.raises(ValueError, match=r"'coef', 'intercept'\]\.$"):
        select_trainable(graph, steps, "nothing")
