"""Training that starts from a fitted model, or trains some of its weights."""

import copy
import warnings
from contextlib import nullcontext

import numpy as np
import onnx.parser
import pandas as pd
import pytest
import skl2onnx
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor, StackingRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.exceptions import NotTrainableError
from skort.model_selection import OrtGridSearchCV

X, Y = load_diabetes(return_X_y=True)
X, Y = 20 * X, (Y - Y.mean()) / Y.std()
FRAME = pd.DataFrame(X, columns=load_diabetes().feature_names)
FLOWERS, SPECIES = load_iris(return_X_y=True)
NAMES = load_iris().target_names[SPECIES]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

REGRESSORS = [
    Ridge(),
    MLPRegressor(hidden_layer_sizes=(5, 4), max_iter=50, random_state=0),
    RANSACRegressor(random_state=0),
    make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(5,), max_iter=200, random_state=0)
    ),
    StackingRegressor([("a", Ridge()), ("b", LinearRegression())], final_estimator=Ridge()),
]
CLASSIFIERS = [
    LogisticRegression(),
    MLPClassifier((5,), max_iter=300, random_state=0),
    make_pipeline(StandardScaler(), MLPClassifier((5,), max_iter=300, random_state=0)),
]


def still(estimator_class, estimator, **parameters):
    """Return an estimator that hardly moves."""
    return estimator_class(
        estimator, eta0=1e-12, max_iter=1, tol=None, random_state=0, **parameters
    )


