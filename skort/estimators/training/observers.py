"""What watches a training: callbacks in their order, and the model as it would be if it ended now."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.data.rows import Columns, prepared
from skort.estimators.data.validation_set import VALIDATION_SCORE
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.result import FitResult
from skort.optim.callbacks import EarlyStopping
from skort.optim.checkpoint import Checkpoint
from skort.optim.display import EpochLines, ProgressBar
from skort.optim.state import TrainState


class ModelPreview:
    """The estimator as it would be if the training ended now; its weights are inputs of one session."""

    def __init__(self, model: Model, estimator_with: Callable):
        """`estimator_with` makes an estimator of a model and columns; None: those of the fit."""
        self._model, self._estimator_with = model, estimator_with
        self._transformed: Model | None = None

    def prepare(self, X: Any) -> Any:
        """Return X, as `fit` takes it, as the score graph takes it."""
        return prepared(self._estimator_with(self._model, None), self._model, X)

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the estimator with other weights, for prepared data. Its predictions hold until the next call."""
        self._transformed = (self._transformed or self._model.without_steps()).at(weights)
        return self._estimator_with(self._transformed, Columns(self._transformed.score_graph.n_features))

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return an estimator with other weights, for data as `fit` takes it, to be kept."""
        return self._estimator_with(self._model.with_weights(weights), None)


@dataclass(frozen=True, eq=False)
class Observers:
    """What watches a training and may stop it: parameters of an estimator, its validation set, the user's callbacks."""

    estimator: Any
    #: Returns the estimator with a result and, where they are others, columns; None where no callback asks for it.
    shown: Callable[..., Any] | None
    scoring: Any = None
    #: They come after all others.
    more: list[Any] = dataclasses.field(default_factory=list)

    def callbacks(self, unit: float, patience: int | float, *, one_epoch: bool) -> list[Any]:
        """Return the callbacks in their order; `tol` of the objective is in units. One epoch is never stopped."""
        estimator = self.estimator
        # A checkpoint saves what the others have decided and added to the history.
        users = sorted(estimator.callbacks or (), key=lambda callback: isinstance(callback, Checkpoint))
        lines = [EpochLines()] if estimator.verbose > 1 else []
        if one_epoch:
            return [*users, *lines]
        early = estimator.early_stopping
        stopping = EarlyStopping(
            VALIDATION_SCORE if early else "objective",
            patience=patience,
            tol=estimator.tol if early or estimator.tol is None else estimator.tol * unit,
            restore_best=early,
        )
        # A bar or lines come last: they show what the others have added to the history.
        shown = [ProgressBar()] if estimator.verbose == 1 else lines
        return [*([] if self.scoring is None else [self.scoring]), stopping, *users, *shown, *self.more]

    def view(self, config: TrainConfig, model: Model, state: TrainState) -> ModelPreview | None:
        """Return what shows the model of a training that is at a state; None where nobody looks."""
        shown = self.shown
        if shown is None:
            return None

        def estimator_with(model, columns):
            return shown(FitResult(config, model.by_columns(), state), columns)

        return ModelPreview(model, estimator_with)
