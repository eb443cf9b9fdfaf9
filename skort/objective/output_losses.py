"""Losses of several outputs of a model, each its own."""

from typing import TYPE_CHECKING

import numpy as np

from skort.common.component import Component
from skort.objective.base import FunctionSource, ScoreLoss
from skort.objective.composed import check_part, composed

if TYPE_CHECKING:
    from skort.common.onnx_text import Fragment

__all__ = ["OutputLosses"]


class OutputLosses(Component, ScoreLoss):
    r"""
    The sum of the losses of several outputs, whose columns are side by side in the score.

    .. math:: loss(y, s) = \sum_o loss_o(y_o, s_o)

    where the loss of an output of several columns is the mean over them, as everywhere.

    Parameters
    ----------
    losses : dict of str to loss instance
        By the names of the outputs, in the order of their columns.
    widths : dict of str to int, default=None
        The number of columns of each output. None: they are not known yet.

    Examples
    --------
    >>> from skort.objective import AbsoluteError, SquaredError
    >>> from skort.objective.output_losses import OutputLosses
    >>> losses = OutputLosses({"price": SquaredError(), "parts": AbsoluteError()}, {"price": 1, "parts": 2})
    >>> list(losses.value_function(3).input), losses.weight_scale(3)
    (['score', 'target'], 1.0)
    """

    estimator_types = ("regressor",)
    _parameter_constraints = {"losses": [dict], "widths": [dict, None]}

    def __init__(self, losses: dict[str, ScoreLoss], widths: dict[str, int] | None = None):
        self.losses = losses
        self.widths = widths

    @property
    def output_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the outputs."""
        return tuple(self.losses)

    def with_widths(self, widths: dict[str, int] | None) -> "OutputLosses":
        """Return the losses of outputs whose numbers of columns are known."""
        return self if self.widths == widths else OutputLosses(self.losses, widths)

    def _validate_params(self):
        super()._validate_params()
        for name, loss in self.losses.items():
            check_part(f"loss[{name!r}]", loss)
            if "regressor" not in loss.estimator_types:
                raise ValueError(f"loss[{name!r}]: {type(loss).__name__} is not a loss of a regressor.")

    def _parts(self):
        """Return name, loss and number of columns of each output."""
        widths = self.widths or {}
        return [(name, loss, widths[name]) for name, loss in self.losses.items()]

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`, of shape (n_samples, 1)."""
        return self._of_parts([loss.value_function(width) for _, loss, width in self._parts()], _add_row_losses, "loss")

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score, target) => (gradient)`, or None where a loss has none."""
        sources = [loss.gradient_function(width) for _, loss, width in self._parts()]
        return None if None in sources else self._of_parts(sources, _add_side_by_side, "gradient")

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `(score) => (prediction)`, in which each output has that of its loss; None where none has one."""
        sources = [loss.inverse_link_function(width) for _, loss, width in self._parts()]
        if not any(sources):
            return None
        fragment, columns = self._fragment(["score"])
        results = []
        for i, source in enumerate(sources):
            results.append(f"prediction{i}" if source else columns["score"][i])
            if source:
                fragment.call(source, [columns["score"][i]], [results[-1]])
        _add_side_by_side(fragment, results, "prediction")
        return composed("predictions", ["score"], "prediction", fragment)

    def _of_parts(self, sources, add_all, result):
        """Return the function of score and target that makes one result of all losses, each times its scale."""
        fragment, columns = self._fragment(["score", "target"])
        scaled = []
        for i, (source, (_, loss, width)) in enumerate(zip(sources, self._parts(), strict=True)):
            part = f"part{i}"
            fragment.call(source, [columns["score"][i], columns["target"][i]], [part])
            fragment.constant(f"scale{i}", np.asarray(loss.weight_scale(width), np.float64))
            fragment.node("Mul", [part, f"scale{i}"], [f"scaled{i}"])
            scaled.append(f"scaled{i}")
        add_all(fragment, scaled, result)
        return composed("of_outputs", ["score", "target"], result, fragment)

    def _fragment(self, names):
        """Return a fragment that takes the columns of each output out of some inputs, and the names of the columns."""
        from onnx import helper

        from skort.common.onnx_text import Fragment

        fragment = Fragment(np.float64)
        fragment.constant("widths", np.array([width for *_, width in self._parts()]))
        columns = {name: [f"{name}{i}" for i in range(len(self.losses))] for name in names}
        for name, parts in columns.items():
            fragment.nodes.append(helper.make_node("Split", [name, "widths"], parts, axis=1))
        return fragment, columns

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1: the losses are summed."""
        return 1.0

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError, which names the output, for targets that one of the losses cannot take."""
        parts = self._parts()
        ends = np.cumsum([width for *_, width in parts])[:-1]
        for (name, loss, _), columns in zip(parts, np.split(target, ends, axis=1), strict=True):
            try:
                loss.check_target(columns)
            except ValueError as error:
                raise ValueError(f"output {name!r}: {error}") from error


def _add_side_by_side(fragment: "Fragment", parts: list[str], result: str) -> None:
    """Add the node that puts columns side by side."""
    from onnx import helper

    fragment.nodes.append(helper.make_node("Concat", parts, [result], axis=1))


def _add_row_losses(fragment: "Fragment", parts: list[str], result: str) -> None:
    """Add the nodes that sum the losses of all columns of a row."""
    from onnx import helper

    _add_side_by_side(fragment, parts, "losses")
    fragment.constant("columns", np.array([1]))
    fragment.nodes.append(helper.make_node("ReduceSum", ["losses", "columns"], [result], keepdims=1))
