"""The error for a public name that is asked of the wrong module of skort."""

import importlib
import importlib.util
import sys
from types import ModuleType

# The function of Python that asks a package for the names of `from package import name`.
_OF_IMPORTS = "_handle_fromlist"


def missing(package: str, name: str) -> Exception:
    """
    Return the error for a name that a package lacks: it says which public module has the name.

    Call it in the `__getattr__` of the package.
    """
    home = None if name.startswith("_") or _is_module(package, name) else _home_of(name)
    if home is None:
        # Python suggests a similar name of the module.
        module = sys.modules[package]
        text = f"module {package!r} has no attribute {name!r}"
        return AttributeError(text, name=name, obj=module)

    text = f"{name} is in {home}: from {home} import {name}"
    # An import drops the text of an AttributeError; all others who ask expect one.
    if sys._getframe(2).f_code.co_name == _OF_IMPORTS:
        return ImportError(text, name=package)
    return AttributeError(text)


def _is_module(package, name):
    """Return whether a name is that of a module inside, which Python imports after the error."""
    return importlib.util.find_spec(f"{package}.{name}") is not None


def _home_of(name):
    """Return the public module that has a public name, or None; optional modules are not read."""
    package = importlib.import_module("skort")
    public = (getattr(package, each) for each in package.__all__)
    modules = [package, *(each for each in public if isinstance(each, ModuleType))]

    return next((each.__name__ for each in modules if name in each.__all__), None)
