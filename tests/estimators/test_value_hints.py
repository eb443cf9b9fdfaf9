"""What the errors for values, arguments and attributes that do not exist suggest."""

import enum
import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping
from skort.exceptions import NotTrainableError
from skort.objective import L2, Huber
from skort.optimizers import Adam
from skort.schedules import Cosine

X = np.arange(34.0).reshape(17, 2)
Y = X.sum(axis=1)
LABELS = np.where(Y > 30, "yes", "no")


class LossType(enum.IntEnum):
    """As in onnxruntime.training.artifacts."""

    MSELoss = 1


class MSELoss:
    """As in torch.nn."""

    def __call__(self, score, target):
        """Return the mean of squares."""


VALUES = [
    ({"solver": "adam"}, "Did you mean optimizer='adam'?"),
    ({"solver": "lbfgs"}, "Did you mean optimizer='lbfgs'?"),
    ({"solver": "saga"}, "Did you mean optimizer='lbfgs'?"),
    ({"solver": "cuda"}, "Did you mean device='cuda'?"),
    ({"solver": "nonsense"}, "optimizer says how they change the weights."),
    ({"optimizer": "cosine_x"}, "methods of skort.optimizers.Optimizer."),
    ({"optimizer": "L-BFGS"}, "Did you mean optimizer='lbfgs'?"),
    ({"optimizer": "adamw"}, "optimizer=Adam(weight_decay=0.01)? Import it from skort.optimizers."),
    (
        {"scoring": Huber()},
        "Give it as loss, and leave scoring out: the loss then scores the validation set.",
    ),
    ({"optimizer": "rmsprop"}, "Did you mean optimizer='adam'?"),
    ({"penalty": "l1_l2"}, "Did you mean penalty='elasticnet'?"),
    ({"learning_rate": "plateau"}, "Did you mean learning_rate='adaptive'?"),
    ({"dtype": "bfloat16"}, "Did you mean dtype='float32'?"),
    ({"quantile": 95}, "Did you mean quantile=0.95?"),
    ({"quantile": 5}, "Did you mean quantile=0.05?"),
    ({"l1_ratio": 2}, "Got 2 instead."),
    ({"validation_fraction": 20}, "Did you mean validation_fraction=0.2?"),
    ({"quantile": [0.1, 0.9]}, "train one estimator for each."),
    ({"max_grad_norm": 0}, "Did you mean max_grad_norm=None?"),
    ({"early_stopping": "yes"}, "Did you mean early_stopping=True?"),
    ({"shuffle": "off"}, "Did you mean shuffle=False?"),
    ({"batch_size": 0.1}, "A batch of all rows is batch_size=len(X)."),
    ({"n_jobs": 0}, "n_jobs=-1 takes all cores."),
    ({"n_jobs": "all"}, "n_jobs=-1 takes all cores."),
    ({"random_state": np.random.default_rng(0)}, "an int or a numpy.random.RandomState."),
    ({"standardize": StandardScaler()}, "into a pipeline inside."),
    ({"callbacks": print}, "methods of skort.callbacks.Callback."),
    ({"trainable": True}, "names or patterns choose some."),
    ({"verbose": "debug"}, "verbose=2 a line for each epoch."),
    ({"learning_rate": "cosine"}, "learning_rate=Cosine()? Import it from skort.schedules."),
    ({"learning_rate": "one_cycle"}, "learning_rate=Cyclic()? Import it from skort.schedules."),
    ({"loss": "tweedie"}, "loss=TweedieLoss()? Import it from skort.objective."),
    ({"learning_rate": "adam"}, "Did you mean optimizer='adam'?"),
    ({"loss": lambda score, y: (score - y) ** 2}, "write it with skort.objective.Loss."),
    ({"loss": "hinge"}, "'hinge' is a loss of OrtSGDClassifier."),
    ({"loss": "l2"}, "Did you mean penalty='l2'?"),
    ({"loss": "rmse"}, "Did you mean loss='squared_error'?"),
    ({"loss": "mse"}, "Did you mean loss='squared_error'?"),
    ({"loss": LossType.MSELoss}, "Did you mean loss='squared_error'?"),
    ({"loss": MSELoss()}, "Did you mean loss='squared_error'?"),
    ({"penalty": "none"}, "Did you mean penalty=None?"),
    ({"penalty": "L2"}, "Did you mean penalty='l2'?"),
    ({"penalty": 0.1}, "To set the strength of the penalty, give alpha=0.1."),
    ({"device": 1}, "Did you mean device='cuda:1'?"),
    ({"dtype": np.float32}, "Did you mean dtype='float32'?"),
    ({"dtype": np.dtype("float64")}, "Did you mean dtype='float64'?"),
    ({"dtype": float}, "Did you mean dtype='float64'?"),
    ({"alpha": "0.1"}, "A number has no quotes: alpha=0.1."),
    ({"alpha": 1e300}, "in the range [0.0, 1e+38]. Got 1e+300 instead."),
    ({"batch_size": None}, "Did you mean batch_size='auto'?"),
    ({"batch_size": "full"}, "A batch of all rows is batch_size=len(X)."),
    ({"max_iter": 10.0}, "Did you mean max_iter=10?"),
    ({"max_iter": 10.5}, "Got 10.5 instead."),
    ({"tol": math.inf}, "Got inf instead."),
    ({"loss": ["huber"]}, "Did you mean loss='huber'?"),
    ({"scoring": ("r2",)}, "Did you mean scoring='r2'?"),
    ({"penalty": "ridge"}, "Did you mean penalty='l2'?"),
    ({"max_iter": 0}, "Got 0 instead. max_iter=1 is one pass over the rows."),
    ({"max_iter": -1}, "Got -1 instead. max_iter=1 is one pass over the rows."),
    (
        {"eta0": 0},
        "Got 0 instead. eta0='auto' takes the rate from the data; trainable names the weights to train.",
    ),
    ({"validation_fraction": 0}, "Got 0 instead. early_stopping=False holds out no rows."),
    ({"n_iter_no_change": 0}, "Got 0 instead. tol=None trains for all max_iter epochs."),
    ({"tol": -1}, "Got -1 instead. tol=None trains for all max_iter epochs."),
    ({"penalty": "elastic"}, "Did you mean penalty='elasticnet'?"),
    ({"penalty": "elastic_penalty"}, "penalty=ElasticPenalty()? Import it from skort.objective."),
    (
        {"penalty": "tweedie"},
        "A custom penalty is an ONNX function: write it with skort.objective.Penalty.",
    ),
    ({"loss": "elastic"}, "loss=ElasticLoss()? Import it from skort.objective."),
    ({"optimizer": "Optimizer"}, "methods of skort.optimizers.Optimizer."),
    ({"penalty": "Lasso"}, "Did you mean penalty='l1'?"),
    ({"loss": L2()}, "Did you mean penalty=L2()?"),
    ({"penalty": Huber()}, "Did you mean loss=Huber()?"),
    ({"optimizer": Cosine()}, "Did you mean learning_rate=Cosine()?"),
    ({"learning_rate": Adam()}, "Did you mean optimizer=Adam()?"),
    ({"learning_rate": "unknown"}, "of the number of the update is a schedule, too."),
    ({"early_stopping": EarlyStopping()}, "Did you mean callbacks=[EarlyStopping()]?"),
    ({"callbacks": EarlyStopping}, "Did you mean callbacks=[EarlyStopping()]?"),
    ({"callbacks": EarlyStopping()}, "Did you mean callbacks=[EarlyStopping()]?"),
    ({"early_stopping": 7}, "Did you mean early_stopping=True, n_iter_no_change=7?"),
]


