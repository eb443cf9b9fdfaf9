"""The objective as ONNX nodes that a solver adds to the graph of a raw score."""

from dataclasses import dataclass

import numpy as np
from onnx.helper import make_tensor_value_info

from skort.objective.losses import Loss
from skort.objective.penalties import Penalty
from skort.onnx_text import onnx_dtype

__all__ = ["LOSS", "OBJECTIVE", "SAMPLE_WEIGHT", "SCORE_GRADIENT", "TARGET", "Objective"]

# The names of the inputs and results that the nodes add to a graph.
TARGET = "skort_target"
SAMPLE_WEIGHT = "skort_sample_weight"
LOSS = "skort_loss"
OBJECTIVE = "skort_objective"
SCORE_GRADIENT = "skort_score_gradient"

_WEIGHTED_SUM = """
weighted_sum (loss, sample_weight) => (sum) {
    weighted = Mul (loss, sample_weight)
    sum = ReduceSum <keepdims = 0> (weighted)
}"""


@dataclass(frozen=True)
class Objective:
    r"""
    Weighted mean of the loss over one batch, plus the penalty.

    .. math:: J(w) = \sum_i v_i \, loss(y_i, score_i) + penalty(w), \qquad v_i = \frac{s_i}{\sum_j s_j}

    The batch brings :math:`v_i` times `sample_weight_scale`, so that the graph holds no division.

    Parameters
    ----------
    loss : Loss
    penalty : Penalty or None
    coefficients : tuple of str
        Names of the weights that multiply inputs.
    n_outputs : int
        Number of columns of the raw score.
    dtype : dtype
        float32 or float64.
    """

    loss: Loss
    penalty: Penalty | None
    coefficients: tuple[str, ...]
    n_outputs: int
    dtype: np.dtype

    @property
    def penalised(self):
        """Names of the weights that have a penalty."""
        return self.coefficients if self.penalty is not None else ()

    @property
    def sample_weight_scale(self):
        """1 / `n_outputs` where the loss is a mean over the outputs, otherwise 1."""
        return 1.0 / self.n_outputs if self.loss.elementwise else 1.0

    def inputs(self, batch_size):
        """Return the graph inputs `TARGET` and `SAMPLE_WEIGHT` of a batch."""
        element_type = onnx_dtype(self.dtype)
        return [
            make_tensor_value_info(TARGET, element_type, [batch_size, self.n_outputs]),
            make_tensor_value_info(SAMPLE_WEIGHT, element_type, [batch_size, 1]),
        ]

    def output(self, name):
        """Return the graph output `OBJECTIVE` or `LOSS`."""
        return make_tensor_value_info(name, onnx_dtype(self.dtype), [])

    def add_value(self, fragment, score):
        """Add the nodes that compute the scalars `LOSS` and `OBJECTIVE` from the result named `score`."""
        # The loss, then with one penalty more at a time; the last sum is the objective.
        sums = [LOSS] + [f"skort_sum{i}" for i in range(1, len(self.penalised))] + [OBJECTIVE]
        fragment.call(self.loss.value(self.n_outputs), [score, TARGET], ["skort_losses"])
        fragment.call(_WEIGHTED_SUM, ["skort_losses", SAMPLE_WEIGHT], [LOSS])
        for i, weight in enumerate(self.penalised):
            penalty = f"skort_{weight}_penalty"
            fragment.call(self.penalty.value(), [weight], [penalty])
            fragment.node("Add", [sums[i], penalty], [sums[i + 1]])
        if not self.penalised:
            fragment.node("Identity", [LOSS], [OBJECTIVE])

    def add_score_gradient(self, fragment, score):
        """Add the nodes that compute `SCORE_GRADIENT`, the derivative of the objective by the score."""
        fragment.call(self.loss.gradient(self.n_outputs), [score, TARGET], ["skort_gradient"])
        fragment.node("Mul", ["skort_gradient", SAMPLE_WEIGHT], [SCORE_GRADIENT])

    def add_weight_gradient(self, fragment, weight, data_gradient, gradient):
        """Add the nodes that compute `gradient`: `data_gradient` plus the penalty's derivative by `weight`."""
        penalty_gradient = f"skort_{weight}_penalty_gradient"
        fragment.call(self.penalty.gradient(), [weight], [penalty_gradient])
        fragment.node("Add", [data_gradient, penalty_gradient], [gradient])