@pytest.mark.parametrize("dtype, tolerance", [("float32", 5e-6), ("float64", 1e-9)])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_regression_starts_from_the_fitted_weights(model, dtype, tolerance, solver):
    if (solver, dtype) == ("session", "float64"):
        pytest.skip("TrainingSession has no float64")
    if isinstance(model, StackingRegressor) and dtype == "float64":
        pytest.skip("the Concat of its models has no gradient in float64")
    fitted = clone(model).fit(X, Y)
    estimator = still(OrtSGDRegressor, FrozenEstimator(fitted), dtype=dtype, solver=solver)
    for trained in (estimator.fit(X, Y), clone(estimator).fit(X, Y)):
        np.testing.assert_allclose(
            trained.predict(X), fitted.predict(X), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("y", [SPECIES, NAMES, NAMES == "virginica"], ids=["ints", "names", "two"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_classification_starts_from_the_fitted_weights(model, y):
    fitted = clone(model).fit(FLOWERS, y)
    trained = still(OrtSGDClassifier, FrozenEstimator(fitted)).fit(FLOWERS, y)
    np.testing.assert_array_equal(trained.classes_, fitted.classes_)
    np.testing.assert_array_equal(trained.predict(FLOWERS), fitted.predict(FLOWERS))
    np.testing.assert_allclose(
        trained.predict_proba(FLOWERS), fitted.predict_proba(FLOWERS), atol=3e-6
    )


def test_a_search_keeps_the_fitted_weights():
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(FLOWERS, SPECIES)
    search = GridSearchCV(
        still(OrtSGDClassifier, FrozenEstimator(fitted)), {"alpha": [0, 1e-4]}, cv=3
    )
    search.fit(FLOWERS, SPECIES)
    # Not refitted: every fold scores as the pipeline that has seen all rows.
    folds = StratifiedKFold(3).split(FLOWERS, SPECIES)
    scores = [fitted.score(FLOWERS[test], SPECIES[test]) for _, test in folds]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.mean(scores))
    np.testing.assert_allclose(
        search.best_estimator_.predict_proba(FLOWERS), fitted.predict_proba(FLOWERS), atol=3e-6
    )


@pytest.mark.parametrize("search", [GridSearchCV, OrtGridSearchCV])
@pytest.mark.parametrize(
    ("inside", "grid"),
    [
        (LogisticRegression(), {"C": [0.1, 1.0]}),
        (make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}),
        (OrtSGDClassifier(make_pipeline(StandardScaler(), LogisticRegression())), {"alpha": [0.1]}),
    ],
    ids=["model", "pipeline", "of skort"],
)
@pytest.mark.filterwarnings("ignore:OrtGridSearchCV trains no fits together")
def test_a_frozen_search_is_its_best_estimator(search, inside, grid):
    fitted = search(inside, grid, cv=3).fit(FLOWERS, SPECIES)
    trained = still(OrtSGDClassifier, FrozenEstimator(fitted)).fit(FLOWERS, SPECIES)
    expected = fitted.predict_proba(FLOWERS)
    np.testing.assert_allclose(trained.predict_proba(FLOWERS), expected, atol=3e-6)


def test_frozen_steps_are_not_refitted_and_others_are():
    half = FLOWERS[:75]
    scaler, minmax = StandardScaler().fit(half), MinMaxScaler()
    frozen = OrtSGDClassifier(
        make_pipeline(FrozenEstimator(scaler), minmax, LogisticRegression()),
        max_iter=3,
        random_state=0,
    )
    frozen.fit(FLOWERS, SPECIES)
    by_hand = MinMaxScaler().fit(scaler.transform(FLOWERS))
    expected = OrtSGDClassifier(LogisticRegression(), max_iter=3, random_state=0).fit(
        by_hand.transform(scaler.transform(FLOWERS)), SPECIES
    )
    assert frozen.coef_.tolist() == expected.coef_.tolist()


def test_training_goes_on_from_a_fitted_model_and_leaves_it_as_it_was():
    fitted = MLPRegressor(hidden_layer_sizes=(10,), max_iter=60, random_state=0).fit(X, Y)
    before = copy.deepcopy(fitted.coefs_)
    tuned = OrtSGDRegressor(FrozenEstimator(fitted), max_iter=100, eta0=0.05, random_state=0).fit(
        X, Y
    )
    assert tuned.loss_curve_[0] < 2 * ((fitted.predict(X) - Y) ** 2).mean() / 2
    assert tuned.score(X, Y) > fitted.score(X, Y) + 0.05
    for now, then in zip(fitted.coefs_, before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_classes_are_those_of_the_fitted_model():
    fitted = LogisticRegression().fit(FLOWERS, NAMES)
    some = NAMES != "versicolor"
    with pytest.warns(UserWarning, match="^y has no row of the class 'versicolor'"):
        tuned = still(OrtSGDClassifier, FrozenEstimator(fitted)).fit(FLOWERS[some], NAMES[some])
    assert tuned.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_allclose(
        tuned.predict_proba(FLOWERS), fitted.predict_proba(FLOWERS), atol=3e-6
    )
    with pytest.raises(
        ValueError, match=r"has the labels \['rose'\], and the known classes are \['setosa', "
    ):
        tuned.fit(FLOWERS, np.where(some, NAMES, "rose"))


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_a_stream_knows_the_classes_of_a_fitted_model(model):
    fitted = clone(model).fit(FLOWERS, NAMES)
    first = NAMES == "setosa"
    stream = still(OrtSGDClassifier, FrozenEstimator(fitted)).partial_fit(
        FLOWERS[first], NAMES[first]
    )
    assert stream.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_allclose(
        stream.predict_proba(FLOWERS), fitted.predict_proba(FLOWERS), atol=3e-6
    )
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        OrtSGDClassifier(MLPClassifier()).partial_fit(FLOWERS, NAMES)
    with pytest.raises(ValueError, match="are not those of the fitted estimator"):
        OrtSGDClassifier(FrozenEstimator(fitted)).partial_fit(
            FLOWERS, NAMES, classes=["setosa", "rose"]
        )


@pytest.mark.parametrize(
    "estimator, X, y, error, message",
    [
        (
            FrozenEstimator(LinearRegression()),
            X,
            Y,
            NotFittedError,
            "LinearRegression instance is not fitted",
        ),
        (
            FrozenEstimator(make_pipeline(StandardScaler(), LinearRegression())),
            X,
            Y,
            NotFittedError,
            "instance is not fitted",
        ),
        (
            FrozenEstimator(LinearRegression().fit(X, Y)),
            X[:, 1:],
            Y,
            ValueError,
            "expecting 10 features",
        ),
        (
            FrozenEstimator(LinearRegression().fit(X, Y)),
            X,
            np.c_[Y, Y],
            ValueError,
            "y asks for 2 outputs, which the fitted LinearRegression",
        ),
        (
            FrozenEstimator(RandomForestRegressor(n_estimators=2).fit(X, Y)),
            X,
            Y,
            NotTrainableError,
            "has no weight to train: .* Its operators are TreeEnsembleRegressor",
        ),
        (
            FrozenEstimator(LinearRegression().fit(FRAME, Y)),
            FRAME[FRAME.columns[::-1]],
            Y,
            ValueError,
            "Feature names must be in the same order",
        ),
        (make_pipeline(), X, Y, ValueError, "the Pipeline has no steps"),
    ],
    ids=["model", "pipeline", "features", "outputs", "forest", "names", "no steps"],
)
def test_what_does_not_fit_is_named_and_nothing_is_changed(estimator, X, y, error, message):
    model = OrtSGDRegressor(estimator)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert list(vars(model)) == list(vars(OrtSGDRegressor()))


def test_an_onnx_model_is_trained_and_not_changed(solver):
    fitted = MLPRegressor(hidden_layer_sizes=(10,), max_iter=60, random_state=0).fit(X, Y)
    model = skl2onnx.to_onnx(fitted, X[:1].astype(np.float32), target_opset=17)
    before = model.SerializeToString()
    trained = still(OrtSGDRegressor, FrozenEstimator(model), solver=solver).fit(X, Y)
    np.testing.assert_allclose(trained.predict(X), fitted.predict(X), rtol=1e-5, atol=1e-5)
    # skl2onnx puts a Cast and a Reshape around the model: it is not standardized.
    options = {
        "solver": solver,
        "max_iter": 100,
        "eta0": 0.05,
        "random_state": 0,
        "standardize": False,
        "early_stopping": False,
    }
    options |= {"optimizer": "sgd", "learning_rate": "constant"}
    tuned = OrtSGDRegressor(model, **options)
    # The same as from the model of scikit-learn.
    same = OrtSGDRegressor(FrozenEstimator(fitted), **options)
    np.testing.assert_allclose(
        clone(tuned).fit(X, Y).predict(X), same.fit(X, Y).predict(X), rtol=1e-4, atol=1e-4
    )
    assert model.SerializeToString() == before
    assert model is tuned.estimator


@pytest.mark.parametrize("y", [SPECIES, SPECIES == 2], ids=["three", "two"])
def test_an_estimators_own_model_is_trained_further(y):
    first = OrtSGDClassifier(MLPClassifier((5,)), random_state=0, max_iter=30, tol=None).fit(
        FLOWERS, y
    )
    again = still(OrtSGDClassifier, first.onnx_).fit(FLOWERS, y)
    np.testing.assert_allclose(
        again.predict_proba(FLOWERS), first.predict_proba(FLOWERS), atol=1e-6
    )


def test_a_float64_network_of_gemm_and_relu(rng):
    # The runtime makes of these, in float64 too, what has kernels in float32 only.
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        network (double[N, 2] X) => (double[N, 1] y)
        <double[3, 2] W = {1, 2, -1, 1, 0, -2}, double[3] b = {0.5, 0.25, 1},
            double[1, 3] V = {1, -1, 2}> {
            layer = Gemm <transB = 1> (X, W, b)
            hidden = Relu (layer)
            y = Gemm <transB = 1> (hidden, V)
        }""")
    rows = rng.normal(size=(20, 2))
    W, b, V = np.array([[1, 2], [-1, 1], [0, -2]]), [0.5, 0.25, 1], [1, -1, 2]
    layer = rows @ W.T + b
    expected = np.maximum(layer, 0) @ V
    trained = still(OrtSGDRegressor, model, dtype="float64").fit(rows, expected)
    np.testing.assert_allclose(trained.predict(rows), expected, atol=1e-9)
    # One step by hand, from targets that are off by one.
    stepped = OrtSGDRegressor(
        model, optimizer="sgd", eta0=0.1, max_iter=1, tol=None,
        dtype="float64", batch_size=20, penalty=None, standardize=False,
    ).fit(rows, expected - 1)  # fmt: skip
    np.testing.assert_allclose(
        stepped.weights_["V"], [V - 0.1 * np.maximum(layer, 0).mean(axis=0)], rtol=1e-12
    )
    np.testing.assert_allclose(
        stepped.weights_["b"], b - 0.1 * ((layer > 0) * V).mean(axis=0), rtol=1e-12
    )


# The order in which the runtime takes weights depends on their names.
@pytest.mark.parametrize("first, second", [("W", "V"), ("V", "W")])
def test_gradients_go_through_weights_as_they_were_before_the_step(first, second, solver, rng):
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        m (float[N, 2] X) => (float[N, 1] y) <float[2, 2] {first} = {{1, 2, -1, 1}},
           float[2, 1] {second} = {{1, -1}}> {{
            layer = MatMul (X, {first})
            hidden = Tanh (layer)
            y = MatMul (hidden, {second})
        }}""")
    rows, W, V = rng.normal(size=(20, 2)), np.array([[1, 2], [-1, 1]]), np.array([1, -1])
    hidden = np.tanh(rows @ W)
    options = {"max_iter": 1, "batch_size": 20, "penalty": None, "tol": None, "standardize": False}
    trained = OrtSGDRegressor(model, solver=solver, optimizer="sgd", eta0=0.5, **options)
    weights = trained.fit(rows, hidden @ V - 1).weights_
    np.testing.assert_allclose(weights[second].ravel(), V - 0.5 * hidden.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(
        weights[first], W - 0.5 * rows.T @ ((1 - hidden**2) * V) / 20, atol=1e-6
    )


def test_an_onnx_model_of_text_written_by_hand():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        line (float[N, 1] X) => (float[N, 1] y) <float[1, 1] slope = {0}, float[1] shift = {0}> {
            product = MatMul (X, slope)
            y = Add (product, shift)
        }""")
    x = np.linspace(-1, 1, 50)[:, None]
    trained = OrtSGDRegressor(model, eta0=0.3, max_iter=300, tol=None, alpha=0).fit(
        x, 3 * x.ravel() + 2
    )
    assert trained.weights_["slope"] == pytest.approx(3, abs=1e-4)
    assert trained.weights_["shift"] == pytest.approx(2, abs=1e-4)


def test_a_fitted_model_that_is_not_converted_is_refused_by_name():
    fitted = KernelRidge().fit(X, Y)
    with pytest.raises(NotTrainableError, match=r"=KernelRidge .* skl2onnx cannot convert it"):
        OrtSGDRegressor(FrozenEstimator(fitted)).fit(X, Y)


def test_a_model_without_weights_is_refused():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]> m (float[N, 1] X) => (float[N, 1] y) {
        y = Exp (X) }""")
    with pytest.raises(NotTrainableError, match="has no weight to train"):
        OrtSGDRegressor(model).fit(X[:, :1], Y)


@pytest.mark.parametrize("kind", ["input", "weight"])
@pytest.mark.parametrize("name", ["label", "skort_target"])
def test_an_onnx_name_that_is_one_inside_the_trained_model_is_refused(name, kind):
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        m (float[N, 1] X) => (float[N, 1] y) <float[1, 1] W = {1}> { y = MatMul (X, W) }""")
    renamed, position = (
        (model.graph.input[0], 0) if kind == "input" else (model.graph.initializer[0], 1)
    )
    renamed.name = model.graph.node[0].input[position] = name
    with pytest.raises(
        ValueError,
        match=f"estimator has an? {kind} named '{name}', which is also a name inside the ONNX",
    ):
        OrtSGDRegressor(model).fit(X[:, :1], Y)


def test_a_model_whose_two_scores_became_one_is_trained_further(solver):
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        m (float[N, 1] X) => (float[N, 2] y) <float[1, 2] W = {1, 2}> { y = MatMul (X, W) }""")
    first = still(OrtSGDClassifier, model).fit(X[:, :1], Y > 0)
    second = still(OrtSGDClassifier, first.onnx_).fit(X[:, :1], Y > 0)
    third = still(OrtSGDClassifier, second.onnx_, solver=solver).fit(X[:, :1], Y > 0)
    np.testing.assert_allclose(third.decision_function(X[:, :1]), X[:, 0], atol=1e-6)
    assert list(third.weights_) == ["W"]