@pytest.mark.parametrize("text", ["tweedie", "elastic", "gamma_loss"])
def test_no_loss_of_a_regressor_is_suggested_for_a_classifier(text):
    with pytest.raises(ValueError, match=f"Got '{text}' instead") as raised:
        OrtSGDClassifier(loss=text).fit(X, LABELS)
    assert "Import it" not in str(raised.value)


def test_a_part_of_a_path_is_one_of_the_values_of_its_parameter():
    with pytest.raises(ValueError, match=r"penalty='l2' has no parameters\.$"):
        OrtSGDRegressor(penalty="l2").set_params(penalty__l1_weight=1)
    with pytest.raises(ValueError, match=r"has no parameters\. Give loss=ElasticLoss\(\) first\.$"):
        OrtSGDRegressor(loss="squared_error").set_params(loss__l1_weight=1)


@pytest.mark.parametrize("given, advice", VALUES)
def test_a_value_that_a_parameter_does_not_take_leads_to_one(given, advice):
    (name,) = given
    with pytest.raises(ValueError, match=f"The {name!r} parameter of OrtSGDRegressor") as raised:
        OrtSGDRegressor(**given).fit(X, Y)
    assert str(raised.value).endswith(advice)


@pytest.mark.parametrize(
    "method, given, advice",
    [
        ("fit", {"epochs": 3}, "a parameter of the estimator: OrtSGDClassifier(max_iter=3)."),
        ("fit", {"batch_size": 3}, "a parameter of the estimator: OrtSGDClassifier(batch_size=3)."),
        ("fit", {"validation_data": (X, Y)}, "Did you mean X_val, y_val?"),
        ("fit", {"sample_weights": Y}, "Did you mean sample_weight?"),
        ("fit", {"logisticregression__sample_weight": Y}, "Did you mean sample_weight?"),
        ("fit", {"classes": [0, 1]}, "It is an argument of partial_fit and fit_batches."),
        ("fit", {"nonsense": 1}, "argument 'nonsense'."),
        (
            "fit",
            {"scheduler": "cosine"},
            "argument 'scheduler'. The parameter learning_rate of the estimator sets it. Did you mean "
            "learning_rate=Cosine()? Import it from skort.schedules.",
        ),
        ("partial_fit", {"X_val": X}, "It is an argument of fit and fit_batches."),
        ("partial_fit", {"epochs": 3}, "call partial_fit again for another one."),
    ],
)
def test_an_argument_of_another_library_leads_to_its_place(method, given, advice):
    (name,) = given
    with pytest.raises(TypeError, match=f"OrtSGDClassifier.{method}.* {name!r}") as raised:
        getattr(OrtSGDClassifier(), method)(X, LABELS, **given)
    assert str(raised.value).endswith(advice)


