"""Suggestions in the errors for unknown parameters, arguments, attributes and values."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sklearn.base import BaseEstimator, ClassifierMixin

from skort.common.component import Component, explained_init
from skort.common.sklearn_private import InvalidParameterError
from skort.estimators.value_hints import (
    is_valid,
    nearest,
    parameters_of,
    value_classes,
    value_hint,
)
from skort.optim.optimizers import OPTIMIZERS

Method = TypeVar("Method", bound=Callable[..., Any])
Own = TypeVar("Own", bound="NamedParameters")

# The names of parameters in other libraries.
_PARAMETERS = {
    "eta0": ("lr", "learning_rate_init"),
    "max_iter": ("epochs", "n_epochs", "num_epochs", "max_epochs", "n_iter"),
    "n_iter_no_change": ("patience",),
    "validation_fraction": ("validation_split",),
    "random_state": ("seed",),
    "loss": ("criterion",),
    "optimizer": ("optim",),
    "estimator": ("base_estimator", "model"),
    "max_grad_norm": ("clip_norm", "clipnorm"),
    "device": ("gpu", "use_gpu"),
    "learning_rate": ("scheduler", "lr_scheduler", "lr_schedule"),
    "quantile": ("q", "tau"),
    "epsilon": ("delta",),
    "scoring": ("metric", "metrics", "eval_metric"),
}
# The values that these names stand for.
_VALUES = {"gpu": "cuda", "use_gpu": "cuda"}
# What does the work of a parameter that other libraries have.
_THRESHOLD = "FixedThresholdClassifier of scikit-learn, around the classifier, has it"
_ELSEWHERE = {
    "threshold": _THRESHOLD,
    "pos_label": _THRESHOLD,
    "scale_pos_weight": "class_weight has the weight of each label",
    "freeze": "trainable names the weights to train; all others are frozen",
    "dropout": "It is a parameter of skort.networks.TabularNetwork",
    "betas": "They are beta_1 and beta_2 of skort.optimizers.Adam",
}
# The methods that train.
_METHODS = ("fit", "partial_fit", "fit_batches")
# The names of arguments of `fit` in other libraries.
_ARGUMENTS = {
    "X_val, y_val": ("eval_set", "validation_data", "valid_data"),
    "sample_weight": ("sample_weights", "weight", "weights"),
    "target_opset": ("opset", "opset_version"),
}
# What has the same role here as an attribute of scikit-learn's or another library's models.
_ATTRIBUTES = {
    "coefs_": "weights_ has all weights by name",
    "intercepts_": "weights_ has all weights by name",
    "hidden_layer_sizes": "it is a parameter of the model, estimator",
    "estimator_": "to_sklearn() returns the fitted model, weights_ its weights",
    "named_steps": "to_sklearn() returns the fitted pipeline",
    "steps": "to_sklearn() returns the fitted pipeline",
    "model_": "onnx_ is the fitted model, to_sklearn() returns it as scikit-learn has it",
    "feature_importances_": "coef_ has the coefficients of a linear model",
    "onnx_model_": "onnx_ is the fitted model as ONNX",
    "n_epochs_": "n_iter_ is the number of epochs, t_ that of updates",
    "export": "save_onnx(path) writes the ONNX file",
    "export_onnx": "save_onnx(path) writes the ONNX file",
    "evaluate": "score(X, y) is the accuracy, or R2",
    "summary": "plan_ has the decisions of the fit, weights_ the weights",
    "plot_loss_curve": "skort.plotting.LossCurveDisplay.from_estimator(model) draws it",
    "save": "save_onnx(path) writes the ONNX file; pickle or joblib keep the estimator",
    "loss_history_": "loss_curve_ has the objective of each epoch, history_ all records",
    "losses_": "loss_curve_ has the objective of each epoch, history_ all records",
    "history": "history_ has the records of all epochs",
}


# A remark for those who may expect more of a parameter, because it does more in other libraries.
_ALONE = {
    "eta0": " It sets only the first learning rate: optimizer and learning_rate are other parameters."
}


class NamedParameters(Component):
    """Parameters whose errors suggest a name or a value."""

    estimator: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in [*vars(cls).items()]:
            if re.fullmatch(r"set_\w+_request", name):
                setattr(cls, name, _ShortHelp(method))
            elif name == "__init__":
                setattr(cls, name, explained_init(method, _with_hint))

    def set_params(self: Own, **params: Any) -> Own:  # noqa: D102 - it has scikit-learn's
        for path in params:
            name, _, part = path.partition("__")
            if part and name in self._get_param_names() and name not in params:
                _check_has_parameters(type(self), name, getattr(self, name), part)
        try:
            return super().set_params(**params)
        except ValueError as error:
            unknown = [
                name for name in params if name.partition("__")[0] not in self._get_param_names()
            ]
            hints = [name_hint(type(self), self.estimator, name, params[name]) for name in unknown]
            hints += [_longer_path(self, path) for path in params if path not in unknown]
            raise ValueError(f"{error}{next(filter(None, hints), '')}") from None

    def _validate_params(self) -> None:
        try:
            super()._validate_params()
        except InvalidParameterError as error:
            found = re.match(r"The '(\w+)' parameter of ", str(error))
            advice = (
                value_hint(
                    type(self), found[1], getattr(self, found[1]), self._parameter_constraints
                )
                if found
                else ""
            )
            raise InvalidParameterError(f"{error}{advice}") from None

    # To a type checker, a class with this method has every attribute.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python asks for what an object lacks, and for properties that raised an AttributeError.
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)

            instead = _ATTRIBUTES.get(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + ("" if instead is None else f": {instead}."),
                name=name,
                obj=self,
            )


class _ShortHelp:
    """A method of scikit-learn's metadata routing, with a help of one line in place of thirty."""

    def __init__(self, method):
        self._method = method

    def __get__(self, instance, owner=None):
        method = self._method.__get__(instance, owner)
        method.__doc__ = "Choose what a meta-estimator passes on, see `sklearn.set_config(enable_metadata_routing)`."
        return method


