"""
What scikit-learn's linear models by gradient descent have besides:
initial weights, sparse coefficients, names.
"""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from solver_traits import takes

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotExportableError
from skort.objective import GammaLoss, Huber, PoissonLoss

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = X @ [1.0, -2.0, 0.0] + 3
CLASSES = np.digitize(Y, [2, 4])


def one_step(estimator_class, **options):
    """Return an estimator that makes one step, on all rows, with the plain gradient."""
    options = {"dtype": "float64", "alpha": 0, "eta0": 0.1, "standardize": False, **options}
    return estimator_class(max_iter=1, tol=None, batch_size=90, **options)


class TestInitialWeights:
    """`coef_init` and `intercept_init` of `fit`."""

    def test_of_a_regressor(self, solver):
        model = one_step(OrtSGDRegressor, solver=solver)
        if not takes(solver, dtype="float64"):
            model.set_params(dtype="float32")
        coef, intercept = np.array([1.0, 2.0, 3.0]), 0.5
        model.fit(X, Y, coef_init=coef, intercept_init=intercept)
        residual = X @ coef + intercept - Y
        np.testing.assert_allclose(model.coef_, coef - 0.1 * X.T @ residual / 90, rtol=1e-5)
        np.testing.assert_allclose(model.intercept_, [intercept - 0.1 * residual.mean()], rtol=1e-5)

    @pytest.mark.parametrize(
        "y", [np.column_stack([Y, 2 * Y]), CLASSES], ids=["outputs", "classes"]
    )
    def test_of_several_scores(self, y):
        estimator_class = OrtSGDClassifier if y.ndim == 1 else OrtSGDRegressor
        coef, intercept = (
            RNG.normal(size=(3 if y.ndim == 1 else 2, 3)),
            RNG.normal(size=3 if y.ndim == 1 else 2),
        )
        model = one_step(estimator_class).set_params(eta0=1e-300)
        model.fit(X, y, coef_init=coef, intercept_init=intercept.tolist())
        np.testing.assert_array_equal(model.coef_, coef)
        np.testing.assert_array_equal(model.intercept_, intercept)

    def test_training_on_is_scikit_learns(self):
        options = {
            "max_iter": 1,
            "tol": None,
            "shuffle": False,
            "eta0": 0.01,
            "alpha": 0,
            "learning_rate": "constant",
        }
        init = {"coef_init": [0.1, 0.2, 0.3], "intercept_init": [0.4]}
        ours = OrtSGDRegressor(batch_size=1, dtype="float64", standardize=False, **options).fit(
            X, Y, **init
        )
        theirs = SGDRegressor(**options).fit(X, Y, **init)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-9)

    def test_they_come_before_those_of_a_warm_start(self):
        model = one_step(OrtSGDRegressor, warm_start=True).fit(X, Y)
        intercept = model.intercept_
        model.set_params(eta0=1e-300).fit(X, Y, coef_init=[1, 2, 3])
        np.testing.assert_array_equal(model.coef_, [1, 2, 3])
        np.testing.assert_array_equal(model.intercept_, intercept)

    @pytest.mark.parametrize(
        "y, init, theirs",
        [
            (Y, {"coef_init": np.zeros(4)}, SGDRegressor()),
            (Y, {"intercept_init": np.zeros(2)}, SGDRegressor()),
            (Y > 3, {"coef_init": np.zeros((2, 3))}, SGDClassifier()),
            (CLASSES, {"intercept_init": np.zeros(2)}, SGDClassifier()),
        ],
    )
    def test_other_shapes_are_refused_as_by_scikit_learn(self, y, init, theirs):
        ours = OrtSGDRegressor() if isinstance(theirs, SGDRegressor) else OrtSGDClassifier()
        for model in (ours, theirs):
            with pytest.raises(
                ValueError, match=f"Provided {next(iter(init))} does not match dataset."
            ):
                model.fit(X, y, **init)

    def test_other_models_have_none(self):
        with pytest.raises(ValueError, match="for linear models"):
            OrtSGDRegressor(MLPRegressor()).fit(X, Y, coef_init=np.zeros(3))
        with pytest.raises(ValueError, match="for a model with an intercept"):
            OrtSGDRegressor(LinearRegression(fit_intercept=False)).fit(X, Y, intercept_init=0)


