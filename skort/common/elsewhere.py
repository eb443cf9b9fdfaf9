"""The error for a public name that is asked of the wrong module of skort."""

import importlib
import importlib.util
from types import ModuleType


def missing(module: str, name: str) -> Exception:
    """Return the error for a name that a module lacks: it says which public module has the name."""
    home = None if name.startswith("_") or _is_module(module, name) else _home_of(name)
    if home is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}")

    # Python replaces an AttributeError by a message of its own when a name is imported.
    return ImportError(f"{name} is in {home}: from {home} import {name}", name=module)


def _is_module(module, name):
    """Return whether a name is that of a module inside, which Python imports after the error."""
    is_package = hasattr(importlib.import_module(module), "__path__")
    return is_package and importlib.util.find_spec(f"{module}.{name}") is not None


def _home_of(name):
    """Return the public module that has a public name, or None; optional modules are not read."""
    package = importlib.import_module("skort")
    public = (getattr(package, each) for each in package.__all__)
    modules = [package, *(each for each in public if isinstance(each, ModuleType))]

    return next((each.__name__ for each in modules if name in each.__all__), None)
