"""L-BFGS over all rows."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from sklearn.exceptions import ConvergenceWarning

from skort.common.sklearn_private import Interval
from skort.common.user_warning import warn_user
from skort.optim.descent import Limits, Point, descent, is_near
from skort.optim.optimizers.protocol import OptimizerTags
from skort.optim.optimizers.sgd import SGD

# At a minimum of a linear model, the gradient is smaller than what float32 tells of a direction in
# which the columns vary by 1e-5: predictions are about so far from the optimum's.
_FLAT = 1e-3
# At kinks of relu, in standardized columns, a network ends at up to 4e-3.
_FLAT_WITH_KINKS = 2e-2
# Where classes are apart, the objective comes near zero, and no gradient tells how near.
_NOTHING = 1e-4
# At kinks a network falls by less and less for ever: `python -m benchmarks.lbfgs --networks`.
_FALL_WITH_KINKS = 2e-6
_ITERATIONS_WITH_KINKS = 10
# One step from there, predictions differ from the optimum's by 1e-4 of their deviation, but for
# scores of rare categories. Where columns are sums of others, gradients in float32 tell no more:
# `python -m benchmarks.lbfgs`.
_NEAR = 1e-9
# A smaller objective counts as so large, as in scipy's L-BFGS-B.
_SIZE = 1.0


class Tolerances(NamedTuple):
    """The end of a minimisation, and when it is no minimum."""

    limits: Limits
    #: Where the objective no longer falls, a larger entry of the gradient is told.
    flat: float


@dataclass(eq=False, repr=False, kw_only=True)
class LBFGS(SGD, name="lbfgs"):
    r"""
    Limited-memory BFGS over all rows: the exact minimum of a smooth objective, in few iterations.

    .. math:: w \leftarrow w - t \, H \nabla J(w)

    H approximates the inverse of the second derivatives, from the last changes of weights and
    gradients, as in `LogisticRegression` and `MLPClassifier(solver="lbfgs")`. A line search finds
    the step t: it ends at the weak conditions of Wolfe. Only `fit` can use it: an iteration is an
    epoch of one update. The solver computes the gradients.

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
    _without_name = ""  # it has no learning rate
    history_size: int = 10

    @property
    def tags(self) -> OptimizerTags:
        """The traits of the optimizer."""
        return OptimizerTags(is_full=True)

    def tolerances(
        self, tol: float | None, dtype: DTypeLike, *, is_linear: bool, is_given: bool
    ) -> Tolerances:
        """
        Return the numbers that end `minimise`, of a linear model or a network, with a `tol` of the
        user or without.
        """
        gradient = 0.0 if tol is None else float(tol)
        is_single = dtype == np.float32
        # A linear model's objective may be large by a few rows alone. Its gradients tell of
        # falls that are smaller than its rounding.
        rounding = 1e-6 if is_single else 1e-14
        if is_linear or is_given:
            fall = 1e-13 if is_single else 1e-19
            near = _NEAR if is_single and not is_given else 0.0
            return Tolerances(Limits(gradient, fall, 1, _SIZE, rounding, distance=near), _FLAT)

        # A minimum of a network may be a kink.
        limits = Limits(gradient, _FALL_WITH_KINKS, _ITERATIONS_WITH_KINKS, _SIZE, rounding)
        return Tolerances(limits, _FLAT_WITH_KINKS)

    def minimise(
        self,
        evaluate: Callable[[np.ndarray], Point],
        start: Point,
        tolerances: Tolerances,
        max_iter: int,
        after: Callable[[Point], bool],
    ) -> str | None:
        """
        Minimise a function with its gradient; return why it ended,
        None for `max_iter` or a true `after`.
        """
        end = descent(evaluate, start, tolerances.limits, max_iter, self.history_size, after)
        return None if end is None else _ending(end, tolerances)


def _ending(end, tolerances):
    """Return why a minimisation ended at a point; warn where that is no minimum."""
    largest = float(np.abs(end.gradient).max())
    tol = tolerances.limits.gradient
    if largest <= tol:
        return f"The largest entry of the gradient, {largest:.2g}, is not above tol={tol:.2g}."
    if is_near(end, tolerances.limits):
        part = tolerances.limits.distance
        return f"The gradient tells that the objective is within {part:.2g} of the least one."

    if largest > tolerances.flat and abs(end.objective) > _NOTHING:
        warn_user(
            "L-BFGS found no smaller objective, but the largest entry of the gradient is "
            f"{largest:.2g}. float32 may be too coarse, for a large objective or for columns of X "
            'that are nearly sums of others: use dtype="float64". Or the objective has a kink, or '
            'the gradient of a custom part is wrong: use another optimizer, such as "adam".',
            ConvergenceWarning,
        )

    return f"The objective no longer fell: the largest entry of the gradient is {largest:.2g}."
