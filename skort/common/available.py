"""Methods that exist if a check passes. The error for a missing method says why."""

import functools
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """
    Return a decorator like that of scikit-learn.

    The AttributeError of a missing method contains the message of the error of `check`.
    """

    def decorated(method: Method) -> Method:
        # To type checkers the method is always there.
        return cast(Method, _Available(method, check))

    return decorated


class _Available:
    """The descriptor of a method that may be missing."""

    def __init__(self, method, check):
        self._method = method
        self._check = check
        functools.update_wrapper(self, method)  # type: ignore[arg-type]  # a callable has what it sets

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self._method

        try:
            self._check(instance)
        except Exception as error:
            message = f"This {type(instance).__name__!r} has no attribute {self._name!r}: {error}"
            # Without `obj` Python before 3.13 looks for a name like this one and adds
            # "Did you mean: '_partial_fit'?". scikit-learn's tests look for the reason in the cause.
            raise AttributeError(message, name=self._name, obj=None) from error

        return types.MethodType(self._method, instance)
