"""What the errors of parameters with another name say."""

import inspect
import operator
import pickle
import pydoc
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skort
from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import EarlyStopping
from skort.estimators.other_names import ATTRIBUTES, ELSEWHERE, PARAMETERS
from skort.model_selection import OrtGridSearchCV, OrtRandomizedSearchCV
from skort.networks import TabularNetwork
from skort.objective import Huber, Quantile, SquaredError
from skort.optimizers import SGD, Adam, Momentum
from skort.schedules import Cosine

ETA0 = (
    "Did you mean eta0=0.1? It sets only the first learning rate: optimizer and learning_rate "
    "are other parameters."
)
ABSOLUTE = "Did you mean loss='absolute_error'?"
NAMES = [
    (OrtSGDRegressor, None, {"lr": 0.1}, ETA0),
    (OrtSGDClassifier, None, {"learning_rate_init": 0.1}, ETA0),
    (OrtSGDRegressor, MLPRegressor(), {"learning_rate_init": 0.1}, ETA0),
    (OrtSGDRegressor, None, {"eta_0": 0.1}, "Did you mean eta0=0.1?"),
    (
        OrtSGDRegressor,
        None,
        {"scheduler": "cosine"},
        "Did you mean learning_rate=Cosine()? Import it from skort.schedules.",
    ),
    (
        OrtSGDRegressor,
        None,
        {"scheduler": "stairs"},
        "Did you mean learning_rate? skort.schedules has other schedules. A function of the number of "
        "the update is a schedule, too.",
    ),
    (OrtSGDRegressor, None, {"criterion": "mse"}, "Did you mean loss='squared_error'?"),
    (OrtSGDRegressor, None, {"optim": "sgd"}, "Did you mean optimizer='sgd'?"),
    (OrtSGDRegressor, None, {"epochs": 5}, "Did you mean max_iter=5?"),
    (OrtSGDRegressor, None, {"batchsize": 5}, "Did you mean batch_size=5?"),
    (
        OrtSGDRegressor,
        None,
        {"momentum": 0.9},
        "It is a parameter of the optimizer: optimizer=Momentum(momentum=0.9).",
    ),
    (OrtSGDRegressor, None, {"nesterov": True}, "Did you mean optimizer='nesterov'?"),
    (
        OrtSGDRegressor,
        None,
        {"class_weight": "balanced"},
        "It is a parameter of OrtSGDClassifier; give fit sample_weight.",
    ),
    (
        OrtSGDClassifier,
        None,
        {"hidden_layer_sizes": (5,)},
        "It is a parameter of the model inside: estimator=MLPClassifier(hidden_layer_sizes=(5,)).",
    ),
    (
        OrtSGDRegressor,
        MLPRegressor(),
        {"hidden_layer_sizes": (5,)},
        "It is a parameter of the estimator inside: estimator__hidden_layer_sizes.",
    ),
    (
        OrtSGDClassifier,
        make_pipeline(StandardScaler(), MLPClassifier()),
        {"activation": "tanh"},
        "It is a parameter of the estimator inside: estimator__mlpclassifier__activation.",
    ),
    (
        OrtSGDClassifier,
        None,
        {"label_smoothing": 0.1},
        "No loss has it. alpha keeps the scores small, and skort.objective.Loss takes a loss of your "
        "own.",
    ),
    (
        OrtSGDClassifier,
        None,
        {"hidden_layers": (5,)},
        "A network inside has hidden_layer_sizes: "
        "estimator=MLPClassifier(hidden_layer_sizes=(64,)).",
    ),
    (
        OrtSGDRegressor,
        None,
        {"use_bias": False},
        "The model inside has fit_intercept: estimator=LinearRegression(fit_intercept=False).",
    ),
    (
        OrtSGDRegressor,
        None,
        {"n_estimators": 100},
        "Trees have no gradient, and skort trains linear models and networks.",
    ),
    (
        OrtSGDClassifier,
        None,
        {"train_split": None},
        "early_stopping=True holds out rows, validation_fraction of them.",
    ),
    (
        OrtSGDClassifier,
        None,
        {"gamma": 0.1},
        "Kernels are not trained: Nystroem or RBFSampler, in a pipeline before the model, "
        "approximates one.",
    ),
    (OrtSGDRegressor, None, {"objective": "reg:absoluteerror"}, ABSOLUTE),
    (OrtSGDRegressor, None, {"loss_fn": "mae"}, ABSOLUTE),
    (OrtSGDRegressor, None, {"grad_clip": 1.0}, "Did you mean max_grad_norm=1.0?"),
    (OrtSGDRegressor, None, {"num_workers": 2}, "Did you mean n_jobs=2?"),
    (OrtSGDRegressor, None, {"l2": 0.1}, "Did you mean alpha=0.1?"),
    (
        OrtSGDRegressor,
        None,
        {"reg_alpha": 0.1},
        'Did you mean penalty="l1", with its strength as alpha?',
    ),
    (
        OrtSGDRegressor,
        None,
        {"C": 1.0},
        "alpha is the strength of the penalty; C of a model inside is an inverse strength.",
    ),
    (OrtSGDRegressor, None, {"quantile_alpha": 0.9}, "Did you mean quantile=0.9?"),
    (
        OrtSGDClassifier,
        None,
        {"quantile": 0.9},
        'It is a parameter of OrtSGDRegressor, of its loss="quantile".',
    ),
    (OrtSGDRegressor, None, {"gradient_clip": 2.0}, "Did you mean max_grad_norm=2.0?"),
    (OrtSGDRegressor, None, {"sample_weight": 1}, "It is an argument of fit and partial_fit."),
    (OrtSGDClassifier, None, {"classes": 1}, "It is an argument of partial_fit and fit_batches."),
    (
        OrtSGDClassifier,
        LogisticRegression(),
        {"C": 2.0},
        "It is a parameter of the estimator inside: estimator__C.",
    ),
]


