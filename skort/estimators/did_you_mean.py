"""Suggestions in the errors for unknown parameters, arguments, attributes and values."""

import inspect
import re
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.base import BaseEstimator, ClassifierMixin

from skort.common.component import (
    SIMILAR,
    Component,
    Method,
    explained_init,
    explained_method,
    missing_attribute,
    name_here,
    nearest,
    reads_no_file,
)
from skort.estimators.other_names import ARGUMENTS, ATTRIBUTES, ELSEWHERE, PARAMETERS, VALUES
from skort.estimators.value_hints import (
    is_valid,
    parameters_of,
    value_classes,
    value_hint,
)
from skort.optim.optimizers import OPTIMIZERS
from skort.optim.scorers import nearest_name

Own = TypeVar("Own", bound="NamedParameters")

# The parameters whose values are given without a name.
_FIRST_GIVEN = ("optimizer", "loss", "penalty", "solver")
# The methods that train.
_METHODS = ("fit", "partial_fit", "fit_batches")
# Parameter -> the sentence, after a space, for the estimator that lacks it.
_OF_OTHER_KIND = {
    "class_weight": " It is a parameter of OrtSGDClassifier; give fit sample_weight.",
    "quantile": ' It is a parameter of OrtSGDRegressor, of its loss="quantile".',
}
# A remark for those who may expect more of a parameter, because it does more in other libraries.
_ALONE = {
    "eta0": " It sets only the first learning rate: optimizer and learning_rate are other parameters."
}


@reads_no_file(ATTRIBUTES["load"])
class NamedParameters(Component):
    """Parameters whose errors suggest a name or a value."""

    estimator: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in [*vars(cls).items()]:
            if re.fullmatch(r"set_\w+_request", name):
                setattr(cls, name, _ShortHelp(method))
            elif name == "__init__":
                setattr(cls, name, explained_init(method, _with_hint, _without_names))

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
            meant = [
                _longer_path(self.get_params(), path) for path in params if path not in unknown
            ]
            hints += [f" Did you mean {path}?" for path in meant if path]
            hint = next(filter(None, hints), "")
            # scikit-learn lists all parameters, in which a hint is lost.
            refused = str(error).partition(" Valid parameters are: ")[0] if hint else error
            raise ValueError(f"{refused}{hint}") from None

    def _value_advice(self, name: str) -> str:
        return value_hint(type(self), name, getattr(self, name), self._parameter_constraints)

    # To a type checker, a class with this method has every attribute.
    if not TYPE_CHECKING:
        __getattr__ = missing_attribute(ATTRIBUTES)


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
    return explained_method(method, _without_argument)


def _without_argument(error, method, estimator, given):
    """Return the error for wrong arguments of a method, or None for another error."""
    # Python names the class that has the method.
    place = f"{method.__qualname__}() "
    if not str(error).startswith(place):
        return None

    cls = type(estimator)
    refused = str(error).removeprefix(place)
    known = inspect.signature(method).parameters
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        advice = _argument_hint(cls, method.__name__, unknown, given[unknown], known)
        refused = f"got an unexpected keyword argument {unknown!r}.{advice}"
    elif refused.startswith("takes "):
        _, *names = known
        listed = (
            f"argument is {names[0]}" if len(names) == 1 else f"arguments are {', '.join(names)}"
        )
        refused = f"{refused}. Its {listed}."
        if names[0] == "batches":
            refused = f"{refused} fit takes X and y."

    return f"{cls.__name__}.{method.__name__}() {refused}"


def _argument_hint(cls, method, name, value, known):
    """Return a sentence, after a space, for an argument that a method does not have."""
    argument = nearest(name, [*ARGUMENTS], ARGUMENTS, 1.0)
    if argument and argument[0].partition(",")[0] in known:
        return f" Did you mean {argument[0]}?"
    # A Pipeline of scikit-learn takes arguments as step__argument.
    argument = name.rpartition("__")[2].lower()
    same = [each for each in known if each.lower() == argument]
    if same:
        return f" Did you mean {same[0]}?"
    if method == "fit_batches" and name == "sample_weight":
        return " A batch may have it: (X, y, sample_weight)."

    others = _methods_with(cls, name)
    if others:
        return f" It is an argument of {others}."

    if name in ELSEWHERE:
        return _elsewhere(cls, name)

    parameter = nearest(name, cls._get_param_names(), PARAMETERS, 0.9)
    if not parameter:
        return _OF_OTHER_KIND.get(name, "")
    if method == "partial_fit" and parameter[0] == "max_iter":
        return " A call makes one pass over its rows: call partial_fit again for another one."

    refused = _value_hint(cls, parameter[0], value)
    if refused:
        return f" The parameter {parameter[0]} of the estimator sets it.{refused}"
    return f" It is a parameter of the estimator: {cls.__name__}({parameter[0]}={value!r})."


def _methods_with(cls, name):
    """Return the names of the methods that take an argument, as a text; none for an unknown one."""
    # A regressor refuses the classes of fit_batches.
    if name == "classes" and not issubclass(cls, ClassifierMixin):
        return ""
    methods = [
        each for each in _METHODS if name in inspect.signature(getattr(cls, each)).parameters
    ]
    return " and ".join(methods)


def _elsewhere(cls, name):
    """Return the sentence, after a space, on what does the work of a parameter of other libraries."""
    is_classifier = issubclass(cls, ClassifierMixin)
    kind = "Classifier" if is_classifier else "Regressor"
    linear = "LogisticRegression" if is_classifier else "LinearRegression"
    sentence = ELSEWHERE[name].format(kind=kind, linear=linear)
    return f" {sentence}" if sentence.endswith("?") else f" {sentence}."


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