class TestSparseCoefficients:
    """`sparsify` and `densify`."""

    @pytest.mark.parametrize("y", [Y, np.column_stack([Y, Y])], ids=["one output", "two outputs"])
    def test_of_a_regressor(self, y):
        model = OrtSGDRegressor(penalty="l1", alpha=0.5).fit(X, y)
        coef, prediction = model.coef_, model.predict(X)
        assert not coef.all()
        assert model.sparsify() is model
        assert scipy.sparse.isspmatrix_csr(model.coef_)
        np.testing.assert_array_equal(model.coef_.toarray(), np.atleast_2d(coef))
        again = pickle.loads(pickle.dumps(model))
        assert scipy.sparse.issparse(again.coef_)
        for sparse in (model, again):
            np.testing.assert_array_equal(sparse.predict(X), prediction)
            np.testing.assert_array_equal(sparse.densify().coef_, coef)

    def test_of_a_classifier(self):
        model = OrtSGDClassifier().fit(X, CLASSES)
        coef, probabilities = model.coef_, model.predict_proba(X)
        np.testing.assert_array_equal(model.sparsify().coef_.toarray(), coef)
        np.testing.assert_array_equal(model.predict_proba(X), probabilities)
        assert isinstance(model.partial_fit(X, CLASSES).coef_, np.ndarray)

    def test_other_models_have_none(self):
        model = OrtSGDClassifier(MLPClassifier((2,)), max_iter=1).fit(X, CLASSES)
        with pytest.raises(AttributeError, match="no attribute 'sparsify'") as raised:
            model.sparsify()
        assert "the model is not linear" in str(raised.value)
        assert not hasattr(OrtSGDClassifier(MLPClassifier((2,))), "densify")


class TestCoefficientsAreShown:
    """
    `coef_` and `intercept_`, which the model predicts with,
    change through `set_weights` alone.
    """

    @pytest.mark.parametrize("model", [OrtSGDRegressor(), OrtSGDClassifier()], ids=str)
    def test_they_are_read_only(self, model):
        model = clone(model).fit(X, CLASSES)
        shown, prediction = (model.coef_, model.intercept_), model.predict(X)
        again = pickle.loads(pickle.dumps(model))
        for array in (*shown, again.coef_, again.intercept_, model.sparsify().coef_.data):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0
        for name in ("coef_", "intercept_"):
            with pytest.raises(
                AttributeError, match=rf"^{name} shows .* cannot be set: use set_weights"
            ):
                setattr(model, name, np.zeros(3))
        np.testing.assert_array_equal(model.predict(X), prediction)
        np.testing.assert_array_equal(model.densify().coef_, shown[0])

    def test_set_weights_changes_them_and_predictions(self):
        model = (
            OrtSGDRegressor()
            .fit(X, Y)
            .set_weights({"coef": [[1.0], [2.0], [3.0]], "intercept": [4.0]})
        )
        np.testing.assert_array_equal(model.coef_, [1, 2, 3])
        np.testing.assert_allclose(model.predict(X), X @ [1, 2, 3] + 4, rtol=1e-5, atol=1e-5)

    def test_tools_of_scikit_learn_read_them(self):
        selected = RFE(OrtSGDRegressor(random_state=0), n_features_to_select=1).fit(X, Y)
        assert selected.support_.tolist() == [False, True, False]
        model = OrtSGDRegressor(random_state=0).fit(X, Y)
        assert SelectFromModel(model, prefit=True, max_features=1).transform(X).shape == (90, 1)
        assert not hasattr(clone(model), "coef_")
        with pytest.raises(
            AttributeError, match="'OrtSGDRegressor' object has no attribute 'coef_'"
        ):
            _ = clone(model).coef_


def test_a_lasso_inside_selects_as_outside_with_its_threshold():
    rows, target = load_diabetes(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)
    theirs = SelectFromModel(Lasso(5)).fit(rows, target).get_support()
    ours = SelectFromModel(OrtSGDRegressor(Lasso(5)), threshold=1e-5).fit(rows, target)
    assert 1 < theirs.sum() < 9
    np.testing.assert_array_equal(ours.get_support(), theirs)


def test_penalties_without_a_ratio_take_none():
    plain, none = (
        OrtSGDRegressor(penalty="l2", l1_ratio=ratio, random_state=0).fit(X, Y)
        for ratio in (0.15, None)
    )
    np.testing.assert_array_equal(plain.coef_, none.coef_)
    with pytest.raises(ValueError, match="l1_ratio must be set when penalty is 'elasticnet'"):
        OrtSGDRegressor(l1_ratio=None, penalty="elasticnet").fit(X, Y)


