"""What a loss is: ONNX functions of the raw score, with their formula."""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from skort.common.component import Component

if TYPE_CHECKING:
    import onnx

__all__ = ["FunctionSource", "InUnits", "ScoreLoss", "TextLoss"]

#: An ONNX function, as text for `skort.common.onnx_text.function` or as a proto.
FunctionSource: TypeAlias = "str | onnx.FunctionProto"


class InUnits(NamedTuple):
    r"""
    A loss of scores and targets in another unit.

    .. math:: loss(y, s) = unit \cdot weight \cdot loss'(y', s') + offset

    with :math:`y'` and :math:`s'` as `RegressionLoss.in_units` says.

    Parameters
    ----------
    loss : ScoreLoss
        :math:`loss'`.
    unit : float
    offset : float, default=0.0
        The mean over rows whose :math:`y'` has the mean one.
    weight : float, default=1.0
        What the sample weights of the training are multiplied by: the unit is divided by it.
    """

    loss: "ScoreLoss"
    unit: float
    offset: float = 0.0
    weight: float = 1.0


class ScoreLoss(Protocol):
    """
    What estimators and solvers need of a loss of the raw score.

    `score` and `target` have shape (n_samples, n_outputs). Functions are ONNX: text for `onnx_text.function`, or
    an `onnx.FunctionProto`.

    A loss may have weights of its own, such as a scale, which are trained with those of the model and are no part of
    it: they have no penalty, and the exported model lacks them. Value and gradient take each of them as one more input,
    of the shape of `score`, and the gradient has one more result for each: the derivative of the value by it.
    """

    #: The estimators that can minimise it: "regressor", "classifier" or both.
    estimator_types: tuple[str, ...]
    #: Whether value and gradient take the normalised sample weights, of shape (n_samples, 1), as a third input, and
    #: multiply by them.
    takes_weight: bool
    #: Names of the weights of its own. They begin with "skort_", as no name in a model does.
    weight_names: tuple[str, ...]
    #: Whether each column of a score of several classes is a binary problem of its own: that class against the rest.
    one_against_rest: bool

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return `(score, target) => (loss)`, of shape (n_samples, n_outputs) or (n_samples, 1): differentiable."""

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `(score, target) => (gradient)`: the derivative of the value by `score`; None to have it derived."""

    def initial_weights(
        self, target: np.ndarray, sample_weight: "np.ndarray | None" = None, model: Any = None
    ) -> dict[str, np.ndarray]:
        """
        Return the initial values of its own weights.

        Parameters
        ----------
        target : ndarray of shape (n_samples, n_outputs)
        sample_weight : ndarray of shape (n_samples,), default=None
            Rows of sample weight zero do not count. None: all do.
        model : estimator, default=None
            A fitted model whose weights the training goes on from.

        Returns
        -------
        weights : dict of str to ndarray of shape (n_outputs,)
            By the names in `weight_names`.
        """

    def fitted_attributes(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what a fitted estimator shows of such weights: name -> ndarray of shape (n_outputs,)."""

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """
        Return `(score) => (prediction)`: the predictions of a regressor, the probabilities of a classifier.

        None: a regressor predicts the score itself, a classifier has no probabilities.
        """

    def weight_scale(self, n_outputs: int) -> float:
        """Return the sum of the sample weights of a batch: 1, or less if the columns of the value are averaged."""

    def check_target(self, target: np.ndarray) -> None:
        """Raise a ValueError for targets that the loss cannot take."""


class TextLoss(Component):
    """
    An elementwise loss of score and target, written as text into which its parameters are formatted.

    Subclasses define `estimator_types`, `weight_scale`, and the texts `_value` and `_gradient`.
    """

    takes_weight = False
    weight_names: tuple[str, ...] = ()
    one_against_rest = False
    #: Whether a score of zero has the least value, whatever the target: to end above it is no sign of a bad training.
    is_least_at_zero = False
    #: Parameters that the estimators have, too: a loss given by its name takes their values.
    shared_parameters: tuple[str, ...] = ()

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._value % self._constants()

    def gradient_function(self, n_outputs: int) -> FunctionSource:
        """Return the ONNX function `(score, target) => (gradient)`."""
        return self._gradient % self._constants()

    def initial_weights(self, target, sample_weight=None, model=None) -> dict[str, np.ndarray]:
        """Return nothing: the loss has no weights of its own."""
        return {}

    def fitted_attributes(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return nothing: the loss has no weights of its own."""
        return {}

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
