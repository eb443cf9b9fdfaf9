"""A loss of several classes, each against the rest, in which the rows of a class count more in its own column only."""

from typing import TYPE_CHECKING

import numpy as np

from skort.objective.base import ScoreLoss

if TYPE_CHECKING:
    import onnx

__all__ = ["ClassWeighted"]


class ClassWeighted(ScoreLoss):
    r"""
    A loss with class weights, as `SGDClassifier` and `LinearSVC` have them for three classes and more.

    .. math:: loss(y, s) = \sum_k (y_k c_k + 1 - y_k) \, loss_k(y_k, s_k)

    with one score :math:`s_k` a class and a one-hot target: in the binary problem of class k, its own rows have its
    weight :math:`c_k`, and all other rows the weight 1.

    Parameters
    ----------
    loss : ScoreLoss
        One with `one_against_rest`.
    class_weight : ndarray of shape (n_classes,)
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.objective import Hinge
    >>> from skort.objective.class_weighted import ClassWeighted
    >>> weighted = ClassWeighted(Hinge(), np.array([1.0, 2.0, 0.5]))
    >>> [node.op_type for node in weighted.gradient_function(3).node[-5:]]
    ['Constant', 'Mul', 'Sub', 'Add', 'Mul']
    """

    one_against_rest = True

    def __init__(self, loss: ScoreLoss, class_weight: np.ndarray):
        self.loss, self.class_weight = loss, class_weight
        self.estimator_types, self.typical_curvature = loss.estimator_types, loss.typical_curvature

    def value_function(self, n_outputs: int) -> "onnx.FunctionProto":
        """Return the ONNX function `(score, target) => (loss)`."""
        return self._weighted(self.loss.value_function(n_outputs))

    def gradient_function(self, n_outputs: int) -> "onnx.FunctionProto | None":
        """Return the ONNX function `(score, target) => (gradient)`, or None where the loss has none."""
        gradient = self.loss.gradient_function(n_outputs)
        return None if gradient is None else self._weighted(gradient)

    def inverse_link_function(self, n_outputs: int):
        """Return the inverse link of the wrapped loss."""
        return self.loss.inverse_link_function(n_outputs)

    def weight_scale(self, n_outputs: int) -> float:
        """Return the weight scale of the wrapped loss."""
        return self.loss.weight_scale(n_outputs)

    def check_target(self, target: np.ndarray) -> None:
        """Raise an error for targets that the loss cannot take."""
        self.loss.check_target(target)

    def curvature(self, n_outputs: int) -> float | None:
        """Return the largest second derivative of a row's loss by its score; None where it has no bound."""
        curvature = self.loss.curvature(n_outputs)
        return None if curvature is None else curvature * max(1.0, float(np.max(self.class_weight)))

    def _weighted(self, source):
        """Return a function of score and target whose result is multiplied by the weights."""
        from onnx import helper, numpy_helper

        from skort.common.onnx_text import function

        # Constants get the dtype of the training later.
        proto = function(source, np.float64)
        target, (result,) = proto.input[1], proto.output
        # Nobody writes a name with a slash, so these are free.
        names = ("class_weight", "one", "of_positives", "of_rest", "weight", "unweighted")
        by_class, one, positives, rest, weight, unweighted = (f"class_weight/{name}" for name in names)
        for node in proto.node:
            node.input[:] = [unweighted if name == result else name for name in node.input]
            node.output[:] = [unweighted if name == result else name for name in node.output]
        for name, array in ((by_class, self.class_weight.astype(np.float64)), (one, np.ones(()))):
            proto.node.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        proto.node.append(helper.make_node("Mul", [target, by_class], [positives]))
        proto.node.append(helper.make_node("Sub", [one, target], [rest]))
        proto.node.append(helper.make_node("Add", [positives, rest], [weight]))
        proto.node.append(helper.make_node("Mul", [unweighted, weight], [result]))
        return proto