@pytest.mark.parametrize("cls, inside, given, advice", NAMES)
def test_a_name_of_another_library_or_of_the_model_inside_is_explained(cls, inside, given, advice):
    (name,) = given
    with pytest.raises(TypeError) as raised:
        cls(inside, **given)
    assert (
        str(raised.value)
        == f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}. {advice}"
    )
    with pytest.raises(ValueError, match=f"Invalid parameter '{name}' for estimator") as raised:
        cls(inside).set_params(**given)
    assert str(raised.value).endswith(f" {advice}")


@pytest.mark.parametrize("search", [GridSearchCV, OrtGridSearchCV])
def test_a_search_says_where_a_parameter_of_the_model_inside_is(search):
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    candidates = search(
        OrtSGDRegressor(MLPRegressor(max_iter=1)), {"hidden_layer_sizes": [(3,), (4,)]}, cv=2
    )
    with pytest.raises(ValueError, match=r"inside: estimator__hidden_layer_sizes\.$"):
        candidates.fit(X, y)


def test_what_other_names_lead_to_is_there():
    X = pd.DataFrame(np.eye(5), columns=list("abcde"))
    y = [0, 1, 0, 1, 1]
    fitted = OrtSGDClassifier(max_iter=2, tol=None, early_stopping=True, random_state=0)
    fitted.fit(X, y, X_val=X, y_val=y)
    for sentence in [*ELSEWHERE.values(), *ATTRIBUTES.values()]:
        for place in re.findall(r"(?<=skort\.)\w+(?:\.\w+)+", sentence):
            operator.attrgetter(place)(skort)
        own = re.findall(r"(?<![\w.])([a-z]\w*_)(?!\w)", sentence)
        assert all(hasattr(fitted, name) for name in own if "search" not in sentence), sentence
        methods = re.findall(r"(?<![\w.])([a-z]\w+)\([a-zX]", sentence)
        others = ("clone", "skl2onnx", "callbacks")
        assert all(hasattr(fitted, name) for name in methods if name not in others), sentence
    assert PARAMETERS.keys() <= set(fitted.get_params()) | {"quantile"}
    # Nothing that an estimator has is told to be elsewhere.
    assert not [
        name
        for name in ATTRIBUTES
        if hasattr(OrtSGDClassifier, name) and name not in OF_CLASSIFIERS
    ]


