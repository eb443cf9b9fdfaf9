"""The callbacks of a training, in their order: what stops it, those of the user, what shows it."""

from skort.descent.callbacks import EarlyStopping, EpochLines, ProgressBar
from skort.estimators.validation_set import VALIDATION_SCORE

__all__ = ["callback_list"]


def callback_list(estimator, scoring=None, *, one_epoch=False):
    """
    Return the callbacks of a training, in their order.

    Parameters
    ----------
    estimator : BaseOrtSGD
    scoring : EpochScoring or None, default=None
        Of the validation set.
    one_epoch : bool, default=False
        Whether it is the training of a `partial_fit`, which nothing stops and no bar shows.
    """
    users, lines = estimator.callbacks or (), [EpochLines()] if estimator.verbose > 1 else []
    if one_epoch:
        return [*users, *lines]
    early = estimator.early_stopping
    stopping = EarlyStopping(
        VALIDATION_SCORE if early else "objective",
        patience=estimator.n_iter_no_change,
        tol=estimator.tol,
        restore_best=early,
    )
    # A bar or lines come last: they show what the others have written down.
    shown = [ProgressBar()] if estimator.verbose == 1 else lines
    return [*([] if scoring is None else [scoring]), stopping, *users, *shown]