def test_an_onnx_operator_without_gradient_is_named():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        m (float[N, 2] X) => (float[N, 1] y) <float[2, 2] W = {1, 2, 3, 4}, float[2, 1] V = {0.1, 0.2}>
            {
            a = MatMul (X, W)
            b = Round (a)
            y = MatMul (b, V)
        }""")
    with pytest.raises(NotTrainableError, match=r"operator Round .*between a weight and the score"):
        OrtSGDRegressor(model).fit(X[:, :2], Y)
    # What comes after it can be trained.
    assert OrtSGDRegressor(model, trainable="V", max_iter=2).fit(X[:, :2], Y).weights_["W"].ravel().tolist() == [
        1, 2, 3, 4,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "trainable, trained",
    [
        ("coefficient1", {"coefficient1"}),
        (["*1", "coefficient2"], {"coefficient1", "intercepts1", "coefficient2"}),
        ("intercept*", {"intercepts", "intercepts1", "intercepts2"}),
        (
            "*",
            {
                "coefficient",
                "coefficient1",
                "coefficient2",
                "intercepts",
                "intercepts1",
                "intercepts2",
            },
        ),
    ],
)
def test_all_weights_but_those_named_stay_bit_for_bit(trainable, trained, solver):
    # Initial weights of standardized columns would be others where the first layer is trained.
    options = {
        "solver": solver,
        "standardize": False,
        "eta0": 0.01,
        "learning_rate": "constant",
        "max_iter": 3,
    }
    model = OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(6, 5)), trainable=trainable, random_state=0, **options
    )
    start = still(OrtSGDRegressor, model.estimator, standardize=False).fit(X, Y).weights_
    # Almost nothing is not nothing: the weights that training starts from are those of
    # the same seed.
    after = model.fit(X, Y).weights_
    assert after.keys() == start.keys()
    assert {name for name in after if np.abs(after[name] - start[name]).max() > 1e-6} == trained
    frozen = clone(model).set_params(eta0=1e-30).fit(X, Y).weights_
    for name in after.keys() - trained:
        np.testing.assert_array_equal(after[name], frozen[name])


def test_training_the_intercept_alone_gives_the_mean_of_what_is_left(solver):
    fitted = LinearRegression().fit(X, Y)
    shifted = FrozenEstimator(fitted)
    model = OrtSGDRegressor(
        shifted,
        trainable="intercept",
        solver=solver,
        eta0=0.5,
        max_iter=100,
        tol=None,
        batch_size=len(X),
    )
    model.fit(X, Y + 3)
    np.testing.assert_array_equal(model.coef_, fitted.coef_.astype(np.float32))
    assert model.intercept_[0] == pytest.approx(fitted.intercept_ + 3, abs=1e-5)


def test_training_the_intercepts_of_several_classes_alone_gives_their_shares(solver):
    kept = np.repeat([True, False, True, False], [50, 25, 50, 25])
    rows, species = FLOWERS[kept], SPECIES[kept]
    model = OrtSGDClassifier(
        LogisticRegression(),
        trainable="intercept",
        solver=solver,
        eta0=0.5,
        max_iter=200,
        tol=None,
        batch_size=len(rows),
    ).fit(rows, species)
    np.testing.assert_array_equal(model.coef_, 0)
    shares = np.log(np.bincount(species))
    ours = model.intercept_
    np.testing.assert_allclose(ours - ours.mean(), shares - shares.mean(), atol=1e-4)

    coef = np.linspace(-0.1, 0.1, 12).reshape(3, 4)
    model.fit(rows, species, coef_init=coef)
    np.testing.assert_array_equal(model.coef_, coef.astype(np.float32))


def test_a_scalers_offsets_are_trained_on_purpose(solver):
    pipeline = make_pipeline(MinMaxScaler(), StandardScaler(), LinearRegression())
    plain = still(OrtSGDRegressor, pipeline).fit(X, Y)
    names = [
        "minmaxscaler/offset",
        "minmaxscaler/scale",
        "standardscaler/offset",
        "standardscaler/scale",
    ]
    assert sorted(plain.weights_) == ["coef", "intercept", *names]
    scaled = MinMaxScaler().fit_transform(X)
    np.testing.assert_allclose(
        plain.weights_["standardscaler/offset"], scaled.mean(axis=0), rtol=1e-5
    )
    fitted = make_pipeline(MinMaxScaler(), StandardScaler(), LinearRegression()).fit(X, Y)
    model = OrtSGDRegressor(
        FrozenEstimator(fitted), trainable="standardscaler/offset", solver=solver, alpha=0,
        eta0=0.01, max_iter=200, tol=None, batch_size=len(X), random_state=0,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="begins from its weights all the same"):
        model.fit(X, Y + 1)
    # Moving the offsets by d moves all predictions by -(d / scale) @ coef: what the new
    # targets ask for.
    start = still(OrtSGDRegressor, FrozenEstimator(fitted), trainable="standardscaler/offset")
    before = start.fit(X, Y).weights_
    after = model.weights_
    for name in after.keys() - {"standardscaler/offset"}:
        np.testing.assert_array_equal(after[name], before[name])
    moved = after["standardscaler/offset"] - before["standardscaler/offset"]
    shift = -(moved / after["standardscaler/scale"]) @ fitted[-1].coef_
    assert shift == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(model.predict(X), fitted.predict(X) + 1, atol=2e-3)
    with pytest.raises(ValueError, match="Weights of the step 'standardscaler' were trained"):
        model.to_sklearn()


def test_weights_are_those_of_the_fit_whatever_parameters_are_set_later():
    model = (
        still(OrtSGDRegressor, make_pipeline(StandardScaler(), Ridge()))
        .fit(X, Y)
        .set_params(dtype="float64")
    )
    assert {weight.dtype for weight in model.weights_.values()} == {np.dtype("float32")}


def test_with_its_first_step_trained_the_onnx_model_has_one_input():
    model = still(OrtSGDRegressor, make_pipeline(StandardScaler(), Ridge()), trainable="*").fit(
        FRAME, Y
    )
    assert [i.name for i in model.onnx_.graph.input] == ["X"]


@pytest.mark.parametrize("trainable", ["nothing", ["coef", "nothing*"], []])
def test_a_pattern_without_a_weight_is_refused_with_the_names(trainable):
    model = OrtSGDRegressor(
        make_pipeline(StandardScaler(), LinearRegression()), trainable=trainable
    )
    with pytest.raises(
        ValueError, match=r"trainable=.* matches no weight. The weights are .*'coef', 'intercept'\]"
    ):
        model.fit(X, Y)


def test_what_is_no_name_of_a_weight_is_refused():
    with pytest.raises(
        ValueError, match=r"trainable must be names or patterns of weights, got \[1\]"
    ):
        OrtSGDRegressor(trainable=[1]).fit(X, Y)


def _fitted_on_text():
    """Return a fitted estimator with steps inside, its X of text and numbers, and its y."""
    frame = FRAME[["age", "bmi"]].assign(town=np.where(X[:, 0] > 0, "Rome", "Oslo"))
    columns = make_column_transformer(
        (StandardScaler(), ["age", "bmi"]), (OneHotEncoder(), ["town"])
    )
    network = MLPRegressor(hidden_layer_sizes=(3,))
    fitted = OrtSGDRegressor(make_pipeline(columns, network), max_iter=2, tol=None, random_state=0)
    return fitted.fit(frame, Y), frame


def test_a_fitted_estimator_with_steps_goes_on_with_them():
    fitted, frame = _fitted_on_text()
    still = {"eta0": 1e-12, "max_iter": 1, "early_stopping": False, "tol": None, "random_state": 0}
    same = OrtSGDRegressor(FrozenEstimator(fitted), **still).fit(frame, Y)
    np.testing.assert_allclose(same.predict(frame), fitted.predict(frame), rtol=1e-4, atol=1e-5)
    in_pipeline = FrozenEstimator(Pipeline([("nothing", "passthrough"), ("model", fitted)]))
    same = OrtSGDRegressor(in_pipeline, **still).fit(frame, Y)
    np.testing.assert_allclose(same.predict(frame), fitted.predict(frame), rtol=1e-4, atol=1e-5)

    for frozen in (FrozenEstimator(fitted), FrozenEstimator(fitted.to_sklearn())):
        tuned = OrtSGDRegressor(frozen, early_stopping=False, random_state=0).fit(frame, Y)
        assert tuned.loss_ < fitted.loss_
        tuned = OrtSGDRegressor(frozen, random_state=0).partial_fit(frame, Y)
        assert tuned.score(frame, Y) > fitted.score(frame, Y)


def test_a_fitted_estimator_that_is_not_frozen_says_how_to_go_on():
    fitted, frame = _fitted_on_text()
    with pytest.raises(NotTrainableError, match=r"an OrtSGDRegressor already.*rozenEstimator\(fit"):
        OrtSGDRegressor(fitted).fit(frame, Y)
    with pytest.raises(ValueError, match=r"transformers in an ONNX file.*rozenEstimator\(fitted\)"):
        OrtSGDRegressor(fitted.to_onnx()).fit(frame, Y)


PIPELINES = {
    "linear": make_pipeline(StandardScaler(), Ridge()),
    "network": make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(3,), alpha=0)),
    "target": TransformedTargetRegressor(
        make_pipeline(StandardScaler(), LinearRegression()), transformer=StandardScaler()
    ),
}


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=list(PIPELINES))
def test_partial_fit_after_fit_keeps_the_steps_and_trains_the_model(pipeline):
    rows = slice(0, 301)
    new = X[301:] + 0.1
    model = OrtSGDRegressor(pipeline, max_iter=20, tol=None, random_state=0)
    assert not hasattr(model, "partial_fit")

    model.fit(X[rows], Y[rows])
    before = model.to_sklearn().predict(new)
    # The network has 20 epochs for other rows; a linear model learns these anyway.
    is_network = pipeline is PIPELINES["network"]
    with pytest.warns(UserWarning, match="worse than a constant") if is_network else nullcontext():
        model.partial_fit(new, Y[301:] + 1)
    after = model.to_sklearn()
    scaler = getattr(after, "regressor_", after)[0]
    np.testing.assert_allclose(scaler.mean_, X[rows].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(model.predict(new), after.predict(new), atol=1e-4)
    truth = Y[301:] + 1
    assert np.mean((after.predict(new) - truth) ** 2) < np.mean((before - truth) ** 2)
    assert not hasattr(clone(model), "partial_fit")


def test_a_frozen_target_needs_no_fit_in_a_stream():
    fitted = clone(PIPELINES["target"]).fit(X, Y)
    stream = OrtSGDRegressor(FrozenEstimator(fitted), eta0=1e-12).partial_fit(X, Y)
    np.testing.assert_allclose(stream.predict(X), fitted.predict(X), atol=1e-5)


def test_before_its_first_call_a_frozen_model_predicts_by_itself():
    fitted = make_pipeline(StandardScaler(), Ridge()).fit(X, Y)
    model = OrtSGDRegressor(FrozenEstimator(fitted))
    with pytest.raises(NotFittedError, match=r"until then, model\.estimator\.predict\(X\)"):
        model.predict(X)
    np.testing.assert_array_equal(model.estimator.predict(X), fitted.predict(X))


FORGETS = (
    r"The (MLPRegressor|Ridge|TransformedTargetRegressor) inside is fitted, but.*new weights"
    r".*FrozenEstimator.*clone"
)


def test_fitted_weights_that_a_training_leaves_out_are_warned_of():
    network = MLPRegressor(hidden_layer_sizes=(3,), random_state=0).fit(X, Y)
    options = {"max_iter": 2, "tol": None, "random_state": 0}
    of_target = TransformedTargetRegressor(clone(network), transformer=StandardScaler())
    estimators = [
        network,
        make_pipeline(StandardScaler().fit(X), network),
        clone(of_target).fit(X, Y),
        make_pipeline(StandardScaler(), of_target).fit(X, Y),
    ]
    for estimator in estimators:
        with pytest.warns(UserWarning, match=FORGETS):
            model = OrtSGDRegressor(estimator, **options, warm_start=True).fit(X, Y)
        weights = model.plan_.decisions["weights"]
        assert weights.value == "new ones"
        assert weights.because == "no FrozenEstimator gives others"
        # It goes on from its own weights, and no warning is raised.
        model.fit(X, Y)

    for n_rows in (7, 101):
        with pytest.warns(UserWarning, match=FORGETS):
            stream = OrtSGDRegressor(Ridge().fit(X, Y), n_total=len(X))
            stream.partial_fit(X[:n_rows], Y[:n_rows])
        stream.partial_fit(X, Y)


def test_new_weights_are_not_warned_of_where_they_are_meant_or_do_not_matter():
    network = MLPRegressor(hidden_layer_sizes=(3,), random_state=0).fit(X, Y)
    options = {"max_iter": 2, "tol": None, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        OrtSGDRegressor(clone(network), **options).fit(X, Y)
        OrtSGDRegressor(TransformedTargetRegressor(clone(network)), **options).fit(X, Y)
        OrtSGDRegressor(FrozenEstimator(network), **options).fit(X, Y)
        # Meta-estimators clone.
        search = GridSearchCV(OrtSGDRegressor(network, **options), {"alpha": [0, 1e-3]}, cv=2)
        search.fit(X, Y)
        # A strictly convex objective has one optimum.
        anywhere = OrtSGDRegressor(Ridge().fit(X, Y)).fit(X, Y)
    equal_to = Ridge().fit(X, Y)
    np.testing.assert_allclose(anywhere.coef_, equal_to.coef_, atol=1e-3)


@pytest.mark.parametrize("by", [1.0, 100.0])
def test_an_onnx_file_in_other_units_is_told_with_its_loss(by):
    fitted = MLPRegressor(hidden_layer_sizes=(5,), activation="tanh", random_state=0).fit(X, Y)
    model = skl2onnx.to_onnx(fitted, X[:1].astype(np.float32), target_opset=17)
    start = OrtSGDRegressor(model, eta0=1e-12, max_iter=1, tol=None, random_state=0)
    y = Y / by + 0.5
    share = np.mean((fitted.predict(X) - y) ** 2) / y.var()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        start.fit(X, y)
    told = [str(each.message) for each in warned if "begins at" in str(each.message)]
    expected = f"begins at {share:.3g} times the loss of a constant prediction"
    assert [expected in each for each in told] == [True] * (by > 1)
    assert by == 1 or share > 1000


@pytest.mark.parametrize(
    "around",
    [
        FixedThresholdClassifier(LogisticRegression(max_iter=1000), threshold=0.1),
        CalibratedClassifierCV(LogisticRegression(max_iter=1000), cv=2),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_threshold_or_a_calibration_is_not_lost_by_training(around):
    is_first = FLOWERS[:100], SPECIES[:100]
    # This estimator's fit registers the converter of thresholds.
    OrtSGDClassifier(max_iter=2, tol=None, optimizer="sgd").fit(*is_first)
    for whole in (around, make_pipeline(StandardScaler(), around)):
        frozen = FrozenEstimator(clone(whole).fit(*is_first))
        with pytest.raises(NotTrainableError, match=r"put OrtSGDClassifier inside it, not around"):
            OrtSGDClassifier(frozen).fit(*is_first)


def test_the_plan_of_a_fitted_network_tells_its_first_rate_once():
    fitted = MLPRegressor(hidden_layer_sizes=(3,), random_state=0).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = OrtSGDRegressor(FrozenEstimator(fitted), early_stopping=False, random_state=0)
        model.fit(X, Y)
    rate = model.plan_.decisions["first rate"]
    times, _, rest = rate.because.partition(" times the rate of a new network of few weights: ")
    # The row above has the rate of a new network, 0.02.
    assert rate.value == pytest.approx(0.02 * float(times), rel=0.05)
    assert rest.startswith("this one has ") and rest.endswith("of a constant prediction")


def _three_classes():
    random = np.random.default_rng(0)
    rows = random.normal(size=(600, 4))
    return rows, np.digitize(rows[:, 0] + random.normal(size=600), [-0.5, 0.5])


@pytest.mark.parametrize("method", ["fit", "fit_batches", "partial_fit"])
def test_a_class_that_the_new_rows_lack_is_named_once(method):
    rows, labels = _three_classes()
    fitted = LogisticRegression().fit(rows, labels)
    has_others = labels != 2
    new = rows[has_others], labels[has_others]
    model = OrtSGDClassifier(FrozenEstimator(fitted), random_state=0)
    with pytest.warns(
        UserWarning, match="^y has no row of the class 2, which the fitted"
    ) as caught:
        model.fit_batches([new]) if method == "fit_batches" else getattr(model, method)(*new)
    assert len(caught) == 1
    # It is forgotten.
    assert model.predict_proba(rows)[:, 2].mean() < fitted.predict_proba(rows)[:, 2].mean() - 0.02

    if method == "partial_fit":
        # Warnings are errors. Few rows lack a class by chance.
        model.partial_fit(*new)
        OrtSGDClassifier(FrozenEstimator(fitted)).partial_fit(new[0][:50], new[1][:50])


def test_rows_of_weight_zero_lack_no_class():
    rows, labels = _three_classes()
    fitted = LogisticRegression().fit(rows, labels)
    model = OrtSGDClassifier(FrozenEstimator(fitted))
    # Warnings are errors.
    model.partial_fit(rows, labels, sample_weight=np.zeros(600))
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-6)


def test_a_class_that_the_first_rows_after_a_fit_lack_is_named():
    rows, labels = _three_classes()
    model = OrtSGDClassifier(random_state=0).fit(rows, labels)
    with pytest.warns(UserWarning, match="^y has no row of the classes 0, 2, which the fitted"):
        model.partial_fit(rows[labels == 1], labels[labels == 1])