OF_CLASSIFIERS = ("predict_proba", "predict_log_proba", "decision_function")


@pytest.mark.parametrize(
    "name, instead",
    [
        ("state_dict", "weights_ has all weights by name"),
        ("load", "onnx.load"),
        ("predict_proba", "OrtSGDClassifier has it"),
        ("val_loss_", "validation_scores_"),
        ("best_params_", "a search has it"),
        ("train_on_batch", "partial_fit"),
    ],
)
def test_an_attribute_of_other_models_leads_to_what_has_its_role(name, instead):
    with pytest.raises(AttributeError, match=f"attribute '{name}': .*{re.escape(instead)}"):
        getattr(OrtSGDRegressor(), name)


@pytest.mark.parametrize(
    "given, advice",
    [
        ({"early_stopping_rounds": 3}, "Did you mean early_stopping=True, with"),
        ({"cat_features": [0]}, "An OneHotEncoder in a pipeline"),
        ({"class_weight": {}}, "give fit sample_weight"),
        ({"Y": 1}, r"Did you mean y\?"),
    ],
)
def test_an_argument_of_other_libraries_leads_to_what_has_its_role(given, advice):
    with pytest.raises(TypeError, match=rf"fit\(\) got .* argument .*{advice}"):
        OrtSGDRegressor().fit([[0.0], [1.0]], **given)


@pytest.mark.parametrize(
    "method, given, advice",
    [
        ("predict", {"threshold": 0.3}, "FixedThresholdClassifier"),
        ("predict", {"sample_weight": [1]}, "It is an argument of fit and partial_fit"),
        ("predict_proba", {"raw_score": True}, r"decision_function\(X\) of a classifier"),
        ("decision_function", {"cutoff": 0.3}, "FixedThresholdClassifier"),
    ],
)
def test_an_argument_of_a_prediction_leads_to_what_has_its_role(method, given, advice):
    model = OrtSGDClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match=rf"{method}\(\) got .* argument .*{advice}"):
        getattr(model, method)([[0.0]], **given)
    with pytest.raises(TypeError, match=rf"{method}\(\) takes 2 .*Its argument is X\.$"):
        getattr(model, method)([[0.0]], 0.3)


@pytest.mark.parametrize("search", [OrtGridSearchCV, OrtRandomizedSearchCV])
def test_a_search_says_where_the_attributes_of_its_estimator_are(search):
    candidates = search(OrtSGDRegressor(), {"alpha": [0.1, 0.2]}, cv=2)
    for name in ("save_onnx", "to_onnx", "onnx_", "plan_"):
        with pytest.raises(AttributeError, match=f"'{name}': search.best_estimator_ has it"):
            getattr(candidates, name)
    with pytest.raises(AttributeError, match=r"attribute 'nonsense'$"):
        candidates.nonsense  # noqa: B018
    with pytest.raises(AttributeError, match=r"'_nonsense'$"):
        candidates._nonsense  # noqa: B018
    # scikit-learn's own errors stay.
    with pytest.raises(NotFittedError):
        candidates.predict([[0.0]])
    with pytest.raises(AttributeError, match="predict_proba"):
        candidates.predict_proba([[0.0]])
    assert not hasattr(pickle.loads(pickle.dumps(candidates)), "save_onnx")


@pytest.mark.parametrize("search", [OrtGridSearchCV, OrtRandomizedSearchCV])
def test_a_search_suggests_the_name_of_a_scorer(search):
    candidates = search(OrtSGDRegressor(), {"alpha": [0.1, 0.2]}, cv=2, scoring="rmse")
    with pytest.raises(ValueError, match="Did you mean scoring='neg_root_mean_squared_error'"):
        candidates.fit(np.eye(6), np.arange(6.0))


def test_nothing_is_said_where_nothing_is_known():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'nonsense'\.$"):
        OrtSGDRegressor(nonsense=1)
    with pytest.raises(TypeError, match=r"'nonsense'\.$"):
        OrtSGDRegressor(estimator=LinearRegression(), nonsense=1)
    # Errors of the parts are theirs.
    with pytest.raises(ValueError, match=r"for estimator MLPRegressor\(\)\. .*\]\.$"):
        OrtSGDRegressor(MLPRegressor()).set_params(estimator__lr=0.1)
    with pytest.raises(TypeError, match=r"Give all other parameters by name\.$"):
        OrtSGDRegressor(None, "nonsense")


