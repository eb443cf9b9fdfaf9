"""Class weights: a long fit ends at scikit-learn's optimum, with three classes too."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from skort import OrtSGDClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)) * [1.0, 2.0, 0.7, 1.0]
SCORE = X @ [1.0, -0.5, 0.0, 0.3] + 0.5 + 0.5 * RNG.normal(size=150)
# Classes of 40 % and 60 %; of 26 %, 45 % and 29 %.
TWO, THREE = (SCORE > 0.8).astype(int), np.digitize(SCORE, [-0.3, 1.3])
WEIGHT = RNG.uniform(0.5, 2.0, 150)
CLASS_WEIGHT = {0: 1.0, 1: 2.5, 2: 0.3}
LONG = {"dtype": "float64", "batch_size": 150, "max_iter": 30_000, "tol": 1e-13, "eta0": 0.1}
LONG |= {"learning_rate": "adaptive", "n_iter_no_change": 5, "random_state": 0}
SHORT = {
    "max_iter": 5,
    "tol": None,
    "eta0": 0.05,
    "learning_rate": "constant",
    "standardize": False,
    "random_state": 0,
    "batch_size": 16,
}


def quietly(call, *args, **kwargs):
    """Call without the warnings of training parameters that are not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*args, **kwargs)


def check_same(ours, coef, intercept):
    np.testing.assert_allclose(ours.coef_, np.atleast_2d(coef), atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, intercept, atol=1e-3)


def of_classes(class_weight, y):
    """Return class weights of the classes that y has."""
    return (
        {k: class_weight[k] for k in np.unique(y).tolist()}
        if isinstance(class_weight, dict)
        else class_weight
    )


