"""The callbacks of a training, in their order: those that stop it, the user's, those that show it."""

from typing import Any

from skort.estimators.validation_set import VALIDATION_SCORE
from skort.optim.callbacks import EarlyStopping, EpochScoring
from skort.optim.checkpoint import Checkpoint
from skort.optim.display import EpochLines, ProgressBar

__all__ = ["callback_list"]


def callback_list(
    estimator: Any,
    scoring: EpochScoring | None = None,
    *,
    unit: float = 1.0,
    patience: int | float = 1,
    one_epoch: bool = False,
) -> list[Any]:
    """
    Return the callbacks of a training, in their order.

    Parameters
    ----------
    estimator : BaseOrtSGD
    scoring : EpochScoring or None, default=None
        The callback that scores the validation set.
    unit : float, default=1.0
        What `tol` of the objective is in.
    patience : int or inf, default=1
        See `EarlyStopping`.
    one_epoch : bool, default=False
        Whether this is the training of a `partial_fit`: nothing stops it, and no bar shows it.
    """
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
    return [*([] if scoring is None else [scoring]), stopping, *users, *shown]