@pytest.mark.parametrize(
    "method, args, refused",
    [
        ("fit", (X,), "missing 1 required positional argument: 'y'"),
        ("fit", (), "missing 2 required positional arguments: 'X' and 'y'"),
        ("partial_fit", (X,), "missing 1 required positional argument: 'y'"),
        ("save_onnx", (), "missing 1 required positional argument: 'path'"),
        ("set_weights", (), "missing 1 required positional argument: 'weights'"),
        (
            "fit_batches",
            (X, Y),
            "takes 2 positional arguments but 3 were given. Its arguments are batches, X_val, y_val, "
            "classes. fit takes X and y.",
        ),
    ],
)
def test_wrong_numbers_of_arguments_name_the_class_of_the_user(method, args, refused):
    class Own(OrtSGDClassifier):
        """As users write one."""

    with pytest.raises(TypeError) as raised:
        getattr(Own(), method)(*args)
    assert str(raised.value) == f"Own.{method}() {refused}"


def test_sample_weights_of_batches_are_in_them():
    with pytest.raises(TypeError, match=r"A batch may have it: \(X, y, sample_weight\)\.$"):
        OrtSGDRegressor().fit_batches([(X, Y)], sample_weight=Y)


def test_an_error_of_the_users_code_stays():
    def no_batches(number):
        return [(X, Y)] * number

    with pytest.raises(TypeError, match=r"no_batches\(\) missing .* 'number'$"):
        OrtSGDRegressor().fit_batches(no_batches)


