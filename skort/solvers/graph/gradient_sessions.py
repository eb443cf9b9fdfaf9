"""Forward and backward of a score graph on arrays, in sessions that models of one structure share."""

from dataclasses import dataclass

import numpy as np

from skort.graphs.gradient.forward_backward import forward_backward
from skort.graphs.gradient.halves import gradient_name
from skort.graphs.score_graph import ScoreGraph
from skort.objective.nodes import SCORE_GRADIENT
from skort.runtime.array_session import ArraySession
from skort.runtime.device import CPU, Device
from skort.runtime.kept import Kept
from skort.solvers.flat_weights import views

__all__ = ["GradientPair", "GradientSessions"]

# One for every number of rows of every structure: a session of a small model keeps about a MB.
_PAIRS: Kept["GradientPair"] = Kept(32)
# These take any number of rows.
_SCORES: Kept[ArraySession] = Kept(16)


@dataclass(frozen=True, eq=False)
class GradientPair:
    """
    The sessions of the two halves of a gradient, for one number of rows.

    Parameters
    ----------
    forward, backward : ArraySession
    results : tuple of str
        The outputs of `forward`; the first one is the score.
    read : frozenset of str
        The inputs of `backward`.
    input_gradient : bool
        Whether it gives the gradient by X.
    """

    forward: ArraySession
    backward: ArraySession
    results: tuple[str, ...]
    read: frozenset[str]
    input_gradient: bool


class GradientSessions:
    """
    The score of a score graph and its gradient, for any number of rows. It keeps no array: threads may share it.

    Parameters
    ----------
    score_graph : ScoreGraph
        Its weights say names and shapes; their values are arguments of the methods.
    device : Device, default=CPU
        Of the CPU.
    """

    def __init__(self, score_graph: ScoreGraph, device: Device = CPU):
        self._graph, self._device = score_graph, device
        self._input, self._score, self._dtype = score_graph.input_name, score_graph.score_name, score_graph.dtype
        self._trained = score_graph.trained_arrays
        self._n_weights = sum(array.size for array in self._trained.values())
        self._key = score_graph.key

    def inputs(self, X: np.ndarray, weights: np.ndarray, frozen: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """
        Return what the other methods take: arrays by the names of the inputs of the model.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            C-contiguous and of the dtype of the model, as all arrays here.
        weights : ndarray of shape (n_weights,)
            The trained weights. The inputs are views of it.
        frozen : dict of str to ndarray
            The others.
        """
        return {self._input: X, **views(weights, self._trained), **frozen}

    def score(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Return the raw score, of shape (n_samples, n_outputs), and keep nothing."""
        session = _SCORES.get((self._key, self._device), self._made_score)
        (score,) = session.run([self._score], inputs)
        return score

    def _made_score(self):
        return ArraySession(self._graph.structure.SerializeToString(), self._device)

    def pair(self, n_samples: int, *, input_gradient: bool) -> GradientPair:
        """
        Return the sessions for a number of rows, made where it is the first time.

        Raises
        ------
        NotTrainableError
            As `forward_backward` does.
        """
        key = self._key, n_samples, input_gradient, self._device
        return _PAIRS.get(key, lambda: self._made(n_samples, input_gradient))

    def _made(self, n_samples, input_gradient):
        graphs = forward_backward(self._graph, n_samples, input_gradient=input_gradient)
        forward, backward = (ArraySession(model.SerializeToString(), self._device) for model in graphs)
        return GradientPair(
            forward,
            backward,
            tuple(output.name for output in graphs.forward.graph.output),
            frozenset(i.name for i in graphs.backward.graph.input),
            input_gradient,
        )

    def forward(self, pair: GradientPair, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the raw score, and what `backward` needs of the run by its names: new arrays."""
        results = pair.forward.run(pair.results, inputs)
        saved = {name: array for name, array in zip(pair.results, results, strict=True) if name in pair.read}
        return results[0], saved

    def backward(
        self,
        pair: GradientPair,
        score_gradient: np.ndarray,
        inputs: dict[str, np.ndarray],
        saved: dict[str, np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """
        Return the gradients of a loss.

        Parameters
        ----------
        pair : GradientPair
        score_gradient : ndarray of shape (n_samples, n_outputs)
            The derivative of the loss by the score.
        inputs, saved : dict of str to ndarray
            What `forward` took and kept.

        Returns
        -------
        by_weights : ndarray of shape (n_weights,)
        by_X : ndarray of shape (n_samples, n_features) or None
            None where the pair has no such gradient.
        """
        given = {SCORE_GRADIENT: score_gradient, **inputs, **saved}
        by_weights = np.empty(self._n_weights, self._dtype)
        gradients = views(by_weights, self._trained)
        by_X = np.empty_like(inputs[self._input]) if pair.input_gradient else None
        if by_X is not None:
            gradients[self._input] = by_X
        outputs = {gradient_name(name): array for name, array in gradients.items()}
        pair.backward.run_into(outputs, {name: array for name, array in given.items() if name in pair.read})
        return by_weights, by_X
