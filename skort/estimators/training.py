"""From an estimator's parameters and validated data to a training, and to what is said about it at the end."""

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skort.descent.batches import Batches
from skort.descent.history import History
from skort.descent.loop import minimise
from skort.descent.training import Training
from skort.estimators.preview import Preview
from skort.estimators.state import last_weights, settings
from skort.estimators.watching import VALIDATION_SCORE
from skort.objective.penalties import PENALTIES

if TYPE_CHECKING:
    from skort.objective.nodes import Objective
    from skort.solvers.base import Solver

__all__ = ["begin", "descend", "keep", "kept", "report"]


@dataclass(frozen=True)
class Kept:
    """
    What an epoch of a stream leaves to the next one, which goes on with it while all parameters are the same.

    Parameters
    ----------
    settings : tuple
        As from `settings`.
    objective : Objective
    schedule : callable
        As before its first update.
    solver : Solver
    state : dict of str to ndarray
        What the estimator goes on from: where it is another one, the solver is not that of this estimator any more.
    """

    settings: Any
    objective: "Objective"
    schedule: Callable[[int], float]
    solver: "Solver"
    state: dict[str, np.ndarray]


def kept(estimator):
    """Return what the last `partial_fit` of an estimator left to this one, a `Kept`, or None."""
    left = estimator._kept_solver.look()
    goes_on = left is not None and left.state is estimator._solver_state and left.settings == settings(estimator)
    return left if goes_on else None


def begin(estimator, before):
    """
    Forget what a training would go on from, but for the weights where `warm_start`.

    Parameters
    ----------
    estimator : BaseOrtSGD
        With a score graph at its initial weights.
    before : dict
        The attributes of the estimator before this fit.
    """
    from skort.runtime.transient import Transient

    if estimator.warm_start and "_score_graph" in before:
        estimator._score_graph = estimator._score_graph.with_weights(last_weights(estimator, before))
    estimator._solver_state, estimator._kept_solver = None, Transient()
    estimator._n_falls, estimator.t_, estimator.history_ = 0, 0, History()


def descend(estimator, X, target, weights, random_state, callbacks, left=None, *, one_epoch):
    """
    Train on validated data, from where the last training ended.

    Parameters
    ----------
    estimator : BaseOrtSGD
        With a score graph, and what `begin` or `keep` left.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        As the score graph takes it.
    target : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or None
    random_state : numpy.random.RandomState
    callbacks : list of Callback
    left : Kept or None, default=None
        As from `kept`.
    one_epoch : bool
        Whether to make one epoch more, and to keep the solver for the next one.

    Returns
    -------
    descent : Descent
    """
    # A training that fails keeps no solver.
    estimator._kept_solver.take()
    if left is None:
        made_for, objective, schedule = settings(estimator), _objective(estimator), estimator._resolve_schedule()
    else:
        made_for, objective, schedule = left.settings, left.objective, left.schedule
    batches = Batches(
        X,
        target,
        weights,
        batch_size=200 if estimator.batch_size == "auto" else estimator.batch_size,
        shuffle=estimator.shuffle,
        random_state=random_state,
        sample_weight_scale=objective.sample_weight_scale,
    )
    if left is None or len(left.solver.batch.X) != batches.batch_size:
        solver = _solver(estimator, objective, batches.batch_size)
    else:
        solver = left.solver
    descent = minimise(
        Training(
            solver,
            batches,
            # Its rate may fall.
            copy.deepcopy(schedule) if isinstance(schedule, BaseEstimator) else schedule,
            max_iter=None if one_epoch else estimator.max_iter,
            callbacks=callbacks,
            preview=Preview(estimator),
            n_updates=estimator.t_,
            n_falls=estimator._n_falls,
            history=estimator.history_,
        )
    )
    if one_epoch:
        estimator._kept_solver.put(Kept(made_for, objective, schedule, solver, descent.solver_state))
    return descent


def _solver(estimator, objective, batch_size):
    """Return a solver that goes on from where the last training ended."""
    from skort.solvers import chosen

    score_graph = estimator._score_graph
    estimator.solver_ = chosen(estimator._usable_solvers(), score_graph, objective, batch_size)
    estimator._solver_arguments = {"objective": objective, "batch_size": batch_size, **estimator._update_options()}
    return estimator._make_solver(score_graph, state=estimator._solver_state)


def _objective(estimator):
    from skort.objective.nodes import Objective

    return Objective(
        loss=estimator._loss,
        penalty=estimator._resolve(PENALTIES, estimator.penalty),
        coefficients=estimator._score_graph.coefficients,
        n_outputs=estimator._score_graph.n_outputs,
        dtype=estimator._score_graph.dtype,
    )


def keep(estimator, descent):
    """Keep the weights, what a training goes on from, and the attributes that tell of it."""
    estimator._score_graph = estimator._score_graph.with_weights(descent.weights)
    estimator._solver_state, estimator._random_state = descent.solver_state, descent.random_state
    estimator._n_falls, estimator.t_, estimator.history_ = descent.n_falls, descent.n_updates, descent.history
    estimator.loss_curve_ = estimator.history_["objective"]
    estimator.loss_ = estimator.loss_curve_[-1]
    known = vars(estimator)
    new_losses = estimator.loss_curve_[known.get("n_iter_", 0) :]
    estimator.best_loss_ = min([*new_losses, known.get("best_loss_", math.inf)])
    estimator.n_iter_ = len(estimator.loss_curve_)
    scores = estimator.history_.get(VALIDATION_SCORE)
    estimator.validation_scores_ = scores
    estimator.best_validation_score_ = None if scores is None else float(np.fmax.reduce(scores))


def report(estimator, descent, *, one_epoch=False):
    """Warn of how a training ended, or raise the error of a callback, after the training was kept."""
    interrupted = isinstance(descent.error, KeyboardInterrupt)
    if descent.error is not None and not interrupted:
        raise descent.error
    if interrupted:
        warnings.warn(
            f"Training interrupted by the user: fitted up to the last whole epoch, {estimator.n_iter_}.", stacklevel=5
        )
    elif not (descent.stopped or estimator.tol is None or one_epoch):
        warnings.warn(
            f"Maximum number of epochs reached before convergence (max_iter={estimator.max_iter}, "
            f"tol={estimator.tol}). Consider increasing max_iter or eta0 to improve the fit.",
            ConvergenceWarning,
            stacklevel=5,
        )