@pytest.mark.parametrize(
    "sample_weight, refused",
    [
        ("balanced", "'balanced'. Weights of classes go into OrtSGDClassifier(class_weight=...)."),
        ({0: 1.0, 1: 2.0}, "dict. Weights of classes go into OrtSGDClassifier(class_weight=...)."),
        ((X, Y), "tuple. fit takes a validation set by its names, X_val and y_val."),
        (np.full(len(Y), "a"), "values of dtype <U1."),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit", "fit_batches"])
def test_sample_weights_that_are_no_numbers_are_named(method, sample_weight, refused):
    train = getattr(OrtSGDRegressor(), method)
    with pytest.raises(ValueError, match="sample_weight") as raised:
        if method == "fit_batches":
            train([(X, Y, sample_weight)])
        else:
            train(X, Y, sample_weight)
    if method != "fit_batches":
        assert str(raised.value) == f"sample_weight must have a number for each row, got {refused}"


def test_class_weights_are_by_label():
    with pytest.raises(ValueError, match=r"the weight of each label: \{label: weight\}\.$"):
        OrtSGDClassifier(class_weight=[1, 2]).fit(X, LABELS)


def test_a_path_is_for_save_onnx():
    with pytest.raises(ValueError, match=r"onnx knows\. save_onnx\(path\) writes a file\.$"):
        OrtSGDRegressor().fit(X, Y).to_onnx("model.onnx")


@pytest.mark.parametrize("model", [LinearRegression(), MLPRegressor(hidden_layer_sizes=(3,))])
def test_an_attribute_of_scikit_learns_models_leads_to_ours(model):
    fitted = OrtSGDRegressor(model, max_iter=2, tol=None, random_state=0).fit(X, Y)
    with pytest.raises(AttributeError, match=r"attribute 'coefs_': weights_ has all weights"):
        fitted.coefs_  # noqa: B018
    with pytest.raises(AttributeError, match=r"attribute 'nonsense'$"):
        fitted.nonsense  # noqa: B018
    if isinstance(model, MLPRegressor):
        with pytest.raises(AttributeError, match=r"not linear\. weights_ has all weights by name"):
            fitted.coef_  # noqa: B018
    with pytest.raises(AttributeError, match="'coef_': it is not fitted yet"):
        OrtSGDRegressor(model).coef_  # noqa: B018


def test_nan_is_named_by_its_columns_with_a_cure():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"age": [np.nan, *X[1:, 0]], "size": X[:, 1]})
    with pytest.raises(ValueError, match=r"contains NaN in column 'age'\. Fill .*SimpleImputer"):
        OrtSGDRegressor().fit(frame, Y)
    with pytest.raises(ValueError, match=r"contains NaN in column 'age'\. No step before .* fills"):
        OrtSGDRegressor(make_pipeline(StandardScaler(), LinearRegression())).fit(frame, Y)
    with pytest.raises(
        ValueError, match=r"contains NaN in column 0\. The model takes rows without NaN"
    ):
        OrtSGDRegressor().fit(X, Y).predict(frame.to_numpy())
    with pytest.raises(ValueError, match=r"contains infinity .* in column 1\."):
        OrtSGDRegressor().fit(np.where(X == 1, np.inf, X), Y)


def test_the_cure_for_nan_in_a_stream_is_one_that_streams_take():
    missing = X.copy()
    missing[3, 1] = np.nan
    fitted_before = r"in column 1\. .*FrozenEstimator\(SimpleImputer\(\)\.fit\(X\)\)"
    unfilled = make_pipeline(FrozenEstimator(StandardScaler().fit(X)), LinearRegression())
    for model in (OrtSGDRegressor(), OrtSGDRegressor(unfilled)):
        with pytest.raises(ValueError, match=fitted_before):
            model.partial_fit(missing, Y)
    with pytest.raises(ValueError, match=f"batch 1: .*{fitted_before}"):
        OrtSGDRegressor().fit_batches([(X, Y), (missing, Y)])
    with pytest.raises(ValueError, match=r"in column 1\. The model takes rows without NaN: fill"):
        OrtSGDRegressor().partial_fit(X, Y).partial_fit(missing, Y)

    cured = make_pipeline(FrozenEstimator(SimpleImputer().fit(missing)), LinearRegression())
    filled = np.where(np.isnan(missing), np.nanmean(missing, axis=0), missing)
    stream = OrtSGDRegressor(cured, random_state=0).partial_fit(missing, Y)
    same = OrtSGDRegressor(random_state=0).partial_fit(filled, Y)
    np.testing.assert_allclose(stream.coef_, same.coef_, rtol=1e-5)
    OrtSGDRegressor(cured).fit_batches([(X, Y), (missing, Y)])


