"""Losses made of other losses: a sum over several outputs, and a loss with class weights."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from skort.common.component import Component, check_parameters
from skort.common.formulas import function_text
from skort.objective.loss import FunctionSource, ScoreLoss

if TYPE_CHECKING:
    import onnx


@dataclass(eq=False, repr=False)
class OutputLosses(Component, ScoreLoss):
    """
    The sum of the losses of several named outputs.

    The score has the columns of all outputs side by side.
    """

    # The loss of an output is the mean over its columns. `widths` is None until the numbers of
    # columns are known.

    estimator_types: ClassVar[tuple[str, ...]] = ("regressor",)
    _parameter_constraints = {"losses": [dict], "widths": [dict, None]}
    losses: dict[str, ScoreLoss]
    widths: dict[str, int] | None = None

    @property
    def output_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the outputs."""
        return tuple(self.losses)

    @property
    def smooth_instead(self) -> str | None:  # type: ignore[override]
        """The name of a smooth loss to use instead of the first loss with a kink, or None."""
        return next(
            (loss.smooth_instead for loss in self.losses.values() if loss.smooth_instead), None
        )

    def with_widths(self, widths: dict[str, int] | None) -> "OutputLosses":
        """Return the same losses with known numbers of columns."""
        return self if self.widths == widths else OutputLosses(self.losses, widths)

    def _validate_params(self):
        super()._validate_params()
        for name, loss in self.losses.items():
            check_part(f"loss[{name!r}]", loss)
            if "regressor" not in loss.estimator_types:
                raise ValueError(
                    f"loss[{name!r}]: {type(loss).__name__} is not a loss of a regressor."
                )

    def _parts(self):
        """Return the name, the loss and the number of columns of each output."""
        return [(name, loss, (self.widths or {})[name]) for name, loss in self.losses.items()]

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`, of shape (n_samples, 1)."""
        return self._of_parts(
            [loss.value_function(width) for _, loss, width in self._parts()], "loss"
        )

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score, target) => (gradient)`, or None if a loss has none."""
        sources = [loss.gradient_function(width) for _, loss, width in self._parts()]
        return None if None in sources else self._of_parts(sources, "gradient")

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return `(score) => (prediction)`, with the inverse link of each output's loss.

        Return None if no loss has an inverse link.
        """
        sources = [loss.inverse_link_function(width) for _, loss, width in self._parts()]
        if not any(sources):
            return None

        fragment, columns = self._fragment(["score"])
        results = []
        for i, source in enumerate(sources):
            results.append(f"prediction{i}" if source else columns["score"][i])
            if source:
                fragment.call(source, [columns["score"][i]], [results[-1]])

        fragment.node("Concat", results, ["prediction"], axis=1)
        return fragment.as_function("predictions", ["score"], ["prediction"])

    def _of_parts(self, sources, result):
        """Return the function `(score, target) => (result)` from the functions of all losses."""
        fragment, columns = self._fragment(["score", "target"])
        scaled = []
        for i, (source, (_, loss, width)) in enumerate(zip(sources, self._parts(), strict=True)):
            part = f"part{i}"
            fragment.call(source, [columns["score"][i], columns["target"][i]], [part])
            fragment.constant(f"scale{i}", np.asarray(loss.weight_scale(width), np.float64))
            fragment.node("Mul", [part, f"scale{i}"], [f"scaled{i}"])
            scaled.append(f"scaled{i}")

        fragment.node("Concat", scaled, ["gradient" if result == "gradient" else "losses"], axis=1)
        if result == "loss":
            fragment.call(_ROW_SUMS, ["losses"], [result])
        return fragment.as_function("of_outputs", ["score", "target"], [result])

    def _fragment(self, names):
        """
        Return a fragment that splits some inputs into the columns of each output.

        Return also the names of these parts, by input.
        """
        from skort.common.onnx_text import Fragment

        fragment = Fragment(np.float64)
        fragment.constant("widths", np.array([width for *_, width in self._parts()]))
        columns = {name: [f"{name}{i}" for i in range(len(self.losses))] for name in names}
        for name, parts in columns.items():
            fragment.node("Split", [name, "widths"], parts, axis=1)

        return fragment, columns

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError that names the output if its loss cannot take its targets."""
        parts = self._parts()
        ends = np.cumsum([width for *_, width in parts])[:-1]

        for (name, loss, _), columns in zip(parts, np.split(target, ends, axis=1), strict=True):
            try:
                loss.check_target(columns)
            except ValueError as error:
                raise ValueError(f"output {name!r}: {error}") from error


_ROW_SUMS = function_text(
    "row_sums (losses) => (sums)", "sums = ReduceSum(losses, [1], keepdims=1)"
)

_TIMES_CLASS_WEIGHT = function_text(
    "times_class_weight (unweighted, target, class_weight) => (weighted)",
    "weighted = unweighted * (target * class_weight + (1 - target))",
)


class ClassWeighted(ScoreLoss):
    """
    A loss with class weights, one against the rest, as in `SGDClassifier`.

    In the binary problem of a class, the rows of this class have its weight, and all other rows
    have the weight one.
    """

    one_against_rest = True

    def __init__(self, loss: ScoreLoss, class_weight: np.ndarray):
        self.loss: ScoreLoss = loss
        self.class_weight: np.ndarray = class_weight
        # These attributes are those of the loss.
        of_loss = (
            "estimator_types typical_curvature smooth_instead is_logistic is_elementwise "
            "inverse_link_function weight_scale "
        )
        of_loss += "check_target"
        for name in of_loss.split():
            setattr(self, name, getattr(loss, name))

    def value_function(self, n_outputs: int) -> "onnx.FunctionProto":
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._weighted(self.loss.value_function(n_outputs))

    def gradient_function(self, n_outputs: int) -> "onnx.FunctionProto | None":
        """Return the ONNX function `(score, target) => (gradient)`, or None."""
        gradient = self.loss.gradient_function(n_outputs)
        return None if gradient is None else self._weighted(gradient)

    def curvature_function(self, n_outputs: int) -> "onnx.FunctionProto | None":
        """Return the ONNX function `(score, target) => (curvature)`, or None."""
        curvature = self.loss.curvature_function(n_outputs)
        return None if curvature is None else self._weighted(curvature)

    def curvature(self, n_outputs: int) -> float | None:
        """Return a bound of the second derivative of a row's loss by its score, or None."""
        return self._with_largest(self.loss.curvature(n_outputs))

    def usual_curvature(self, n_outputs: int) -> float | None:
        """Return the second derivative for which the rate of a stream is made, or None."""
        return self._with_largest(self.loss.usual_curvature(n_outputs))

    def _with_largest(self, curvature):
        """Return a curvature times the largest class weight, if this is above one."""
        return None if curvature is None else curvature * max(1.0, float(np.max(self.class_weight)))

    def _weighted(self, source):
        """Return a function of score and target with its result multiplied by the class weights."""
        from skort.common.onnx_text import Fragment

        # Constants get the dtype of the training later.
        fragment = Fragment(np.float64)
        fragment.call(source, ["score", "target"], ["unweighted"])
        fragment.constant("class_weight", self.class_weight.astype(np.float64))
        fragment.call(_TIMES_CLASS_WEIGHT, ["unweighted", "target", "class_weight"], ["weighted"])

        return fragment.as_function("class_weighted", ["score", "target"], ["weighted"])


def check_part(what: str, loss: Any) -> None:
    """Raise a ValueError if a loss cannot be a part of another loss, which is called `what`."""
    if not isinstance(loss, ScoreLoss):
        raise ValueError(f"{what} takes instances of losses, such as Huber(), got {loss!r}.")

    check_parameters(loss)
    if loss.takes_weight or loss.weight_names:
        kind = "weights of its own" if loss.weight_names else "sample weights as an input"
        raise ValueError(f"{what} cannot hold a loss with {kind}, got {type(loss).__name__}.")
