"""scikit-learn models trained by mini-batch gradient descent on ONNX Runtime."""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from skort.version import __version__

if TYPE_CHECKING:
    from skort import (
        artifacts,
        callbacks,
        exceptions,
        gradients,
        model_selection,
        networks,
        objective,
        onnx_models,
        optimizers,
        plotting,
        schedules,
    )
    from skort.estimators.classifier import OrtSGDClassifier
    from skort.estimators.regressor import OrtSGDRegressor
    from skort.estimators.sklearn_checks import expected_failed_checks
    from skort.step import Step
    from skort.versions import show_versions

__all__ = [
    "OrtSGDClassifier",
    "OrtSGDRegressor",
    "Step",
    "__version__",
    "artifacts",
    "callbacks",
    "exceptions",
    "expected_failed_checks",
    "gradients",
    "model_selection",
    "networks",
    "objective",
    "onnx_models",
    "optimizers",
    "plotting",
    "schedules",
    "show_versions",
]

# Modules that need another package, by its name. `from skort import *` leaves them out: they have
# the names of others.
_OPTIONAL = {"dask": "distributed", "torch": "torch"}
_HOMES = {
    "OrtSGDClassifier": "skort.estimators.classifier",
    "OrtSGDRegressor": "skort.estimators.regressor",
    "Step": "skort.step",
    "expected_failed_checks": "skort.estimators.sklearn_checks",
    "show_versions": "skort.versions",
}


# To a type checker, a module with this function would have every name.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a name when it is first asked for: `import skort` imports no other package."""
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        if name in __all__ or name in _OPTIONAL:
            return importlib.import_module(f"skort.{name}")

        from skort.common.elsewhere import missing

        raise missing("skort", name)


def __dir__() -> list[str]:
    return sorted(
        [
            *__all__,
            *(name for name, needed in _OPTIONAL.items() if importlib.util.find_spec(needed)),
        ]
    )