def explained_arguments(method: Method) -> Method:
    """
    Make the error for wrong arguments of a method name the user's class,
    and the right argument or parameter.
    """

    @functools.wraps(method)
    def explained(self, *args, **given):
        if not isinstance(self, NamedParameters):
            raise TypeError(
                f"{method.__qualname__} was called on the class: make an estimator first, and call "
                f"its {method.__name__}."
            )
        try:
            return method(self, *args, **given)
        except TypeError as error:
            # Python names the class that has the method.
            place = f"{method.__qualname__}() "
            if not str(error).startswith(place):
                raise

            refused = str(error).removeprefix(place)
            known = inspect.signature(method).parameters
            unknown = next((name for name in given if name not in known), None)
            if unknown is not None:
                advice = _argument_hint(type(self), method.__name__, unknown, given[unknown], known)
                refused = f"got an unexpected keyword argument {unknown!r}.{advice}"
            elif refused.startswith("takes "):
                refused = f"{refused}. Its arguments are {', '.join([*known][1:])}."
            raise TypeError(f"{type(self).__name__}.{method.__name__}() {refused}") from None

    return cast("Method", explained)


def _argument_hint(cls, method, name, value, known):
    """Return a sentence, after a space, for an argument that a method does not have."""
    argument = nearest(name, [*_ARGUMENTS], _ARGUMENTS, 1.0)
    if argument and argument[0].partition(",")[0] in known:
        return f" Did you mean {argument[0]}?"
    if method == "fit_batches" and name == "sample_weight":
        return " A batch may have it: (X, y, sample_weight)."

    others = [
        other for other in _METHODS if name in inspect.signature(getattr(cls, other)).parameters
    ]
    # A regressor refuses the classes of fit_batches.
    if others and (name != "classes" or issubclass(cls, ClassifierMixin)):
        return f" It is an argument of {' and '.join(others)}."

    parameter = nearest(name, cls._get_param_names(), _PARAMETERS, 0.9)
    if not parameter:
        return ""
    if method == "partial_fit" and parameter[0] == "max_iter":
        return " A call makes one pass over its rows: call partial_fit again for another one."

    refused = _value_hint(cls, parameter[0], value)
    if refused:
        return f" The parameter {parameter[0]} of the estimator sets it.{refused}"
    return f" It is a parameter of the estimator: {cls.__name__}({parameter[0]}={value!r})."


