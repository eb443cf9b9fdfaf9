"""
The objectives of scikit-learn's models.

They are multiples of skort's J(w) = sum_i s_i loss(y_i, score_i) / S + a penalty(w).
"""

# S is the sum of the sample weights s_i. For example, C sum_i s_i loss + penalty, the objective of
# a LogisticRegression, is C S times J with a = 1 / (C S). `OBJECTIVES` has one function for each
# family of models.

import functools
import inspect
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn import linear_model, neural_network, svm
from sklearn.base import BaseEstimator
from sklearn.base import is_classifier as is_sklearn_classifier

from skort.common.own_graph import makes_graph
from skort.objective.classification import Hinge, LabelSquaredError, LogLoss, OneVsRestLogLoss
from skort.objective.log_link import GammaLoss, PoissonLoss, TweedieLoss
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, ScoreLoss
from skort.objective.penalties import Strength
from skort.objective.regression import ConcomitantHuber, Quantile, SquaredError


@dataclass(frozen=True)
class SklearnObjective:
    """The objective of a scikit-learn model."""

    #: The loss. None: skort's default, "squared_error" or "log_loss".
    loss: ScoreLoss | None = None
    #: "l1", "l2", "elasticnet" or None.
    penalty: str | None = None
    #: The strength of the penalty in the model's own units, see `alpha_per`. It is a number, or has
    #: one for each output.
    alpha: Any = 0.0
    #: The share of l1 in the penalty: 1 for "l1", 0 for "l2".
    l1_ratio: Any = 0.0
    #: The divisor of `alpha` in J. "mean": 1; "sum": the sum of the sample weights;
    #: "sample_weight": their mean; "batch": their mean times the number of rows of a batch.
    alpha_per: str = "mean"
    #: Whether intercepts have the penalty, too, divided by `intercept_scaling`, as in liblinear.
    penalizes_intercept: bool = False
    intercept_scaling: float = 1.0
    #: Whether the model sums the losses of several outputs. J has their mean.
    sums_outputs: bool = False
    class_weight: dict[Any, float] | str | None = None
    #: The use of class weights with three classes and more, trained one against the rest. True: in
    #: the binary problem of a class, only its own rows have its weight. False: a row has the weight
    #: of its class in all problems.
    weighs_positives: bool = True
    #: Whether "balanced" class weights count rows. False: they sum sample weights.
    balances_rows: bool = False
    #: Whether the penalty is on the weights of standardised columns, as without a model inside.
    is_unit_free: bool = False
    #: Whether the model is a network that minimises the objective of all rows by L-BFGS.
    is_full: bool = False
    #: A sentence that names the model that is trained instead, if the objective has another form.
    trained_as: str | None = None
    #: The model's training parameters that are not at their defaults -> the same parameter of
    #: skort.
    unused: dict[str, str] = field(default_factory=dict)

    def of_intercepts(self, coefficients: Strength) -> Strength:
        """Return the `Strength` of the intercepts from the one of the coefficients."""
        return Strength(
            coefficients.l1 / self.intercept_scaling, coefficients.l2 / self.intercept_scaling**2
        )

    def skort_alpha(
        self, weight_sum: float, mean_weight: float, batch_size: int, n_outputs: int
    ) -> Any:
        """
        Return the strength a in J.

        `weight_sum` and `mean_weight` are those of the sample weights of all rows, times the class
        weights.
        """
        divisors = {
            "mean": 1.0,
            "sum": weight_sum,
            "sample_weight": mean_weight,
            "batch": batch_size * mean_weight,
        }
        return self.alpha / (divisors[self.alpha_per] * (n_outputs if self.sums_outputs else 1))


