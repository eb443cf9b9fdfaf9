"""
TransformedTargetRegressor inside: the target is transformed before the training,
predictions are in units of y.
"""

import pickle

import numpy as np
import pytest
import skl2onnx
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotExportableError, NotTrainableError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = 500 * np.exp(0.3 * X @ [1.0, -2.0, 0.5] + 0.05 * RNG.normal(size=150))
Y2 = np.column_stack([Y, Y[::-1] + 30])
TRANSFORMS = {
    "standard": {"transformer": StandardScaler()},
    "standard without mean": {"transformer": StandardScaler(with_mean=False)},
    "standard without scale": {"transformer": StandardScaler(with_std=False)},
    "minmax": {"transformer": MinMaxScaler((-1, 1))},
    "maxabs": {"transformer": MaxAbsScaler()},
    "robust": {"transformer": RobustScaler()},
    "robust without centre": {"transformer": RobustScaler(with_centering=False)},
    "log1p": {"func": np.log1p, "inverse_func": np.expm1},
    "log": {"func": np.log, "inverse_func": np.exp},
    "sqrt": {"func": np.sqrt, "inverse_func": np.square},
    "reciprocal": {"func": np.reciprocal, "inverse_func": np.reciprocal},
    "negative": {"func": np.negative, "inverse_func": np.negative},
    "pipeline": {
        "transformer": make_pipeline(FunctionTransformer(np.log, np.exp), StandardScaler())
    },
    "default": {},
}
INVERSES = {
    # The inverse makes sense for any training: of small scores.
    "exp": {"func": np.exp, "inverse_func": np.log},
    "expm1": {"func": np.expm1, "inverse_func": np.log1p},
    "square": {"func": np.square, "inverse_func": np.sqrt},
}


def trained(estimator, **options):
    return OrtSGDRegressor(
        estimator, **{"max_iter": 30, "tol": None, "random_state": 0, "dtype": "float64", **options}
    )


def network():
    return MLPRegressor(hidden_layer_sizes=(6,), activation="tanh")


@pytest.mark.parametrize("y", [Y, Y2], ids=["one output", "two outputs"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_trains_on_the_transformed_target(name, y, run_onnx):
    inside = trained(TransformedTargetRegressor(network(), **TRANSFORMS[name]), eta0=1e-3).fit(X, y)
    outside = TransformedTargetRegressor(trained(network(), eta0=1e-3), **TRANSFORMS[name]).fit(
        X, y
    )
    expected = outside.predict(X)
    assert inside.predict(X).shape == y.shape
    np.testing.assert_allclose(inside.predict(X), expected, rtol=1e-9)
    exported = run_onnx(inside.onnx_, X=X)["variable"]
    np.testing.assert_allclose(exported, expected.reshape(exported.shape), rtol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(inside)).predict(X), inside.predict(X))
    plain = inside.to_sklearn()
    assert isinstance(plain, TransformedTargetRegressor)
    np.testing.assert_allclose(plain.predict(X), expected, rtol=1e-9)


@pytest.mark.parametrize("name", INVERSES)
def test_functions_whose_inverse_needs_small_targets(name, run_onnx):
    y = 1 + 0.2 * np.abs(X[:, 0])
    model = trained(TransformedTargetRegressor(LinearRegression(), **INVERSES[name])).fit(X, y)
    by_hand = trained(LinearRegression()).fit(X, INVERSES[name]["func"](y))
    expected = INVERSES[name]["inverse_func"](by_hand.predict(X))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    np.testing.assert_allclose(run_onnx(model.onnx_, X=X)["variable"].ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-4), ("float64", 1e-10)])
@pytest.mark.parametrize("outermost", [True, False], ids=["around the steps", "after the steps"])
def test_steps_get_the_y_that_scikit_learn_gives_them(outermost, dtype, rtol, run_onnx):
    # The second best column depends on whether y or its logarithm is asked.
    rng = np.random.default_rng(1)
    columns = np.column_stack([Y, np.log(Y), np.sqrt(Y)]) + rng.normal(
        0, [100, 0.2, 0.1], size=(150, 3)
    )
    best = [
        SelectKBest(f_regression, k=2).fit(columns, y).get_support().tolist()
        for y in (Y, np.log(Y))
    ]
    assert best == [[True, False, True], [False, True, True]]
    steps, log = (
        (StandardScaler(), SelectKBest(f_regression, k=2)),
        {"func": np.log, "inverse_func": np.exp},
    )
    if outermost:
        model = TransformedTargetRegressor(make_pipeline(*steps, LinearRegression()), **log)
    else:
        model = make_pipeline(*steps, TransformedTargetRegressor(LinearRegression(), **log))
    ours = trained(model, dtype=dtype).fit(columns, Y)
    plain = ours.to_sklearn()
    assert type(plain) is type(model)
    selector = (plain.regressor_ if outermost else plain)[1]
    assert selector.get_support().tolist() == best[outermost]
    np.testing.assert_allclose(plain.predict(columns), ours.predict(columns), rtol=rtol)
    exported = run_onnx(ours.onnx_, X=columns.astype(dtype))["variable"].ravel()
    np.testing.assert_allclose(exported, ours.predict(columns), rtol=rtol)


def test_a_fitted_one_is_gone_on_from(run_onnx):
    fitted = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), Ridge()), transformer=StandardScaler()
    )
    before = fitted.fit(X, Y).predict(X)
    model = trained(FrozenEstimator(fitted), eta0=1e-12, max_iter=1).fit(X[:50], 2 * Y[:50])
    np.testing.assert_allclose(model.predict(X), before, rtol=1e-6)
    np.testing.assert_allclose(run_onnx(model.onnx_, X=X)["variable"].ravel(), before, rtol=1e-6)


