"""The weights of a linear model, or of the first layer of a network, by feature."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from skort.estimators.training.result import result_of
from skort.plotting.displays import axes_for, line_style, the_fitted_estimator, whole_numbers

# The largest number of columns of a table that have room for their names.
_FEW = 12


class WeightsDisplay:
    """
    The weights of a linear model, or of the first layer of a network, by the names of the features.

    The weights of one output are drawn as bars. The weights of several outputs are drawn as a table
    of colours, with one row for each feature, and one column for each output or hidden unit. The
    features with the largest weights come first; with several outputs, the Euclidean norm over the
    outputs counts. The weights of several epochs are drawn as lines over the training: with several
    outputs, their norms.

    A weight depends on the units of its feature. Compare weights only if all features have the same
    scale, for instance behind a `StandardScaler`.

    It is best made by `from_estimator`. All parameters are kept as attributes.

    Parameters
    ----------
    weights : array-like of shape (n_outputs, n_features) or (n_epochs, n_outputs, n_features)
        One row of weights for each output; or such rows after each epoch, as a callback or a loop
        kept them.
    feature_names : sequence of str of length n_features
        Names of the bars.
    outputs : sequence of str of length n_outputs, default=None
        Names of the columns of the table. None: numbers.
    name : str, default="Coefficient"
        What a weight is called.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    shown_ : ndarray of int
        The positions of the features that are drawn, those with the largest weights first.
    bars_, image_ : matplotlib BarContainer or None, matplotlib AxesImage or None
        The bars of one output, or the table of several outputs.
    lines_ : list of matplotlib Line2D
        The lines of several epochs, those with the largest last weights first.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_diabetes
    >>> from skort import OrtSGDRegressor
    >>> from skort.plotting import WeightsDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = OrtSGDRegressor(penalty="l2", alpha=1e-3, random_state=0).fit(X, y)
    >>> display = WeightsDisplay.from_estimator(model, top_k=3)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['bmi', 's5', 'bp']
    >>> plt.show()  # doctest: +SKIP
    """

    def __init__(
        self,
        weights: ArrayLike,
        feature_names: Sequence[str],
        *,
        outputs: Sequence[str] | None = None,
        name: str = "Coefficient",
    ):
        self.weights = weights
        self.feature_names = feature_names
        self.outputs = outputs
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, top_k: int = 20, ax: Any = None, **kwargs: Any
    ) -> "WeightsDisplay":
        """
        Draw the weights of a fitted estimator, and return the display.

        Parameters
        ----------
        estimator : estimator
            Fitted: one of skort, a pipeline that ends in one, or a search.
        top_k, ax, **kwargs
            As for `plot`.

        Raises
        ------
        ValueError, NotFittedError
            For several estimators, for an estimator that is not fitted, and for a first layer that
            does not have a weight for every feature.
        """
        one, columns = the_fitted_estimator(estimator)
        model = result_of(one).model
        is_linear = hasattr(one, "coef_")
        weights = one.coef_ if is_linear else _of_network(model.score_graph)
        weights = np.atleast_2d(weights.toarray() if scipy.sparse.issparse(weights) else weights)
        columns = getattr(one, "feature_names_in_", columns)
        names = _feature_names(columns, model.preprocessing.transformers, weights.shape[1])
        classes = list(getattr(one, "classes_", ()))
        outputs = classes if is_linear and len(classes) == len(weights) else range(len(weights))
        display = cls(
            weights,
            names,
            outputs=list(map(str, outputs)),
            name="Coefficient" if is_linear else "Weight",
        )

        return display.plot(ax, top_k=top_k, **kwargs)

    def plot(self, ax: Any = None, *, top_k: int = 20, **kwargs: Any) -> "WeightsDisplay":
        """
        Return the display, after drawing its weights.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.
        top_k : int, default=20
            The largest number of features, at least 1.
        **kwargs : dict
            Passed to matplotlib's `barh` for one output, to `imshow` for several, to `plot` for
            several epochs.
        """
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {top_k}.")

        every = np.asarray(self.weights, dtype=float)
        weights = np.atleast_2d(every[-1] if every.ndim == 3 else every)
        n_features = weights.shape[1]
        self.shown_: np.ndarray = np.argsort(-np.linalg.norm(weights, axis=0), kind="stable")[
            :top_k
        ]
        self.ax_: Any = axes_for(self, ax)
        self.figure_: Any = self.ax_.figure
        self.bars_: Any = None
        self.image_: Any = None
        self.lines_: list[Any] = []
        names = [self.feature_names[i] for i in self.shown_]

        if every.ndim == 3:
            self._draw_lines(every[:, :, self.shown_], names, kwargs)
        elif len(weights) == 1:
            self._draw_bars(weights[0, self.shown_], kwargs)
        else:
            self._draw_table(weights[:, self.shown_].T, kwargs)

        if every.ndim < 3:
            self.ax_.set_yticks(range(len(names)), labels=names, parse_math=False)
        if n_features > len(names):
            self.ax_.set_title(
                f"{len(names)} of {n_features:,} features, the largest weights first",
                fontsize="medium",
            )

        return self

    def _draw_lines(self, weights, names, kwargs):
        values = weights[:, 0] if weights.shape[1] == 1 else np.linalg.norm(weights, axis=1)
        for i, name in enumerate(names):
            style = line_style(
                kwargs, color=f"C{i % 10}", linestyle=("-", "--", ":", "-.")[i // 10 % 4]
            )
            self.lines_ += self.ax_.plot(
                range(1, len(values) + 1), values[:, i], label=name, **style
            )

        whole_numbers(self.ax_.xaxis)
        self.ax_.set(
            xlabel="Epoch", ylabel=self.name + ": norm over outputs" * (weights.shape[1] > 1)
        )

        for text in self.ax_.legend(
            self.lines_, names, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8
        ).get_texts():
            text.set_parse_math(False)

    def _draw_bars(self, weights, kwargs):
        style = {"color": ["C0" if weight >= 0 else "C3" for weight in weights], **kwargs}
        self.bars_ = self.ax_.barh(range(len(weights)), weights, **style)
        self.ax_.axvline(0, color="gray", linewidth=0.8)
        self.ax_.invert_yaxis()
        self.ax_.set_xlabel(self.name)

    def _draw_table(self, weights, kwargs):
        largest = float(np.abs(weights).max()) or 1.0
        style = {
            "cmap": "RdBu",
            "vmin": -largest,
            "vmax": largest,
            "aspect": "auto",
            "interpolation": "nearest",
        }
        self.image_ = self.ax_.imshow(weights, **{**style, **kwargs})
        self.figure_.colorbar(self.image_, ax=self.ax_, label=self.name)
        self.ax_.set_xlabel("Output" if self.name == "Coefficient" else "Hidden unit")
        if self.outputs is not None and len(self.outputs) <= _FEW:
            self.ax_.set_xticks(range(weights.shape[1]), labels=self.outputs, parse_math=False)


def _of_network(score_graph):
    """Return the coefficients of the first layer of a network, one row per unit."""
    n_features = score_graph.n_features
    names = score_graph.weight_names.coefficients
    weights = score_graph.arrays[names[0]] if names else np.empty(0)
    if weights.ndim != 2 or n_features not in weights.shape:
        raise ValueError(f"estimator: its first layer has no weights of {n_features} features.")

    return weights.T if weights.shape[0] == n_features else weights


def _feature_names(columns, transformers, n_features):
    """Return the names of the features of the first layer; x0, x1, ... if they are not known."""
    try:
        names = columns if transformers is None else transformers.get_feature_names_out(columns)
    except (AttributeError, ValueError):
        names = None

    if names is None or len(names) != n_features:
        return [f"x{i}" for i in range(n_features)]

    return [str(name) for name in names]