def _longer_path(known, path):
    """
    Return the path that one like `estimator__C` means, where a step has C, or None.

    `known` are the parameters of an estimator by their paths.
    """
    if path in known:
        return None

    head, _, rest = path.partition("__")
    last = rest.rpartition("__")[2]
    for place, part in known.items():
        meant = name_here(type(part), last)
        if meant is not None and place.startswith(head):
            return f"{place}__{meant}"

    inside = [each for each in known if each.startswith(f"{head}__")]
    for each in inside:
        if each.lower() == path.lower():
            return each
    lasts = [each.rpartition("__")[2] for each in inside]
    # The whole rest, its last part, or one like it, at the end of a path.
    for end in (rest, last, *nearest(last, lasts, {}, SIMILAR)):
        longer = [each for each in inside if each.endswith(f"__{end}")]
        if longer:
            return nearest(path, longer, {}, 0.0)[0]

    return None


def _parameters(value):
    """Return the parameters of a value by their paths; none for what has none."""
    return value.get_params() if isinstance(value, BaseEstimator) else {}


def _with_hint(error, unknown, estimator, args, given):
    """Return the error for an unknown parameter, with the suggestion of another one."""
    inside = args[0] if args else given.get("estimator")
    # Since Python 3.13, the error itself suggests a similar name.
    refused = str(error).partition(". Did you mean")[0]
    name, _, part = unknown.partition("__")
    if part and name in type(estimator)._get_param_names():
        value = inside if name == "estimator" else given.get(name)
        if value is None and (hint := _owner_hint(type(estimator), name, value, part)):
            return f"{refused}.{hint}"

        known = {f"{name}__{path}": part for path, part in _parameters(value).items()}
        path = unknown if unknown in known else _longer_path({name: value, **known}, unknown)
        advice = f": set_params({path}={given[unknown]!r})" if path else ""
        return f"{refused}. Names with two underscores are for set_params and searches{advice}."

    return f"{refused}.{name_hint(type(estimator), inside, unknown, given[unknown])}"


def _without_names(error, estimator, values):
    """Return the error for values without a name but that of the model inside."""
    if "() takes " not in str(error):
        return None
    cls = type(estimator)
    meant = [value for each in values[1:] for value in _meant(cls, each)]
    advice = f" Did you mean {meant[0]}?" if meant else ""
    return (
        f"{cls.__name__}({', '.join(map(repr, values))}) takes only estimator without a name. Give "
        f"all other parameters by name.{advice}"
    )


def _meant(cls, value):
    """Return how a text is given by the name of its parameter, for each that takes it."""
    constraints = cls._parameter_constraints
    return [
        f"{name}={value!r}"
        for name in _FIRST_GIVEN
        if isinstance(value, str) and name in constraints and is_valid(name, value, constraints)
    ]


def check_not_named(estimator: Any) -> None:
    """Raise an error for the name of a loss, say, that was given in the place of the model inside."""
    for value in _meant(type(estimator), estimator.estimator):
        raise ValueError(
            f"The 'estimator' parameter, the only one without a name, is a model. Got "
            f"{estimator.estimator!r}. Did you mean {value}?"
        )


def _scoring_hint(value):
    """Return the sentence for the metrics of other libraries, of which `scoring` is one."""
    values = value if isinstance(value, list | tuple) else [value]
    names = [nearest_name(each) or each if isinstance(each, str) else each for each in values]
    if len(names) == 1:
        return f"Did you mean scoring={names[0]!r}?"
    return (
        "Did you mean scoring, which takes one scorer? skort.callbacks.EpochScoring records others."
    )


def _paths_inside(inside, name):
    """Return the paths of the parameters of a model inside that have a name."""
    if not isinstance(inside, BaseEstimator):
        return []
    return [path for path in inside.get_params() if path == name or path.endswith(f"__{name}")]


def _of_similar(cls, parameter, name, value):
    """Return a sentence, after a space, that suggests a parameter for one of a similar name."""
    if parameter == "scoring":
        return f" {_scoring_hint(value)}"
    refused = _value_hint(cls, parameter, value)
    if refused:
        named = "" if refused.startswith(" Did you mean") else f" Did you mean {parameter}?"
        return f"{named}{refused}"

    alone = _ALONE.get(parameter, "") if name in PARAMETERS.get(parameter, ()) else ""
    return f" Did you mean {parameter}={value!r}?{alone}"


def name_hint(cls: type[Component], inside: Any, name: str, value: Any) -> str:
    """Return a sentence, after a space, that suggests a parameter for an unknown one, if any."""
    of_optimizers = [
        each.__name__ for each in OPTIMIZERS.values() if name in each._get_param_names()
    ]
    paths = _paths_inside(inside, name)
    if name in ELSEWHERE and not paths:
        return _elsewhere(cls, name)

    similar = nearest(name, cls._get_param_names(), PARAMETERS, 0.75)
    if similar:
        return _of_similar(cls, similar[0], name, VALUES.get(name, value))
    if name in _OF_OTHER_KIND:
        return _OF_OTHER_KIND[name]
    methods = _methods_with(cls, name)
    if methods:
        return f" It is an argument of {methods}."
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

        return (
            f" It is a parameter of the estimator inside: estimator__{paths[0]}." if paths else ""
        )

    models = [each for each in value_classes(cls, "estimator") if name in parameters_of(each)]

    return (
        f" It is a parameter of the model inside: estimator={models[0].__name__}({name}={value!r})."
        if models
        else ""
    )