@pytest.mark.parametrize(
    "options", [{}, {"early_stopping": True, "tol": 1e-3}, {"learning_rate": "adaptive"}]
)
def test_endless_patience_ends_with_max_iter(options):
    model = OrtSGDRegressor(
        n_iter_no_change=np.inf, max_iter=40, eta0=0.5, random_state=0, **options
    )
    assert model.fit(X, Y).n_iter_ == 40
    assert model.set_params(n_iter_no_change=3).fit(X, Y).n_iter_ < 40 or "learning_rate" in options


@pytest.mark.parametrize(
    "loss, positive",
    [
        ("poisson", True),
        ("gamma", True),
        (PoissonLoss(), True),
        (GammaLoss(), True),
        ("squared_error", False),
        (Huber(), False),
    ],
)
def test_losses_of_positive_targets_say_so(loss, positive):
    assert get_tags(OrtSGDRegressor(loss=loss)).target_tags.positive_only is positive


class TestLabelsWithoutOnnx:
    """Dates as labels: they are predicted, and every export says why there is none."""

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("unit", ["D", "ns"])
    def test_dates(self, n_classes, unit):
        dates = np.array(["2020-01-01", "2021-06-01", "2022-01-01"], dtype=f"datetime64[{unit}]")
        codes = np.minimum(CLASSES, n_classes - 1)
        with pytest.warns(UserWarning, match="no ONNX: y has labels of dtype datetime64"):
            model = OrtSGDClassifier(random_state=0).fit(X, dates[codes])
        expected = OrtSGDClassifier(random_state=0).fit(X, codes)
        np.testing.assert_array_equal(model.classes_, dates[:n_classes])
        np.testing.assert_array_equal(model.predict(X), dates[expected.predict(X)])
        np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
        assert model.score(X, dates[codes]) == expected.score(X, codes)
        with pytest.raises(NotExportableError, match="Use ints, floats, bools or strings"):
            model.to_onnx()


def test_unscaled_data_with_a_squared_hinge_diverge_or_train():
    rows, y = load_breast_cancer(return_X_y=True)
    for dtype in ("float32", "float64"):
        model = OrtSGDClassifier(
            loss="squared_hinge", dtype=dtype, eta0=0.1, standardize=False, random_state=0
        )
        with pytest.raises(
            ValueError,
            match=r"Training diverged: the loss (grew from .* to|became inf).*StandardScaler",
        ):
            model.fit(rows, y)
        assert (
            make_pipeline(StandardScaler(), model.set_params(eta0=0.01)).fit(rows, y).score(rows, y)
            > 0.95
        )
        assert (
            OrtSGDClassifier(loss="squared_hinge", dtype=dtype, random_state=0)
            .fit(rows, y)
            .score(rows, y)
            > 0.95
        )


@pytest.mark.parametrize(
    "options, suggestion",
    [
        ({"loss": "sqared_error"}, "Did you mean loss='squared_error'?"),
        ({"solver": "sesion"}, "Did you mean solver='session'?"),
        ({"penalty": "elastic_net"}, "Did you mean penalty='elasticnet'?"),
        ({"optimizer": "adm"}, "Did you mean optimizer='adam'?"),
        ({"learning_rate": "inv_scaling"}, "Did you mean learning_rate='invscaling'?"),
        ({"learning_rate": 0.01}, "To set the rate, give eta0=0.01."),
    ],
)
def test_a_name_that_is_mistyped_gets_the_nearest_one(options, suggestion):
    (name,) = options
    with pytest.raises(
        ValueError, match=f"The {name!r} parameter of OrtSGDRegressor must be"
    ) as error:
        OrtSGDRegressor(**options).fit(X, Y)
    assert str(error.value).endswith(" " + suggestion)


def test_each_estimator_suggests_its_own_losses():
    with pytest.raises(ValueError, match=r"Did you mean loss='squared_hinge'\?$"):
        OrtSGDClassifier(LogisticRegression(), loss="squared-hinge").fit(X, CLASSES)
    with pytest.raises(ValueError, match=r"Got 'xyz' instead\. A custom loss is an ONNX function"):
        OrtSGDClassifier(loss="xyz").fit(X, CLASSES)