def test_the_signature_is_that_of_the_class():
    parameters = inspect.signature(OrtSGDRegressor).parameters
    assert list(parameters)[:2] == ["estimator", "loss"] and parameters["estimator"].default is None

    class Own(OrtSGDRegressor):
        def __init__(self, estimator=None, *, eta0=0.5):
            super().__init__(estimator, eta0=eta0)

    assert Own().get_params() == {"estimator": None, "eta0": 0.5}
    with pytest.raises(TypeError, match=r"Did you mean eta0=0\.1\?"):
        Own(lr=0.1)


@pytest.mark.parametrize("search", [GridSearchCV, OrtGridSearchCV])
@pytest.mark.parametrize(
    "given, path, advice",
    [
        ({}, "optimizer__momentum", "Give optimizer=Momentum() first."),
        ({"optimizer": "nesterov"}, "optimizer__momentum", "Give optimizer=Nesterov() first."),
        ({"loss": "huber"}, "loss__epsilon", "Give loss=Huber() first."),
        ({}, "learning_rate__n_updates", "Give learning_rate=Cosine() first."),
        ({}, "estimator__fit_intercept", "Give estimator=LinearRegression() first."),
        ({"optimizer": "sgd"}, "optimizer__nonsense", "optimizer='sgd' has no parameters."),
    ],
)
def test_a_search_over_a_part_that_is_a_name_asks_for_an_instance(search, given, path, advice):
    candidates = search(OrtSGDRegressor(**given), {path: [0.1, 0.2]}, cv=2)
    with pytest.raises(ValueError, match=f"Invalid parameter {path!r}") as raised:
        candidates.fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    assert str(raised.value).endswith(advice)


@pytest.mark.parametrize("search", [GridSearchCV, OrtGridSearchCV])
def test_a_path_with_a_small_letter_leads_to_that_of_its_own_step(search):
    step = ColumnTransformer([("c", "passthrough", [0])])
    inside = make_pipeline(step, LogisticRegression())
    candidates = search(OrtSGDClassifier(inside), {"estimator__logisticregression__c": [1.0]}, cv=2)
    with pytest.raises(ValueError, match=r"Did you mean estimator__logisticregression__C\?$"):
        candidates.fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])


def test_fit_batches_of_x_and_y_leads_to_fit():
    with pytest.raises(TypeError, match=r"Its arguments are batches, .*\. fit takes X and y\.$"):
        OrtSGDRegressor().fit_batches([[0.0]], [1.0])


def test_a_part_may_be_given_with_its_parameter():
    model = OrtSGDRegressor().set_params(optimizer=Momentum(), optimizer__momentum=0.5)
    assert model.optimizer.momentum == 0.5


def test_a_model_that_is_no_step_has_no_name_in_a_path():
    model = OrtSGDRegressor(MLPRegressor())
    with pytest.raises(ValueError, match=r"has no step: write estimator__alpha\.$"):
        model.set_params(mlpregressor__alpha=1.0)


@pytest.mark.parametrize(
    "part, given, advice",
    [
        (Adam, {"lr": 0.1}, "The learning rate is eta0 of the estimator"),
        (Adam, {"betas": (0.9, 0.99)}, "Its parameters are beta_1, beta_2, epsilon, "),
        (SGD, {"momentum": 0.9}, "It has no parameters. Momentum and Nesterov have momentum"),
        (SquaredError, {"reduction": "mean"}, "It has no parameters"),
        (Huber, {"delta": 1.0}, "Its parameters are epsilon"),
        (Quantile, {"alpha": 0.9}, "Its parameters are quantile. L1 and L2 have alpha"),
        (Cosine, {"T_max": 9}, "Its parameters are eta0, eta1, n_updates"),
        (EarlyStopping, {"min_delta": 0.1}, "greater_is_better, monitor, patience"),
    ],
)
def test_a_part_names_its_parameters(part, given, advice):
    (name,) = given
    with pytest.raises(TypeError, match=f"{part.__name__}.. got .* {name!r}. .*{advice}"):
        part(**given)
    assert "lr" not in inspect.signature(part).parameters


