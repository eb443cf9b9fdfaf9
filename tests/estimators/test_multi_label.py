"""Multi-label y: one sigmoid a label, as in scikit-learn's MLPClassifier."""

import inspect
import pickle

import numpy as np
import pytest
import skl2onnx
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer, StandardScaler
from sklearn.utils import get_tags
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = (X @ RNG.normal(size=(4, 3)) + 0.3 * RNG.normal(size=(150, 3)) > 0.2).astype(int)


def network(**options):
    return MLPClassifier((6,), activation="tanh", **options)


def fitted(y):
    return FrozenEstimator(network(tol=10.0, n_iter_no_change=1).fit(X, y))


def trained(inner=None, **options):
    options = {"max_iter": 20, "tol": None, "random_state": 0, "dtype": "float64", **options}
    return OrtSGDClassifier(network() if inner is None else inner, **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_full_batch_steps_are_scikit_learns(n_labels, weighted, solver):
    if weighted and "sample_weight" not in inspect.signature(MLPClassifier.fit).parameters:
        pytest.skip("MLPClassifier takes sample weights from scikit-learn 1.7 on")
    y = Y[:, :n_labels]
    dtype, rtol = ("float64", 1e-9) if takes(solver, dtype="float64") else ("float32", 1e-4)
    options = {"sample_weight": RNG.uniform(0.5, 2, 150)} if weighted else {}
    ours = trained(
        optimizer="sgd", learning_rate="constant", batch_size=150, max_iter=10, eta0=0.5, alpha=0,
        solver=solver, dtype=dtype, standardize=False,
    ).fit(X, y, **options)  # fmt: skip
    theirs = MLPClassifier(
        (6,), activation="tanh", solver="sgd", momentum=0, learning_rate_init=0.5, alpha=0,
        batch_size=150, max_iter=10, tol=0, n_iter_no_change=100, shuffle=False, random_state=0,
    ).fit(X, y, **options)  # fmt: skip
    np.testing.assert_allclose(ours.loss_curve_, theirs.loss_curve_, rtol=rtol)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=rtol)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.classes_.dtype == theirs.classes_.dtype
    assert ours.predict(X).dtype == theirs.predict(X).dtype
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


def test_the_loss_is_the_sum_over_labels_of_their_log_losses():
    model = trained(alpha=0, eta0=1e-12, max_iter=1, batch_size=150).fit(X, Y)
    probabilities = model.predict_proba(X)
    by_hand = sum(log_loss(Y[:, k], probabilities[:, k]) for k in range(3))
    assert model.loss_ == pytest.approx(by_hand, rel=1e-9)


def test_predictions_go_together():
    model = trained().fit(X, Y)
    score = model.decision_function(X)
    assert score.shape == (150, 3)
    np.testing.assert_array_equal(model.predict(X), score > 0)
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-score)), rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-9
    )
    assert model.score(X, Y) == accuracy_score(Y, model.predict(X)) > 0.3
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_onnx_model_has_a_matrix_of_labels(n_labels, run_onnx):
    y = Y[:, :n_labels]
    model = trained(make_pipeline(StandardScaler(), network())).fit(X, y)
    outputs = run_onnx(model.onnx_, X=X)
    np.testing.assert_array_equal(outputs["label"], model.predict(X))
    assert outputs["label"].dtype == np.int64
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), rtol=1e-9)
    outer = make_pipeline(StandardScaler(), model).fit(X, y)
    options = {id(outer): {"zipmap": False}}
    converted = run_onnx(skl2onnx.to_onnx(outer, X, options=options, target_opset=17), X=X)
    np.testing.assert_array_equal(converted["label"], outer.predict(X))
    np.testing.assert_allclose(converted["probabilities"], outer.predict_proba(X), rtol=1e-9)
    scores = {id(model): {"zipmap": False, "raw_scores": True}}
    converted = run_onnx(skl2onnx.to_onnx(outer, X, options=scores, target_opset=17), X=X)
    np.testing.assert_allclose(converted["probabilities"], outer.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_plain_model_predicts_the_same(n_labels):
    model = trained().fit(X, Y[:, :n_labels])
    plain = model.to_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), rtol=1e-9)
    again = trained(FrozenEstimator(plain), eta0=1e-12, max_iter=1).fit(X, Y[:, :n_labels])
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-6)


def test_streams():
    steps = {
        "shuffle": False,
        "optimizer": "sgd",
        "learning_rate": "constant",
        "eta0": 0.2,
        "batch_size": 40,
        "standardize": True,
    }
    stream = trained(**steps)
    stream.partial_fit(X, Y, classes=[0, 1, 2])
    for _ in range(19):
        stream.partial_fit(X, Y)
    np.testing.assert_array_equal(
        stream.predict_proba(X), trained(**steps).fit(X, Y).predict_proba(X)
    )
    with pytest.raises(ValueError, match="y must be multi-label in all calls, or in none of them"):
        stream.partial_fit(X, Y.argmax(axis=1))
    with pytest.raises(ValueError, match=r"classes must be \[0, 1, 2\]"):
        trained().partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="y has 2 columns"):
        stream.partial_fit(X, Y[:, :2])


