"""What watches a training: callbacks in their order, and the model as it would be if it ended now."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from skort.estimators.data.rows import Columns, TrainingData, prepared
from skort.estimators.data.validation_set import VALIDATION_SCORE
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.result import FitResult
from skort.estimators.training.row_loss import RowLoss
from skort.optim.callbacks import EarlyStopping
from skort.optim.checkpoint import Checkpoint
from skort.optim.display import EpochLines, ProgressBar
from skort.optim.state import TrainState


def is_of_fit(name: str) -> bool:
    """Return whether an attribute is what a fit leaves."""
    return name in ("_result", "_sparse_coef", "_search") or (name.endswith("_") and not name.startswith("_"))


def shown(estimator: Any, columns: Columns, result: FitResult) -> Any:
    """Return a copy of an estimator that shows the model of a result, with columns."""
    copied = object.__new__(type(estimator))
    left_out = is_of_fit if result.state.is_new else {"_sparse_coef", "feature_names_in_"}.__contains__
    known = {name: value for name, value in vars(estimator).items() if not left_out(name)}
    copied.__dict__ = known | columns.attributes | result.model.shown_attributes() | {"_result": result}
    return copied


class ModelPreview:
    """An estimator as it would be if its training ended now; the weights are inputs of one session."""

    def __init__(self, estimator: Any, columns: Columns, result: FitResult):
        self._estimator, self._columns = estimator, columns
        self._result = dataclasses.replace(result, model=result.model.by_columns())
        self._transformed = self._result.model.without_steps()

    def prepare(self, X: Any) -> Any:
        """Return X, as `fit` takes it, as the score graph takes it."""
        return prepared(shown(self._estimator, self._columns, self._result), self._result.model, X)

    def loss_of(self, rows: TrainingData) -> RowLoss:
        """Return what gives the loss of prepared rows at weights of the solver."""
        config, graph = self._result.config, self._result.model.score_graph
        return RowLoss(config, graph, config.variables(graph, self._result.state.standardization), rows)

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the estimator with other weights, for prepared data. Its predictions hold until the next call."""
        self._transformed = self._transformed.at(weights)
        return self._with(self._transformed, Columns(self._transformed.score_graph.n_features))

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return an estimator with other weights, for data as `fit` takes it, to be kept."""
        return self._with(self._result.model.with_weights(weights), self._columns)

    def _with(self, model, columns):
        return shown(self._estimator, columns, dataclasses.replace(self._result, model=model))


@dataclass(frozen=True, eq=False)
class Observers:
    """What watches a training and may stop it: parameters of an estimator, its validation set, the user's callbacks."""

    estimator: Any
    #: Those of the fit; None where no callback asks for the model.
    columns: Columns | None
    scoring: Any = None
    #: They come after all others.
    more: list[Any] = dataclasses.field(default_factory=list)

    def callbacks(self, tol: float | None, unit: float, patience: int | float, *, one_epoch: bool) -> list[Any]:
        """Return the callbacks in their order; `tol` of the objective is in units. One epoch is never stopped."""
        estimator = self.estimator
        # A checkpoint saves what the others have decided and added to the history.
        users = sorted(estimator.callbacks or (), key=lambda callback: isinstance(callback, Checkpoint))
        lines = [EpochLines()] if estimator.verbose > 1 else []
        if one_epoch:
            return [*users, *lines]
        early = estimator.early_stopping
        is_scored = early and estimator.scoring is not None
        stopping = EarlyStopping(
            VALIDATION_SCORE if early else "objective",
            patience=patience,
            # A score has units of its own.
            tol=tol if is_scored or tol is None else tol * unit,
            restore_best=early,
        )
        # A bar or lines come last: they show what the others have added to the history.
        lines = [ProgressBar()] if estimator.verbose == 1 else lines
        return [*([] if self.scoring is None else [self.scoring]), stopping, *users, *lines, *self.more]

    def view(self, config: TrainConfig, model: Model, state: TrainState) -> ModelPreview | None:
        """Return what shows the model of a training that is at a state; None where nobody looks."""
        if self.columns is None:
            return None
        return ModelPreview(self.estimator, self.columns, FitResult(config, model, state))
