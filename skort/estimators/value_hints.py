"""Sentences that suggest another value, for a value that a parameter does not take."""

import enum
import importlib
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from skort.common.component import Component, nearest
from skort.common.sklearn_private import (
    HasMethods,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES

# The names of values in other libraries.
_SYNONYMS = {
    "squared_error": (
        "mse",
        "mseloss",
        "mean_squared_error",
        "l2_loss",
        "least_squares",
        "rmse",
        "r2",
        "squared_loss",
        "reg:squarederror",
    ),
    "absolute_error": (
        *("mae", "l1loss", "mean_absolute_error", "l1_loss", "reg:absoluteerror"),
        "regression_l1",
    ),
    "huber": ("smoothl1loss", "huberloss", "reg:pseudohubererror"),
    "quantile": ("pinball", "reg:quantileerror"),
    "poisson": ("count:poisson", "poissonnllloss"),
    "gamma": ("reg:gamma",),
    "hinge": ("binary:hinge", "hingeloss", "categorical_hinge"),
    "log_loss": (
        *("binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob", "multiclass"),
        *("logloss", "sparse_categorical_crossentropy", "nll", "nllloss", "bceloss"),
        "bce",
        "bcewithlogitsloss",
        "binary_crossentropy",
        "categorical_crossentropy",
        "cross_entropy",
        "crossentropy",
        "crossentropyloss",
        "deviance",
        "log",
        "logistic",
        "sigmoid",
        "softmax",
    ),
    "l2": ("ridge", "weight_decay"),
    "l1": ("lasso",),
    "elasticnet": ("l1_l2", "l1l2"),
    "lbfgs": (
        *("bfgs", "l-bfgs", "l-bfgs-b", "newton", "liblinear", "newton-cg", "newton-cholesky"),
        *("sag", "saga"),
    ),
    "adam": ("adamax", "nadam", "radam", "amsgrad", "rmsprop", "adagrad", "adadelta"),
    "momentum": ("sgdm",),
    "adaptive": ("plateau", "reduce_on_plateau", "reducelronplateau"),
    "cuda": ("gpu",),
    "float32": ("f4", "float16", "fp16", "fp32", "bf16", "bfloat16", "half", "single"),
    "float64": ("double", "f8", "float"),
    "Cosine": ("cosine_annealing", "cosine_decay"),
    "Cyclic": ("one_cycle", "onecycle"),
}
# The modules with the classes of values.
_MODULES = {
    "loss": "skort.objective",
    "penalty": "skort.objective",
    "optimizer": "skort.optimizers",
    "learning_rate": "skort.schedules",
}
# What to give for an idea that skort does not know.
_CUSTOM = {
    "loss": (
        "A custom loss is an ONNX function, because ONNX Runtime computes its gradient: write it "
        "with skort.objective.Loss."
    ),
    "penalty": "A custom penalty is an ONNX function: write it with skort.objective.Penalty.",
    "optimizer": (
        "A custom optimizer is an object with the methods of skort.optimizers.Optimizer."
    ),
    "learning_rate": (
        "skort.schedules has other schedules. A function of the number of the update is a schedule, too."
    ),
    "batch_size": "A batch of all rows is batch_size=len(X).",
    "class_weight": "A dict has the weight of each label: {label: weight}.",
    "dtype": "ONNX Runtime trains in float32 and in float64.",
    "quantile": "An estimator has one quantile: train one estimator for each.",
    "random_state": "A seed is an int or a numpy.random.RandomState.",
    "n_jobs": "n_jobs=-1 takes all cores.",
    "standardize": "Another scaler goes before the model, into a pipeline inside.",
    "callbacks": "A callback is an object with the methods of skort.callbacks.Callback.",
    "trainable": "None trains all weights of the model; names or patterns choose some.",
    "verbose": "verbose=1 shows a bar, verbose=2 a line for each epoch.",
    "solver": (
        "solver is the part of ONNX Runtime that makes the steps; optimizer says how they change "
        "the weights."
    ),
}
# The parameters that are a number or a name.
_NUMERIC = {"alpha", "epsilon", "quantile", "l1_ratio", "eta0", "batch_size", "max_iter", "tol"}
# What to give in place of a number.
_INSTEAD_OF_NUMBERS = {
    "learning_rate": "To set the rate, give eta0={}.",
    "device": "Did you mean device='cuda:{}'?",
    "penalty": "To set the strength of the penalty, give alpha={}.",
    "early_stopping": "Did you mean early_stopping=True, n_iter_no_change={}?",
    "batch_size": "It is a number of rows. A batch of all rows is batch_size=len(X).",
    "n_jobs": _CUSTOM["n_jobs"],
}
# What to give in place of zero, or less.
_INSTEAD_OF_ZERO = {
    "max_iter": "max_iter=1 is one pass over the rows.",
    "eta0": "eta0='auto' takes the rate from the data; trainable names the weights to train.",
    "validation_fraction": "early_stopping=False holds out no rows.",
    "n_iter_no_change": "tol=None trains for all max_iter epochs.",
    "tol": "tol=None trains for all max_iter epochs.",
}
# What to give in place of a text that has parameters of its own elsewhere.
_INSTEAD_OF_TEXTS = {
    ("optimizer", "adamw"): (
        "Did you mean optimizer=Adam(weight_decay=0.01)? Import it from skort.optimizers."
    ),
}
# The texts that stand for truth values.
_TRUTH = {
    **dict.fromkeys(("yes", "true", "on"), True),
    **dict.fromkeys(("no", "false", "off"), False),
}


def value_hint(cls: type, name: str, value: Any, constraints: Mapping[str, Sequence[Any]]) -> str:
    """Return a sentence, after a space, for a value that a parameter does not take, or no text."""
    options = {key: _options(each) for key, each in constraints.items()}
    sentence = (
        _of_text(cls, name, value, options, constraints)
        if isinstance(value, str)
        else _of_object(name, value, options, constraints)
    )
    return f" {sentence}" if sentence else ""


def is_valid(name: str, value: Any, constraints: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether a parameter takes a value."""
    try:
        validate_parameter_constraints({name: constraints[name]}, {name: value}, caller_name="")
    except InvalidParameterError:
        return False

    return True


def value_classes(cls: type, name: str) -> list[type]:
    """Return the classes whose instances are values of a parameter with parameters of their own."""
    if name == "estimator":
        # These imports take long.
        from sklearn.linear_model import LinearRegression, LogisticRegression
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        is_classifier = issubclass(cls, ClassifierMixin)
        return (
            [LogisticRegression, MLPClassifier]
            if is_classifier
            else [LinearRegression, MLPRegressor]
        )

    if name not in _MODULES:
        return []
    module = importlib.import_module(_MODULES[name])
    classes = (getattr(module, each) for each in module.__all__)
    return [each for each in classes if _is_taken(cls, name, each)]


def _is_taken(cls, name, value_class):
    """Return whether a parameter of an estimator takes the instances of a class."""
    constraints = cls._parameter_constraints[name]
    methods = [m for each in constraints if isinstance(each, HasMethods) for m in each.methods]
    of_others = ("regressor",) if issubclass(cls, ClassifierMixin) else ("classifier",)
    return (
        all(hasattr(value_class, method) for method in methods)
        and getattr(value_class, "estimator_types", ()) != of_others
        # A protocol has no instances.
        and not getattr(value_class, "_is_protocol", False)
    )


def parameters_of(cls: type) -> list[str]:
    """Return the names of the parameters of a class; none if it is not one of scikit-learn's kind."""
    return cls._get_param_names() if hasattr(cls, "_get_param_names") else []


def _options(constraints):
    """Return the texts that a parameter takes, in alphabetical order."""
    given = constraints if isinstance(constraints, list) else []
    texts = [each.options for each in given if isinstance(each, StrOptions)]
    return sorted(set().union(*texts))


def _of_text(cls, name, text, options, constraints):
    """Return a sentence for a text that a parameter does not take."""
    same = [option for option in options[name] if _plain(option) == _plain(text)]
    known = same or nearest(text, options[name], _SYNONYMS, 1.0)
    owner = _other_parameter(text, {**options, "device": ["cpu", "cuda"]})
    module = _MODULES.get(name)

    if (name, text.lower()) in _INSTEAD_OF_TEXTS:
        return _INSTEAD_OF_TEXTS[name, text.lower()]
    if known:
        return f"Did you mean {name}={known[0]!r}?"
    truth = _TRUTH.get(text.lower())
    if truth is not None and is_valid(name, truth, constraints):
        return f"Did you mean {name}={truth}?"
    if text.lower() == "none" and name in ("loss", "penalty"):
        return f"Did you mean {name}=None?"
    if name == "loss" and text in REGRESSION_LOSSES | CLASSIFICATION_LOSSES:
        return _of_other_losses(cls, text)
    if owner is not None:
        return f"Did you mean {owner}?"
    if name in _NUMERIC and _is_number(text):
        return f"A number has no quotes: {name}={text}."
    if module is not None and (found := _class_named(text, value_classes(cls, name))) is not None:
        return f"Did you mean {name}={found}()? Import it from {module}."

    similar = nearest(text, options[name], _SYNONYMS, 0.6)
    return f"Did you mean {name}={similar[0]!r}?" if similar else _CUSTOM.get(name, "")


def _of_object(name, value, options, constraints):
    """Return a sentence for a value that is no text."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_ | enum.Enum)
    if is_number:
        return _of_number(name, value, constraints)
    if value is None:
        return f"Did you mean {name}='auto'?" if "auto" in options[name] else ""
    if (
        isinstance(value, list | tuple)
        and len(value) == 1
        and is_valid(name, value[0], constraints)
    ):
        return f"Did you mean {name}={value[0]!r}?"
    if hasattr(value, "on_epoch_end"):
        given = f"{value.__name__}()" if isinstance(value, type) else repr(value)
        return f"Did you mean callbacks=[{given}]?"
    if isinstance(value, Component):
        others = (other for other in _MODULES if is_valid(other, value, constraints))
        if name == "scoring" and is_valid("loss", value, constraints):
            return (
                "Give it as loss, and leave scoring out: the loss then scores the validation set."
            )
        return next((f"Did you mean {other}={value!r}?" for other in others), "")

    # A member of an enum, a class or an instance of another library: MSELoss(), numpy.float32.
    its_name = getattr(value, "name", None) or getattr(value, "__name__", type(value).__name__)
    synonyms = nearest(str(its_name), options[name], _SYNONYMS, 1.0)
    if synonyms:
        return f"Did you mean {name}={synonyms[0]!r}?"
    return _CUSTOM.get(name, "")


def _of_number(name, value, constraints):
    """Return a sentence for a number that a parameter does not take."""
    whole = int(value) if np.isfinite(value) else value
    if whole == value and is_valid(name, whole, constraints):
        return f"Did you mean {name}={whole}?"
    if value <= 0 and name in _INSTEAD_OF_ZERO:
        return _INSTEAD_OF_ZERO[name]
    if name in _INSTEAD_OF_NUMBERS:
        return _INSTEAD_OF_NUMBERS[name].format(value)
    # A part in percent. Smaller numbers mean something else.
    if 5 <= value <= 100 and is_valid(name, value / 100, constraints):
        return f"Did you mean {name}={value / 100:g}?"
    return f"Did you mean {name}=None?" if value == 0 and is_valid(name, None, constraints) else ""


def _other_parameter(text, options):
    """Return another parameter that takes a text, with the text as its value, or None."""
    for name, texts in options.items():
        found = nearest(text, [each for each in texts if each != "auto"], _SYNONYMS, 1.0)
        if found:
            return f"{name}={found[0]!r}"
    return None


def _of_other_losses(cls, text):
    """Return a sentence for the loss of the other estimator."""
    other = "OrtSGDRegressor" if issubclass(cls, ClassifierMixin) else "OrtSGDClassifier"
    return f"{text!r} is a loss of {other}."


def _class_named(text, classes):
    """Return the name of the class that a text stands for, or None."""
    names = [each.__name__ for each in classes]
    same = [
        name for name in names if _plain(text) in (_plain(name), _plain(name).removesuffix("loss"))
    ]
    return next(iter(same or nearest(text, names, _SYNONYMS, 1.0)), None)


def _plain(text):
    """Return a name without what people forget: capitals, underscores and hyphens."""
    return text.lower().replace("_", "").replace("-", "")


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
