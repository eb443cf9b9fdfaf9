"""
Tools for ONNX models that are trained, or were:
their weights, and their objective as a graph.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skort.graphs.onnx_models.weights import Weight, find_weights, with_weights
    from skort.solvers.objective_graph import objective_graph

__all__ = ["Weight", "find_weights", "objective_graph", "with_weights"]

_WHERE = dict.fromkeys(__all__, "skort.graphs.onnx_models.weights")
_WHERE["objective_graph"] = "skort.solvers.objective_graph"


# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a name when it is first asked for: all of them need onnx."""
        if name in _WHERE:
            return getattr(importlib.import_module(_WHERE[name]), name)
        raise AttributeError(f"module 'skort.onnx_models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
