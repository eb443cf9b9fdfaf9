"""The loss of a validation set, against scikit-learn's numbers and formulas."""

import numpy as np
import pytest
import scipy.sparse
from own_losses import FOURTH
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import hinge_loss, log_loss, mean_pinball_loss, mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.estimators.data.rows import TrainingData
from skort.model_selection import OrtGridSearchCV
from skort.objective import Loss, OneVsRestLogLoss

SHORT = {"max_iter": 5, "tol": None, "random_state": 0}
X = np.random.default_rng(0).normal(size=(90, 4)) * [1.0, 100.0, 0.1, 1.0] + 7
NOISE = np.random.default_rng(1).normal(size=90)
AMOUNTS = np.exp(X[:, 0] - 7 + 0.3 * NOISE)
CLASSES = np.digitize(X[:, 0] - 7 + NOISE / 2, [-0.4, 0.6])
TRAIN, VAL = slice(0, 60), slice(60, 90)


def one_against_rest(y, p):
    onehot = np.eye(3)[y]
    return -np.mean(np.sum(onehot * np.log(p) + (1 - onehot) * np.log1p(-p), axis=1))


REGRESSIONS = [
    ({}, lambda y, p: mean_squared_error(y, p) / 2),
    (
        {"estimator": make_pipeline(StandardScaler(), LinearRegression())},
        lambda y, p: mean_squared_error(y, p) / 2,
    ),
    ({"loss": "quantile", "quantile": 0.9}, lambda y, p: mean_pinball_loss(y, p, alpha=0.9)),
    ({"loss": "poisson"}, lambda y, p: np.mean(p - y * np.log(p))),
    ({"loss": "gamma"}, lambda y, p: np.mean(np.log(p) + y / p)),
    (
        {"loss": "huber", "epsilon": 0.3},
        lambda y, p: np.mean(
            np.where(abs(p - y) < 0.3, (p - y) ** 2 / 2, 0.3 * (abs(p - y) - 0.15))
        ),
    ),
    (
        {"loss": Loss(FOURTH)},
        lambda y, p: np.mean((p - y) ** 4),
    ),
    ({"standardize": False, "eta0": 1e-5}, lambda y, p: mean_squared_error(y, p) / 2),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "options, loss", REGRESSIONS, ids=[str(case[0])[:40] for case in REGRESSIONS]
)
def test_of_a_regression(options, loss, dtype):
    model = OrtSGDRegressor(**{**SHORT, **options}, dtype=dtype)
    model.fit(X[TRAIN], AMOUNTS[TRAIN], X_val=X[VAL], y_val=AMOUNTS[VAL])
    rel = 1e-4 if dtype == "float32" else 1e-9
    assert -model.validation_scores_[-1] == pytest.approx(
        loss(AMOUNTS[VAL], model.predict(X[VAL])), rel=rel
    )


def test_of_several_outputs_and_a_transformed_target():
    Y = np.column_stack([AMOUNTS, 5 - 2 * AMOUNTS])
    model = OrtSGDRegressor(**SHORT).fit(X[TRAIN], Y[TRAIN], X_val=X[VAL], y_val=Y[VAL])
    assert -model.validation_scores_[-1] == pytest.approx(
        mean_squared_error(Y[VAL], model.predict(X[VAL])) / 2, rel=1e-5
    )
    inner = TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp)
    model = OrtSGDRegressor(inner, **SHORT).fit(
        X[TRAIN], AMOUNTS[TRAIN], X_val=X[VAL], y_val=AMOUNTS[VAL]
    )
    logs = np.log(AMOUNTS[VAL]), np.log(model.predict(X[VAL]))
    assert -model.validation_scores_[-1] == pytest.approx(mean_squared_error(*logs) / 2, rel=1e-5)


CLASSIFICATIONS = [
    ({}, 2, lambda m, y: log_loss(y, m.predict_proba(X[VAL]))),
    (
        {"estimator": MLPClassifier(hidden_layer_sizes=(5,))},
        3,
        lambda m, y: log_loss(y, m.predict_proba(X[VAL])),
    ),
    ({"loss": "hinge"}, 2, lambda m, y: hinge_loss(y, m.decision_function(X[VAL]))),
]


