"""The base of classes with parameters: estimators, losses, penalties, optimizers, schedules."""

import copy
import difflib
import functools
import importlib.metadata
import inspect
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sklearn.base import clone

from skort.common.sklearn_private import InvalidParameterError, validate_parameter_constraints

if TYPE_CHECKING:
    from skort.common.sklearn_types import Parametrized as BaseEstimator
else:
    from sklearn.base import BaseEstimator


Class = TypeVar("Class", bound=type)
Method = TypeVar("Method", bound=Callable[..., Any])


def project_address(name: str) -> str:
    """Return an address of `project.urls` in pyproject.toml; "" if skort is not installed."""
    try:
        urls = importlib.metadata.metadata("skort").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    return dict(url.split(", ", 1) for url in urls).get(name, "")


#: The address of the documentation.
DOCUMENTATION = project_address("Documentation")

#: Types of values that nobody changes in place.
PLAIN = frozenset({str, int, float, bool, type(None)})
# Values that have passed: (class, name of the parameter, type, value). Many fits have the same
# values.
_PASSED: set[tuple[Any, ...]] = set()
_MOST = 10_000
# How scikit-learn's error for an invalid value begins.
_OF_PARAMETER = re.compile(r"The '(\w+)' parameter of ")
# The letters of a value that a message does not show.
_LONG = 300
#: How much of a name must be right for a hint.
SIMILAR = 0.75
# What other libraries call the values of a network, and of steps.
_VALUES = {
    "logistic": ("sigmoid",),
    "identity": ("linear", "none"),
    "relu": ("rectifier", "leaky_relu", "elu", "gelu", "selu", "silu", "swish"),
    "piecewise": ("bins", "ple", "quantile"),
}
# What other libraries call the learning rate, and give to the optimizer.
_RATES = ("lr", "learning_rate", "learning_rate_init")


@functools.cache
def parameter_names(cls: Hashable) -> tuple[str, ...]:
    """
    Return the names of the parameters of a class.

    scikit-learn finds them again in every call.
    """
    return tuple(BaseEstimator._get_param_names.__func__(cls))  # type: ignore[attr-defined]


def own_copy(part: Any, deep: Callable[[Any], Any]) -> Any:
    """
    Return a copy of an object.

    `deep` makes it only if a value of the object can be changed in place, as it takes longer.
    """
    if not all(type(value) in PLAIN or type(value) is tuple for value in vars(part).values()):
        return deep(part)
    copied = object.__new__(type(part))
    vars(copied).update(vars(part))
    return copied


class Component(BaseEstimator):
    """
    A scikit-learn estimator that is faster.

    It finds the names of its parameters once per class, and validates each value once.
    """

    _parameter_constraints: dict[str, Any] = {}
    #: Parameter -> its names elsewhere.
    _other_names: Mapping[str, Sequence[str]] = {}
    #: What to say to a value without a name that the constructor does not take.
    _without_name: str = ""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(parameter_names(cls))  # type: ignore[arg-type]  # classes are hashable

    def _validate_params(self) -> None:
        """Raise scikit-learn's error for an invalid parameter, maybe with advice."""
        try:
            _validate_values(self)
        except InvalidParameterError as error:
            found = _OF_PARAMETER.match(str(error))
            advice = self._value_advice(found[1]) if found else ""
            raise InvalidParameterError(f"{error}{advice}") from None

    def _value_advice(self, name: str) -> str:
        """Return a sentence, after a space, for a parameter whose value is not valid, if any."""
        return ""


def _validate_values(part):
    """Raise scikit-learn's error for an invalid parameter; skip values that have passed before."""
    cls = type(part)
    unknown = {}
    keys = []
    for name in parameter_names(cls):  # type: ignore[arg-type]  # classes are hashable
        value = getattr(part, name)
        key = (cls, name, type(value), value) if type(value) in PLAIN else None
        if key is None or key not in _PASSED:
            unknown[name] = value
            keys.append(key)

    if unknown:
        try:
            validate_parameter_constraints(
                part._parameter_constraints, unknown, caller_name=cls.__name__
            )
        except InvalidParameterError as error:
            raise _without_arrays(error, cls, unknown) from None
        if len(_PASSED) > _MOST:
            _PASSED.clear()
        _PASSED.update(key for key in keys if key is not None)


def _without_arrays(error, cls, values):
    """Return scikit-learn's error, with the size of a long value, and the order of parameters."""
    message = str(error)
    for name, value in values.items():
        text = repr(value)
        if len(text) < _LONG or text not in message:
            continue

        size = f"shape {value.shape}" if hasattr(value, "shape") else f"{len(value)} items"
        known = inspect.signature(cls).parameters.values()
        order = [each.name for each in known if each.kind is each.POSITIONAL_OR_KEYWORD]
        advice = f" The order is {cls.__name__}({', '.join(order)})." if name in order else ""
        return InvalidParameterError(
            f"{message.replace(text, f'{type(value).__name__} of {size}')}{advice}"
        )

    return error


