"""Several outputs of an ONNX model: their columns, and what a regressor does with a y by their names."""

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from skort.estimators.nesting import model_inside

__all__ = ["NamedOutputs", "OutputsByName"]


@dataclass(frozen=True)
class NamedOutputs:
    """
    The outputs of an ONNX model that a regressor trains, in the order of its parameter `loss`.

    Parameters
    ----------
    widths : dict of str to int
        The number of columns of each.
    vectors : frozenset of str, default=frozenset()
        Those of whose targets y had one dimension.
    by_name : bool, default=False
        Whether y was a dict, and predictions are one.
    """

    widths: dict[str, int]
    vectors: frozenset[str] = frozenset()
    by_name: bool = False

    @classmethod
    def of(cls, model: Any, names: tuple[str, ...], y: Any) -> "NamedOutputs":
        """
        Return the outputs that a y is the target of.

        Parameters
        ----------
        model : onnx.ModelProto
        names : tuple of str
        y : dict of str to array-like, or array-like of shape (n_samples, n_columns)

        Raises
        ------
        ValueError
            Where there is no ONNX model or no such output, and where y has others, or another number of columns.
        """
        from skort.graphs.onnx_models.onnx_score_graph import output_widths

        declared = output_widths(model, names)
        if isinstance(y, Mapping):
            _check_names(names, y)
            dims = {name: np.ndim(y[name]) for name in names}
            widths = {name: 1 if dims[name] < 2 else np.shape(y[name])[1] for name in names}
            for name, width in declared.items():
                if width not in (None, widths[name]):
                    raise ValueError(
                        f"y[{name!r}] has {widths[name]} columns, but that output of the ONNX model has {width}."
                    )
            return cls(widths, frozenset(name for name in names if dims[name] < 2), by_name=True)
        # Where the model does not say how many columns an output has, it is one.
        widths = {name: width or 1 for name, width in declared.items()}
        n_columns = 1 if np.ndim(y) < 2 else np.shape(y)[1]
        if n_columns != sum(widths.values()):
            listed = ", ".join(f"{name} ({width})" for name, width in widths.items())
            raise ValueError(f"y has {n_columns} columns, but the outputs have {sum(widths.values())}: {listed}.")
        return cls(widths)

    def split(self, columns: np.ndarray) -> dict[str, np.ndarray]:
        """Return columns by the names of their outputs, in the shapes of the y of `fit`."""
        ends = np.cumsum(list(self.widths.values()))[:-1]
        parts = dict(zip(self.widths, np.split(columns, ends, axis=1), strict=True))
        return {name: part.ravel() if name in self.vectors else part for name, part in parts.items()}


class OutputsByName:
    """
    What a regressor does where its loss is a dict by the names of outputs: a mixin, before the other bases.

    A y by names becomes columns, side by side in the order of the loss; predictions become a dict again.
    """

    loss: Any
    estimator: Any
    predict: Callable[..., Any]
    _outputs: NamedOutputs | None = None

    def _fit_to(self, given, *, y_val=None, **others):
        # Within a fit, a validation set is scored by columns.
        return super()._fit_to(given, y_val=_columns(self.loss, y_val), **others)  # type: ignore[misc]

    def _validate(self, X, y, *, has_steps, reset=True):
        self._outputs = None
        self._widths(y)
        return super()._validate(X, _columns(self.loss, y), has_steps=has_steps, reset=reset)  # type: ignore[misc]

    def _widths(self, y):
        """Return the numbers of columns of the outputs that have a loss, found once; or None."""
        if self._outputs is None and isinstance(self.loss, dict):
            self._outputs = NamedOutputs.of(model_inside(self.estimator), tuple(self.loss), y)
        return None if self._outputs is None else self._outputs.widths

    def _with_model(self, fitted):
        """Return a copy that has another model, and predicts columns, as scorers need them."""
        model = super()._with_model(fitted)  # type: ignore[misc]
        if model._outputs is not None:
            model = copy.copy(model)
            model._outputs = dataclasses.replace(model._outputs, by_name=False)
        return model

    def score(self, X, y, sample_weight=None):
        """
        Return the coefficient of determination of the predictions, R², the mean over all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or dict of str to array-like
            In the form of the y of `fit`; a dict by the names of the outputs of an ONNX model.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        from sklearn.metrics import r2_score

        prediction = self.predict(X)
        target, prediction = (_columns(self.loss, each) for each in (y, prediction))
        return r2_score(target, prediction, sample_weight=sample_weight)


def _columns(loss, y):
    """Return a y by names as columns, in the order of the loss; another y as it is."""
    if not isinstance(y, Mapping):
        if isinstance(loss, dict) and hasattr(y, "columns") and {*y.columns} == {*loss}:
            return y[[*loss]]
        return y
    if not isinstance(loss, dict):
        raise ValueError(f"y is a dict of the outputs {', '.join(map(str, y))}: give loss as a dict by the same names.")
    _check_names(tuple(loss), y)
    check_consistent_length(*y.values())
    return np.column_stack([np.asarray(y[name]) for name in loss])


def _check_names(names, y):
    if {*y} != {*names}:
        raise ValueError(f"y has the outputs {', '.join(map(str, y)) or 'none'}, but loss has {', '.join(names)}.")