@pytest.mark.parametrize("options, n_classes, loss", CLASSIFICATIONS)
def test_of_a_classification(options, n_classes, loss):
    y = np.array(["a", "b", "c"])[np.minimum(CLASSES, n_classes - 1)]
    model = OrtSGDClassifier(**options, **SHORT).fit(X[TRAIN], y[TRAIN], X_val=X[VAL], y_val=y[VAL])
    assert -model.validation_scores_[-1] == pytest.approx(loss(model, y[VAL]), rel=1e-5)


def test_of_labels_and_of_one_class_against_the_rest():
    model = OrtSGDClassifier(loss=OneVsRestLogLoss(), **SHORT).fit(
        X[TRAIN], CLASSES[TRAIN], X_val=X[VAL], y_val=CLASSES[VAL]
    )
    p = 1 / (1 + np.exp(-model.decision_function(X[VAL])))
    assert -model.validation_scores_[-1] == pytest.approx(
        one_against_rest(CLASSES[VAL], p), rel=1e-5
    )
    labels = np.column_stack([CLASSES > 0, CLASSES > 1]).astype(int)
    model = OrtSGDClassifier(MLPClassifier(hidden_layer_sizes=(5,)), **SHORT)
    model.fit(X[TRAIN], labels[TRAIN], X_val=X[VAL], y_val=labels[VAL])
    p, y = model.predict_proba(X[VAL]), labels[VAL]
    loss = -np.mean(np.sum(y * np.log(p) + (1 - y) * np.log1p(-p), axis=1))
    assert -model.validation_scores_[-1] == pytest.approx(loss, rel=1e-5)


def test_weights_of_rows_and_classes_count():
    """
    A balanced class weight is that of the rows trained on;
    held-out rows have their sample weights.
    """
    y = np.where(CLASSES > 1, "x", "y")
    model = OrtSGDClassifier(class_weight="balanced", **SHORT).fit(
        X[TRAIN], y[TRAIN], X_val=X[VAL], y_val=y[VAL]
    )
    weights = np.where(
        y[VAL] == "x", 60 / (2 * np.sum(y[TRAIN] == "x")), 60 / (2 * np.sum(y[TRAIN] == "y"))
    )
    loss = log_loss(y[VAL], model.predict_proba(X[VAL]), sample_weight=weights)
    assert -model.validation_scores_[-1] == pytest.approx(loss, rel=1e-5)

    weights, held_out = np.linspace(0.1, 3, 90), []

    def scoring(estimator, X, y, sample_weight):
        held_out[:] = X, y, sample_weight
        return 0.0

    options = {"class_weight": {"x": 5.0, "y": 1.0}, "early_stopping": True, **SHORT}
    OrtSGDClassifier(scoring=scoring, **options).fit(X, y, weights)
    model = OrtSGDClassifier(**options, callbacks=None).fit(X, y, weights)
    rows, labels, given = held_out
    loss = log_loss(
        labels, model.predict_proba(rows), sample_weight=given * np.where(labels == "x", 5, 1)
    )
    assert -model.best_validation_score_ == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("inner", [None, MLPClassifier(hidden_layer_sizes=(5,))])
def test_of_sparse_rows_and_of_many(monkeypatch, inner):
    """Sparse rows are multiplied as they are, dense ones in blocks."""
    import skort.estimators.variables.row_loss as module

    counts = scipy.sparse.random(90, 3000, 0.01, "csr", random_state=0) * 3
    model = OrtSGDClassifier(inner, **SHORT)
    y = (CLASSES > 1).astype(int)
    for rows in (counts, counts[:, :40].toarray()):
        monkeypatch.setattr(module, "_FEW", 10)
        monkeypatch.setattr(module, "_BLOCK", 400)
        model.fit(rows[TRAIN], y[TRAIN], X_val=rows[VAL], y_val=y[VAL])
        assert -model.validation_scores_[-1] == pytest.approx(
            log_loss(y[VAL], model.predict_proba(rows[VAL])), rel=1e-5
        )