class DocumentationLink:
    """Links the diagram that scikit-learn draws of an estimator to the page of its class."""

    # Without an address there is no link.
    _doc_link_module = "skort" if DOCUMENTATION else ""
    _doc_link_template = DOCUMENTATION + "api/{name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """
        Return the name by which users import the class,
        such as ``skort.dask.OrtSGDRegressor``.
        """
        return {"name": f"{type(self).__module__}.{type(self).__name__}"}


def name_their_parameters(classes: Iterable[type]) -> None:
    """Make the error for an argument that a class does not have name its own parameters."""
    parts = [cls for cls in classes if issubclass(cls, BaseEstimator)]
    names = {cls: parameter_names(cls) for cls in parts}  # type: ignore[arg-type]
    for cls in parts:
        init = _no_parameters if cls.__init__ is object.__init__ else cls.__init__
        explained = explained_init(
            init,
            functools.partial(_refusal, cls, names),
            functools.partial(_refusal_of_values, cls, names),
        )
        cls.__init__ = explained  # type: ignore[method-assign]


def _no_parameters(self):
    """Make a part without parameters."""


def explained_init(
    init: Callable[..., None],
    explain: Callable[..., str | None],
    explain_values: Callable[..., str | None] | None = None,
) -> Any:
    """
    Return a constructor with another error for an argument that it does not have.

    `explain` takes the error, the unknown name, the object, and the positional and named arguments;
    `explain_values`, which is for values without a name, takes the error, the object and the values.
    They return the words of the other error, or None where the first one stays.
    """

    @functools.wraps(init)
    def __init__(self, *args, **given):
        try:
            init(self, *args, **given)
        except TypeError as error:
            known = inspect.signature(init).parameters
            unknown = next((name for name in given if name not in known), None)
            message = None
            if unknown is not None:
                message = explain(error, unknown, self, args, given)
            elif explain_values is not None:
                message = explain_values(error, self, args)
            if not message:
                raise
            raise TypeError(message) from None

    return __init__


def explained_method(
    method: Method, explain: Callable[[TypeError, Any, Any, dict[str, Any]], str | None]
) -> Method:
    """
    Return a method with another error for arguments that it does not have.

    `explain` takes the error, the method, the object and the named arguments. It returns the words
    of the other error, or None where the first one stays.
    """

    @functools.wraps(method)
    def explained(self, *args, **given):
        if not isinstance(self, Component):
            raise TypeError(
                f"{method.__qualname__} was called on the class: make an estimator first, and call "
                f"its {method.__name__}."
            )
        try:
            return method(self, *args, **given)
        except TypeError as error:
            message = explain(error, method, self, given)
            if message is None:
                raise
            raise TypeError(message) from None

    return cast("Method", explained)


def _refusal(cls, names, _error, unknown, part, _args, _given):
    """Return an error that names the parameters of the class of a part, but not of its subclasses."""
    if type(part) is not cls:
        return None
    return (
        f"{cls.__name__}() got an unexpected keyword argument {unknown!r}. "
        f"{_place_of(unknown, cls, names)}"
    )


def _refusal_of_values(cls, names, error, part, args):
    """Return an error for values without a name that the constructor of a part does not take."""
    if type(part).__init__ is not cls.__init__ or "() takes " not in str(error):
        return None
    own = type(part)
    known = inspect.signature(own).parameters.values()
    order = [each.name for each in known if each.kind is each.POSITIONAL_OR_KEYWORD]
    taken = f"only {', '.join(order)} without a name" if order else "no value without a name"
    shown = ", ".join(map(repr, args))
    return (
        f"{own.__name__}({shown}) takes {taken}. {_listed(names[cls])} {own._without_name}"
    ).rstrip()


def _listed(parameters):
    """Return a sentence with the parameters of a class."""
    return f"Its parameters are {', '.join(parameters)}." if parameters else "It has no parameters."


def _place_of(unknown, cls, names):
    """Return a sentence that says which parameters a class has, or what has an unknown one."""
    if unknown in _RATES:
        return "The learning rate is eta0 of the estimator."

    own = names[cls]
    others = [other.__name__ for other, theirs in names.items() if unknown in theirs]
    known = _listed(own)
    meant = nearest(unknown, own, getattr(cls, "_other_names", {}), SIMILAR)
    if meant and not others:
        known = f"Did you mean {meant[0]}? {known}"
    if others:
        known += f" {' and '.join(others[:2])} {'has' if len(others) == 1 else 'have'} {unknown}."
    return known


def nearest(
    given: str, known: Sequence[str], synonyms: Mapping[str, Sequence[str]], cutoff: float
) -> list[str]:
    """Return the known names that have `given` as a synonym, else the most similar name, if any."""
    same = [name for name in known if given.lower() in synonyms.get(name, ())]
    return same or difflib.get_close_matches(given, known, 1, cutoff)


def missing_attribute(meant: Mapping[str, str]) -> Callable[[Any, str], Any]:
    """
    Return a `__getattr__` for a class. Its AttributeError says what a name means, if `meant` has a
    sentence for it.
    """

    def __getattr__(self, name):
        # Python asks for what an object lacks, and for properties that raised an AttributeError.
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)

        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
            + (f": {meant[name]}." if name in meant else ""),
            name=name,
            obj=self,
        )

    return __getattr__


#: The names that read a file elsewhere.
OF_FILES = ("load", "load_model", "load_onnx", "from_onnx", "from_pretrained")


def reads_no_file(instead: str) -> Callable[[Class], Class]:
    """
    Return a decorator of a class: the names that read a file elsewhere raise an error of the class
    and of its instances, which says what does so.
    """

    def decorated(cls):
        for name in OF_FILES:
            setattr(cls, name, _NotHere(name, instead))
        names_of = cls.__dir__

        def __dir__(self):
            # scikit-learn < 1.9 does not ask whether an instance has the names of its class.
            return [
                name
                for name in names_of(self)
                if not isinstance(inspect.getattr_static(self, name, None), _NotHere)
            ]

        cls.__dir__ = __dir__
        return cls

    return decorated


class _NotHere:
    """A name of a class whose error says what to use in its place."""

    def __init__(self, name, instead):
        self._name = name
        self._instead = instead
        # `help` shows all names of a class.
        self.__doc__ = f"Not here: {instead}."

    def __get__(self, instance, owner=None):
        # An instance asks its `__getattr__` after this error, which says the same.
        raise AttributeError(
            f"{owner.__name__!r} has no attribute {self._name!r}: {self._instead}.",
            name=self._name,
            obj=owner,
        )


def name_here(cls: Any, name: str) -> str | None:
    """Return the parameter of a class that a name of another library means, or None."""
    others = getattr(cls, "_other_names", {})
    return next((own for own, theirs in others.items() if name in theirs), None)


def with_defaults(value: Any, base: type, method: str) -> Any:
    """
    Return a user's object as an instance of `base`, which has the rest that skort needs.

    Return None if the object lacks `method`.
    """
    if isinstance(value, base):
        return value
    if isinstance(value, type) or not hasattr(value, method):
        return None
    return completed(value, base)


class Completed:
    """
    A copy of a user's object that is also an instance of a base.

    Files hold the user's object and the base.
    """


def completed(value: Any, base: type) -> Any:
    """Return a copy of a user's object that is also an instance of `base`."""
    copied = copy.copy(value)
    copied.__class__ = _completed_class(type(value), base)  # type: ignore[arg-type]  # classes are hashable
    return copied