def test_early_stopping_holds_out_random_rows():
    model = trained(early_stopping=True, max_iter=5).fit(X, Y)
    assert len(model.validation_scores_) == 5
    assert model.best_validation_score_ == max(model.validation_scores_)


def test_a_search():
    search = GridSearchCV(trained(), {"eta0": [1e-9, 0.5]}, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"eta0": 0.5}


def test_labels_may_be_floats_or_bools():
    expected = trained().fit(X, Y).predict(X)
    for y in (Y.astype(float), Y.astype(bool), Y.tolist()):
        np.testing.assert_array_equal(trained().fit(X, y).predict(X), expected)


@pytest.mark.parametrize(
    "inner, multi_label",
    [
        (None, False),
        (RidgeClassifier(), False),
        (network(), True),
        (make_pipeline(StandardScaler(), network()), True),
        (FrozenEstimator(network()), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
    ],
)
def test_tags(inner, multi_label):
    assert get_tags(OrtSGDClassifier(inner)).classifier_tags.multi_label is multi_label
    assert (
        get_tags(make_pipeline(OrtSGDClassifier(inner))).classifier_tags.multi_label is multi_label
    )


@pytest.mark.parametrize(
    "model, y, message",
    [
        (
            OrtSGDClassifier(),
            Y,
            "a multi-label y: use MLPClassifier.. as estimator, or MultiOutputClassifier.OrtSGD",
        ),
        (
            OrtSGDClassifier(RidgeClassifier()),
            Y,
            "estimator=RidgeClassifier cannot be trained on a multi-label y",
        ),
        (trained(loss="hinge"), Y, "needs loss=\"log_loss\", got 'hinge'"),
        (trained(class_weight={0: 2}), Y, "class_weight is for one label per row"),
        (trained(), 2 * Y, "must have 1 if a row has the label, and 0 otherwise"),
        (trained(), Y + np.arange(3), "y should be a 1d array"),
        (trained(fitted(Y[:, 0] + Y[:, 1])), Y, "y has several labels per row, the fitted"),
        (trained(fitted(Y)), Y.argmax(axis=1), "y has one label per row, the fitted"),
    ],
    ids=[
        "default",
        "ridge",
        "loss",
        "class weights",
        "twos",
        "classes",
        "fitted to one",
        "fitted to several",
    ],
)
def test_what_cannot_be_is_said(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_a_regressor_takes_such_a_y_as_numbers():
    assert OrtSGDRegressor(max_iter=2).fit(X, Y).predict(X).shape == (150, 3)


def test_one_hot_rows_are_told_that_they_may_be_classes():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3))
    y = np.eye(3, dtype=int)[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = OrtSGDClassifier(MLPClassifier((5,)), max_iter=3, tol=None, random_state=0)
    with pytest.warns(UserWarning, match=r"each row has exactly one label. .* y.argmax\(axis=1\)"):
        model.fit(X, y)
    assert model.predict(X).shape == (60, 3)

    # Warnings are errors: one row of a stream says nothing of others, nor does a y of two labels.
    clone(model).partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    y[0] = 1
    clone(model).fit(X, y)


@pytest.mark.parametrize(
    "first", [["a"], ["a", "c"], {"a"}], ids=["other lengths", "one length", "sets"]
)
def test_lists_of_labels_lead_to_a_y_that_trains(first):
    labels = [first, type(first)(["a", "b"])] * 75
    with pytest.raises(
        ValueError, match="several labels in a row, give y = MultiLabelBinarizer"
    ) as raised:
        trained().fit(X, labels)
    assert str(raised.value).endswith("(y), and MLPClassifier() as estimator.")
    indicator = MultiLabelBinarizer().fit_transform(labels)
    assert trained().fit(X, indicator).predict(X).shape == indicator.shape


@pytest.mark.parametrize("method", ["fit", "fit_batches"])
def test_rows_of_the_same_labels_make_a_fitted_network_forget(method):
    same = (Y == [1, 0, 1]).all(axis=1)
    model = trained(fitted(Y), max_iter=5, early_stopping=False)
    with pytest.warns(UserWarning, match="^y is the same in all rows: a fitted network") as caught:
        model.fit(X[same], Y[same]) if method == "fit" else model.fit_batches([(X[same], Y[same])])
    assert len([each for each in caught if "forgets" in str(each.message)]) == 1