@pytest.mark.parametrize("block", [2**20, 40])
def test_a_rise_of_the_loss_has_a_standard_error(monkeypatch, block):
    """That of the weighted mean of the differences of rows."""
    import skort.estimators.variables.row_loss as module

    monkeypatch.setattr(module, "_BLOCK", block)
    monkeypatch.setattr(module, "_FEW", block)
    weights, known = np.linspace(0.1, 3, 30), []

    class Compare:
        def on_train_begin(self, training):
            rows = TrainingData(training.prepare(X[VAL]), AMOUNTS[VAL, None], weights)
            self.loss, self.start = training.loss_of(rows), training.step.weights()

        def on_epoch_end(self, training):
            known.append(
                (
                    self.loss.rise(training.step.weights(), self.start),
                    self.loss.rise_to_score(np.array([0.3]), self.start),
                    training.trained_model(),
                )
            )

    start = {"coef_init": np.array([1.0, 0.01, 0.0, 0.5]), "intercept_init": np.array([0.3])}
    model = OrtSGDRegressor(
        **SHORT, dtype="float64", standardize=False, eta0=1e-5, callbacks=[Compare()]
    )
    model.fit(X[TRAIN], AMOUNTS[TRAIN], **start)
    before = X[VAL] @ start["coef_init"] + 0.3
    for rise, to_score, fitted in known:
        for found, predicted in ((rise, fitted.predict(X[VAL])), (to_score, 0.3)):
            of_rows = ((predicted - AMOUNTS[VAL]) ** 2 - (before - AMOUNTS[VAL]) ** 2) / 2
            mean, square = (np.sum((weights * of_rows) ** k) / weights.sum() for k in (1, 2))
            np.testing.assert_allclose(found, [mean, square], rtol=1e-9)


def _kept_epoch(model, y_val):
    """
    Fit with early stopping; return the loss that is left,
    and those of all epochs in rows of the validation set.
    """
    losses = []

    class Watch:
        def on_epoch_end(self, training):
            losses.append(loss_of(training.trained_model()))

    def loss_of(fitted):
        p = fitted.predict_proba(X[VAL])[:, 1]
        return -np.log(np.where(y_val, p, 1 - p))

    model.set_params(callbacks=[Watch()]).fit(
        X[TRAIN], CLASSES[TRAIN] > 1, X_val=X[VAL], y_val=y_val
    )
    return loss_of(model), np.array(losses)


@pytest.mark.parametrize("inner", [None, MLPClassifier(hidden_layer_sizes=(5,))])
@pytest.mark.parametrize("kind", ["the same", "turned round"])
@pytest.mark.filterwarnings("ignore:The training ended no better than a constant prediction")
def test_the_last_weights_stay_unless_the_best_are_better_by_more_than_chance(inner, kind):
    y_val = CLASSES[VAL] > 1 if kind == "the same" else CLASSES[VAL] < 1
    steps = {
        "max_iter": 20,
        "tol": None,
        "eta0": 0.3,
        "batch_size": 16,
        "learning_rate": "constant",
    }
    steps["optimizer"] = "sgd"
    model = OrtSGDClassifier(inner, early_stopping=True, random_state=1, **steps)
    left, losses = _kept_epoch(model, y_val)
    best = int(np.argmax(model.validation_scores_))
    np.testing.assert_allclose(losses.mean(axis=1), -np.array(model.validation_scores_), rtol=1e-4)
    rises = losses[-1] - losses[best]
    assert best < 19 or kind == "the same"
    is_worse = rises.sum() > np.sqrt(np.sum(rises**2))
    assert is_worse or kind == "the same"
    np.testing.assert_allclose(left, losses[best if is_worse else -1], rtol=1e-6)
    # A score of the user's is no mean over rows: its best epoch is the one.
    scored = model.set_params(scoring="neg_log_loss", callbacks=None)
    scored.fit(X[TRAIN], CLASSES[TRAIN] > 1, X_val=X[VAL], y_val=y_val)
    loss = log_loss(y_val, scored.predict_proba(X[VAL]))
    assert scored.best_validation_score_ == pytest.approx(-loss, rel=1e-6)


def test_fits_made_together_have_the_numbers_of_each_alone():
    grid = {"alpha": [1e-4, 1e-3], "eta0": [0.5, 1.0]}
    y = (X[:, 0] > 7).astype(int)
    model = OrtSGDClassifier(early_stopping=True, tol=None, max_iter=30, random_state=0)

    def last(fitted, X, y):
        return fitted.validation_scores_[-1]

    alone = GridSearchCV(model, grid, cv=2, scoring=last, refit=False).fit(X, y)
    joint = OrtGridSearchCV(model, grid, cv=2, scoring=last, refit=False).fit(X, y)
    assert joint.n_fits_together_ == 8
    np.testing.assert_allclose(
        joint.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], rtol=1e-5
    )