def sklearn_objective(model: Any, *, is_classifier: bool = False) -> SklearnObjective:
    """
    Return the objective of a scikit-learn model.

    `is_classifier` tells it for a model that is neither a classifier nor a regressor, such as an
    ONNX model.
    """
    # Without a model, the objective is that of `SGDRegressor()` or
    # `SGDClassifier(loss="log_loss")`.
    if model is None:
        return SklearnObjective(penalty="l2", alpha=1e-4, is_unit_free=True)
    if isinstance(model, linear_model.RANSACRegressor):
        inner = (
            getattr(model, "estimator_", None) or model.estimator or linear_model.LinearRegression()
        )
        own = sklearn_objective(inner)
        sentence = (
            f"RANSACRegressor is trained as the {type(inner).__name__} inside it, on all rows."
        )
        return replace(
            own, trained_as=" ".join([sentence, *([own.trained_as] if own.trained_as else [])])
        )

    if makes_graph(model):
        return SklearnObjective()

    plain = _as_chosen(model) if type(model) in SEARCHES else model
    family = OBJECTIVES.get(type(plain))
    if family is None:
        return SklearnObjective(trained_as=_default_sentence(model, is_classifier))
    if getattr(plain, "positive", False):
        raise ValueError(
            f"estimator={type(model).__name__}(positive=True): gradient descent does not keep "
            "weights positive. Give positive=False."
        )

    return replace(
        family(plain),
        class_weight=getattr(plain, "class_weight", None),
        unused=unused_parameters(model),
    )


def _default_sentence(model, is_classifier):
    name = type(model).__name__ if isinstance(model, BaseEstimator) else "An ONNX model"
    if is_classifier or (isinstance(model, BaseEstimator) and is_sklearn_classifier(model)):
        return f"{name} is trained as a LogisticRegression: log-loss, no penalty."
    return f"{name} is trained as a LinearRegression: squared error, no penalty."


def _elastic_net(model):
    l1_ratio = getattr(model, "l1_ratio", 1.0)  # Lasso and LassoLars have none
    return _elastic(SquaredError(), model.alpha, l1_ratio, sums_outputs=True)


def _multi_task(model):
    name = type(model).__name__
    plain = name.removeprefix("MultiTask")
    sentence = (
        f"{name} is trained as {plain}: each weight has its own l1 term, not all weights of a "
        "feature together."
    )
    return replace(_elastic_net(model), trained_as=sentence)


def _logistic_regression(model):
    if model.solver == "liblinear":
        return _per_C(OneVsRestLogLoss(), model, _logistic_l1_ratio(model), True)

    own = _per_C(LogLoss(), model, _logistic_l1_ratio(model), False)
    # until scikit-learn 1.7
    if getattr(model, "multi_class", "deprecated") in ("ovr", "multinomial"):
        sentence = (
            f"LogisticRegression(multi_class={model.multi_class!r}) is trained as with "
            "multi_class='auto': two "
        )
        own = replace(
            own, trained_as=f"{sentence}classes with one score, more classes with a softmax."
        )

    return own


def _logistic_l1_ratio(model):
    """Return the share of l1 in the penalty, or None if there is no penalty."""
    if model.penalty in ("l1", "l2", None):  # the default until scikit-learn 1.7, deprecated since
        return {"l1": 1.0, "l2": 0.0, None: None}[model.penalty]
    # None is "l2". A LogisticRegressionCV may have an array with one value per class.
    return np.nan_to_num(np.asarray(model.l1_ratio, dtype=float))


def _linear_svc(model):
    if model.multi_class == "crammer_singer":
        sentence = (
            "LinearSVC(multi_class='crammer_singer') is trained as with multi_class='ovr' "
            "and loss='hinge'."
        )
        return replace(_per_C(Hinge(), model, 0.0, True), trained_as=sentence)

    return _per_C(
        _loss(CLASSIFICATION_LOSSES, model.loss), model, float(model.penalty == "l1"), True
    )


def _per_C(loss, model, l1_ratio, is_liblinear):
    """Return the objective C times the sum of the losses, plus the penalty."""
    values = np.unique(model.C)  # a LogisticRegressionCV may have chosen one for each class
    C = float(values[0]) if len(values) == 1 else np.asarray(model.C)
    if l1_ratio is None or np.all(np.isinf(C)):
        return SklearnObjective(loss)

    own = _elastic(loss, 1 / C, l1_ratio, alpha_per="sum")
    if not (is_liblinear and model.fit_intercept):
        return own

    return replace(own, penalizes_intercept=True, intercept_scaling=float(model.intercept_scaling))


