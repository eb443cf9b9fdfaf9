"""The same training by hand, in numpy with BLAS and in place: a lower bound of the time."""

from functools import partial

import numpy as np

__all__ = ["raw_score", "train"]


def raw_score(layers, X, results=None):
    """
    Return the raw score of a network with ReLU layers;
    write the result of each layer to `results`, if given.
    """
    for i, (coef, intercept) in enumerate(layers):
        X = np.matmul(X, coef, out=None if results is None else results[i])
        X += intercept
        if i < len(layers) - 1:
            np.maximum(X, 0, out=X)
    return X


class _Network:
    """
    A network with ReLU layers that makes each of its arrays only once.

    Parameters
    ----------
    layers : list of (ndarray of shape (fan_in, fan_out), ndarray of shape (fan_out,))
        Each step changes them in place.
    batch_size : int
    head : callable
        Raw score -> prediction; the derivative of the loss by the score is their difference
        from the target.
    momentum : float
    """

    def __init__(self, layers, batch_size, head, momentum):
        self.layers, self._head, self._momentum = layers, head, momentum
        self._results = [np.empty((batch_size, len(b)), np.float32) for _, b in layers]
        self._deltas = [np.empty_like(result) for result in self._results]
        self._gradients = [[np.empty_like(w) for w in layer] for layer in layers]
        self._velocities = [[np.zeros_like(w) for w in layer] for layer in layers]

    def step(self, X, target, eta):
        """Make one update."""
        results, deltas = (
            [array[: len(X)] for array in arrays] for arrays in (self._results, self._deltas)
        )
        np.subtract(self._head(raw_score(self.layers, X, results)), target, out=deltas[-1])
        deltas[-1] /= len(X)
        for i in reversed(range(len(self.layers))):
            inputs = results[i - 1] if i else X
            np.matmul(inputs.T, deltas[i], out=self._gradients[i][0])
            np.sum(deltas[i], axis=0, out=self._gradients[i][1])
            if i:
                np.matmul(deltas[i], self.layers[i][0].T, out=deltas[i - 1])
                deltas[i - 1] *= inputs > 0
        for layer, gradients, velocities in zip(
            self.layers, self._gradients, self._velocities, strict=True
        ):
            for w, gradient, velocity in zip(layer, gradients, velocities, strict=True):
                self._update(w, gradient, velocity, eta)

    def _update(self, w, gradient, velocity, eta):
        gradient *= eta
        w -= gradient
        if self._momentum:
            velocity *= self._momentum
            velocity -= gradient
            np.multiply(velocity, self._momentum, out=gradient)
            w += gradient


def train(problem):
    """Train; return the function X -> raw score."""
    X, target, size = problem.X, problem.target, problem.batch_size
    layers, orders = problem.start()
    network = _Network(layers, size, problem.head, problem.momentum)
    X_batch, target_batch = (np.empty((size, a.shape[1]), np.float32) for a in (X, target))
    for order in orders:
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            X.take(rows, axis=0, out=X_batch[: len(rows)], mode="clip")
            target.take(rows, axis=0, out=target_batch[: len(rows)], mode="clip")
            network.step(X_batch[: len(rows)], target_batch[: len(rows)], problem.eta)
    return partial(raw_score, layers)
