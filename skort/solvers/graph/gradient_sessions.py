"""Forward and backward of a score graph on arrays. Models of one structure share the sessions."""

from dataclasses import dataclass

import numpy as np

from skort.graphs.gradient.forward_backward import forward_backward, packed_gradients
from skort.graphs.score_graph import ScoreGraph
from skort.objective.objective import SCORE_GRADIENT
from skort.runtime.cache import COMPILED
from skort.runtime.device import CPU, Device
from skort.runtime.sessions import ArraySession
from skort.solvers.base import views


@dataclass(frozen=True, eq=False)
class GradientPair:
    """The sessions of forward and backward for one number of rows."""

    forward: ArraySession
    backward: ArraySession
    #: The names of the outputs of `forward`. The first one is the score.
    results: list[str]
    #: The outputs of `forward` that `backward` reads: all of them, or all but the score.
    kept: list[str]
    #: The other inputs of `backward`, without the derivative by the score: weights, and maybe X.
    inputs: tuple[str, ...]
    #: The outputs of `backward`: the gradient by the vector of weights and, on request, by X.
    gradients: list[str]


class GradientSessions:
    """
    The score of a score graph and its gradient, for any number of rows.

    The object keeps no arrays, so threads may share it.
    """

    def __init__(self, score_graph: ScoreGraph, device: Device = CPU):
        self._graph, self._device, self._key = score_graph, device, score_graph.key
        self._input, self._score = score_graph.input_name, score_graph.score_name
        self._trained = score_graph.trained_arrays

    def arrays(self, weights: np.ndarray, frozen: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return all weights by name: views of the vector of trained ones, and frozen ones."""
        return {**views(weights, self._trained), **frozen}

    def score(self, X: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
        """Return the raw score, of shape (n_samples, n_outputs), for C-contiguous arrays."""
        session = COMPILED.get(
            ("score", self._key, self._device),
            lambda: ArraySession(self._graph.structure.SerializeToString(), self._device),
        )
        (score,) = session.run([self._score], {self._input: X, **arrays})
        return score

    def pair(self, n_samples: int, *, input_gradient: bool) -> GradientPair:
        """Return the sessions for a number of rows. Make them if they are not in the cache."""
        key = "forward and backward", self._key, n_samples, input_gradient, self._device
        return COMPILED.get(key, lambda: self._made(n_samples, input_gradient))

    def _made(self, n_samples, input_gradient):
        forward, backward = forward_backward(self._graph, n_samples, input_gradient=input_gradient)
        read = {i.name for i in backward.graph.input}
        results = [output.name for output in forward.graph.output]

        # Binding several outputs takes longer than copying the gradients into one output.
        backward = packed_gradients(backward, self._trained)
        return GradientPair(
            ArraySession(forward.SerializeToString(), self._device),
            ArraySession(backward.SerializeToString(), self._device),
            results,
            [name for name in results if name in read],
            tuple(name for name in (self._input, *self._graph.arrays) if name in read),
            [output.name for output in backward.graph.output],
        )

    def forward(
        self, pair: GradientPair, X: np.ndarray, arrays: dict[str, np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the raw score, and the intermediate results for `backward`, as new arrays."""
        results = pair.forward.run(pair.results, {self._input: X, **arrays})
        return results[0], results[len(results) - len(pair.kept) :]

    def backward(
        self,
        pair: GradientPair,
        score_gradient: np.ndarray,
        X: np.ndarray,
        arrays: dict[str, np.ndarray],
        kept: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """
        Return the gradient by the vector of weights, and the gradient by X or None.

        `kept` are the intermediate results that `forward` returned.
        """
        given = dict(zip(pair.kept, kept, strict=True))
        given[SCORE_GRADIENT] = score_gradient
        for name in pair.inputs:
            given[name] = X if name == self._input else arrays[name]
        by_weights, *by_X = pair.backward.run(pair.gradients, given)

        return by_weights, by_X[0] if by_X else None