def _value_hint(cls, name, value):
    """Return the sentence, after a space, for a value that a parameter does not take, or no text."""
    constraints = cls._parameter_constraints
    return "" if is_valid(name, value, constraints) else value_hint(cls, name, value, constraints)


def _check_has_parameters(cls, name, value, part):
    """Raise an error for `name__part`, as a search has it, where the value has no parameters."""
    if value is None or isinstance(value, str):
        raise ValueError(
            f"Invalid parameter '{name}__{part}' for {cls.__name__}: {name}={value!r} has no "
            f"parameters.{_owner_hint(cls, name, value, part)}"
        )


def _owner_hint(cls, name, value, part):
    """Return a sentence, after a space, for what has the `part` that a name or None lacks, if any."""
    owners = [
        each for each in value_classes(cls, name) if part.partition("__")[0] in parameters_of(each)
    ]
    same = [each for each in owners if each.__name__.lower() == str(value).replace("_", "")]
    if not same and part in cls._get_param_names():
        return f" {part} is a parameter of {cls.__name__} itself."

    first = next((each.__name__ for each in same or owners), None)
    return "" if first is None else f" Give {name}={first}() first."


def _longer_path(estimator, path):
    """Return a sentence, after a space, for `estimator__C` where a step has C, if any has."""
    known = estimator.get_params()
    head, _, rest = path.partition("__")
    longer = [each for each in known if each.startswith(f"{head}__") and each.endswith(f"__{rest}")]
    return "" if path in known or not longer else f" Did you mean {min(longer, key=len)}?"


def _with_hint(error, unknown, estimator, args, given):
    """Return the error for an unknown parameter, with the suggestion of another one."""
    inside = args[0] if args else given.get("estimator")
    # Since Python 3.13, the error itself suggests a similar name.
    refused = str(error).partition(". Did you mean")[0]
    name, _, part = unknown.partition("__")
    if part and name in type(estimator)._get_param_names():
        value = inside if name == "estimator" else given.get(name)
        hint = _owner_hint(type(estimator), name, value, part) if value is None else ""
        return f"{refused}.{hint or ' Names with two underscores are for set_params and searches.'}"

    return f"{refused}.{name_hint(type(estimator), inside, unknown, given[unknown])}"


def name_hint(cls: type[Component], inside: Any, name: str, value: Any) -> str:
    """Return a sentence, after a space, that suggests a parameter for an unknown one, if any."""
    of_optimizers = [
        each.__name__ for each in OPTIMIZERS.values() if name in each._get_param_names()
    ]
    similar = nearest(name, cls._get_param_names(), _PARAMETERS, 0.75)
    if similar:
        value = _VALUES.get(name, value)
        refused = _value_hint(cls, similar[0], value)
        if refused:
            named = "" if refused.startswith(" Did you mean") else f" Did you mean {similar[0]}?"
            return f"{named}{refused}"

        alone = _ALONE.get(similar[0], "") if name in _PARAMETERS.get(similar[0], ()) else ""
        return f" Did you mean {similar[0]}={value!r}?{alone}"
    if name in _ELSEWHERE:
        return f" {_ELSEWHERE[name]}."
    if name == "class_weight":
        return " It is a parameter of OrtSGDClassifier; give fit sample_weight."
    if name in OPTIMIZERS and not of_optimizers:
        return f" Did you mean optimizer={name!r}?"
    if of_optimizers:
        return (
            f" It is a parameter of the optimizer: optimizer={of_optimizers[0]}({name}={value!r})."
        )
    if isinstance(inside, BaseEstimator):
        step, _, part = name.partition("__")
        if part and step == type(inside).__name__.lower():
            return f" The model inside has no step: write estimator__{part}."

        paths = [path for path in inside.get_params() if path == name or path.endswith(f"__{name}")]
        return (
            f" It is a parameter of the estimator inside: estimator__{paths[0]}." if paths else ""
        )

    models = [each for each in value_classes(cls, "estimator") if name in parameters_of(each)]

    return (
        f" It is a parameter of the model inside: estimator={models[0].__name__}({name}={value!r})."
        if models
        else ""
    )
