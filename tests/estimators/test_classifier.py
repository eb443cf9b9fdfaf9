"""OrtSGDClassifier against closed forms and scikit-learn."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier
from skort.objective import LogLoss, OneVsRestLogLoss, WeightedSum


@pytest.mark.slow
@pytest.mark.parametrize(
    "load, inner, reference",
    [
        (load_breast_cancer, None, LogisticRegression()),
        (load_digits, None, LogisticRegression()),
        (load_digits, MLPClassifier((50,)), MLPClassifier((50,), max_iter=500, random_state=0)),
    ],
    ids=["breast_cancer", "digits", "digits, neural network"],
)
@pytest.mark.parametrize("seed", range(2))
def test_all_defaults_learn_real_data(solver, load, inner, reference, seed):
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=seed)
    models = [
        make_pipeline(StandardScaler(), model).fit(X_train, y_train)
        for model in (OrtSGDClassifier(inner, solver=solver, random_state=seed), reference)
    ]
    ours, theirs = (model.score(X_test, y_test) for model in models)
    assert ours >= theirs - 0.015


def blobs(n_classes, n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y % 3], y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_full_batches_follow_gradient_descent_in_numpy(solver, n_classes):
    X, y = blobs(n_classes)
    alpha, eta = 0.1, 0.5
    options = {"solver": solver, "alpha": alpha, "eta0": eta, "standardize": False}
    model = OrtSGDClassifier(tol=None, max_iter=20, **options).fit(X, y)
    k = 1 if n_classes == 2 else n_classes
    target = y[:, None] if k == 1 else np.eye(k)[y]
    W, b = np.zeros((3, k)), np.zeros(k)
    for _ in range(20):
        score = X @ W + b
        e = np.exp(score)
        p = e / (1 + e) if k == 1 else e / e.sum(axis=1, keepdims=True)
        W, b = (
            W - eta * (X.T @ (p - target) / len(X) + alpha * W),
            b - eta * (p - target).mean(axis=0),
        )
    np.testing.assert_allclose(model.coef_, W.T, rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, b, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), (X @ W + b).squeeze(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_limit_is_logistic_regression(n_classes, standardize):
    X, y = blobs(n_classes)
    alpha = 0.02
    options = {
        "dtype": "float64",
        "eta0": 1.0,
        "tol": 0.0,
        "max_iter": 20_000,
        "standardize": standardize,
    }
    model = OrtSGDClassifier(penalty="l2", alpha=alpha, **options).fit(X, y)
    reference = LogisticRegression(C=1 / (alpha * len(X)), tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(
        model.predict_log_proba(X), reference.predict_log_proba(X), atol=1e-5
    )
    np.testing.assert_array_equal(model.predict(X), reference.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "names",
    [
        np.array(["ant", "bee", "cicada"]),
        np.array(["ant", "bee", "cicada"], dtype=object),
        np.array([-7, 0, 300]),
        np.array([3, 5, 7], dtype=np.int8),
        np.array([3, 5, 7], dtype=np.uint64),
        np.array([-1.0, 0.0, 2.0]),
        np.array([False, True]),
    ],
    ids=lambda names: str(names.dtype),
)
def test_any_labels(solver, n_classes, names):
    if len(names) < n_classes:
        pytest.skip("there are two bools")
    X, y = blobs(n_classes)
    options = {"solver": solver, "max_iter": 20, "tol": None, "random_state": 0}
    plain = OrtSGDClassifier(**options).fit(X, y)
    named = OrtSGDClassifier(**options).fit(X, names[y])
    np.testing.assert_array_equal(named.classes_, names[:n_classes])
    assert named.predict(X).dtype == names.dtype
    np.testing.assert_array_equal(named.predict(X), names[plain.predict(X)])
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))


def test_missing_labels_in_the_training_data_are_no_classes():
    X, y = load_iris(return_X_y=True)
    model = OrtSGDClassifier(max_iter=3, tol=None).fit(X[y != 1], y[y != 1])
    assert model.classes_.tolist() == [0, 2]
    assert model.predict_proba(X).shape == (150, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_probabilities_of_extreme_scores_are_finite(n_classes):
    X, y = blobs(n_classes)
    model = OrtSGDClassifier(eta0=0.5, max_iter=20, tol=None).fit(X, y)
    far = 1e6 * X
    score = model.decision_function(far)
    log_proba = model.predict_log_proba(far)
    assert log_proba.min() < -1e4
    if n_classes == 2:
        np.testing.assert_allclose(log_proba[:, 1], np.minimum(score, 0), atol=1)
    else:
        np.testing.assert_allclose(log_proba, score - score.max(axis=1, keepdims=True), atol=2)
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1, rtol=1e-6)


def test_training_stays_finite_at_large_scores(solver):
    X, y = blobs(2)
    options = {"eta0": 0.1, "penalty": None, "max_iter": 5, "tol": None, "standardize": False}
    with pytest.warns(ConvergenceWarning, match="no better than it began"):
        model = OrtSGDClassifier(solver=solver, **options).fit(1e4 * X, y)
    assert np.abs(model.decision_function(1e4 * X)).max() > 1e4
    assert np.isfinite(model.loss_curve_).all()


def test_one_class_is_refused():
    X, _ = blobs(2)
    with pytest.raises(
        ValueError, match=r"number of classes has to be greater than one; got 1 class"
    ):
        OrtSGDClassifier().fit(X, np.zeros(len(X)))


def test_continuous_targets_are_refused():
    X, _ = blobs(2)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        OrtSGDClassifier().fit(X, X[:, 0])


@pytest.mark.parametrize(
    "class_weight", ["balanced", {"a": 1.0, "b": 3.0, "c": 0.5}, {"b": 2.0}, {"a": 0.0}]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weight_is_the_sample_weight_it_stands_for(solver, class_weight, weighted):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 4)), np.repeat(["a", "b", "c"], [20, 30, 40])
    sample_weight = rng.integers(0, 4, size=90) if weighted else np.ones(90)
    if class_weight == "balanced":
        total = {label: sample_weight[y == label].sum() for label in "abc"}
        weight = np.array([1 / total[label] for label in y])
    else:
        weight = np.array([class_weight.get(label, 1.0) for label in y])
    options = {"solver": solver, "max_iter": 5, "tol": None, "random_state": 0, "batch_size": 16}
    by_class = OrtSGDClassifier(class_weight=class_weight, **options).fit(
        X, y, sample_weight if weighted else None
    )
    by_row = OrtSGDClassifier(**options).fit(X, y, sample_weight * weight)
    np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "class_weight, message",
    [
        ({0: -1.0}, "class_weight=.* negative"),
        ({0: np.nan}, "class_weight=.* not finite"),
        ({0: 0, 1: 0}, "class_weight=.* leave no row of positive weight"),
        ({7: 1.0}, "not in class_weight"),
        ("even", "'class_weight' parameter"),
    ],
)
def test_bad_class_weights_are_named(class_weight, message):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=message):
        OrtSGDClassifier(class_weight=class_weight).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize("labels", [1, 2], ids=["one label", "several labels"])
def test_no_probability_is_above_one(labels):
    score = np.linspace(-40, 40, 20_001, dtype=np.float32)[:, None]
    y = np.tile(score > 0, labels).astype(int)
    inner = MLPClassifier((2,), activation="identity") if labels > 1 else None
    model = OrtSGDClassifier(inner, max_iter=1, tol=None, random_state=0)
    model.fit(score, y if labels > 1 else y.ravel())
    model.set_weights({name: np.ones_like(weight) for name, weight in model.weights_.items()})
    assert model.predict_proba(score).max() == 1
    assert model.predict_proba(score).min() >= 0


def test_drawing_from_the_probabilities_of_every_row():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    for row in OrtSGDClassifier(random_state=0, max_iter=20, tol=None).fit(X, y).predict_proba(X):
        assert rng.multinomial(1, row).sum() == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 3, 100])
@pytest.mark.parametrize("loss", ["log_loss", OneVsRestLogLoss(), "modified_huber"], ids=str)
def test_probabilities_are_those_of_the_raw_scores_in_float64(loss, n_classes, dtype):
    X, y = blobs(n_classes, 3 * n_classes)
    model = OrtSGDClassifier(loss=loss, dtype=dtype, max_iter=2, tol=None, random_state=0).fit(X, y)
    for factor in (1, 30, 1e4):
        model.set_weights({name: factor * weight for name, weight in model.weights_.items()})
        score, found = model.decision_function(X), model.predict_proba(X)
        if loss == "modified_huber":
            part = (
                np.clip(np.column_stack([-score, score]) if n_classes == 2 else score, -1, 1) + 1
            ) / 2
            part[part.sum(axis=1) == 0] = 1
            expected = part / part.sum(axis=1, keepdims=True)
        elif n_classes == 2:
            expected = expit(np.column_stack([-score, score]))
        else:
            expected = softmax(
                log_expit(score) if isinstance(loss, OneVsRestLogLoss) else score, axis=1
            )
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.sum(axis=1), 1, rtol=0, atol=1e-15)
    assert (
        model.onnx_.graph.output[1].type.tensor_type.elem_type
        == {"float32": 1, "float64": 11}[dtype]
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": OneVsRestLogLoss(), "class_weight": "balanced"},
        {"loss": WeightedSum([(1.0, LogLoss()), (0.5, LogLoss())])},
    ],
    ids=["class_weight", "sum"],
)
def test_logarithms_of_probabilities_stay_finite_with_terms_around_the_log_loss(parameters):
    X, y = blobs(3)
    model = OrtSGDClassifier(**parameters, max_iter=2, tol=None, random_state=0).fit(X, y)
    model.set_weights({name: 1e6 * weight for name, weight in model.weights_.items()})
    assert np.abs(model.decision_function(X)).max() > 1e4 and model.predict_proba(X).min() < 1e-300
    assert np.isfinite(model.predict_log_proba(X)).all()