@pytest.mark.parametrize(
    "scoring, scorer",
    [
        ("f1", "make_scorer(f1_score, "),
        ("recall", "make_scorer(recall_score, "),
        ("average_precision", "make_scorer(average_precision_score, response_method="),
    ],
)
@pytest.mark.parametrize(
    "y_val, positive",
    [
        (["fraud"] + ["ok"] * 16, "'fraud'"),
        (["ok"] + ["fraud"] * 16, "'ok'"),
        (["fraud", "ok"] * 8, "'fraud' or 'ok'"),
    ],
    ids=["first", "last", "equal"],
)
def test_a_score_of_labels_names_the_rarer_one_as_positive(scoring, scorer, y_val, positive):
    model = OrtSGDClassifier(scoring=scoring)
    message = rf"positive: scoring={re.escape(scorer)}.*pos_label={positive}\)\.$"
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.where(Y > 30, "ok", "fraud"), X_val=X[: len(y_val)], y_val=y_val)


@pytest.mark.parametrize("container", [list, pd.Series, lambda y: np.array(y, dtype=object)])
@pytest.mark.parametrize("scoring", ["f1", "precision", "average_precision"])
def test_labels_of_any_container_are_named_as_positive(container, scoring):
    y = container(["ok", "fraud", "ok"] * 5 + ["ok"] * 2)
    with pytest.raises(ValueError, match=r"counts as positive: .*pos_label='fraud'\)\.$"):
        OrtSGDClassifier(scoring=scoring).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(ValueError, match=r"counts as positive: .*pos_label='(ok|fraud)"):
        OrtSGDClassifier(scoring=scoring, early_stopping=True).fit(X, y)


def test_a_score_of_several_classes_is_named():
    model = OrtSGDClassifier(early_stopping=True, random_state=0)
    with pytest.raises(ValueError, match=r"For several classes, use scoring='f1_macro'\."):
        model.set_params(scoring="f1", validation_fraction=0.3).fit(
            X, ["a"] * 6 + ["b"] * 6 + ["c"] * 5
        )


def test_a_class_of_one_row_is_named():
    with pytest.raises(ValueError, match=r"the class 'no' has one row, .*Give fit X_val and y_val"):
        OrtSGDClassifier(early_stopping=True).fit(X, ["no", *["yes"] * 16])


def test_a_fitted_pipeline_is_frozen_for_a_stream():
    pipeline = make_pipeline(StandardScaler(), LinearRegression()).fit(X, Y)
    with pytest.raises(AttributeError, match=r"OrtSGDRegressor\(FrozenEstimator\(pipeline\)\)\."):
        OrtSGDRegressor(pipeline).partial_fit(X, Y)
    OrtSGDRegressor(FrozenEstimator(pipeline)).partial_fit(X, Y)


def test_an_early_stopping_without_its_column_says_what_makes_it():
    model = OrtSGDRegressor(callbacks=[EarlyStopping("val_loss")], max_iter=2)
    with pytest.raises(ValueError, match="validation_score is there if fit has X_val and y_val"):
        model.fit(X, Y)


