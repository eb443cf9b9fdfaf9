"""A display of the history of trainings, as curves over the epochs."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skort.optim.state import best_epoch
from skort.plotting.displays import axes_for, fitted_estimators, line_style, whole_numbers

# The line styles of columns, and their names.
_STYLES = (("-", "solid"), (":", "dotted"), ("-.", "dash-dotted"))
# The number of characters of a legend's line that fit below axes of the usual size.
_WIDTH = 88


class LossCurveDisplay:
    """
    Learning curves of one or more trainings, epoch by epoch.

    The losses are on the left axis. The validation score, if there is one, has its own axis on the
    right, with the best score at the bottom. So both curves fall while the model improves, and an
    overfitted model's curves part. A circle marks the best epoch: the last one with the largest
    validation score or, without such a score, the one with the smallest loss. A cross marks the last
    epoch. The title, or the legend of several trainings, says why the training ended there.

    It is best made by `from_estimator`. All parameters are kept as attributes.

    Parameters
    ----------
    histories : dict of str to dict of str to sequence of float
        The columns of `history_` for each training, by its name.
    columns : sequence of str, default=("objective",)
        The columns on the left axis.
    score : str or None, default="validation_score"
        The column on the right axis; larger values have to be better. A training without it has no
        curve there. None: no right axis.
    stopping_reasons : dict of str to str or None, default=None
        Why each training ended, by its name.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the losses.
    score_ax_ : matplotlib Axes or None
        The axes with the validation scores; None if there are no scores.
    figure_ : matplotlib Figure
    lines_, score_lines_ : list of matplotlib Line2D
        The losses, training by training and column by column, and the validation scores.
    best_points_, last_points_ : list of matplotlib Line2D
        The circles and the crosses, one for each training.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skort import OrtSGDClassifier
    >>> from skort.plotting import LossCurveDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OrtSGDClassifier(early_stopping=True, random_state=0).fit(X, y)
    >>> display = LossCurveDisplay.from_estimator(model)
    >>> display.lines_[0].get_ydata().tolist() == model.loss_curve_
    True
    >>> plt.show()  # doctest: +SKIP
    """

    def __init__(
        self,
        histories: Mapping[str, Mapping[str, Sequence[float]]],
        *,
        columns: Sequence[str] = ("objective",),
        score: str | None = "validation_score",
        stopping_reasons: Mapping[str, str | None] | None = None,
    ):
        self.histories = histories
        self.columns = columns
        self.score = score
        self.stopping_reasons = stopping_reasons

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        columns: str | Sequence[str] = "objective",
        score: str | None = "validation_score",
        ax: Any = None,
        **kwargs: Any,
    ) -> "LossCurveDisplay":
        """
        Draw the learning curves of fitted estimators, and return the display.

        Parameters
        ----------
        estimator : estimator, list of estimators, or dict of str to estimator
            Fitted: estimators of skort, pipelines that end in one, a search (its best estimator
            is drawn), or other estimators that contain some. The keys of a dict are the names
            in the legend.
        columns : str or sequence of str, default="objective"
            Columns of `history_` on the left axis, such as "loss", without the penalty, or
            "gradient_norm".
        score : str or None, default="validation_score"
            The column of `history_` on the right axis, such as the `name` of an `EpochScoring`.
            None: no right axis.
        ax, **kwargs
            As for `plot`, with the same errors.

        Raises
        ------
        NotFittedError
            If an estimator is not fitted.
        """
        found = fitted_estimators(estimator)
        histories = {name: one.history_ for name, one in found.items()}
        columns = (columns,) if isinstance(columns, str) else tuple(columns)
        reasons = {name: one.stopping_reason_ for name, one in found.items()}

        return cls(histories, columns=columns, score=score, stopping_reasons=reasons).plot(
            ax, **kwargs
        )

    def plot(self, ax: Any = None, **kwargs: Any) -> "LossCurveDisplay":
        """
        Return the display, after drawing its curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for every curve.

        Raises
        ------
        ValueError
            If a history lacks one of the columns, or if its first column has no numbers.
        """
        self._check_columns()
        self.ax_: Any = axes_for(self, ax)
        self.figure_: Any = self.ax_.figure
        has_score = any(self.score in history for history in self.histories.values())
        self.score_ax_: Any = self.ax_.twinx() if has_score else None
        if self.score_ax_ is not None:
            # A fall is an improvement on both axes: an overfitted model's curves part.
            self.score_ax_.invert_yaxis()
        self.lines_: list[Any] = []
        self.score_lines_: list[Any] = []
        self.best_points_: list[Any] = []
        self.last_points_: list[Any] = []
        for number, name in enumerate(self.histories):
            self._draw(number, name, kwargs)
        shown = self._named() if len(self.histories) == 1 else self._named_by_training()
        self.ax_.set_xlabel("Epoch")
        whole_numbers(self.ax_.xaxis)

        if ax is None:
            # A legend below the axes has no curve behind it.
            ncols = 3 if len(self.histories) == 1 else 1
            self.figure_.legend(
                handles=shown, loc="outside lower center", ncols=ncols, fontsize="small"
            )
        else:
            # On the axes that are drawn last, no curve crosses the legend.
            (self.score_ax_ or self.ax_).legend(handles=shown, fontsize="small")

        return self

    def _check_columns(self):
        """Raise a ValueError if columns are missing, or if the first column has no numbers."""
        if not self.columns:
            raise ValueError("columns: give at least one column.")

        for name, history in self.histories.items():
            missing = [column for column in self.columns if column not in history]
            if missing:
                raise ValueError(
                    f"columns: the history of {name} has no {missing[0]!r}, it has "
                    f"{sorted(history)}."
                )
            if np.isnan(np.asarray(history[self.columns[0]], dtype=float)).all():
                raise ValueError(
                    f"columns: {self.columns[0]!r} has no numbers in the history of {name}."
                )

    def _draw(self, number, name, kwargs):
        """
        Draw the curves of a training.

        With several trainings, a colour stands for a training, else for a curve.
        """
        history = self.histories[name]
        single = len(self.histories) == 1

        curves = []
        for i, column in enumerate(self.columns):
            style = line_style(
                kwargs, color=f"C{i if single else number}", linestyle=_STYLES[i % len(_STYLES)][0]
            )
            curves.append(_curve(self.ax_, history[column], style))

        self.lines_ += curves
        deciding = curves[0]
        best = None

        if self.score is not None and self.score in history:
            style = line_style(
                kwargs, color=f"C{len(curves) if single else number}", linestyle="--"
            )
            curve = _curve(self.score_ax_, history[self.score], style)
            self.score_lines_.append(curve)
            best = best_epoch(history[self.score])
            # None: the model never predicted finite numbers.
            deciding = curves[0] if best is None else curve

        place = int(np.nanargmin(deciding.get_ydata())) if best is None else best[0] - 1
        self.best_points_.append(_point(deciding, place, "o"))
        self.last_points_.append(_point(curves[0], -1, "x"))

    def _named(self):
        """Label the curves of the only training; return the legend. The title says why it ended."""
        (name,) = self.histories
        for column, line in zip(
            (*self.columns, self.score), (*self.lines_, *self.score_lines_), strict=False
        ):
            line.set_label(_words(column))

        ((best, last),) = self._epochs()
        self.best_points_[0].set_label(f"Best epoch: {best}")
        self.last_points_[0].set_label(f"Last epoch: {last}")
        self.ax_.set_title((self.stopping_reasons or {}).get(name) or "", fontsize="medium")
        self.ax_.set_ylabel(_words(", ".join(self.columns)))
        if self.score_ax_ is not None:
            self.score_ax_.set_ylabel(f"{_words(self.score)} (best at the bottom)")

        return [*self.lines_, *self.score_lines_, *self.best_points_, *self.last_points_]

    def _named_by_training(self):
        """Label the curves of several trainings; return the legend, which says why each ended."""
        shown = self.lines_[:: len(self.columns)]
        for name, line, (best, last) in zip(self.histories, shown, self._epochs(), strict=True):
            reason = (self.stopping_reasons or {}).get(name) or ""
            text = f"{name}: best epoch {best}, last epoch {last}. {reason}"
            line.set_label("\n".join(textwrap.wrap(text, _WIDTH)))

        styles = [
            f"{column} ({_STYLES[i % len(_STYLES)][1]})" for i, column in enumerate(self.columns)
        ]
        self.ax_.set_ylabel(_words(self.columns[0] if len(styles) == 1 else ", ".join(styles)))
        if self.score_ax_ is not None:
            self.score_ax_.set_ylabel(f"{_words(self.score)} (dashed, best at the bottom)")

        return shown

    def _epochs(self):
        """Return the numbers of the best and the last epoch of each training."""
        points = zip(self.best_points_, self.last_points_, strict=True)
        return [tuple(int(point.get_xdata()[0]) for point in pair) for pair in points]


def _curve(ax, values, style):
    """Draw a column of a history."""
    (line,) = ax.plot(np.arange(1, len(values) + 1), np.asarray(values, dtype=float), **style)
    return line


def _point(line, index, marker):
    """Mark a point of a curve."""
    x = line.get_xdata()[index]
    y = line.get_ydata()[index]
    style = {"color": line.get_color(), "linestyle": "none", "marker": marker, "fillstyle": "none"}
    (point,) = line.axes.plot(
        [x], [y], markersize=9 if marker == "o" else 6, markeredgewidth=1.5, **style
    )

    return point


def _words(name):
    """Return the name of a column as words."""
    return name.replace("_", " ").capitalize()
