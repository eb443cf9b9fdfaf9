"""
The watchers of a training: callbacks with the traits that they declare, and the model that they
see.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


class Preview(Protocol):
    """The fitted estimator, as callbacks see it at any weights of a training."""

    def prepare(self, X: Any) -> Any:
        """Return X, as `fit` takes it, in the form for the estimator of `at`."""

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the estimator at some weights, for prepared data. The next call changes it."""

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return a copy of the estimator at some weights, for data as `fit` takes it. The copy stays."""

    def loss_of(self, rows: Any) -> Any:
        """Return the loss of prepared rows, as a function of the weights of the step."""


class Judge(Protocol):
    """
    A callback that compares the last weights of a training with the best ones. It declares `judges
    = True`.
    """

    def rise(self, weights: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> Any:
        """
        Return the difference between the losses at two sets of weights of the step, and its squared
        error.
        """


@dataclass(frozen=True, eq=False)
class Watchers:
    """The callbacks of a training, in their order, and the model that they see."""

    callbacks: Sequence[Any] = ()
    #: None: no callback looks at the model.
    preview: Preview | None = None

    @property
    def judge(self) -> Judge | None:
        """The callback that compares weights, or None."""
        return next((callback for callback in self.callbacks if declares(callback, "judges")), None)


def declares(callback: Any, trait: str) -> bool:
    """Return whether a callback of any class declares a trait, by a true attribute with its name."""
    return bool(getattr(callback, trait, False))


def in_order(callbacks: Iterable[Any]) -> list[Any]:
    """
    Return callbacks in the order of their calls: the given order, but those with `comes_last =
    True` at the end.
    """
    return sorted(callbacks, key=lambda callback: declares(callback, "comes_last"))