def test_labels_of_a_validation_set_are_named_by_it():
    known = r"\['maybe'\], and the known classes are \['no', 'yes'\]"
    with pytest.raises(
        ValueError, match=rf"^y_val: y has the labels {known}\. Give y these labels"
    ):
        OrtSGDClassifier().fit(X, LABELS, X_val=X[:1], y_val=["maybe"])
    # A message shows the first ten labels of each.
    many = rf"{re.escape(str(list(range(100, 110))))} and 7 more, .* are \[0, .*, 9\] and 1 more\."
    with pytest.raises(ValueError, match=many):
        OrtSGDClassifier().partial_fit(X, np.arange(100, 117), classes=range(11))


def test_a_name_of_an_argument_of_to_onnx_is_suggested():
    with pytest.raises(TypeError, match=r"'opset'\. Did you mean target_opset\?"):
        OrtSGDRegressor().fit(X, Y).to_onnx(opset=17)


@pytest.mark.parametrize(
    "estimator_class, path, advice",
    [
        (OrtSGDRegressor, "estimator__alpha", "alpha is a parameter of OrtSGDRegressor itself."),
        (OrtSGDRegressor, "loss__epsilon", "epsilon is a parameter of OrtSGDRegressor itself."),
        (OrtSGDClassifier, "estimator__max_iter", "max_iter is a parameter of OrtSGDClassifier"),
        (OrtSGDClassifier, "estimator__C", "Give estimator=LogisticRegression.. first."),
        (OrtSGDRegressor, "estimator__alphas", "estimator=None has no parameters."),
    ],
)
def test_a_path_into_what_is_not_given_names_who_has_the_parameter(estimator_class, path, advice):
    with pytest.raises(ValueError, match=advice):
        estimator_class().set_params(**{path: 0.1})
    with pytest.raises(TypeError, match=f"{path}'\\. (?:{advice}|Names with two underscores)"):
        estimator_class(**{path: 0.1})


def test_a_path_is_no_argument():
    with pytest.raises(TypeError, match=r"'estimator__alpha'\. Names with two underscores are for"):
        OrtSGDRegressor(Ridge(), estimator__alpha=0.1)
    assert OrtSGDRegressor(Ridge()).set_params(estimator__alpha=0.1).estimator.alpha == 0.1


@pytest.mark.parametrize(
    "name, advice",
    [
        ("threshold", "FixedThresholdClassifier of scikit-learn"),
        ("pos_label", "FixedThresholdClassifier of scikit-learn"),
        ("scale_pos_weight", "class_weight has the weight of each label"),
        ("freeze", "trainable names the weights to train"),
        ("dropout", "It is a parameter of skort.networks.TabularNetwork"),
        ("betas", "They are beta_1 and beta_2 of skort.optimizers.Adam"),
    ],
)
def test_what_is_no_parameter_here_is_named_where_it_is(name, advice):
    with pytest.raises(TypeError, match=f"{name}'\\. {advice}[.,;]"):
        OrtSGDClassifier(**{name: 0.1})


def test_a_path_without_the_name_of_the_step_gets_it():
    model = OrtSGDRegressor(make_pipeline(StandardScaler(), Ridge()))
    with pytest.raises(ValueError, match=r"Did you mean estimator__ridge__alpha\?$"):
        model.set_params(estimator__alpha=0.1)
    with pytest.raises(ValueError, match=r"Valid parameters are: .*\]\.$"):
        model.set_params(estimator__nonsense=0.1)
    assert model.set_params(estimator__ridge__alpha=0.1).estimator[-1].alpha == 0.1


def test_a_method_of_the_class_asks_for_an_estimator():
    for call in (OrtSGDRegressor.fit, OrtSGDRegressor.partial_fit):
        with pytest.raises(TypeError, match=r"was called on the class: make an estimator first"):
            call(X, Y)


def test_to_onnx_takes_no_rows():
    with pytest.raises(ValueError, match=r"target_opset=ndarray: .* to_onnx takes no rows\.$"):
        OrtSGDRegressor().fit(X, Y).to_onnx(X)


