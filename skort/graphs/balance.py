"""Weights of a network whose layers have one size: its function stays."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from skort.graphs.layers import last_layers

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph


def balanced(score_graph: "ScoreGraph", of_training: Mapping[str, np.ndarray]) -> "ScoreGraph":
    """
    Return a network with the same function whose layers have one size by the weights of a training.

    A relu network is the same if a layer is multiplied by a number and the next one divided by it.
    """
    layers = last_layers(score_graph)[::-1]
    sizes = [_size(of_training[layer.coefficient]) for layer in layers]
    if len(layers) < 2 or not (np.isfinite(sizes).all() and np.all(sizes)):
        return score_graph

    # Powers of two change no digit.
    logarithms = np.log2(sizes)
    exponents = np.rint(np.mean(logarithms) - logarithms).astype(int)
    exponents[-1] -= exponents.sum()
    of_results = np.cumsum(exponents)

    weights = score_graph.trained_arrays
    for layer, of_matrix, of_result in zip(layers, exponents, of_results, strict=True):
        weights[layer.coefficient] = np.ldexp(weights[layer.coefficient], of_matrix)
        if layer.intercept is not None:
            weights[layer.intercept] = np.ldexp(weights[layer.intercept], of_result)

    return score_graph.with_weights(weights)


def _size(matrix):
    """Return the root mean square of a matrix over that of new weights (Glorot and Bengio, 2010)."""
    return np.sqrt(np.mean(np.square(matrix, dtype=np.float64)) * sum(matrix.shape) / 2)
