"""L-BFGS over all rows."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skort.common.sklearn_private import Interval
from skort.common.user_warning import warn_user
from skort.optim.optimizers.sgd import SGD
from skort.optim.optimizers.tags import OptimizerTags

# At a minimum of a linear model, the gradient is smaller than what float32 tells of a direction in
# which the columns vary by 1e-5: predictions are about so far from the optimum's.
_FLAT = 1e-3
# At kinks of relu, in standardized columns, a network ends at up to 4e-3.
_FLAT_WITH_KINKS = 2e-2
# Where classes are apart, the objective comes near zero, and no gradient tells how near.
_NOTHING = 1e-4


class Tolerances(NamedTuple):
    """The numbers that end a minimisation, by the gradient and by the fall of the objective."""

    #: Of a minimum no entry of the gradient is larger.
    gradient: float
    #: A relative fall of the objective that is smaller ends it.
    fall: float
    #: A relative change of the objective that is smaller may be rounding.
    rounding: float
    #: Where the objective no longer falls, a larger entry of the gradient is told.
    flat: float = _FLAT


class _Point(NamedTuple):
    """A vector of weights with the objective and its gradient there."""

    weights: np.ndarray
    objective: float
    gradient: np.ndarray


@dataclass(eq=False, repr=False)
class LBFGS(SGD, name="lbfgs"):
    r"""
    Limited-memory BFGS over all rows: the exact minimum of a smooth objective, in few iterations.

    .. math:: w \leftarrow w - t \, H \nabla J(w)

    H approximates the inverse of the second derivatives, from the last changes of weights and
    gradients. A line search finds the step t. `scipy.optimize.minimize(method="L-BFGS-B")` does
    both, as in `LogisticRegression` and `MLPClassifier(solver="lbfgs")`. Only `fit` can use it: an
    iteration is an epoch of one update. The solver computes the gradients.

    Parameters
    ----------
    history_size : int, default=10
        The number of changes that it remembers.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from skort import OrtSGDRegressor
    >>> from skort.optimizers import LBFGS
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtSGDRegressor(Ridge(), optimizer=LBFGS(), dtype="float64").fit(X, y)
    >>> bool(abs(model.coef_ - Ridge().fit(X, y).coef_).max() < 1e-3)
    True
    """

    _parameter_constraints = {"history_size": [Interval(Integral, 1, None, closed="left")]}
    history_size: int = 10

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return OptimizerTags(is_full=True)

    def tolerances(self, tol: float | None, dtype: DTypeLike, *, is_exact: bool) -> Tolerances:
        """
        Return the numbers that end `minimise`;
        a minimum that is not exact may be a kink of a network.
        """
        flat = _FLAT if is_exact else _FLAT_WITH_KINKS
        if dtype == np.float32:
            # A linear model's objective may be large by a few rows alone. Its gradients tell of
            # falls that are smaller than its rounding.
            fall = 1e-13 if is_exact else 1e-9
            rounding = 1e-6
        else:
            # At kinks the objective falls by next to nothing for ever: the bound there is
            # scipy's default.
            fall = 1e-19 if is_exact else 2.2e-9
            rounding = 1e-14

        if tol is None:
            return Tolerances(gradient=0.0, fall=0.0, rounding=rounding, flat=flat)
        return Tolerances(float(tol), fall, rounding, flat)

    def minimise(
        self,
        evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]],
        weights: np.ndarray,
        tolerances: Tolerances,
        max_iter: int,
        after: Callable[[np.ndarray], bool],
    ) -> str | None:
        """
        Minimise a function with its gradient; return why it ended,
        None for `max_iter` or a true `after`.
        """
        is_ended = False
        # The points of the last trial, and of the last iteration.
        last: _Point | None = None
        reached: _Point | None = None

        def trial(vector):
            nonlocal last, reached
            objective, gradient = evaluate(vector)

            if reached is not None and not math.isfinite(objective):
                # The line search goes back as far as such a value asks for.
                return reached.objective + 10 * (abs(reached.objective) + 1), np.zeros_like(
                    gradient
                )

            if reached is not None and _is_rounding(
                objective, reached.objective, tolerances.rounding
            ):
                # The gradients at both ends of so small a step know the difference better.
                mean_slope = 0.5 * float((gradient + reached.gradient) @ (vector - reached.weights))
                objective = reached.objective + mean_slope

            last = _Point(vector.copy(), objective, gradient)
            reached = reached or last
            return objective, gradient

        def callback(vector):
            nonlocal reached, is_ended
            reached = last
            is_ended = after(vector)
            if is_ended:
                raise StopIteration

        options = {
            "maxcor": self.history_size,
            "maxiter": max_iter,
            "maxfun": math.inf,
            "gtol": tolerances.gradient,
            "ftol": tolerances.fall,
        }
        with contextlib.suppress(StopIteration):  # It passes through scipy 1.10.
            end = minimize(
                trial, weights, jac=True, method="L-BFGS-B", callback=callback, options=options
            )

        if is_ended or end.status == 1:
            return None

        return _ending(abs(end.fun), float(np.max(np.abs(end.jac))), tolerances)


def _is_rounding(objective, last, rounding):
    """Return whether the difference of two objectives may be rounding."""
    return abs(objective - last) <= rounding * abs(last)


def _ending(size, largest, tolerances):
    """
    Return why a minimisation ended at an objective of a size, and a gradient of this largest entry;
    warn where that is no minimum.
    """
    tol = tolerances.gradient
    if largest <= tol:
        return f"The largest entry of the gradient, {largest:.2g}, is not above tol={tol:.2g}."

    if largest > tolerances.flat and size > _NOTHING:
        warn_user(
            "L-BFGS found no smaller objective, but the largest entry of the gradient is "
            f"{largest:.2g}. float32 may be too coarse, for a large objective or for columns of X "
            'that are nearly sums of others: use dtype="float64". Or the objective has a kink, or '
            'the gradient of a custom part is wrong: use another optimizer, such as "adam".',
            ConvergenceWarning,
        )

    return f"The objective no longer fell: the largest entry of the gradient is {largest:.2g}."
