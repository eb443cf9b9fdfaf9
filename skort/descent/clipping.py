"""Clipping: a gradient that is too long is shortened."""

import math

import numpy as np

__all__ = ["clipped", "norm"]


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
    >>> from skort.descent.clipping import clipped
    >>> clipped(np.array([3.0, 4.0]), 1.0, out=np.empty(2))
    array([0.6, 0.8])
    """
    length = norm(gradient)
    return gradient if length <= max_norm else np.multiply(gradient, max_norm / length, out=out)