def _sgd(model):
    is_classifier = is_sklearn_classifier(model)
    losses = CLASSIFICATION_LOSSES if is_classifier else REGRESSION_LOSSES
    # SGDClassifier trains several classes one against the rest.
    loss = (
        OneVsRestLogLoss()
        if model.loss == "log_loss"
        else _loss(losses, model.loss, epsilon=model.epsilon)
    )
    own = SklearnObjective(loss)

    if model.penalty is not None:
        l1_ratio = {"l1": 1.0, "l2": 0.0}.get(model.penalty, model.l1_ratio)
        own = _elastic(loss, model.alpha, l1_ratio, alpha_per="sample_weight")

    return replace(own, sums_outputs=not is_classifier, balances_rows=is_classifier)


def _tweedie(model):
    link = model.link if model.link != "auto" else ("identity" if model.power <= 0 else "log")
    if link == "log":
        return _elastic(TweedieLoss(float(model.power)), model.alpha, sums_outputs=True)

    own = _elastic(SquaredError(), model.alpha, sums_outputs=True)
    if model.power == 0:
        return own

    sentence = (
        f"TweedieRegressor(power={model.power}, link='identity') is trained as with "
        "power=0: squared error."
    )
    return replace(own, trained_as=sentence)


def _network(model):
    is_classifier = is_sklearn_classifier(model)
    # Until scikit-learn 1.6, regressors have no parameter `loss`.
    loss = (
        LogLoss()
        if is_classifier
        else _loss(REGRESSION_LOSSES, getattr(model, "loss", "squared_error"))
    )

    # The steps follow the sum over the outputs, although `loss_` is their mean. L-BFGS takes all
    # rows at once.
    is_full = model.solver == "lbfgs"
    per = "sum" if is_full else "batch"
    return _elastic(
        loss, model.alpha, alpha_per=per, sums_outputs=not is_classifier, is_full=is_full
    )


