"""Anything that has a score, as a score graph, and back."""

import numpy as np
import onnx
import onnx.parser
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import (
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.score_graph_of import estimator_with, score_graph_of
from skort.exceptions import NotExportableError, NotTrainableError
from skort.runtime.sessions import InferenceModel

# Networks here need not converge.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, y = load_diabetes(return_X_y=True)
X = X * 20
FLOWERS, KINDS = load_iris(return_X_y=True)
MLP = MLPRegressor(hidden_layer_sizes=(5,), solver="lbfgs", max_iter=20, random_state=0)


def scores(graph, X):
    model = graph.model
    return InferenceModel(model).run(graph.score_name, {graph.input_name: X.astype(graph.dtype)})


REGRESSORS = [Ridge(), PoissonRegressor(), MLP, make_pipeline(StandardScaler(), MLP)]


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_the_score_of_a_regressor_is_its_prediction(model):
    fitted = model.fit(X, y)
    graph = score_graph_of(fitted, dtype="float64")
    np.testing.assert_allclose(scores(graph, X).ravel(), fitted.predict(X), rtol=1e-9)
    back = estimator_with(fitted, graph)
    np.testing.assert_allclose(back.predict(X), fitted.predict(X), rtol=1e-9)
    assert back is not fitted


def test_two_targets_stay_two():
    Y = np.column_stack([y, -y])
    fitted = Ridge().fit(X, Y)
    graph = score_graph_of(fitted, dtype="float64")
    np.testing.assert_allclose(scores(graph, X), fitted.predict(X))
    np.testing.assert_allclose(estimator_with(fitted, graph).predict(X), fitted.predict(X))


@pytest.mark.parametrize("labels", [KINDS, KINDS == 1], ids=["three classes", "two classes"])
@pytest.mark.parametrize(
    "model", [LogisticRegression(max_iter=1000), RidgeClassifier(), SGDClassifier(random_state=0)]
)
def test_the_score_of_a_classifier_is_its_decision_function(model, labels):
    fitted = model.fit(FLOWERS, labels)
    graph = score_graph_of(fitted, dtype="float64")
    np.testing.assert_allclose(
        scores(graph, FLOWERS).squeeze(), fitted.decision_function(FLOWERS), atol=1e-9
    )
    back = estimator_with(fitted, graph)
    np.testing.assert_array_equal(back.predict(FLOWERS), fitted.predict(FLOWERS))


def test_the_score_of_a_neural_network_is_before_its_softmax():
    fitted = MLPClassifier((5,), solver="lbfgs", max_iter=20, random_state=0).fit(FLOWERS, KINDS)
    graph = score_graph_of(fitted, dtype="float64")
    powers = np.exp(scores(graph, FLOWERS))
    np.testing.assert_allclose(
        powers / powers.sum(axis=1, keepdims=True), fitted.predict_proba(FLOWERS), atol=1e-9
    )
    np.testing.assert_allclose(
        estimator_with(fitted, graph).predict_proba(FLOWERS), fitted.predict_proba(FLOWERS)
    )


def test_labels_of_several_kinds_stay_several():
    labels = np.column_stack([KINDS == 1, KINDS > 0]).astype(int)
    fitted = MLPClassifier((5,), solver="lbfgs", max_iter=20, random_state=0).fit(FLOWERS, labels)
    back = estimator_with(fitted, score_graph_of(fitted))
    np.testing.assert_array_equal(back.predict(FLOWERS), fitted.predict(FLOWERS))


def test_an_estimator_of_skort_goes_through_its_steps():
    model = make_pipeline(StandardScaler(), MLPClassifier((5,)))
    fitted = OrtSGDClassifier(
        model, eta0=0.1, learning_rate="constant", tol=None, max_iter=5, random_state=0
    )
    fitted.fit(FLOWERS, KINDS)
    graph = score_graph_of(fitted)
    np.testing.assert_allclose(
        scores(graph, FLOWERS), fitted.decision_function(FLOWERS), rtol=1e-4, atol=1e-5
    )
    assert set(graph.frozen_arrays) == {"standardscaler/offset", "standardscaler/scale"}
    doubled = graph.with_weights({name: 2 * array for name, array in graph.trained_arrays.items()})
    back = estimator_with(fitted, doubled)
    np.testing.assert_allclose(back.weights_["coefficient"], 2 * fitted.weights_["coefficient"])
    np.testing.assert_allclose(
        back.decision_function(FLOWERS), scores(doubled, FLOWERS), rtol=1e-4, atol=1e-4
    )
    assert isinstance(back.to_sklearn(), type(model))


def test_a_copy_with_other_weights_goes_on_from_them():
    options = {"eta0": 0.01, "learning_rate": "constant", "tol": None, "standardize": False}
    fitted = OrtSGDRegressor(Ridge(alpha=0), **options, max_iter=5, random_state=0).fit(X, y)
    copied = fitted.with_weights({"coef": np.zeros((10, 1)), "intercept": [7]})
    np.testing.assert_array_equal(copied.predict(X), np.full(len(X), 7, np.float32))
    assert fitted.intercept_ != 7
    other = OrtSGDRegressor(Ridge(alpha=0), **options, batch_size=200, random_state=0)
    other.partial_fit(X[200:220], y[200:220])
    other = other.with_weights({"coef": np.zeros((10, 1)), "intercept": [7]})
    for model in (copied, other):
        model.partial_fit(X[:200], y[:200])
        # One step of the full batch.
        assert model.intercept_[0] == pytest.approx(7 + 0.01 * np.mean(y[:200] - 7), rel=1e-5)
        np.testing.assert_allclose(
            model.coef_, 0.01 * X[:200].T @ (y[:200] - 7) / 200, rtol=1e-4, atol=1e-4
        )
    with pytest.raises(ValueError, match="the model has no weight 'nothing'"):
        fitted.with_weights({"nothing": [1]})


def test_weights_are_chosen_by_name():
    fitted = make_pipeline(StandardScaler(), MLP).fit(X, y)
    graph = score_graph_of(fitted, ["standardscaler/*", "coefficient1"])
    assert set(graph.trainable) == {"standardscaler/offset", "standardscaler/scale", "coefficient1"}
    with pytest.raises(ValueError, match="weights of steps before the model"):
        estimator_with(fitted, graph)
    with pytest.raises(
        ValueError, match=r"trainable=\['nothing'\] matches no weight. The weights are"
    ):
        score_graph_of(fitted, "nothing")


def test_an_onnx_model_says_its_own_shapes():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    graph (double[N, 2] rows) => (double[N, 1] out) <double[2, 1] w = {1, 2}> {
    out = MatMul (rows, w) }"""
    model = onnx.parser.parse_model(text)
    graph = score_graph_of(model)
    np.testing.assert_array_equal(scores(graph, np.array([[1.0, 1.0]])), [[3]])
    assert graph.input_name == "rows"
    with pytest.raises(ValueError, match="dtype='float32', but the model computes in float64"):
        score_graph_of(model, dtype="float32")
    with pytest.raises(ValueError, match="is an ONNX model, not an estimator: use to_onnx"):
        estimator_with(model, graph)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "any"
    with pytest.raises(
        NotTrainableError,
        match="must have one input and outputs of floats with known numbers of columns",
    ):
        score_graph_of(model)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_fitted_model_of_another_family_has_a_graph(n_targets):
    Y = np.column_stack([y, -y])[:, :n_targets]
    fitted = MultiOutputRegressor(Ridge()).fit(X, Y)
    np.testing.assert_allclose(
        scores(score_graph_of(fitted, dtype="float64"), X), fitted.predict(X)
    )


def test_a_classifier_of_another_family_has_the_score_of_its_probabilities():
    fitted = VotingClassifier(
        [("a", LogisticRegression(max_iter=1000))], voting="soft", flatten_transform=False
    ).fit(FLOWERS, KINDS)
    graph = score_graph_of(fitted, dtype="float64")
    assert graph.n_outputs == 3
    with pytest.raises(ValueError, match="cannot be returned as a scikit-learn model"):
        estimator_with(fitted, graph)


@pytest.mark.parametrize(
    "model", [Ridge(), OrtSGDRegressor(), make_pipeline(StandardScaler(), Ridge())]
)
def test_what_is_not_fitted_is_refused(model):
    with pytest.raises(NotFittedError):
        score_graph_of(model)


def test_a_step_without_a_graph_is_named():
    texts = ["good day", "bad day", "good", "bad"]
    fitted = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0, 1, 0])
    with pytest.raises(
        NotExportableError, match="the step 'tfidfvectorizer' cannot be a part of the graph"
    ):
        score_graph_of(fitted)


def test_a_transformed_target_is_refused():
    fitted = TransformedTargetRegressor(Ridge(), transformer=StandardScaler()).fit(X, y)
    with pytest.raises(NotTrainableError, match="Give its regressor_"):
        score_graph_of(fitted)
    assert score_graph_of(fitted.regressor_).n_features == 10


def test_dropout_in_training_mode_is_refused():
    text = """<ir_version: 8, opset_import: ["" : 17]>
    graph (float[N, 2] X) => (float[N, 1] y) <float[2, 1] w = {1, 2}, float ratio = {0.5},
    bool mode = {%d}>
    { a = Dropout (X, ratio, mode)  y = MatMul (a, w) }"""
    assert score_graph_of(onnx.parser.parse_model(text % 0)).trainable == ("w",)
    with pytest.raises(
        NotTrainableError, match=r"a Dropout in training mode.*model\.to_onnx\(\) of"
    ):
        score_graph_of(onnx.parser.parse_model(text % 1))


def test_a_dtype_that_is_none_is_refused():
    with pytest.raises(ValueError, match="dtype must be"):
        score_graph_of(Ridge().fit(X, y), dtype="float16")


@pytest.mark.parametrize(
    "model", ["model.onnx", None, Ridge, StandardScaler(), make_pipeline(StandardScaler())]
)
def test_what_is_no_model_is_refused(model):
    with pytest.raises(
        ValueError, match=r"model must be an onnx\.ModelProto, a fitted estimator that predicts"
    ):
        score_graph_of(model)