@pytest.mark.parametrize("cls", [OrtSGDClassifier, OrtSGDRegressor])
@pytest.mark.parametrize("name", ["from_onnx", "from_pretrained", "load", "load_model"])
def test_a_class_says_what_reads_a_file(cls, name):
    with pytest.raises(AttributeError, match=r"pickle or joblib .*; .* onnx\.load"):
        getattr(cls, name)
    assert not hasattr(cls, name)
    with pytest.raises(AttributeError, match="pickle or joblib read an estimator"):
        getattr(cls(), name)
    assert not hasattr(cls(), name)
    assert name not in dir(cls())
    assert name not in cls().get_params()
    # It is in the class, and reading all of its members raises no error.
    assert dict(inspect.getmembers(cls))[name].__doc__.startswith("Not here: pickle or joblib")
    page = pydoc.plain(pydoc.render_doc(cls))
    assert re.search(rf"\|  {name}\n \|      Not here: pickle or joblib read an estimator", page)
    # One of a user is there.
    own = type("Own", (cls,), {name: lambda self: 1})()
    assert getattr(own, name)() == 1 and name in dir(own)


@pytest.mark.parametrize(
    "given, meant",
    [
        ({"metrics": ["acc"]}, "Did you mean scoring='accuracy'?"),
        ({"eval_metric": "auc"}, "Did you mean scoring='roc_auc'?"),
        ({"metrics": ["mse"]}, "Did you mean scoring='neg_mean_squared_error'?"),
        ({"metrics": ["acc", "auc"]}, "Did you mean scoring, which takes one scorer?"),
    ],
)
def test_a_metric_gets_the_name_of_scikit_learn(given, meant):
    with pytest.raises(TypeError, match=re.escape(meant)):
        OrtSGDClassifier(**given)


@pytest.mark.parametrize(
    "values, meant",
    [
        ((None, "sgd"), "Did you mean optimizer='sgd'?"),
        ((None, "hinge"), "Did you mean loss='hinge'?"),
        ((None, 0.1), "takes only estimator without a name."),
    ],
)
def test_values_without_a_name_lead_to_their_parameter(values, meant):
    with pytest.raises(TypeError, match=re.escape(meant)) as caught:
        OrtSGDClassifier(*values)
    assert "Give all other parameters by name." in str(caught.value)


@pytest.mark.parametrize(
    "inside", [MLPClassifier(activation="sigmoid"), TabularNetwork(activation="sigmoid")]
)
def test_an_activation_gets_the_name_of_scikit_learn(inside):
    model = OrtSGDClassifier(inside)
    with pytest.raises(ValueError, match="Did you mean activation='logistic'"):
        model.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    "estimator, meant",
    [
        (OrtSGDClassifier("hinge"), "loss='hinge'"),
        (OrtSGDRegressor("huber"), "loss='huber'"),
        (OrtSGDRegressor("adam"), "optimizer='adam'"),
        (OrtSGDClassifier("graph"), "solver='graph'"),
        (OrtSGDClassifier("l1"), "penalty='l1'"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_name_in_the_place_of_the_model_is_given_by_its_parameter(estimator, meant):
    with pytest.raises(
        ValueError,
        match=re.escape(f"is a model. Got '{meant.split(chr(39))[1]}'. Did you mean {meant}?"),
    ):
        estimator.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("name", ["freeze", "frozen_layers", "requires_grad"])
def test_frozen_weights_are_those_that_trainable_leaves_out(name):
    with pytest.raises(
        TypeError, match="trainable names the weights to train; all others are frozen"
    ):
        OrtSGDClassifier(**{name: ["layer1"]})


def test_weight_is_that_of_a_row_or_of_a_class():
    with pytest.raises(
        TypeError, match="fit takes sample_weight; class_weight of OrtSGDClassifier has"
    ):
        OrtSGDClassifier(weight=[1.0, 2.0])
