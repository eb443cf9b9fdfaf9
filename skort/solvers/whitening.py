"""Variables of a linear model in which the objective bends about equally in all directions."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from skort.common.blas import one_blas_thread
from skort.graphs.standardized import Layer
from skort.objective.objective import TARGET
from skort.optim.batches import Batches
from skort.optim.rows import UnchangedRows, source_rows
from skort.solvers.base import Problem
from skort.solvers.flat_weights import views
from skort.solvers.loss_graph import CURVATURES, curvature_model

# The products of so many rows are summed in their own dtype, and these sums in float64.
_BLOCK_ROWS = 1024
# A direction in which the columns vary less, relative to their mean square, counts as if they
# varied so much: a gradient in a dtype tells no more of it.
_LEAST = {"float32": 1e-6, "float64": 1e-12}

#: (rows, their numbers) -> the curvature of the loss of each.
Curvatures: TypeAlias = Callable[[np.ndarray, slice], np.ndarray]


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""
    The variables u of a layer's weights v.

    .. math:: v = L^{-T} u, \qquad L L^T = X^T S H X / n + diag(l_2)

    with relative sample weights S, curvatures H of the losses of rows along their scores, a column
    of ones in X where the layer has an intercept, and the strengths of the penalty. This matrix is
    about the second derivative of the objective by v. All other weights are as they are.
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


class Whitener:
    """
    Finds the variables of a linear model, from the rows and from how its objective bends.

    Parameters
    ----------
    problem : Problem
        Of a linear model.
    layer : Layer
        Its only one.
    batches : Batches
        All rows.
    curvature : float
        How fast the derivative of a row's loss by its score changes.
    is_diagonal : bool
        Whether each column has its own scale alone.
    """

    def __init__(
        self,
        problem: Problem,
        layer: Layer,
        batches: Batches,
        curvature: float,
        *,
        is_diagonal: bool,
    ):
        self._problem = problem
        self._batches = batches
        self._curvature = curvature
        self._gram = gram_diagonal if is_diagonal else gram_matrix
        self._has_intercept = layer.intercept is not None
        self._places = _places(problem, layer)

    @functools.cached_property
    def _model(self):
        """What computes the curvature of each row; None where it is not known."""
        if scipy.sparse.issparse(source_rows(self._batches.data[0])):
            return None
        return curvature_model(self._problem.objective, self._problem.score_graph)

    @property
    def knows_rows(self) -> bool:
        """Whether the curvature of each row is known."""
        return self._model is not None

    def first(self) -> Whitening:
        """Return the variables for the same curvature everywhere."""
        gram = self._gram(self._batches, None, has_intercept=self._has_intercept)
        return self._whitening(self._curvature * gram)

    def at(self, weights: np.ndarray) -> Whitening:
        """Return the variables for the curvature of each row at a vector of all weights."""
        gram = self._gram(
            self._batches, self._curvatures(weights), has_intercept=self._has_intercept
        )
        return self._whitening(gram)

    def _whitening(self, curved):
        """Return the variables for a Gram matrix of rows, or its diagonal, times curvatures."""
        l2 = self._problem.terms.l2
        # Outputs share the factor: their columns are the same.
        strengths = (
            np.zeros(len(self._places))
            if l2 is None
            else l2[self._places].mean(axis=1, dtype=np.float64)
        )
        least = _LEAST[np.dtype(self._problem.objective.dtype).name]

        if not np.isfinite(curved).all():
            # Squares of X, or a curvature, overflow: each weight is its own variable.
            return Whitening(self._places, np.ones((len(self._places), 1)))
        if curved.ndim == 1:
            return Whitening(self._places, _inverse_roots(curved + strengths, least)[:, None])
        return Whitening(self._places, _inverse_factor(curved + np.diag(strengths), least))

    def _curvatures(self, weights):
        """Return a function of rows, by their numbers: the curvature of each, mean of the outputs."""
        assert self._model is not None
        model = self._model
        graph = self._problem.score_graph
        dtype = self._problem.objective.dtype
        arrays = graph.arrays | views(weights.astype(dtype), self._problem.weights)
        target = self._batches.data[1]

        def of_rows(X, rows):
            inputs = {**arrays, graph.input_name: X, TARGET: target[rows]}
            return np.maximum(model.run(CURVATURES, inputs, self._problem.device), 0)

        return of_rows


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


def gram_matrix(
    batches: Batches, curvatures: Curvatures | None = None, *, has_intercept: bool
) -> np.ndarray:
    """
    Return X^T S X / n of the rows of a training, with a column of ones where there is an intercept.

    The weights S of the rows are relative, and multiplied by their curvatures, if there are any.
    The result has the shape (n_inputs, n_inputs) and is in float64.
    """
    n_columns = batches.data[0].shape[1]
    n_inputs = n_columns + has_intercept
    total = np.zeros((n_inputs, n_inputs))

    with one_blas_thread(_BLOCK_ROWS * n_inputs), np.errstate(over="ignore", invalid="ignore"):
        for X, weights in _weighted_blocks(batches, curvatures):
            roots = np.sqrt(weights)[:, None]
            rows = np.empty((len(X), n_inputs), X.dtype)
            np.multiply(X, roots, out=rows[:, :n_columns])
            rows[:, n_columns:] = roots
            # BLAS computes half of the product of a matrix with itself.
            total += rows.T @ rows

    return total / batches.n_rows


def gram_diagonal(
    batches: Batches, curvatures: Curvatures | None = None, *, has_intercept: bool
) -> np.ndarray:
    """Return the diagonal of `gram_matrix`, an array of shape (n_inputs,)."""
    X = batches.data[0]
    rows = source_rows(X)
    squares: Any = 0.0
    total = 0.0

    if scipy.sparse.issparse(rows):
        factor: Any = X.change.inverse if isinstance(X, UnchangedRows) else 1.0
        squares = rows.astype(np.float64).power(2).T @ batches.sample_weight * factor**2
        total = batches.sample_weight.sum()
    else:
        for part, weights in _weighted_blocks(batches, curvatures):
            squares = squares + np.einsum("ij,ij,i->j", part, part, weights)
            total += weights.sum(dtype=np.float64)

    return np.append(squares, [total] * has_intercept) / batches.n_rows


def _weighted_blocks(batches, curvatures) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the dense rows of a training, block by block, and their weights times curvatures."""
    X = batches.data[0]
    for begin in range(0, X.shape[0], _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        part = X[rows]
        if isinstance(part, UnchangedRows):
            part = part.change(part.rows)

        weights = batches.sample_weight[rows].astype(part.dtype)
        yield part, weights if curvatures is None else weights * curvatures(part, rows)