CONSTANTS = [
    (OrtSGDClassifier, {}, CLASSES > 1, lambda y: log_loss(y, np.full(len(y), y.mean()))),
    (
        OrtSGDClassifier,
        {},
        CLASSES,
        lambda y: log_loss(y, np.tile(np.bincount(y) / len(y), (len(y), 1))),
    ),
    (OrtSGDClassifier, {"loss": "hinge"}, CLASSES > 1, lambda y: 2 * min(y.mean(), 1 - y.mean())),
    (
        OrtSGDClassifier,
        {"loss": "squared_hinge"},
        CLASSES > 1,
        lambda y: 4 * y.mean() * (1 - y.mean()),
    ),
    (OrtSGDRegressor, {}, AMOUNTS, lambda y: y.var() / 2),
    (OrtSGDRegressor, {"loss": "poisson"}, AMOUNTS, lambda y: y.mean() * (1 - np.log(y.mean()))),
    (
        OrtSGDRegressor,
        {"loss": "absolute_error"},
        AMOUNTS,
        lambda y: np.mean(abs(y - np.median(y))),
    ),
]


@pytest.mark.parametrize("estimator_class, options, y, loss", CONSTANTS)
def test_a_fit_that_ends_no_better_than_a_constant_says_so(estimator_class, options, y, loss):
    n_outputs = (
        len(np.unique(y)) if estimator_class is OrtSGDClassifier and len(np.unique(y)) > 2 else 1
    )
    start = {
        "coef_init": np.zeros((n_outputs, 4)),
        "intercept_init": np.array([9.0, -9.0, 3.0])[:n_outputs],
    }
    model = estimator_class(early_stopping=True, **options, **{**SHORT, "eta0": 1e-6})
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X[TRAIN], y[TRAIN], X_val=X[VAL], y_val=y[VAL], **start)
    best = -model.best_validation_score_
    said = f"is {best:.4g} at best, that of its best constant prediction {loss(y[VAL]):.4g}."
    assert said in str(caught[0].message)
    assert best > loss(y[VAL])


def test_rows_of_one_target_are_not_compared_with_their_constant(recwarn):
    two, one = CLASSES > 1, CLASSES == 2
    model = OrtSGDClassifier(early_stopping=True, random_state=0).fit(
        X[TRAIN], two[TRAIN], X_val=X[one], y_val=two[one]
    )
    expected = log_loss(two[one], model.predict_proba(X[one]), labels=[False, True])
    assert -model.validation_scores_[-1] == pytest.approx(expected, rel=1e-5)
    flat = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(5,)), early_stopping=True, random_state=0
    )
    np.testing.assert_allclose(flat.fit(X, np.full(len(X), 7.0)).predict(X), 7.0, rtol=1e-3)
    assert not recwarn


def test_rare_classes_are_learnt():
    """Accuracy is that of the majority from the first epoch on."""
    rare, y = make_classification(
        1000, 10, n_informative=4, weights=[0.95], flip_y=0, random_state=1
    )
    model = OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(50,)), early_stopping=True, random_state=0
    ).fit(rare, y)
    assert int(np.argmax(model.validation_scores_)) > 10
    assert model.predict(rare)[y == 1].mean() > 0.5


@pytest.mark.filterwarnings("ignore:The loss 'of_margin' is the same at all scores")
def test_rows_whose_loss_no_score_changes_do_not_count_among_most_rows():
    # The loss of the first class, nine of ten rows, is 1: the other rows tell that the model is
    # better than a constant. Other warnings are errors.
    value = """of_margin (score, target) => (loss) {
        product = Mul (score, target)
        opposite = Neg (product)
        loss = Exp (opposite)
    }"""
    X, y = make_classification(3000, weights=[0.9], class_sep=2.0, random_state=2)
    model = OrtSGDClassifier(loss=Loss(value), random_state=0).fit(X, y)
    of_constant = np.mean(np.where(y, np.exp(-np.log(y.mean() / (1 - y.mean()))), 1.0))
    assert model.loss_ < 0.95 < 1 < of_constant


@pytest.mark.parametrize("options", [{}, {"optimizer": "sgd", "eta0": 0.1}])
def test_balanced_classes_whose_constants_are_equal_are_learnt_without_a_warning(options):
    # A softmax of equal scores has the loss log(3). Warnings are errors.
    y = np.arange(90) % 3
    rows = np.eye(3)[y] + 0.7 * np.random.default_rng(0).normal(size=(90, 3))
    model = OrtSGDClassifier(random_state=0, **options).fit(rows, y)
    assert 0.5 * np.log(3) < model.loss_ < 0.9 * np.log(3)
