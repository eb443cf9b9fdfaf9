"""Run the source of an installed test module with other classes than it imports."""

import inspect
from unittest import mock

__all__ = ["run_source"]


def run_source(module, namespace, owner, **replacements):
    """
    Run the source of a module in a namespace.

    Parameters
    ----------
    module : module
        It was imported as it is: all that it imports has been, so that nothing else sees
        the replacements.
    namespace : dict
        Gets what the module defines.
    owner : module
        What the module imports the names of `replacements` from.
    **replacements : objects by name
        What it gets instead.
    """
    with mock.patch.multiple(owner, **replacements):
        exec(compile(inspect.getsource(module), module.__file__, "exec"), namespace)
