"""The warning or error that reports how a training ended."""

from typing import Any

from sklearn.exceptions import ConvergenceWarning

from skort.descent.loop import Outcome
from skort.user_warning import warn_user

__all__ = ["report"]


def report(estimator: Any, outcome: Outcome, *, one_epoch: bool) -> None:
    """
    Warn if a training ended early or did not converge, or raise the error of a callback that ended it.

    The estimator has kept the training before.

    Parameters
    ----------
    estimator : BaseOrtSGD
        Fitted.
    outcome : Outcome
    one_epoch : bool
        Whether this was the training of a `partial_fit`.
    """
    interrupted = isinstance(outcome.error, KeyboardInterrupt)
    if outcome.error is not None and not interrupted:
        raise outcome.error
    if interrupted:
        warn_user(f"Training interrupted by the user: fitted up to the last whole epoch, {estimator.n_iter_}.")
    elif not (outcome.progress.stopped or estimator.tol is None or one_epoch):
        warn_user(
            f"Maximum number of epochs reached before convergence (max_iter={estimator.max_iter}, "
            f"tol={estimator.tol}). Consider increasing max_iter or eta0 to improve the fit.",
            ConvergenceWarning,
        )