@pytest.mark.parametrize(
    "model, instead", [(SVC(), "LinearSVC"), (NuSVC(), "LinearSVC"), (SVR(), "LinearSVR")]
)
def test_a_machine_with_a_kernel_names_the_linear_one(model, instead):
    ours = OrtSGDRegressor if isinstance(model, SVR) else OrtSGDClassifier
    with pytest.raises(NotTrainableError, match=f"has no gradient\\. {instead} has one\\.$"):
        ours(model).fit(X, Y if isinstance(model, SVR) else LABELS)
    ours({"LinearSVC": LinearSVC(), "LinearSVR": LinearSVR()}[instead], max_iter=2, tol=None).fit(
        X, Y if isinstance(model, SVR) else LABELS
    )


def test_one_hot_labels_are_given_as_labels():
    one_hot = np.eye(2, dtype=int)[(LABELS == "yes").astype(int)]
    with pytest.raises(ValueError, match=r"each row has one label, so give y\.argmax\(axis=1\)\.$"):
        OrtSGDClassifier().fit(X, one_hot)
    with pytest.raises(ValueError, match=r"use MLPClassifier\(\) as estimator, or MultiOut"):
        OrtSGDClassifier().fit(X, np.maximum(one_hot, [1, 0]))
    labels = OrtSGDClassifier().fit(X, one_hot.argmax(axis=1))
    np.testing.assert_array_equal(labels.predict(X), LABELS == "yes")


def test_layers_by_position_are_the_loss_of_scikit_learn():
    # The first parameter is loss since scikit-learn 1.7.
    if "loss" not in MLPRegressor().get_params():
        pytest.skip("it is hidden_layer_sizes")
    for given in ((5,), 5):
        with pytest.raises(ValueError, match=r"loss=\(5,\): write hidden_layer_sizes=\(5,\)\.$"):
            OrtSGDRegressor(MLPRegressor(loss=given)).fit(X, Y)


def test_a_y_of_dates_is_no_number():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2024-01-01", periods=len(X))
    for y in (days, pd.Series(days), days.to_numpy(), days - days[0], days.tz_localize("UTC")):
        with pytest.raises(ValueError, match=r"^y has dates or times, but .* such as the days"):
            OrtSGDRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"y has '1,5' in row 0: .* Make y float before\.$"):
        OrtSGDRegressor().fit(X, ["1,5"] * len(X))


def test_an_encoder_of_labels_is_no_step():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"city": ["Rome"] * len(X)})
    with pytest.raises(TypeError, match=r"It is for y: take OneHotEncoder or OrdinalEncoder"):
        OrtSGDRegressor(make_pipeline(LabelEncoder(), LinearRegression())).fit(frame, Y)


def test_the_name_of_a_column_is_no_y():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["size", "price"])
    with pytest.raises(
        ValueError, match=r"got 'price'\. Give X\['price'\], and an X without it\.$"
    ):
        OrtSGDRegressor().fit(frame, "price")
    with pytest.raises(ValueError, match=r"got 'cost'\.$"):
        OrtSGDRegressor().fit(frame, "cost")


@pytest.mark.parametrize("sizes", [(16, 8), [16], 16])
def test_sizes_of_layers_lead_to_a_network(sizes):
    with pytest.raises(ValueError, match=re.escape(f"MLPRegressor(hidden_layer_sizes={sizes!r})")):
        OrtSGDRegressor(sizes).fit(X, Y)


@pytest.mark.parametrize(
    "path, meant",
    [
        ("estimator__mlp__alpha", "estimator__mlpclassifier__alpha"),
        ("estimator__alpha", "estimator__mlpclassifier__alpha"),
        ("estimator__mlpclassifier__alhpa", "estimator__mlpclassifier__alpha"),
        ("estimator__scaler__with_mean", "estimator__standardscaler__with_mean"),
        ("estimator__step__mlpclassifier__tol", "estimator__mlpclassifier__tol"),
    ],
)
def test_a_path_with_a_wrong_name_gets_the_nearest_one(path, meant):
    model = OrtSGDClassifier(make_pipeline(StandardScaler(), MLPClassifier()))
    with pytest.raises(ValueError, match=rf"Did you mean {meant}\?$"):
        model.set_params(**{path: 0.1})
    with pytest.raises(ValueError, match=rf"Did you mean {meant}\?"):
        GridSearchCV(model, {path: [0.1]}, cv=2).fit([[0.0], [1.0]] * 4, [0, 1] * 4)


