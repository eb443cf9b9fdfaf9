"""What a loss is: ONNX functions of the raw score, with their formula."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    import onnx

__all__ = ["FunctionSource", "InUnits", "ScoreLoss", "TextLoss"]

#: An ONNX function, as text for `skort.onnx_text.function` or as a proto.
FunctionSource: TypeAlias = "str | onnx.FunctionProto"


class InUnits(NamedTuple):
    r"""
    A loss of scores and targets in another unit.

    .. math:: loss(y, s) = unit \cdot loss'(y', s') + offset

    with :math:`y'` and :math:`s'` as `RegressionLoss.in_units` says.

    Parameters
    ----------
    loss : ScoreLoss
        :math:`loss'`.
    unit : float
    offset : float, default=0.0
        The mean over rows whose :math:`y'` has the mean one.
    """

    loss: "ScoreLoss"
    unit: float
    offset: float = 0.0


class ScoreLoss(Protocol):
    """
    What estimators and solvers need of a loss of the raw score.

    `score` and `target` have shape (n_samples, n_outputs). Functions are ONNX: text for `skort.onnx_text.function`, or
    an `onnx.FunctionProto`.
    """

    #: The estimators that can minimise it: "regressor", "classifier" or both.
    estimator_types: tuple[str, ...]
    #: Whether value and gradient take the normalised sample weights, of shape (n_samples, 1), as a third input, and
    #: multiply by them.
    takes_weight: bool

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return `(score, target) => (loss)`, of shape (n_samples, n_outputs) or (n_samples, 1): differentiable."""

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `(score, target) => (gradient)`: the derivative of the value by `score`; None to have it derived."""

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return `(score) => (prediction)`: the predictions of a regressor, the probabilities of a classifier.

        None: a regressor predicts the score itself, a classifier has no probabilities.
        """

    def weight_scale(self, n_outputs: int) -> float:
        """Return the sum of the sample weights of a batch: 1, or less if the columns of the value are averaged."""

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for targets that the loss cannot take."""


class TextLoss(BaseEstimator):
    """
    An elementwise loss of score and target, written as text into which its parameters are formatted.

    Subclasses define `estimator_types`, `weight_scale`, and the texts `_value` and `_gradient`.
    """

    takes_weight = False
    #: Whether a score of zero has the least value, whatever the target: to end above it is no sign of a bad training.
    is_least_at_zero = False
    #: Parameters that the estimators have, too: a loss given by its name takes their values.
    shared_parameters: tuple[str, ...] = ()
    _parameter_constraints: dict[str, Any] = {}

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._value % self._constants()

    def gradient_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (gradient)`."""
        return self._gradient % self._constants()

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return None: a regressor predicts the score, a classifier has no probabilities."""
        return None

    def check_target(self, target: np.ndarray) -> None:
        """Accept every finite target."""

    def curvature(self, n_outputs: int) -> float | None:
        """Return the largest second derivative of a row's loss by its score; None where it has no bound."""
        return None

    def _constants(self) -> dict[str, float]:
        return {name: float(value) for name, value in self.get_params().items()}
