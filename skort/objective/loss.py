"""The interface of losses: ONNX functions of the raw score, and losses written as formulas."""

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from skort.common.component import Component, parameter_names, with_defaults
from skort.common.formulas import function_text

if TYPE_CHECKING:
    import onnx

#: An ONNX function, as text for `skort.common.onnx_text.function` or as a proto.
FunctionSource: TypeAlias = "str | onnx.FunctionProto"


def source_key(source: "FunctionSource | None") -> str | bytes | None:
    """Return a function, or None, as a hashable value."""
    return source if source is None or isinstance(source, str) else source.SerializeToString()


class InUnits(NamedTuple):
    """A loss of y and score s in another unit: loss(y, s) = unit weight loss'(y', s') + offset."""

    # `RegressionLoss.in_units` describes y' and s'. The training multiplies the sample weights by
    # `weight`. The offset also includes `offset_by_mean` times the mean of y', the mean over the
    # rows of the training.

    loss: "ScoreLoss"
    unit: float
    offset: float = 0.0
    weight: float = 1.0
    offset_by_mean: float = 0.0


class ScoreLoss:
    """The interface of losses of the raw score, with defaults that hold for most losses."""

    #: The estimators that can minimise the loss: "regressor", "classifier" or both.
    estimator_types: ClassVar[tuple[str, ...]] = ()
    #: How to make it a loss of the other estimators, too, as a sentence; "": no way.
    for_others: str = ""
    #: Parameters that the estimators have, too. A loss given by its name takes their values.
    shared_parameters: ClassVar[tuple[str, ...]] = ()
    #: Whether value and gradient have a third input, the normalised sample weights of shape
    #: (n_samples, 1), and multiply by them.
    takes_weight: bool = False
    #: Names of the loss's own weights, such as a scale. They are trained, but are not part of the
    #: model. The names begin with "skort_". Value and gradient take each weight as an input of the
    #: shape of `score`, and the gradient has a result for each weight.
    weight_names: ClassVar[tuple[str, ...]] = ()
    #: Whether each of several classes is a binary problem of its own: the class against the rest.
    one_against_rest: bool = False
    #: Whether a column of the gradient depends only on the same column of score and target.
    is_elementwise: bool = False
    #: Whether the gradient is bounded, so that outliers of y count little.
    is_robust: bool = False
    #: Whether the score zero has the least value for every target. Then a training that ends above
    #: its initial value may still be a good one.
    is_least_at_zero: bool = False
    #: The losses in it whose value the user wrote: itself, or parts of a sum.
    custom_parts: "tuple[ScoreLoss, ...]" = ()
    #: Whether all targets have to be positive, or not negative.
    needs_positive_target: bool = False
    #: Whether it is the log-loss of a sigmoid or softmax of the scores, which are then the
    #: probabilities. False: they are clipped scores.
    is_logistic: bool = False
    #: Whether `in_units` returns the loss of targets and scores in other units.
    has_units: bool = False
    #: A value for the first learning rate if the second derivative has no bound, for instance at a
    #: kink. It holds for standardised scores. None: the second derivative is estimated.
    typical_curvature: ClassVar[float | None] = None
    #: For a loss with a kink, where the gradient jumps: the name of a smooth loss to use instead.
    smooth_instead: ClassVar[str | None] = None
    #: For a loss of several outputs: the names of the outputs, and their numbers of columns if
    #: known.
    output_names: tuple[str, ...] = ()
    widths: dict[str, int] | None = None
    _curvature: float | None = None

    def value_function(self, n_outputs: int) -> FunctionSource:
        """
        Return the differentiable ONNX function `(score, target) => (loss)`.

        Its result has the shape (n_samples, n_outputs) or (n_samples, 1).
        """
        raise NotImplementedError

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return the ONNX function `(score, target) => (gradient)`, the derivative by `score`.

        With None, the derivative is derived from the value.
        """
        return None

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return the ONNX function from the score to the prediction of a regressor, or None.

        For a classifier, the function returns the probabilities. With None, a regressor predicts
        the score, and a classifier has no probabilities.
        """
        return None

    def weight_scale(self, n_outputs: int) -> float:
        """Return the sum of a batch's sample weights: 1, or less for a mean over columns."""
        return 1.0

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for targets that the loss cannot take."""

    def curvature(self, n_outputs: int) -> float | None:
        """Return a bound of the second derivative of a row's loss by its score, or None."""
        return self._curvature

    def usual_curvature(self, n_outputs: int) -> float | None:
        """Return the second derivative for which the rate of a stream is made, or None."""
        return self.curvature(n_outputs)

    def curvature_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return the ONNX function `(score, target) => (curvature)`, the second derivatives by each
        column of the score, or None.
        """
        return None

    def softmax_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return the ONNX function `(score, target) => (probability)`, or None.

        The probabilities p of a softmax couple scores: the second derivatives by them are
        diag(p) - p p^T.
        """
        return None

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of targets and scores divided by a number, if the loss `has_units`."""
        raise NotImplementedError

    def for_labels(self) -> "ScoreLoss | None":
        """Return the loss for a multi-label y, or None."""
        return None

    def with_widths(self, widths: dict[str, int] | None) -> "ScoreLoss":
        """Return the loss with known numbers of columns of the outputs of a model."""
        return self

    def initial_weights(self, target: np.ndarray, model: Any = None) -> dict[str, np.ndarray]:
        """
        Return the initial values of the loss's own weights, each of shape (n_outputs,).

        `target` has the rows of positive sample weight. If the training continues a fitted
        `model`, the values come from it.
        """
        return {}

    def fitted_attributes(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the fitted attributes for the loss's own weights: name -> (n_outputs,)."""
        return {}


