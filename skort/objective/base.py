"""What a loss is, and how one is written: ONNX functions and their formula."""

from typing import TYPE_CHECKING, Protocol

from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    import onnx

__all__ = ["ScoreLoss", "TextLoss"]


class ScoreLoss(Protocol):
    """
    What estimators and solvers need of a loss of the raw score.

    `score` and `target` have shape (n_samples, n_outputs). Functions are ONNX, text as for `skort.onnx_text.function`
    or an `onnx.FunctionProto`.
    """

    #: Of "regressor" and "classifier", those that can minimise it.
    estimator_types: tuple[str, ...]
    #: Whether value and gradient have a third input, the normalised sample weight of shape (n_samples, 1), and are
    #: already multiplied by it.
    takes_weight: bool

    def value_function(self, n_outputs: int) -> "str | onnx.FunctionProto":
        """Return `(score, target) => (loss)`, of shape (n_samples, n_outputs) or (n_samples, 1): differentiable."""

    def gradient_function(self, n_outputs: int) -> "str | onnx.FunctionProto | None":
        """Return `(score, target) => (gradient)`: the derivative of the value by `score`; None to have it derived."""

    def inverse_link_function(self, n_outputs: int) -> "str | onnx.FunctionProto | None":
        """
        Return `(score) => (prediction)`: the predictions of a regressor, the probabilities of a classifier.

        None: a regressor predicts the score itself, a classifier has no probabilities.
        """

    def weight_scale(self, n_outputs: int) -> float:
        """Return what the sample weights of a batch sum to: 1, or less where the columns of the value are averaged."""

    def check_target(self, target) -> None:
        """Raise a ValueError for an array of targets that the loss cannot take."""


class TextLoss(BaseEstimator):
    """
    A loss of one score and one target, elementwise, written as text that is formatted with its parameters.

    Subclasses bring `estimator_types` and `weight_scale`, their losses `_value` and `_gradient`.
    """

    takes_weight = False
    #: Parameters that the estimators have, too: a loss that is given by its name gets theirs.
    shared_parameters: tuple[str, ...] = ()
    _parameter_constraints: dict = {}

    def value_function(self, n_outputs):
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._value % self._constants()

    def gradient_function(self, n_outputs):
        """Return the ONNX function `(score, target) => (gradient)`."""
        return self._gradient % self._constants()

    def inverse_link_function(self, n_outputs):
        """Return None: the score is the prediction, or no probability."""
        return None

    def check_target(self, target):
        """Take every finite target."""

    def _constants(self):
        return {name: float(value) for name, value in self.get_params().items()}