def what_was_completed(value: Completed) -> tuple[Any, type]:
    """Return the user's object without the base, and the base."""
    given, base, _ = type(value).__bases__
    original = given.__new__(given)  # type: ignore[call-overload]
    vars(original).update(vars(value))
    return original, base


@functools.cache
def _completed_class(given: type, base: type) -> type:
    attributes = {
        "__reduce__": lambda self: (completed, what_was_completed(self)),
        "__module__": given.__module__,
    }
    return type(given.__name__, (given, base, Completed), attributes)


def check_parameters(part: Any) -> None:
    """Raise scikit-learn's error for an invalid parameter, if `part` has constraints."""
    if hasattr(part, "_parameter_constraints"):
        # scikit-learn's own method makes all constraints in every call.
        is_theirs = getattr(type(part), "_validate_params", None) is BaseEstimator._validate_params
        try:
            if is_theirs:
                _validate_values(part)
            else:
                part._validate_params()
        except InvalidParameterError as error:
            raise InvalidParameterError(f"{error}{_named_elsewhere(error, part)}") from None


def _named_elsewhere(error, part):
    """Return a sentence, after a space, for a text that a part takes under another name, if any."""
    found = _OF_PARAMETER.match(str(error))
    name = found[1] if found else ""
    value = getattr(part, name, None)
    if not isinstance(value, str) or "Did you mean" in str(error):
        return ""
    constraints = part._parameter_constraints.get(name, ())
    options = sorted(set().union(*(getattr(each, "options", ()) for each in constraints)))
    meant = nearest(value, [each for each in options if isinstance(each, str)], _VALUES, SIMILAR)
    return f" Did you mean {name}={meant[0]!r}?" if meant else ""


def for_training(chosen: Any, given: Any, name: str) -> Any:
    """Return a validated component: a copy if the user gave it, as the user may change it."""
    return resolved(chosen, name) if chosen is given else validated(chosen)


def resolved(component: Any, name: str = "component") -> Any:
    """Return a copy of a component, validated."""
    validated(component, name)
    return clone(component) if isinstance(component, BaseEstimator) else component


def validated(component: Any, name: str = "component") -> Any:
    """Validate a component, and return it. The errors are those of `resolved`."""
    if isinstance(component, type):
        raise ValueError(
            f"{name}: {component.__name__} is a class: give an instance of it, "
            f"{component.__name__}()."
        )

    check_parameters(component)
    if isinstance(component, BaseEstimator):
        parts = [getattr(component, each) for each in parameter_names(type(component))]  # type: ignore[arg-type]  # classes are hashable
        for part in parts:
            if type(part) not in PLAIN:
                validated(part, name)

    return component