def _elastic(loss, alpha, l1_ratio=0.0, **others):
    ratios = [l1_ratio] if isinstance(l1_ratio, float) else np.unique(l1_ratio)
    l1_ratio = float(ratios[0]) if len(ratios) == 1 else np.asarray(l1_ratio)
    penalty = (
        {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet") if len(ratios) == 1 else "elasticnet"
    )
    alpha = float(alpha) if np.ndim(alpha) == 0 else alpha

    return SklearnObjective(loss, penalty, alpha, l1_ratio, **others)


def _loss(losses, name, **parameters):
    """Return the loss of this name, with those parameters that it has."""
    loss = losses[name]()
    return loss.set_params(
        **{key: value for key, value in parameters.items() if key in loss.get_params()}
    )


# scikit-learn 1.10 no longer has these models.
_PASSIVE_AGGRESSIVE = [
    model for name, model in vars(linear_model).items() if name.startswith("PassiveAggressive")
]

#: Type of a model -> a function that returns the objective of a model. Other models are trained
#: with the defaults.
OBJECTIVES: dict[Any, Any] = {
    linear_model.LinearRegression: lambda model: SklearnObjective(
        SquaredError(), sums_outputs=True
    ),
    linear_model.Ridge: lambda model: _elastic(
        SquaredError(), np.asarray(model.alpha, dtype=float), alpha_per="sum", sums_outputs=True
    ),
    linear_model.RidgeClassifier: lambda model: _elastic(
        LabelSquaredError(),
        model.alpha,
        alpha_per="sum",
        weighs_positives=False,
        balances_rows=True,
    ),
    **dict.fromkeys(
        (linear_model.Lasso, linear_model.ElasticNet, linear_model.LassoLars), _elastic_net
    ),
    **dict.fromkeys((linear_model.MultiTaskLasso, linear_model.MultiTaskElasticNet), _multi_task),
    linear_model.LogisticRegression: _logistic_regression,
    svm.LinearSVC: _linear_svc,
    svm.LinearSVR: lambda model: replace(
        _per_C(_loss(REGRESSION_LOSSES, model.loss, epsilon=model.epsilon), model, 0.0, True),
        sums_outputs=True,
    ),
    **dict.fromkeys(
        (linear_model.SGDRegressor, linear_model.SGDClassifier, linear_model.Perceptron), _sgd
    ),
    **dict.fromkeys(_PASSIVE_AGGRESSIVE, _sgd),
    linear_model.QuantileRegressor: lambda model: _elastic(
        Quantile(model.quantile), model.alpha, 1.0, sums_outputs=True
    ),
    # scikit-learn's alpha ||w||^2 has no half.
    linear_model.HuberRegressor: lambda model: _elastic(
        ConcomitantHuber(model.epsilon), 2 * model.alpha, alpha_per="sum", sums_outputs=True
    ),
    linear_model.PoissonRegressor: lambda model: _elastic(
        PoissonLoss(), model.alpha, sums_outputs=True
    ),
    linear_model.GammaRegressor: lambda model: _elastic(
        GammaLoss(), model.alpha, sums_outputs=True
    ),
    linear_model.TweedieRegressor: _tweedie,
    **dict.fromkeys((neural_network.MLPRegressor, neural_network.MLPClassifier), _network),
}

_ALPHA = {"alpha": "alpha_"}
_ALPHA_AND_RATIO = {"alpha": "alpha_", "l1_ratio": "l1_ratio_"}
#: Type of a model that chooses its own penalty -> the plain model, and its parameters -> the fitted
#: attributes with the chosen values.
SEARCHES: dict[Any, tuple[Any, dict[str, str]]] = {
    linear_model.RidgeCV: (linear_model.Ridge, _ALPHA),
    linear_model.RidgeClassifierCV: (linear_model.RidgeClassifier, _ALPHA),
    linear_model.LassoCV: (linear_model.Lasso, _ALPHA),
    linear_model.LassoLarsCV: (linear_model.LassoLars, _ALPHA),
    linear_model.LassoLarsIC: (linear_model.LassoLars, _ALPHA),
    linear_model.ElasticNetCV: (linear_model.ElasticNet, _ALPHA_AND_RATIO),
    linear_model.MultiTaskLassoCV: (linear_model.MultiTaskLasso, _ALPHA),
    linear_model.MultiTaskElasticNetCV: (linear_model.MultiTaskElasticNet, _ALPHA_AND_RATIO),
    linear_model.LogisticRegressionCV: (
        linear_model.LogisticRegression,
        {"C": "C_", "l1_ratio": "l1_ratio_"},
    ),
}


def _as_chosen(model):
    """Return the plain model with the penalty that a fitted model has chosen."""
    plain, attributes = SEARCHES[type(model)]
    name = type(model).__name__
    (parameter, *_) = attributes
    if not hasattr(model, attributes[parameter]):
        raise ValueError(
            f"estimator={name} chooses {parameter} in its own fit, and gradient descent does not. "
            f"Give {plain.__name__}, and search over estimator__{parameter} with GridSearchCV; or "
            f"a fitted {name} in a FrozenEstimator."
        )

    shared = {
        key: value
        for key, value in model.get_params(deep=False).items()
        if key in plain().get_params()
    }
    return plain(
        **shared | {key: getattr(model, attribute) for key, attribute in attributes.items()}
    )


_SAME_NAME = """
average batch_size early_stopping eta0 learning_rate max_iter n_iter_no_change n_jobs power_t random_state shuffle
tol validation_fraction verbose warm_start
"""
#: Training parameters of scikit-learn's models -> the same parameters of skort's estimators.
_TRAINING = {
    **dict.fromkeys(
        ("beta_1", "beta_2", "momentum", "nesterovs_momentum"),
        "optimizer",
    ),
    **{"learning_rate_init": "eta0", "max_fun": "max_iter", "selection": "shuffle"},
    **{name: name for name in _SAME_NAME.split()},
}


def unused_parameters(model: Any) -> dict[str, str]:
    """Return the model's training parameters that differ from their defaults -> those of skort."""
    training = dict(_TRAINING)
    # In other models, these names belong to the objective. Here they are Adam's epsilon, and the
    # longest step of PassiveAggressive*.
    # Only a network's result depends on its solver: others end at the same optimum.
    if isinstance(model, (neural_network.MLPRegressor, neural_network.MLPClassifier)):
        training |= {"epsilon": "optimizer", "solver": "optimizer"}
    elif type(model).__name__.startswith("PassiveAggressive"):
        training["C"] = "eta0"

    of_type = defaults_of(type(model))  # type: ignore[arg-type]  # classes are hashable
    defaults = {name: default for name, default in of_type.items() if name in training}
    return {
        name: training[name]
        for name, default in defaults.items()
        if getattr(model, name) != default
    }


@functools.cache
def defaults_of(model_type: type) -> dict[str, Any]:
    """Return the defaults of the parameters of a type of models, by name."""
    return {
        name: parameter.default
        for name, parameter in inspect.signature(model_type).parameters.items()
    }
