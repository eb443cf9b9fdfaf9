"""
Warnings point at the line of the user, however deep inside skort
and scikit-learn they are raised.
"""

import inspect
import warnings

import pytest

from skort.common.user_warning import warn_user


def calling(function, module):
    """Return a function of a module that calls another one."""
    namespace = {"__name__": module, "function": function}
    exec("def call(*args): function(*args)", namespace)
    return namespace["call"]


@pytest.mark.parametrize(
    "modules", [(), ("skort.estimators.base",), ("skort.a", "skort", "sklearn.base", "joblib.b")]
)
def test_a_warning_points_at_the_line_outside(modules):
    fit = warn_user
    for module in modules:
        fit = calling(fit, module)
    with pytest.warns(RuntimeWarning, match="slow") as record:
        fit("slow", RuntimeWarning)
    line = inspect.currentframe().f_lineno - 1
    assert [(w.filename, w.lineno) for w in record] == [(__file__, line)]


def test_a_package_whose_name_begins_alike_is_outside():
    fit = calling(calling(warn_user, "skort.graphs"), "skort_users_own")
    with pytest.warns(UserWarning, match="slow") as record:
        fit("slow")
    assert record[0].filename == "<string>"


def test_a_line_warns_once_by_default():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            warn_user("slow")
        warn_user("slow")
    assert len(caught) == 2


def test_a_warning_of_a_decorated_function_is_at_the_users_line():
    names = {"__name__": "skort.decorated"}
    code = """
import contextlib
from skort.common.user_warning import warn_user

@contextlib.contextmanager
def block():
    yield

@block()
def decorated():
    warn_user("said")
"""
    exec(code, names)
    with pytest.warns(UserWarning, match="said") as caught:
        names["decorated"]()
    assert caught[0].filename == __file__
