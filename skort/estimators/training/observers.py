"""
The observers of a training, which see the result that it would have now: callbacks of skort, and
those of scikit-learn (`set_callbacks`, since scikit-learn 1.9).
"""

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.estimators.data.rows import Columns, TrainingData, prepared
from skort.estimators.data.validation_set import VALIDATION_SCORE, ValidationSet
from skort.estimators.model.model import Model
from skort.estimators.planning.epochs import Stopping, keeps_best, patience_grows
from skort.estimators.planning.plan import Plan
from skort.estimators.training.result import FitResult, shown
from skort.estimators.variables.row_loss import RowLoss
from skort.optim.callbacks import EarlyStopping, LossStopping, in_order
from skort.optim.display import EpochLines, ProgressBar
from skort.optim.state import TrainState
from skort.optim.training import Training

if TYPE_CHECKING:
    from skort.common.sklearn_types import Predictor as CallbackSupportMixin
else:
    try:
        from sklearn.callback import CallbackSupportMixin
    except ImportError:  # scikit-learn < 1.9

        class CallbackSupportMixin:
            """Replaces the class of scikit-learn 1.9: older versions have no callbacks."""


class ModelPreview:
    """An estimator as its training would leave it now. Its weights are inputs of one session."""

    def __init__(self, estimator: Any, columns: Columns, result: FitResult):
        self._estimator = estimator
        self._columns = columns
        self._result = dataclasses.replace(result, model=result.model.by_columns())
        self._transformed = self._result.model.without_steps()

    def prepare(self, X: Any) -> Any:
        """Return X, as `fit` takes it, in the form for the score graph."""
        return prepared(shown(self._estimator, self._columns, self._result), self._result.model, X)

    def loss_of(self, rows: TrainingData) -> RowLoss:
        """Return the loss of prepared rows, as a function of the weights of the step."""
        plan = self._result.plan
        graph = self._result.model.score_graph
        plan.loss.check_target(rows.target)
        return RowLoss(plan, graph, plan.variables(graph, self._result.state.standardization), rows)

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """
        Return the estimator with other weights, for prepared data. The next call changes its
        predictions.
        """
        self._transformed = self._transformed.at(weights)
        return self._with(self._transformed, Columns(self._transformed.score_graph.n_features))

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return an estimator with other weights, for data as `fit` takes it. It can be kept."""
        return self._with(self._result.model.with_weights(weights), self._columns)

    def _with(self, model, columns):
        return shown(self._estimator, columns, dataclasses.replace(self._result, model=model))


@dataclass(frozen=True, eq=False)
class Observers:
    """
    The observers of a training, which may stop it: those that parameters of the estimator ask for,
    its validation set, and the user's callbacks.
    """

    estimator: Any
    #: The columns of the fit.
    columns: Columns
    scoring: ValidationSet | None = None
    #: Callbacks that come after all others.
    more: list[Any] = dataclasses.field(default_factory=list)

    def callbacks(self, stopping: Stopping, *, is_validated: bool, is_stream: bool) -> list[Any]:
        """Return the callbacks in their order. In a stream, none of them stops the epoch."""
        estimator = self.estimator
        users = in_order(estimator.callbacks or ())
        lines: list[Any] = [EpochLines()] if estimator.verbose > 1 else []
        if is_stream:
            return [*users, *lines]

        # A bar or lines come last: they show values that the others add to the history.
        lines = [ProgressBar()] if estimator.verbose == 1 else lines
        return [
            *([] if self.scoring is None else [self.scoring]),
            *self._stopping(stopping, is_validated=is_validated),
            *users,
            *lines,
            *self.more,
        ]

    def _stopping(self, stopping, *, is_validated):
        """Return the callback that ends a training and keeps its best weights, if one does."""
        tol, patience = stopping
        keeps = keeps_best(is_validated=is_validated)
        if tol is None and not keeps:
            return []

        monitor = VALIDATION_SCORE if is_validated else "objective"
        if is_validated and self.estimator.scoring is not None:
            return [EarlyStopping(monitor, patience, tol)]

        grows = patience_grows(self.estimator.n_iter_no_change, is_validated=is_validated)
        return [LossStopping(monitor, patience, tol, restore_best=keeps, grows=grows)]

    def preview(self, plan: Plan, model: Model, state: TrainState) -> ModelPreview | None:
        """Return the preview of a training at a state, or None if nobody looks at it."""
        if not (self.scoring or self.estimator.callbacks or self.more):
            return None
        return ModelPreview(self.estimator, self.columns, FitResult(plan, model, state))


def has_callbacks(estimator: Any) -> bool:
    """Return whether `set_callbacks` was called on an estimator, or on a meta-estimator around it."""
    # In a search of scikit-learn, each fit has a context of callbacks, even if this has none.
    return bool(vars(estimator).get("_skl_callbacks"))


class SklearnCallbacks:
    """
    Runs the callbacks that `set_callbacks` got, of the estimator or of a meta-estimator. The epochs
    are the tasks of the fit.
    """

    def __init__(self, estimator: Any, given: Any, max_iter: int):
        weights = given.sample_weight
        metadata = None if weights is None else {"sample_weight": weights}
        self._data = {"estimator": estimator, "X": given.X, "y": given.y, "metadata": metadata}
        self._context = estimator._init_callback_context(max_subtasks=max_iter)
        self._n_left = max_iter

    def on_train_begin(self, training: Training) -> None:
        """Begin the fit."""
        self._context.call_on_fit_task_begin(**self._data)

    def on_epoch_end(self, training: Training) -> None:
        """
        Begin and end the task of an epoch.

        A training that restarted may have more epochs than were announced: they have no task.
        """
        if self._n_left == 0:
            return

        self._n_left -= 1
        epoch = self._context.subcontext(task_name="epoch").call_on_fit_task_begin(**self._data)
        if self._end(epoch, training):
            training.stop()

    def on_train_end(self, training: Training) -> None:
        """End the fit."""
        self._end(self._context, training)

    def _end(self, context, training):
        return context.call_on_fit_task_end(
            **self._data, reconstruction_attributes=lambda: vars(training.trained_model())
        )