def as_loss(value: Any) -> ScoreLoss | None:
    """Return the user's loss with the defaults of `ScoreLoss`, or None if it is not a loss."""
    return with_defaults(value, ScoreLoss, "value_function")


#: The losses by name, the values of the estimators' parameter `loss`. Each class adds itself.
REGRESSION_LOSSES: dict[str, type["FormulaLoss"]] = {}
CLASSIFICATION_LOSSES: dict[str, type["FormulaLoss"]] = {}


def known_curvature(loss: ScoreLoss, n_outputs: int) -> float | None:
    """Return the curvature by a score that a loss declares, typical or largest; None: it does not."""
    return loss.curvature(n_outputs) or loss.typical_curvature


def is_of_y(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a regressor's loss is known only in the units of y, in which its score is, too."""
    return (
        not (loss.has_units or loss.weight_names) and loss.inverse_link_function(n_outputs) is None
    )


def takes_standardized_y(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a regressor's loss can be minimised with a standardized y."""
    return loss.has_units or is_of_y(loss, n_outputs)


class FormulaLoss(Component, ScoreLoss):
    """
    An elementwise loss written as formulas for `function_text`.

    In the formulas, the names of the loss's parameters are constants.
    """

    # `_formula` computes `loss` and `gradient` from score and target, and `curvature` if L-BFGS is
    # to know it. `_link` computes `prediction` from score.

    is_elementwise = True
    #: The name of the loss in the estimators' parameter `loss`. A class gives it as in
    #: ``class Huber(RegressionLoss, name="huber")``.
    name: ClassVar[str | None] = None
    _formula = ""
    _signatures: tuple[str, ...] = (
        "value (score, target) => (loss)",
        "gradient (score, target) => (gradient)",
        "second (score, target) => (curvature)",
        "softmax (score, target) => (probability)",
    )
    _link: str | None = None
    #: The formulas for two scores and more, if they differ.
    _formula_of_several: str | None = None
    _link_of_several: str | None = None

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = name

        if name is not None:
            cls.__module__ = "skort.objective"
            (CLASSIFICATION_LOSSES if "classifier" in cls.estimator_types else REGRESSION_LOSSES)[
                name
            ] = cls

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._function(0, n_outputs)

    def gradient_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (gradient)`."""
        return self._function(1, n_outputs)

    def curvature_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score, target) => (curvature)`, or None."""
        has_curvature = "curvature =" in self._formula_of(n_outputs)
        return self._function(2, n_outputs) if has_curvature else None

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score) => (prediction)`, or None."""
        link = self._link if n_outputs == 1 else self._link_of_several or self._link
        return None if link is None else function_text("inverse_link (score) => (prediction)", link)

    def _function(self, which: int, n_outputs: int) -> str:
        return function_text(
            self._signatures[which], self._formula_of(n_outputs), **self._constants()
        )

    def _formula_of(self, n_outputs: int) -> str:
        return self._formula if n_outputs == 1 else self._formula_of_several or self._formula

    def _constants(self) -> dict[str, float]:
        names = parameter_names(type(self))  # type: ignore[arg-type]  # classes are hashable
        return {name: float(getattr(self, name)) for name in names}
