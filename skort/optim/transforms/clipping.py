"""Clipping: a gradient that is too long is shortened."""

import math

import numpy as np

__all__ = ["Clipped", "clipped", "norm"]


def norm(gradient):
    """
    Return the Euclidean norm, a float.

    Parameters
    ----------
    gradient : ndarray of shape (n_weights,)
    """
    # In float64, where no square of a float32 overflows.
    gradient = gradient.astype(np.float64)
    return math.sqrt(gradient @ gradient)


def clipped(gradient, max_norm, out):
    r"""
    Shorten a gradient that is too long.

    .. math:: g \leftarrow g \min\left(1, \frac{max\_norm}{\lVert g \rVert_2}\right)

    over all weights together, as `torch.nn.utils.clip_grad_norm_` does but for the 1e-6 that it adds to the norm.

    Parameters
    ----------
    gradient : ndarray of shape (n_weights,)
    max_norm : float
        Positive.
    out : ndarray of shape (n_weights,)
        Overwritten where the gradient is too long.

    Returns
    -------
    gradient : ndarray of shape (n_weights,)
        `gradient` where it is short enough, otherwise `out`.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.optim.transforms.clipping import clipped
    >>> clipped(np.array([3.0, 4.0]), 1.0, out=np.empty(2))
    array([0.6, 0.8])
    """
    length = norm(gradient)
    return gradient if length <= max_norm else np.multiply(gradient, max_norm / length, out=out)


_CLIPPED = """\
clipped (gradient, max_norm) => (clipped) {
    size = Constant <value = int64[1] {1}> ()
    one = ConstantOfShape <value = double[1] {1}> (size)
    wide = Cast <to = 11> (gradient)
    square = Mul (wide, wide)
    sum = ReduceSum <keepdims = 1> (square)
    length = Sqrt (sum)
    ratio = Div (max_norm, length)
    factor = Min (one, ratio)
    short = CastLike (factor, gradient)
    clipped = Mul (gradient, short)
}"""


class Clipped:
    """
    A rule whose gradient is clipped before.

    Parameters
    ----------
    rule : Rule
    max_norm : float
        See `clipped`.
    """

    def __init__(self, rule, max_norm):
        self._rule, self._max_norm = rule, float(max_norm)
        self.step_length, self.result = rule.step_length, rule.result

    def start(self, n_coefficients, n_others, dtype):
        """Return the state before the first update, with room for the clipped gradient."""
        self._clipped = np.zeros(n_coefficients + n_others, dtype)
        return self._rule.start(n_coefficients, n_others, dtype)

    def update(self, weights, gradient, eta, state, scratch):
        """Make one update in place."""
        self._rule.update(weights, clipped(gradient, self._max_norm, self._clipped), eta, state, scratch)

    def add_nodes(self, fragment, names):
        """Add the nodes of one update."""
        fragment.constant("skort_max_norm", np.array([self._max_norm]))
        fragment.call(_CLIPPED, [names["gradient"], "skort_max_norm"], ["skort_clipped"])
        return self._rule.add_nodes(fragment, {**names, "gradient": "skort_clipped"})