# Until scikit-learn 1.6, "balanced" counts rows in all models.
HAS_WEIGHTED_BALANCE = "sample_weight" in inspect.signature(compute_class_weight).parameters
MODELS = [
    LinearSVC(C=0.05, tol=1e-10, max_iter=10**6),
    LogisticRegression(C=0.1, tol=1e-10, max_iter=10_000),
    RidgeClassifier(alpha=20.0),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("class_weight", ["balanced", CLASS_WEIGHT], ids=["balanced", "dict"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_long_fit_ends_at_the_optimum_of_scikit_learn(model, class_weight, y, weighted):
    if (
        class_weight == "balanced"
        and weighted
        and not (HAS_WEIGHTED_BALANCE or isinstance(model, RidgeClassifier))
    ):
        pytest.skip("this scikit-learn does not balance sample weights")
    weight = WEIGHT if weighted else None
    inner = clone(model).set_params(class_weight=of_classes(class_weight, y))
    ours = quietly(OrtSGDClassifier(inner, **LONG).fit, X, y, sample_weight=weight)
    theirs = clone(inner).fit(X, y, sample_weight=weight)
    check_same(ours, theirs.coef_, theirs.intercept_)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize(
    "class_weight", [None, "balanced", CLASS_WEIGHT], ids=["none", "balanced", "dict"]
)
def test_that_of_sgd_classifier_is_the_optimum_of_its_binary_problems(class_weight, y, weighted):
    alpha, weight = 0.1, WEIGHT if weighted else np.ones(len(y))
    of_model = of_classes(class_weight, y)
    inner = SGDClassifier("log_loss", alpha=alpha, class_weight=of_model)
    ours = quietly(
        OrtSGDClassifier(inner, **LONG).fit, X, y, sample_weight=weight if weighted else None
    )
    # SGDClassifier balances rows, whatever their sample weights.
    by_class = compute_class_weight(of_model, classes=np.unique(y), y=y)
    coefs, intercepts = [], []
    for k in range(3) if y is THREE else [1]:
        counts = weight * (np.where(y == k, by_class[k], 1.0) if y is THREE else by_class[y])
        # alpha / mean(s) of the mean over the sum of s; of two classes, s are the rows' weights.
        C = 1 / (alpha * len(y))
        binary = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(
            X, y == k, sample_weight=counts
        )
        coefs.append(binary.coef_[0])
        intercepts.append(binary.intercept_[0])
    check_same(ours, coefs, intercepts)
    np.testing.assert_allclose(
        ours.to_sklearn().predict_proba(X), ours.predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize("loss", ["hinge", "modified_huber", "squared_error"])
def test_each_column_is_the_binary_problem_of_its_class(solver, loss):
    options = {
        **SHORT,
        "solver": solver,
        "loss": loss,
        "penalty": None,
        "batch_size": 150,
        "shuffle": False,
    }
    ours = OrtSGDClassifier(class_weight=CLASS_WEIGHT, **options).fit(X, THREE, WEIGHT)
    for k in range(3):
        counts = WEIGHT * np.where(k == THREE, CLASS_WEIGHT[k], 1.0)
        eta0 = SHORT["eta0"] * counts.sum() / WEIGHT.sum()
        binary = OrtSGDClassifier(**{**options, "eta0": eta0}).fit(X, k == THREE, counts)
        np.testing.assert_allclose(ours.coef_[k], binary.coef_[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ours.intercept_[k], binary.intercept_[0], rtol=1e-5, atol=1e-6)


def test_a_softmax_weighs_rows_whatever_the_model_inside():
    weights = {"class_weight": CLASS_WEIGHT}
    counts = np.array([CLASS_WEIGHT[k] for k in THREE.tolist()])
    for inner, loss in (
        (LogisticRegression(), "auto"),
        (SGDClassifier(), "log_loss"),
        (None, "auto"),
    ):
        options = {**SHORT, "loss": loss, "penalty": None}
        by_class = OrtSGDClassifier(inner, **options, **weights).fit(X, THREE)
        by_row = OrtSGDClassifier(inner, **options).fit(X, THREE, counts)
        np.testing.assert_allclose(by_class.coef_, by_row.coef_, rtol=1e-6)


def test_a_stream_has_the_class_weights_of_each_call():
    inner = SGDClassifier("hinge", class_weight=CLASS_WEIGHT)
    options = {**SHORT, "shuffle": False, "random_state": 0}
    stream = OrtSGDClassifier(inner, **options)
    fitted = OrtSGDClassifier(inner, **{**options, "max_iter": 3}).fit(X, THREE)
    for _ in range(3):
        stream = pickle.loads(pickle.dumps(stream.partial_fit(X, THREE, classes=[0, 1, 2])))
    np.testing.assert_array_equal(stream.coef_, fitted.coef_)
    other = (
        pickle.loads(pickle.dumps(stream)).set_params(class_weight={1: 5.0}).partial_fit(X, THREE)
    )
    none = pickle.loads(pickle.dumps(stream)).set_params(class_weight=None).partial_fit(X, THREE)
    stream.partial_fit(X, THREE)
    # Class 0 has the weight 1 of all others; in `other`, class 2 has it, too.
    assert (none.coef_ != stream.coef_).any(axis=1).tolist() == [False, True, True]
    assert (none.coef_ != other.coef_).any(axis=1).tolist() == [False, True, False]
    assert (stream.coef_ != other.coef_).any(axis=1).tolist() == [False, True, True]


def test_liblinear_trains_one_class_against_the_rest():
    inner = LogisticRegression(
        C=0.1, solver="liblinear", intercept_scaling=0.5, tol=1e-10, max_iter=10_000
    )
    ours = quietly(OrtSGDClassifier(inner, **LONG).fit, X, THREE)
    theirs = OneVsRestClassifier(inner).fit(X, THREE)
    coefs, intercepts = zip(
        *((m.coef_[0], m.intercept_[0]) for m in theirs.estimators_), strict=True
    )
    check_same(ours, coefs, intercepts)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)), atol=1e-12)
    far = ours.predict_log_proba(-1e5 * X)
    assert far.min() < -1e3 and np.isfinite(far).all()


def test_weights_beyond_float64_are_named():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = OrtSGDClassifier(class_weight={0: 1e300, 1: 1.0})
    with pytest.raises(ValueError, match="times sample_weight is too large for float64"):
        model.fit(X, y, sample_weight=np.full(4, 1e300))


@pytest.mark.parametrize("inner", [None, LogisticRegression, LinearSVC])
@pytest.mark.parametrize(
    "class_weight",
    [{"01": 5.0, "1": 1.0, "2": 0.5}, {"01": 5.0, 1: 1.0, 2: 0.5}, {"01": 5.0, "2": 0.5}],
    ids=str,
)
@pytest.mark.parametrize("dtype", [str, object])
def test_text_labels_that_look_like_numbers(inner, class_weight, dtype):
    def fit(labels, class_weight):
        options = (
            {"class_weight": class_weight}
            if inner is None
            else {"estimator": inner(class_weight=class_weight)}
        )
        model = OrtSGDClassifier(**SHORT, **options)
        return quietly(model.fit, X, np.array(labels, dtype)[THREE])

    ours = fit(["01", "1", "2"], class_weight)
    plain = fit(["a", "b", "c"], {"a": 5.0, "b": 1.0, "c": 0.5})
    np.testing.assert_array_equal(ours.coef_, plain.coef_)


def test_a_number_is_no_label_that_is_written_differently():
    message = r"The classes, \['01', '1'\], are not in class_weight, whose keys are \['2'\]"
    with pytest.raises(ValueError, match=message):
        OrtSGDClassifier(class_weight={"2": 1.0}).fit(X, np.array(["01", "1"])[TWO])
    with pytest.raises(ValueError, match=r"The classes, \['01'\], are not in class_weight"):
        OrtSGDClassifier(class_weight={1: 1.0, 2: 1.0}).fit(X, np.array(["01", "1"])[TWO])


def test_rows_of_a_given_validation_set_have_class_weights_and_no_others():
    of_classes = np.where(TWO == 1, 1.0, 4.0)
    options = {"class_weight": {0: 4.0, 1: 1.0}, "max_iter": 1, "tol": None, "random_state": 0}
    model = OrtSGDClassifier(optimizer="sgd", **options)
    model.fit(X, TWO, sample_weight=np.where(TWO == 1, 3.0, 0.5), X_val=X, y_val=TWO)
    expected = -log_loss(TWO, model.predict_proba(X), sample_weight=of_classes)
    assert model.validation_scores_ == pytest.approx([expected], rel=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_held_out_rows_keep_their_sample_weights_beside_those_of_their_classes():
    # Half of the rows that are held out, whichever they are, are of each class.
    X, y = np.zeros((200, 1)), np.arange(200) % 2
    options = {"class_weight": {0: 4.0, 1: 1.0}, "max_iter": 1, "tol": None, "random_state": 0}
    model = OrtSGDClassifier(optimizer="sgd", early_stopping=True, **options)
    model.fit(X, y, sample_weight=np.where(y == 1, 3.0, 0.5))
    first, second = np.log(model.predict_proba(X)[0])
    expected = (0.5 * 4 * first + 3 * second) / (0.5 * 4 + 3)
    assert model.validation_scores_ == pytest.approx([expected], rel=1e-5)