@pytest.mark.parametrize("path", ["estimator__mlp__alpha", "estimator__mlpclassifier__alpha"])
def test_a_path_in_the_constructor_is_one_of_set_params(path):
    model = make_pipeline(StandardScaler(), MLPClassifier())
    told = r"for set_params and searches: set_params\(estimator__mlpclassifier__alpha=0\.1\)\.$"
    with pytest.raises(TypeError, match=told):
        OrtSGDClassifier(model, **{path: 0.1})
    with pytest.raises(TypeError, match=r"for set_params and searches\.$"):
        OrtSGDClassifier(model, estimator__nonsense=0.1)
    with pytest.raises(TypeError, match=r": set_params\(optimizer__beta_1=0\.5\)\.$"):
        OrtSGDClassifier(optimizer=Adam(), optimizer__beta_1=0.5)


@pytest.mark.parametrize(
    ("inner", "instead"),
    [
        (MultinomialNB(), "LogisticRegression() or MLPClassifier()"),
        (GaussianNB(), "LogisticRegression() or MLPClassifier()"),
        (KNeighborsClassifier(), "LogisticRegression() or MLPClassifier()"),
        (NearestCentroid(), "LogisticRegression() or MLPClassifier()"),
        (KNeighborsRegressor(), "LinearRegression() or MLPRegressor()"),
        (GaussianProcessRegressor(), "LinearRegression() or MLPRegressor()"),
        (KernelRidge(), "LinearRegression() or MLPRegressor()"),
    ],
)
def test_what_to_train_in_place_of_a_model_without_a_gradient(inner, instead):
    is_classifier = "Classifier" in instead
    with pytest.raises(NotTrainableError) as raised:
        (OrtSGDClassifier if is_classifier else OrtSGDRegressor)(inner).fit(
            X, LABELS if is_classifier else Y
        )
    assert str(raised.value).endswith(f". Train {instead} in its place, or fit it by itself.")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("eval_set", "fit takes X_val and y_val."),
        ("validation_data", "fit takes X_val and y_val."),
        ("warm_up", "learning_rate takes skort.schedules.Warmup."),
        ("warmup_epochs", "learning_rate takes skort.schedules.Warmup."),
        ("steps", "max_iter is the number of epochs, n_rows / batch_size steps each."),
        ("num_iterations", "max_iter is the number of epochs, n_rows / batch_size steps each."),
    ],
)
def test_an_argument_of_another_place_is_told_by_the_constructor(name, told):
    with pytest.raises(TypeError) as raised:
        OrtSGDRegressor(**{name: 3})
    assert str(raised.value).endswith(f"unexpected keyword argument {name!r}. {told}")


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("m.pkl", "a pickle, which pickle.dump or joblib.dump writes"),
        ("m.JOBLIB", "a pickle, which pickle.dump or joblib.dump writes"),
        ("m.pt", "a file of torch"),
        ("m.keras", "a file of Keras"),
        ("m.npz", "a file of numpy"),
        ("m.onnx.gz", "a compressed file"),
        ("m.ort", "a file of ONNX Runtime's own format"),
    ],
)
def test_no_onnx_is_written_under_the_name_of_another_format(name, what, tmp_path):
    model = OrtSGDRegressor(random_state=0).fit(X, Y)
    path = tmp_path / name
    with pytest.raises(ValueError, match="save_onnx writes ONNX") as raised:
        model.save_onnx(path)
    assert str(raised.value) == (
        f"path={str(path)!r} is the name of {what}. save_onnx writes ONNX: end the name in .onnx."
    )
    assert not any(tmp_path.iterdir())
    for allowed in ("m.onnx", "m", "m.v2"):
        model.save_onnx(str(tmp_path / allowed))
        assert (tmp_path / allowed).read_bytes() == model.onnx_.SerializeToString()
