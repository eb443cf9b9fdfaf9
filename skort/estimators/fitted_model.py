"""Where pickles from before the release of 0.1.0 look for a class first; they cannot be read."""

from typing import Any

from skort.estimators.training.persistence import OLD


def __getattr__(name: str) -> Any:
    if name == "FittedModel":
        raise ValueError(OLD)
    raise AttributeError(name)
