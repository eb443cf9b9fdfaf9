"""
Learning rates: any function from the number of an update, counted from 1, to its rate. It may have
a method `on_bad_epochs`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skort.common.component import Component
from skort.common.sklearn_private import Interval

_COUNT = [Interval(Integral, 1, None, closed="left")]
_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]


def rate(schedule: Callable[[int], Any], t: int) -> float:
    """
    Return the learning rate of update number `t`. Raise a ValueError unless it is finite and not
    negative.
    """
    eta = schedule(t)
    # This runs before every update. It asks for a float first, as the check for a Real takes
    # longer.
    if not (isinstance(eta, (float, Real)) and 0 <= float(eta) < math.inf):
        raise ValueError(
            f"learning_rate={schedule!r} must return a finite number >= 0, got {eta!r} "
            f"for update {t}."
        )

    # The rate is a float of Python: numpy's would turn float32 weights into float64.
    return float(eta)


def largest_rate(schedule: Any) -> float | None:
    """
    Return the largest learning rate of all updates, or None if it is not known, as for any
    function.
    """
    eta = (
        schedule.largest_rate() if _declares(schedule, "largest_rate", "peak_parameters") else None
    )
    return None if eta is None else float(eta)


def is_steady(schedule: Any) -> bool:
    """Return whether a schedule is known to give all updates of an epoch the same rate."""
    return _declares(schedule, "is_steady") and schedule.is_steady


def lower_rate(schedule: Any) -> bool:
    """Let an object with the method `on_bad_epochs` lower its rate. Return whether it has."""
    return getattr(schedule, "on_bad_epochs", bool)()


def advice_to_lower(schedule: Any) -> str:
    """Return advice for a rate that is too large, such as "lower eta0"."""
    return schedule.advice_to_lower if isinstance(schedule, Schedule) else Schedule.advice_to_lower


def last_update(schedule: Any) -> int | None:
    """Return the update with which the rate of a schedule comes to zero, or None if it never does."""
    return schedule.last_update if _declares(schedule, "last_update") else None


def has_ended(schedule: Any, n_updates: int) -> bool:
    """Return whether the planned rate of a schedule has come to zero after so many updates."""
    last = last_update(schedule)
    return last is not None and n_updates >= last


def may_fall(schedule: Any) -> bool:
    """Return whether a schedule lowers its rate when a training would end."""
    return (
        schedule.may_fall if isinstance(schedule, Schedule) else hasattr(schedule, "on_bad_epochs")
    )


def _declares(schedule, *names):
    """
    Return whether the class of a schedule itself has one of these names: a subclass may have other
    rates.
    """
    return isinstance(schedule, Schedule) and not vars(type(schedule)).keys().isdisjoint(names)


class Schedule(Component):
    """
    A learning rate as a function of the number of the update.

    Examples
    --------
    >>> from skort.schedules import Schedule
    >>> class Harmonic(Schedule):
    ...     def __call__(self, t):
    ...         return 0.5 / t
    >>> Harmonic().simulate(2).tolist()
    [0.5, 0.25]
    """

    #: Parameters that the estimators have, too. A schedule given by name takes their values.
    shared_parameters: ClassVar[tuple[str, ...]] = ()
    #: Whether all updates of an epoch have the same rate. Each class says so for itself.
    is_steady: ClassVar[bool] = False
    #: Parameters whose largest value is the largest rate. Each class has its own, or
    #: `largest_rate`.
    peak_parameters: ClassVar[tuple[str, ...]] = ()

    #: The advice for rates that are too large.
    advice_to_lower: ClassVar[str] = "lower eta0"
    #: The number of the last update whose rate is not zero. None: there is none, or it is not
    #: known. Each class has its own.
    last_update: int | None = None

    if TYPE_CHECKING:

        def __call__(self, t: int) -> float:
            """Return the learning rate of an update, counted from 1. Each class has its own."""
            raise NotImplementedError

    def largest_rate(self) -> float | None:
        """Return the largest learning rate of all updates, or None if it is not known."""
        return max((getattr(self, name) for name in self.peak_parameters), default=None)

    @property
    def may_fall(self) -> bool:
        """Whether `on_bad_epochs` lowers the rate."""
        return type(self).on_bad_epochs is not Schedule.on_bad_epochs

    def on_bad_epochs(self) -> bool:
        """Lower the rate when a training would end. Return whether the training goes on."""
        return False

    def simulate(self, n_updates: int) -> np.ndarray:
        """
        Return the learning rates of the first updates.

        Parameters
        ----------
        n_updates : int
            The length of the result.
        """
        self._validate_params()
        return np.array([self(t) for t in range(1, n_updates + 1)], dtype=float)


@dataclass(eq=False, repr=False)
class Constant(Schedule):
    r"""
    The same learning rate for all updates.

    .. math:: \eta(t) = \eta_0

    as in `sklearn.linear_model.SGDRegressor(learning_rate="constant")`.

    Parameters
    ----------
    eta0 : float, default=0.01
        Learning rate of the first update.

    Examples
    --------
    >>> from skort.schedules import Constant
    >>> Constant(eta0=0.1).simulate(3)
    array([0.1, 0.1, 0.1])
    """

    __module__ = "skort.schedules"
    is_steady = True
    shared_parameters: ClassVar[tuple[str, ...]] = ("eta0",)
    peak_parameters: ClassVar[tuple[str, ...]] = ("eta0",)
    _parameter_constraints = {"eta0": _POSITIVE}
    eta0: float = 0.01

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        return self.eta0


@dataclass(eq=False, repr=False)
class InvScaling(Schedule):
    r"""
    A learning rate that falls with a power of the update's number.

    .. math:: \eta(t) = \frac{\eta_0}{t^{power\_t}}

    as in `sklearn.linear_model.SGDRegressor(learning_rate="invscaling")`, where t
    counts updates too.

    Parameters
    ----------
    eta0 : float, default=0.01
        Learning rate of the first update.
    power_t : float, default=0.25
        The exponent of the number of the update.

    Examples
    --------
    >>> from skort.schedules import InvScaling
    >>> InvScaling(eta0=0.1, power_t=0.5).simulate(4).round(3)
    array([0.1  , 0.071, 0.058, 0.05 ])
    """

    __module__ = "skort.schedules"
    shared_parameters: ClassVar[tuple[str, ...]] = ("eta0", "power_t")
    peak_parameters: ClassVar[tuple[str, ...]] = ("eta0",)
    _parameter_constraints = {"eta0": _POSITIVE, "power_t": _NOT_NEGATIVE}
    eta0: float = 0.01
    power_t: float = 0.25

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        return self.eta0 * float(t) ** -self.power_t


@dataclass(eq=False, repr=False)
class Optimal(Schedule):
    r"""
    A learning rate that falls with the update's number, by Bottou's heuristic,
    from :math:`\alpha^{-1/4}` on.

    .. math:: \eta(t) = \frac{1}{\alpha (t_0 + t - 1)}, \qquad t_0 = \alpha^{-3/4}

    as in `sklearn.linear_model.SGDClassifier(learning_rate="optimal")`. It suits losses whose
    gradient is bounded, such as the log-loss, and batches of one row.

    Parameters
    ----------
    alpha : float, default=1e-4
        The strength of the penalty, positive.

    Examples
    --------
    >>> from skort.schedules import Optimal
    >>> Optimal(alpha=1e-4).simulate(1001)[[0, 1000]].round(6)
    array([10.,  5.])
    """

    __module__ = "skort.schedules"
    shared_parameters: ClassVar[tuple[str, ...]] = ("alpha",)
    # The first rate follows from alpha.
    advice_to_lower = 'use learning_rate="constant"'
    _parameter_constraints = {"alpha": _POSITIVE}
    alpha: float = 1e-4

    def largest_rate(self) -> float:
        """Return the largest learning rate of all updates."""
        return self(1)

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        return 1.0 / (self.alpha * (self.alpha**-0.75 + t - 1))


@dataclass(eq=False, repr=False)
class Adaptive(Schedule):
    r"""
    A learning rate that is divided by five when training no longer improves.

    .. math:: \eta(t) = \frac{\eta_0}{5^k}

    after k plateaus of `n_iter_no_change` epochs, as in
    `sklearn.linear_model.SGDRegressor(learning_rate="adaptive")` and
    `torch.optim.lr_scheduler.ReduceLROnPlateau(factor=0.2)`. Training ends at the plateau after
    `max_falls` reductions; in scikit-learn, when the rate is 1e-6 or less.

    Parameters
    ----------
    eta0 : float, default=0.01
        Learning rate of the first update.
    max_falls : int, default=4
        The largest k.

    Examples
    --------
    >>> from skort.schedules import Adaptive
    >>> schedule = Adaptive(eta0=0.1)
    >>> etas = [schedule(t=100)]
    >>> while schedule.on_bad_epochs():
    ...     etas.append(schedule(t=100))
    >>> etas[:3], len(etas)
    ([0.1, 0.02, 0.004], 5)
    """

    __module__ = "skort.schedules"
    is_steady = True
    shared_parameters: ClassVar[tuple[str, ...]] = ("eta0",)
    peak_parameters: ClassVar[tuple[str, ...]] = ("eta0",)
    _parameter_constraints = {
        "eta0": _POSITIVE,
        "max_falls": [Interval(Integral, 0, None, closed="left")],
    }
    eta0: float = 0.01
    max_falls: int = 4

    #: k: how often the rate has fallen. A clone begins at 0 again; a copy or a pickle keeps the
    #: number.
    _n_falls = 0

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        return self.eta0 / 5**self._n_falls

    def on_bad_epochs(self) -> bool:
        """Lower the rate. Return whether the training goes on."""
        if self._n_falls >= self.max_falls:
            return False
        self._n_falls += 1
        return True


@dataclass(eq=False, repr=False)
class Cosine(Schedule):
    r"""
    A learning rate that falls along half a cosine.

    .. math:: \eta(t) = \eta_1 + \frac{\eta_0 - \eta_1}{2} \left(1 + \cos \frac{\pi \min(t - 1, n)}{n}\right)

    as in `torch.optim.lr_scheduler.CosineAnnealingLR` and equation 5 of Loshchilov and Hutter
    (arXiv:1608.03983).

    Parameters
    ----------
    n_updates : int, default=1000
        n: usually the number of batches per epoch times the number of epochs.
    eta0 : float, default=0.01
        :math:`\eta_0`, the rate of the first update.
    eta1 : float, default=0.0
        :math:`\eta_1`, the rate from update n + 1 on. If it is zero, `fit` ends with that epoch.

    Examples
    --------
    >>> from skort.schedules import Cosine
    >>> Cosine(n_updates=4, eta0=1.0).simulate(6).round(3)
    array([1.   , 0.854, 0.5  , 0.146, 0.   , 0.   ])
    """

    __module__ = "skort.schedules"
    peak_parameters: ClassVar[tuple[str, ...]] = ("eta0", "eta1")
    _parameter_constraints = {"n_updates": _COUNT, "eta0": _POSITIVE, "eta1": _NOT_NEGATIVE}
    n_updates: int = 1000
    eta0: float = 0.01
    eta1: float = 0.0

    @property
    def last_update(self) -> int | None:  # type: ignore[override]
        """The last update whose rate is not zero, or None."""
        return self.n_updates if self.eta1 == 0 else None

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        done = min(t - 1, self.n_updates) / self.n_updates
        return self.eta1 + (self.eta0 - self.eta1) / 2 * (1 + math.cos(math.pi * done))


@dataclass(eq=False, repr=False)
class Cyclic(Schedule):
    r"""
    A learning rate that rises and falls again and again, along straight lines.

    .. math:: \eta(t) = \eta_1 - (\eta_1 - \eta_0) \left|1 - \frac{2}{n} ((t - 1) \bmod n)\right|

    as in `torch.optim.lr_scheduler.CyclicLR(mode="triangular")`: the triangles of Smith
    (arXiv:1506.01186, section 3).

    Parameters
    ----------
    n_updates : int, default=1000
        n, the length of a cycle: usually that of 4 to 20 epochs.
    eta0 : float, default=0.01
        :math:`\eta_0`, the rate of the first update of each cycle.
    eta1 : float, default=0.04
        :math:`\eta_1`, the rate in the middle of each cycle.

    Examples
    --------
    >>> from skort.schedules import Cyclic
    >>> Cyclic(n_updates=4, eta0=0.1, eta1=0.5).simulate(6).round(3)
    array([0.1, 0.3, 0.5, 0.3, 0.1, 0.3])
    """

    __module__ = "skort.schedules"
    peak_parameters: ClassVar[tuple[str, ...]] = ("eta0", "eta1")
    _parameter_constraints = Cosine._parameter_constraints
    n_updates: int = 1000
    eta0: float = 0.01
    eta1: float = 0.04

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        done = (t - 1) % self.n_updates / self.n_updates
        return self.eta1 - (self.eta1 - self.eta0) * abs(1 - 2 * done)


@dataclass(eq=False, repr=False)
class Warmup(Schedule):
    r"""
    Another schedule whose rate grows to its full size over the first updates.

    .. math:: \eta(t) = \min\left(1, \frac{t}{n}\right) \eta_{schedule}(t)

    as in Goyal et al. (arXiv:1706.02677, section 2.2). The first updates count in the inner
    schedule, too.

    Parameters
    ----------
    schedule : callable, default=None
        The inner schedule, t -> eta. None: `Constant()`.
    n_updates : int, default=100
        n: the number of the first update at the full rate.

    Examples
    --------
    >>> from skort.schedules import Constant, Cosine, Warmup
    >>> Warmup(Constant(eta0=1.0), n_updates=4).simulate(6)
    array([0.25, 0.5 , 0.75, 1.  , 1.  , 1.  ])
    """

    __module__ = "skort.schedules"
    _parameter_constraints = {"schedule": [callable, None], "n_updates": _COUNT}
    schedule: Callable[[int], float] | None = None
    n_updates: int = 100

    @property
    def _inner(self) -> Callable[[int], float]:
        return self.schedule or Constant()

    @property
    def last_update(self) -> int | None:  # type: ignore[override]
        """The last update whose rate is not zero, or None."""
        return last_update(self._inner)

    def largest_rate(self) -> float | None:
        """Return the largest learning rate of all updates, or None if it is not known."""
        return largest_rate(self._inner)

    @property
    def may_fall(self) -> bool:
        """Whether the inner schedule may lower its rate."""
        return may_fall(self._inner)

    def __call__(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        return min(1.0, t / self.n_updates) * self._inner(t)

    def on_bad_epochs(self) -> bool:
        """Let the inner schedule lower its rate, if it can. Return whether the training goes on."""
        return lower_rate(self._inner)


#: The schedules by name.
SCHEDULES: dict[str, type[Schedule]] = {
    "constant": Constant,
    "invscaling": InvScaling,
    "optimal": Optimal,
    "adaptive": Adaptive,
}