def test_a_fitted_regressor_inside_gets_a_new_transformer():
    scaled = (Y - Y.mean()) / Y.std()
    fitted = Ridge().fit(X, scaled)
    model = trained(
        TransformedTargetRegressor(FrozenEstimator(fitted), transformer=StandardScaler()),
        eta0=1e-12,
    )
    np.testing.assert_allclose(
        model.fit(X, Y).predict(X), fitted.predict(X) * Y.std() + Y.mean(), rtol=1e-6
    )


def test_a_log_link_and_a_transformed_target(run_onnx):
    model = trained(
        TransformedTargetRegressor(PoissonRegressor(), transformer=MaxAbsScaler()), loss="poisson"
    )
    expected = TransformedTargetRegressor(
        trained(PoissonRegressor(), loss="poisson"), transformer=MaxAbsScaler()
    )
    expected = expected.fit(X, Y).predict(X)
    np.testing.assert_allclose(model.fit(X, Y).predict(X), expected, rtol=1e-9)
    np.testing.assert_allclose(run_onnx(model.onnx_, X=X)["variable"].ravel(), expected, rtol=1e-9)


def test_scores_of_a_validation_set_are_in_units_of_y():
    model = trained(
        TransformedTargetRegressor(network(), transformer=StandardScaler()),
        scoring="neg_mean_absolute_error",
    )
    model.fit(X, Y, X_val=X[:20], y_val=Y[:20])
    assert model.validation_scores_[-1] == pytest.approx(
        -np.abs(model.predict(X[:20]) - Y[:20]).mean(), rel=1e-9
    )


def test_streams(run_onnx):
    steps = {"eta0": 0.1, "batch_size": 50, "learning_rate": "constant"}
    stream = trained(
        TransformedTargetRegressor(func=np.log, inverse_func=np.exp), shuffle=False, **steps
    )
    for _ in range(30):
        stream.partial_fit(X, Y)
    np.testing.assert_allclose(stream.predict(X), stream.fit(X, Y).predict(X), rtol=1e-12)
    scaled = trained(TransformedTargetRegressor(transformer=StandardScaler()))
    assert not hasattr(scaled, "partial_fit")
    scaler = FrozenEstimator(StandardScaler().fit(Y[:, None]))
    frozen = trained(
        TransformedTargetRegressor(transformer=scaler), max_iter=1, **steps
    ).partial_fit(X, Y)
    np.testing.assert_array_equal(frozen.predict(X), frozen.fit(X, Y).predict(X))


def test_a_search():
    model = trained(TransformedTargetRegressor(network()), eta0=0.05)
    grid = {
        "estimator__transformer": [None, StandardScaler()],
        "estimator__regressor__activation": ["tanh", "relu"],
    }
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, Y)
    plain, scaled = search.cv_results_["mean_test_score"].reshape(2, 2).T
    # The training standardizes y, too.
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


@pytest.mark.parametrize(
    "transform",
    [{"transformer": PowerTransformer()}, {"func": np.cbrt, "inverse_func": lambda y: y**3}],
    ids=["power", "function"],
)
def test_other_inverses_predict_and_are_not_exported(transform):
    with pytest.warns(
        UserWarning, match="no ONNX: TransformedTargetRegressor: the inverse of its transformer"
    ):
        model = trained(TransformedTargetRegressor(LinearRegression(), **transform)).fit(X, Y)
    outside = TransformedTargetRegressor(trained(LinearRegression()), **transform).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), outside.predict(X), rtol=1e-9)
    with pytest.raises(
        NotExportableError, match=r"the inverse of its transformer .* Use StandardScaler"
    ):
        model.to_onnx()


@pytest.mark.parametrize(
    "estimator, y, message",
    [
        (TransformedTargetRegressor(func=np.log), Y, "inverse_func"),
        (TransformedTargetRegressor(func=np.log, inverse_func=np.exp), Y - 1e4, "contains NaN"),
        (
            make_pipeline(
                StandardScaler(),
                TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge())),
            ),
            Y,
            "put all steps inside it, or all before it",
        ),
        (TransformedTargetRegressor(TransformedTargetRegressor(Ridge())), Y, "inside another one"),
    ],
    ids=["one function", "no logarithm", "between", "nested"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:The provided functions:UserWarning")
def test_what_cannot_be_is_said(estimator, y, message):
    with pytest.raises(ValueError, match=message):
        trained(estimator).fit(X, y)


def test_a_classifier_takes_none():
    with pytest.raises(NotTrainableError, match="LinearRegression is not a classifier"):
        OrtSGDClassifier(TransformedTargetRegressor()).fit(X, Y > 500)


@pytest.mark.parametrize("y", [Y, Y2], ids=["one output", "two outputs"])
@pytest.mark.parametrize("name", ["standard", "log1p", "pipeline"])
def test_skl2onnx_converts_one_around_the_estimator(name, y, run_onnx):
    for inner in (
        trained(network(), dtype="float32"),
        make_pipeline(StandardScaler(), trained(None, dtype="float32")),
    ):
        model = TransformedTargetRegressor(inner, **TRANSFORMS[name])
        for whole in (model, make_pipeline(MinMaxScaler(), model)):
            whole.fit(X, y)
            exported = run_onnx(
                skl2onnx.to_onnx(whole, X.astype(np.float32), target_opset=17),
                X=X.astype(np.float32),
            )["variable"]
            np.testing.assert_allclose(exported.reshape(y.shape), whole.predict(X), rtol=1e-4)


def test_skl2onnx_says_which_transformer_it_cannot_convert():
    model = TransformedTargetRegressor(trained(None), transformer=PowerTransformer()).fit(X, Y)
    with pytest.raises(
        NotExportableError, match=r"the inverse of its transformer PowerTransformer"
    ):
        skl2onnx.to_onnx(model, X)
