"""What is said of how a training ended: its warning, or its error."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

from skort.common.user_warning import warn_user
from skort.exceptions import DivergedError
from skort.objective.penalties import as_penalty
from skort.optim.loop import Outcome
from skort.optim.progress import Progress
from skort.optim.standardization import moments

__all__ = ["explained", "report"]

# Standard deviations that differ by more than this make a training slow, or diverge.
_DIFFERENT = 10.0


def report(estimator: Any, outcome: Outcome, data: tuple[Any, np.ndarray, Any], *, one_epoch: bool) -> None:
    """
    Warn if a training ended early or did not converge, or raise the error of a callback that ended it.

    The estimator has kept the training before.

    Parameters
    ----------
    estimator : BaseOrtSGD
        Fitted.
    outcome : Outcome
    data : tuple
        X, the target and the sample weights of the training, before any change of variables.
    one_epoch : bool
        Whether this was the training of a `partial_fit`.
    """
    interrupted = isinstance(outcome.error, KeyboardInterrupt)
    if outcome.error is not None and not interrupted:
        raise outcome.error
    if interrupted:
        warn_user(f"Training interrupted by the user: fitted up to the last whole epoch, {estimator.n_iter_}.")
    elif outcome.no_better:
        warn_user(
            f"The training ended no better than it began: its objective is {estimator.loss_:.4g}, above that of the "
            f"initial weights, at a learning rate of {estimator.eta0_:.3g} in the first update."
            f"{_cure(estimator, outcome.progress, data)}",
            ConvergenceWarning,
        )
    elif not (outcome.progress.stopped or estimator.tol is None or one_epoch):
        warn_user(
            f"Maximum number of epochs reached before convergence (max_iter={estimator.max_iter}, "
            f"tol={estimator.tol}): {_last_epochs(outcome.progress)}",
            ConvergenceWarning,
        )


def explained(
    estimator: Any, error: DivergedError, progress: Progress, data: tuple[Any, np.ndarray, Any]
) -> DivergedError:
    """
    Return the error of a training that diverged with what may have caused it.

    Parameters
    ----------
    estimator : BaseOrtSGD
    error : DivergedError
    progress : Progress
        Before the training.
    data : tuple
        As for `report`.
    """
    of_penalty, penalty = "", as_penalty(estimator.penalty)
    if penalty is not None and penalty.is_custom:
        of_penalty = " The gradient of your own penalty must be a number everywhere, where weights are zero, too."
    return DivergedError(f"{error}{of_penalty}{_cure(estimator, progress, data)}")


def _last_epochs(progress):
    """Return what the objective did at the end, and what to do about it."""
    objective = (progress.column("objective") or [])[-10:]
    begin, end = objective[0], objective[-1]
    if end < begin:
        return (
            f"the objective was still falling, from {begin:.4g} to {end:.4g} in the last {len(objective)} epochs. "
            "Increase max_iter, or eta0."
        )
    return (
        f"the objective no longer fell, from {begin:.4g} to {end:.4g} in the last {len(objective)} epochs. Decrease "
        'eta0, or let it fall with learning_rate="adaptive".'
    )


def _cure(estimator, progress, data):
    """Return what in the data is a likely cause, with its figures, and what to do about it."""
    X, target, sample_weight = data
    used, causes = progress.standardization, []
    if (used is None or used.scale is None) and not scipy.sparse.issparse(X):
        deviation = moments(X, sample_weight)[1]
        spread = np.where(deviation > 0, deviation, np.nan)
        if np.isfinite(spread).any():
            least, most = int(np.nanargmin(spread)), int(np.nanargmax(spread))
            if spread[most] > _DIFFERENT * spread[least]:
                causes.append(
                    f"The columns of X have standard deviations from {spread[least]:.3g} (column {least}) to "
                    f"{spread[most]:.3g} (column {most})."
                )
            elif spread[most] > _DIFFERENT:
                causes.append(f"The columns of X have standard deviations of up to {spread[most]:.3g}.")
    if used is None or used.target_mean is None:
        largest = float(np.max(np.abs(target)))
        if largest > _DIFFERENT:
            causes.append(f"y has values of up to {largest:.3g}.")
    # Where "auto" left X and y as they are, the model does not allow it to change them.
    ours = 'standardize="auto", or ' if estimator.standardize is False else ""
    advice = f"Use {ours}StandardScaler, or lower eta0." if causes else "Lower eta0."
    return " " + " ".join([*causes, advice])
