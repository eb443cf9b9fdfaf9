"""What a loss is: ONNX functions of the raw score, with their formula."""

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from skort.common.component import Component, with_defaults
from skort.common.formulas import function_text

if TYPE_CHECKING:
    import onnx

#: An ONNX function, as text for `skort.common.onnx_text.function` or as a proto.
FunctionSource: TypeAlias = "str | onnx.FunctionProto"


class InUnits(NamedTuple):
    """A loss of y and scores s in another unit: loss(y, s) = unit weight loss'(y', s') + offset."""

    # y', s' are as `RegressionLoss.in_units` says, and the sample weights of the training are multiplied by the weight.
    # `offset_by_mean` times the mean of y', which is one of the rows of the training, is added.

    loss: "ScoreLoss"
    unit: float
    offset: float = 0.0
    weight: float = 1.0
    offset_by_mean: float = 0.0


class ScoreLoss:
    """What estimators and solvers need of a loss of the raw score, and what is so of most losses."""

    #: The estimators that can minimise it: "regressor", "classifier" or both.
    estimator_types: tuple[str, ...] = ()
    #: Parameters that the estimators have, too: a loss given by its name takes their values.
    shared_parameters: tuple[str, ...] = ()
    #: Whether value and gradient take the normalised sample weights, of shape (n_samples, 1), as a third input, and
    #: multiply by them.
    takes_weight: bool = False
    #: Names of the weights of its own, such as a scale, which are trained and no part of the model. They begin with
    #: "skort_". Value and gradient take each as an input of the shape of `score`; the gradient has a result for each.
    weight_names: tuple[str, ...] = ()
    #: Whether each column of a score of several classes is a binary problem of its own: that class against the rest.
    one_against_rest: bool = False
    #: Whether a column of the gradient depends on the same column of score and target only.
    is_elementwise: bool = False
    #: Whether the gradient is bounded, so that outliers of y count little.
    is_robust: bool = False
    #: Whether a score of zero has the least value, whatever the target: to end above it is no sign of a bad training.
    is_least_at_zero: bool = False
    #: Whether all targets have to be positive, or not negative.
    needs_positive_target: bool = False
    #: Whether the probabilities of classes are those of a sigmoid or softmax of the scores; else clipped scores.
    is_logistic: bool = False
    #: Whether `in_units` gives the loss of targets and scores in other units.
    has_units: bool = False
    #: What the first learning rate takes for a second derivative that has no bound, such as that of a kink, where
    #: scores are standardized. None: it is estimated.
    typical_curvature: float | None = None
    #: Where the value has a kink, at which its gradient jumps: the name of the loss to take where that is no good.
    smooth_instead: str | None = None
    #: Of a loss for each output of a model: their names, and their numbers of columns where they are known.
    output_names: tuple[str, ...] = ()
    widths: dict[str, int] | None = None
    _curvature: float | None = None

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return `(score, target) => (loss)`, of shape (n_samples, n_outputs) or (n_samples, 1): differentiable."""
        raise NotImplementedError

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `(score, target) => (gradient)`: the derivative of the value by `score`; None to have it derived."""
        return None

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `(score) => (prediction)`, of classifiers the probabilities; None: the score itself, or none."""
        return None

    def weight_scale(self, n_outputs: int) -> float:
        """Return the sum of the sample weights of a batch: 1, or less if the columns of the value are averaged."""
        return 1.0

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for targets that the loss cannot take."""

    def curvature(self, n_outputs: int) -> float | None:
        """Return the largest second derivative of a row's loss by its score; None where it has no bound."""
        return self._curvature

    def in_units(self, scale: float) -> InUnits:
        """Return the loss of targets and scores that are divided by a number, where it `has_units`."""
        raise NotImplementedError

    def for_labels(self) -> "ScoreLoss | None":
        """Return the loss of several labels that a row may have; None where there is none."""
        return None

    def with_widths(self, widths: dict[str, int] | None) -> "ScoreLoss":
        """Return the loss of outputs whose numbers of columns are known: itself, where it is not one for each."""
        return self

    def initial_weights(
        self, target: np.ndarray, sample_weight: "np.ndarray | None" = None, model: Any = None
    ) -> dict[str, np.ndarray]:
        """Return its own weights, (n_outputs,), at the start, or in `model`, which the training goes on from."""
        return {}

    def fitted_attributes(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what a fitted estimator shows of such weights: name -> ndarray of shape (n_outputs,)."""
        return {}


def as_loss(value: Any) -> ScoreLoss | None:
    """Return what a user gives as a loss, with all that a loss declares; None where it is none."""
    return with_defaults(value, ScoreLoss, "value_function")


#: The losses by name: the values of the estimators' parameter `loss`. Each class gives its own.
REGRESSION_LOSSES: dict[str, type["FormulaLoss"]] = {}
CLASSIFICATION_LOSSES: dict[str, type["FormulaLoss"]] = {}


class FormulaLoss(Component, ScoreLoss):
    """An elementwise loss written as formulas for `function_text`, in which the names of parameters are constants."""

    # They say how `loss` and `gradient` follow from score and target and, in `_link`, `prediction` from score.

    is_elementwise = True
    #: The value of the estimators' parameter `loss` that means it: ``class Huber(RegressionLoss, name="huber")``.
    name: ClassVar[str | None] = None
    _formula = ""
    _signatures = "value (score, target) => (loss)", "gradient (score, target) => (gradient)"
    _link: str | None = None
    #: The same of two scores and more, where it is another.
    _formula_of_several: str | None = None
    _link_of_several: str | None = None

    def __init_subclass__(cls, *, name: str | None = None, **options: Any):
        super().__init_subclass__(**options)
        cls.name = name
        if name is not None:
            cls.__module__ = "skort.objective"
            (CLASSIFICATION_LOSSES if "classifier" in cls.estimator_types else REGRESSION_LOSSES)[name] = cls

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._function(0, n_outputs)

    def gradient_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (gradient)`."""
        return self._function(1, n_outputs)

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return the ONNX function `(score) => (prediction)`, or None."""
        link = self._link if n_outputs == 1 else self._link_of_several or self._link
        return None if link is None else function_text("inverse_link (score) => (prediction)", link)

    def _function(self, which: int, n_outputs: int) -> str:
        return function_text(self._signatures[which], self._formula_of(n_outputs), **self._constants())

    def _formula_of(self, n_outputs: int) -> str:
        return self._formula if n_outputs == 1 else self._formula_of_several or self._formula

    def _constants(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.get_params().items()}
