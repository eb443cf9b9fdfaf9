"""A display of learning rates: of a schedule, or of a training."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skort.optim.schedules import SCHEDULES, rate
from skort.plotting.displays import axes_for, fitted_estimators, line_style, whole_numbers

# Rates that differ by a larger factor are drawn on a logarithmic axis.
_FAR = 100


class ScheduleDisplay:
    """
    Learning rates over the updates of a schedule, or over the epochs of a training.

    It is best made by `from_schedule` or `from_estimator`. All parameters are kept as attributes.

    Parameters
    ----------
    rates : dict of str to array-like of shape (n_updates,)
        The rates of each schedule or training, by its name, from the first update on.
    unit : {"update", "epoch"}, default="update"
        Whether there is one rate per update or per epoch.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axis of the rates is logarithmic if they differ by a factor of a hundred or more.
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One for each schedule or training.

    See Also
    --------
    skort.schedules : The schedules.
    LossCurveDisplay : The loss of a training, epoch by epoch.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from skort.plotting import ScheduleDisplay
    >>> from skort.schedules import Cosine, Warmup
    >>> schedules = {"cosine": Cosine(500), "with warm-up": Warmup(Cosine(500), n_updates=50)}
    >>> display = ScheduleDisplay.from_schedule(schedules, n_updates=500)
    >>> [float(line.get_ydata()[49].round(4)) for line in display.lines_]
    [0.0098, 0.0098]
    >>> plt.show()  # doctest: +SKIP
    """

    def __init__(self, rates: Mapping[str, ArrayLike], *, unit: str = "update"):
        self.rates = rates
        self.unit = unit

    @classmethod
    def from_schedule(
        cls,
        schedule: str | Callable[[int], float] | Mapping[str, str | Callable[[int], float]],
        n_updates: int = 1000,
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> "ScheduleDisplay":
        """
        Draw the first rates of schedules, and return the display.

        Parameters
        ----------
        schedule : callable, str, or dict of str to either
            An instance of `skort.schedules`, any function of the number of the update, or a name,
            such as "invscaling" for `InvScaling()`. The keys of a dict are the names in the legend.
            "adaptive" changes only in training.
        n_updates : int, default=1000
            The number of rates.
        ax, **kwargs
            As for `plot`.

        Raises
        ------
        ValueError
            For an unknown name or object, and for a function that does not return a learning rate.
        """
        named = dict(schedule) if isinstance(schedule, Mapping) else {_name(schedule): schedule}
        schedules = {name: _resolved(one) for name, one in named.items()}
        updates = range(1, n_updates + 1)
        rates = {
            name: np.array([rate(one, t) for t in updates], dtype=float)
            for name, one in schedules.items()
        }

        return cls(rates).plot(ax, **kwargs)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> "ScheduleDisplay":
        """
        Draw the rate of the last update of each epoch of trainings, and return the display.

        Parameters
        ----------
        estimator : estimator, list of estimators, or dict of str to estimator
            Fitted, as for `LossCurveDisplay.from_estimator`.
        ax, **kwargs
            As for `plot`.
        """
        rates = {
            name: np.array(one.history_["eta"])
            for name, one in fitted_estimators(estimator).items()
        }
        return cls(rates, unit="epoch").plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> "ScheduleDisplay":
        """
        Return the display, after drawing its rates.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot`.
        """
        self.ax_: Any = axes_for(self, ax)
        self.figure_: Any = self.ax_.figure
        self.lines_: list[Any] = []

        # The rate of an epoch is that of its last update.
        drawstyle = "steps-mid" if self.unit == "epoch" else "default"
        for name, eta in self.rates.items():
            values = np.asarray(eta, dtype=float)
            style = line_style(kwargs, label=name, drawstyle=drawstyle)
            (line,) = self.ax_.plot(range(1, len(values) + 1), values, **style)
            self.lines_.append(line)

        values = np.concatenate([np.zeros(0), *(line.get_ydata() for line in self.lines_)])
        if values.size and values.min() > 0 and values.max() >= _FAR * values.min():
            self.ax_.set_yscale("log")
        self.ax_.set(xlabel=self.unit.capitalize(), ylabel="Learning rate")
        whole_numbers(self.ax_.xaxis)
        if self.ax_.get_legend_handles_labels()[0]:
            self.ax_.legend(fontsize="small")

        return self


def _name(schedule):
    """Return the name of a schedule: its representation, or the name of a function."""
    return (
        schedule
        if isinstance(schedule, str)
        else getattr(schedule, "__name__", None) or repr(schedule)
    )


def _resolved(schedule):
    """Return a schedule that is given by its name or as it is."""
    if callable(schedule):
        return schedule
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        raise ValueError(
            f"schedule must be one of {list(SCHEDULES)} or a function of the update, "
            f"got {schedule!r}."
        )

    return SCHEDULES[schedule]()
