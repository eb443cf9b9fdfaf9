"""Variables of a linear model in which the objective bends about equally in all directions."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from skort.common.blas import one_blas_thread
from skort.graphs.standardized import Layer
from skort.optim.batches import Batches
from skort.optim.rows import UnchangedRows, source_rows
from skort.solvers.base import Problem
from skort.solvers.flat_weights import views

# The products of so many rows are summed in their own dtype, and these sums in float64.
_BLOCK_ROWS = 1024
# A direction in which the columns vary less, relative to their mean square, counts as if they
# varied so much: a gradient in a dtype tells no more of it.
_LEAST = {"float32": 1e-6, "float64": 1e-12}


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""
    The variables u of a layer's weights v.

    .. math:: v = L^{-T} u, \qquad L L^T = h X^T S X / n + diag(l_2)

    with the curvature h of the loss along a score, relative sample weights S, a column of ones in X
    where the layer has an intercept, and the strengths of the penalty. This matrix is about the
    second derivative of the objective by v. All other weights are as they are.
    """

    #: ndarray of shape (n_inputs, n_outputs). The places of the layer's weights in the vector of
    #: all; outputs share the factor.
    places: np.ndarray
    #: ndarray of shape (n_inputs, n_inputs), or of shape (n_inputs, 1) where the matrix is taken
    #: as diagonal. The factor L^-T.
    factor: np.ndarray

    def weights(self, variables: np.ndarray) -> np.ndarray:
        """Return the weights of variables, both as vectors."""
        values = variables[self.places]
        return self._with(
            variables, self.factor * values if self._is_diagonal else self.factor @ values
        )

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient by the variables, from that by the weights."""
        values = gradient[self.places]
        return self._with(
            gradient, self.factor * values if self._is_diagonal else self.factor.T @ values
        )

    def variables(self, weights: np.ndarray) -> np.ndarray:
        """Return the variables of weights, both as vectors."""
        values = weights[self.places]
        if not values.any():
            return weights.copy()
        return self._with(
            weights,
            values / self.factor if self._is_diagonal else np.linalg.solve(self.factor, values),
        )

    @property
    def _is_diagonal(self):
        return self.factor.shape[1] < self.factor.shape[0]

    def _with(self, vector, values):
        changed = vector.copy()
        changed[self.places] = values
        return changed


def whitening(problem: Problem, layer: Layer, curvature: float, gram: np.ndarray) -> Whitening:
    """
    Return the variables of a linear model whose loss has a curvature along a score.

    The `gram` is that of `gram_matrix`, or its diagonal.
    """
    places = _places(problem, layer)
    l2 = problem.terms.l2
    strengths = np.zeros(len(places)) if l2 is None else l2[places].mean(axis=1, dtype=np.float64)
    least = _LEAST[np.dtype(problem.objective.dtype).name]

    if gram.ndim == 1:
        curvatures = curvature * gram + strengths
        return Whitening(places, _inverse_roots(curvatures, least)[:, None])

    return Whitening(places, _inverse_factor(curvature * gram + np.diag(strengths), least))


def _places(problem, layer):
    """Return the places of a layer's weights in the vector of all, a row for each input."""
    places = views(np.arange(sum(problem.n_weights())), problem.weights)
    coefficient = places[layer.coefficient]
    rows = [coefficient.T if layer.transposed else coefficient]
    if layer.intercept is not None:
        rows.append(places[layer.intercept].reshape(1, -1))

    return np.vstack(rows)


def _inverse_roots(curvatures, least):
    """Return 1 / sqrt of curvatures, none of which counts as less than a part of their mean."""
    return 1 / np.sqrt(np.maximum(curvatures, least * curvatures.mean()))


def _inverse_factor(curvature, least):
    """Return L^-T of L L^T, a positive semidefinite matrix with a little added to its diagonal."""
    # Of columns of very different curvature, such as rare ones, each has its own scale.
    scale = _inverse_roots(np.diagonal(curvature), least)
    correlation = curvature * scale[:, None] * scale

    while True:
        np.einsum("ii->i", correlation)[...] += least
        try:
            factor = np.linalg.cholesky(correlation)
        except np.linalg.LinAlgError:  # Rounding has made an eigenvalue negative.
            least *= 10
            continue
        return scale[:, None] * np.linalg.inv(factor).T


def gram_matrix(batches: Batches, *, has_intercept: bool) -> np.ndarray:
    """
    Return X^T S X / n of the rows of a training, with a column of ones where there is an intercept.

    It has the shape (n_inputs, n_inputs) and is in float64.
    """
    n_columns = batches.data[0].shape[1]
    n_inputs = n_columns + has_intercept
    total = np.zeros((n_inputs, n_inputs))

    with one_blas_thread(_BLOCK_ROWS * n_inputs):
        for X, weights in _weighted_blocks(batches):
            weighted = X * weights[:, None]
            total[:n_columns, :n_columns] += weighted.T @ X
            if has_intercept:
                total[-1, :n_columns] += weighted.sum(axis=0)
                total[-1, -1] += weights.sum(dtype=np.float64)

    if has_intercept:
        total[:n_columns, -1] = total[-1, :n_columns]
    return total / batches.n_rows


def gram_diagonal(batches: Batches, *, has_intercept: bool) -> np.ndarray:
    """Return the diagonal of `gram_matrix`, an array of shape (n_inputs,)."""
    X = batches.data[0]
    weights = batches.sample_weight
    rows = source_rows(X)

    if scipy.sparse.issparse(rows):
        factor = X.change.inverse if isinstance(X, UnchangedRows) else 1.0
        squares = rows.astype(np.float64).power(2).T @ weights * factor**2
    else:
        squares = sum(
            np.einsum("ij,ij,i->j", part, part, of_rows)
            for part, of_rows in _weighted_blocks(batches)
        )

    return np.append(squares, [weights.sum()] * has_intercept) / batches.n_rows


def _weighted_blocks(batches) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the dense rows of a training, block by block, and their relative weights."""
    X = batches.data[0]
    for begin in range(0, X.shape[0], _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        part = X[rows]
        if isinstance(part, UnchangedRows):
            part = part.change(part.rows)
        yield part, batches.sample_weight[rows].astype(part.dtype)
