"""The variables of a linear model in which its objective bends about equally in all directions."""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike
from scipy.linalg import blas, lapack

from skort.common.blas import one_blas_thread
from skort.graphs.layers import Layer
from skort.objective.objective import TARGET
from skort.optim.batches import Batches
from skort.optim.row_change import UnchangedRows, source_rows
from skort.solvers.base import Problem, views
from skort.solvers.loss_graph import CURVATURES, PROBABILITIES, curvature_model, softmax_model

# The products of so many rows are summed in their own dtype, and these sums in float64.
_BLOCK_ROWS = 4096
# Up to so many numbers, outputs with losses of their own have factors of their own: 32 MB.
_MOST_NUMBERS = 2**22
# A softmax has one factor of all its outputs up to so many weights.
_MOST_COUPLED = 1000
# Variables of so many weights take about as long as an iteration: `python -m benchmarks.lbfgs
# --classes` and `--searches`.
_WEIGHTS = 8
_COUPLED_WEIGHTS = 32
# A row bends next to nothing between two classes if it is so much surer of one than all rows are of
# theirs.
_SURE = 3e-3
# A direction in which the columns vary less, relative to their mean square, counts as if they
# varied so much: a gradient in a dtype tells no more of it.
_LEAST = {"f": 1e-6, "d": 1e-12}
# By the characters of dtypes, as numpy finds their names slowly.
_POTRF = {"f": lapack.spotrf, "d": lapack.dpotrf}
_TRSV = {"f": blas.strsv, "d": blas.dtrsv}
_TRMV = {"f": blas.strmv, "d": blas.dtrmv}

#: (rows, their numbers) -> the curvatures of the loss of each, a column for each output.
Curvatures: TypeAlias = Callable[[np.ndarray, slice], np.ndarray]


@dataclass(frozen=True, eq=False)
class Whitening:
    r"""
    The variables u of the weights v of a layer.

    .. math:: v_k = L_k^{-T} u_k, \qquad L_k L_k^T = X^T S H_k X / n + diag(l_2)

    of each output k, or of all outputs together, with relative sample weights S, curvatures H of
    the losses of rows along their scores, a column of ones in X where the layer has an intercept,
    and the strengths of the penalty. This matrix is about the second derivative of the objective by
    these weights. All other weights are as they are.
    """

    #: ndarray of shape (n_outputs, n_inputs), or (1, n_outputs * n_inputs) for all outputs together.
    #: The places of the layer's weights in the vector of all.
    places: np.ndarray
    #: ndarray of shape (n_outputs, n_inputs, n_inputs), or of shape (n_outputs, n_inputs) where the
    #: matrices are taken as diagonal. The factors L^-T; a single one is that of all outputs.
    factors: np.ndarray

    def weights(self, variables: np.ndarray) -> np.ndarray:
        """Return the weights of variables, both as vectors."""
        return self._with(variables, self._product(self.factors, variables[self.places]))

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient by the variables, from that by the weights."""
        factors = self.factors if self._is_diagonal else self.factors.swapaxes(1, 2)
        return self._with(gradient, self._product(factors, gradient[self.places]))

    def variables(self, weights: np.ndarray) -> np.ndarray:
        """Return the variables of weights, both as vectors."""
        values = weights[self.places]
        if not values.any():
            return weights.copy()
        if self._is_diagonal:
            return self._with(weights, values / self.factors)
        # LAPACK solves with all its threads, which wait for a core. This needs one.
        factors = np.broadcast_to(self.factors, (len(values), *self.factors.shape[1:]))
        parts = zip(factors, values, strict=True)
        return self._with(weights, [blas.dtrsv(*part) for part in parts])

    @property
    def _is_diagonal(self):
        return self.factors.ndim == 2

    def _product(self, factors, values):
        """Return the products of the factors and the values of each output."""
        if self._is_diagonal:
            return factors * values
        if len(factors) == 1:
            return values @ factors[0].T
        return (factors @ values[..., None])[..., 0]

    def _with(self, vector, values):
        changed = vector.copy()
        changed[self.places] = values
        return changed


class CoupledWhitening(Whitening):
    """
    The variables of the weights of all outputs together.

    Its `factors` is L^T: the inverse of so large a matrix takes as long as the factor itself.
    """

    def weights(self, variables: np.ndarray) -> np.ndarray:
        """Return the weights of variables, both as vectors."""
        return self._with(variables, self._solved(variables, trans=0))

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient by the variables, from that by the weights."""
        return self._with(gradient, self._solved(gradient, trans=1))

    def variables(self, weights: np.ndarray) -> np.ndarray:
        """Return the variables of weights, both as vectors."""
        with one_blas_thread():
            root = self.factors[0]
            return self._with(weights, _TRMV[root.dtype.char](root, weights[self.places[0]]))

    def _solved(self, vector, trans):
        """Return the solution of equations with L^T, or with L."""
        # BLAS solves equations of one vector with one thread.
        root = self.factors[0]
        return _TRSV[root.dtype.char](root, vector[self.places[0]], trans=trans)


@dataclass(eq=False)
class Grams:
    """The Gram matrices that are known of some rows, or their diagonals."""

    #: Of the rows, see `gram_matrix`; None: not known.
    plain: np.ndarray | None = None
    #: Of the rows times the curvatures that the losses had last; None: not known.
    curved: np.ndarray | None = None
    #: How many iterations the last fit took.
    n_iterations: int = 0


class Whitener:
    """
    Finds the variables of a linear model, from its rows and the curvatures of their losses.

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
    grams : Grams or None
        What is known of the rows, to which it adds what it finds.
    is_diagonal : bool
        Whether each column has its own scale alone.
    """

    def __init__(
        self,
        problem: Problem,
        layer: Layer,
        batches: Batches,
        curvature: float,
        grams: Grams | None = None,
        *,
        is_diagonal: bool,
    ):
        self._problem = problem
        self._batches = batches
        self._curvature = curvature
        self._grams = Grams() if grams is None else grams
        self._gram = gram_diagonal if is_diagonal else gram_matrix
        #: The part of the rows that bent at the last point for which variables were found.
        self.share: float = 1.0
        self._has_intercept = layer.intercept is not None
        self._places = _places(problem, layer)

    @functools.cached_property
    def _model(self):
        """The model of the curvature of each row, or None if it is not known."""
        if scipy.sparse.issparse(source_rows(self._batches.data[0])):
            return None
        return curvature_model(self._problem.objective, self._problem.score_graph)

    @functools.cached_property
    def _softmax(self):
        """The model of the probabilities of each row, if they couple few weights; else None."""
        is_small = self._places.size <= _MOST_COUPLED
        if self._gram is gram_diagonal or not (self.knows_rows and is_small):
            return None
        return softmax_model(self._problem.objective, self._problem.score_graph)

    @property
    def knows_rows(self) -> bool:
        """Whether the curvature of each row is known."""
        return self._model is not None

    @property
    def is_whole(self) -> bool:
        """Whether the matrices are whole second derivatives: each output has its own loss."""
        n_outputs, n_inputs = self._places.shape
        is_separate = n_outputs == 1 or self._problem.objective.loss.is_elementwise
        return self.is_coupled or (is_separate and n_outputs * n_inputs**2 <= _MOST_NUMBERS)

    @property
    def is_coupled(self) -> bool:
        """Whether the last known matrix is one of all outputs."""
        curved = self._grams.curved
        return curved is not None and curved.shape[1] > self._places.shape[1]

    @property
    def cost(self) -> int:
        """About how many iterations take as long as the last variables."""
        if self.is_coupled:
            return self._places.size // _COUPLED_WEIGHTS
        return self._places.shape[1] // _WEIGHTS

    def first(self) -> Whitening:
        """Return the variables for equal curvatures. All outputs share them."""
        return self._whitening(self._curvature * self._plain())

    def _plain(self):
        """Return the Gram matrix of the rows, or its diagonal."""
        grams = self._grams
        if grams.plain is None:
            grams.plain = self._gram(self._batches, None, has_intercept=self._has_intercept)
        return grams.plain

    @property
    def gram(self) -> np.ndarray | None:
        """The Gram matrix of rows with a mean weight of one. None: only its diagonal is known."""
        plain = self._plain()
        weight = self._batches.sample_weight.sum() / self._batches.n_rows
        return plain[0] / weight if plain.ndim == 3 else None

    @property
    def knows_curvatures(self) -> bool:
        """Whether curvatures of the rows are known already."""
        return self._grams.curved is not None

    def begin(self) -> Whitening:
        """Return the variables for the known curvatures, or the first variables."""
        curved = self._grams.curved
        return self.first() if curved is None else self._whitening(curved)

    def couples(self, n_made: int, n_more: float) -> bool:
        """
        Return whether variables of all outputs together are worth their time: iterations have taken
        half of it, and as much is to come.
        """
        n_least = self._places.size / _COUPLED_WEIGHTS
        return self._softmax is not None and 2 * n_made >= n_least and n_more >= n_least

    def couples_again(self) -> bool:
        """Return whether the next fit couples the outputs again: the last fit took long enough."""
        grams = self._grams
        n_iterations = grams.n_iterations
        return grams.curved is not None and self.couples(n_iterations, n_iterations)

    def took(self, n_iterations: int) -> None:
        """Remember how many iterations a fit took."""
        self._grams.n_iterations = n_iterations

    def at(self, weights: np.ndarray, *, couples: bool = False) -> Whitening:
        """
        Return the variables for the curvature of each row at a vector of all weights, of all outputs
        together if it `couples` them.
        """
        curved = self._coupled(weights) if couples else self._separate(weights)
        self._grams.curved = curved
        return self._whitening(curved)

    def _separate(self, weights):
        """Return the Gram matrices of the rows, or their diagonals, times the curvatures of outputs."""
        bent: list[int] = []
        curvatures = self._curvatures(weights, bent)
        curved = self._gram(self._batches, curvatures, has_intercept=self._has_intercept)
        self.share = sum(bent) / (self._batches.data[0].shape[0] * len(curved))
        return curved

    def _coupled(self, weights):
        """Return the second derivative of a softmax's loss by the weights of all outputs."""
        probabilities = self._of_rows(self._softmax, PROBABILITIES, weights)
        self.share = 1.0
        return coupled_gram(self._batches, probabilities, has_intercept=self._has_intercept)

    def _whitening(self, curved):
        """Return the variables for Gram matrices of rows, or their diagonals, times curvatures."""
        n_factors, n_variables = curved.shape[:2]
        places = self._places
        if n_variables > places.shape[1]:
            places = places.reshape(n_factors, n_variables)
        squares = curved if curved.ndim == 2 else np.einsum("kii->ki", curved)
        if not np.isfinite(squares).all():
            # Squares of X, or a curvature, overflow. Then each weight is its own variable. Other
            # products are not larger.
            return Whitening(places, np.ones((1, places.shape[1])))

        l2 = self._problem.terms.l2
        strengths = np.zeros(places.shape) if l2 is None else l2[places].astype(np.float64)
        if n_factors < len(strengths):
            strengths = strengths.mean(axis=0, keepdims=True)

        dtype = np.dtype(self._problem.objective.dtype)
        least = _LEAST[dtype.char]
        if curved.ndim == 2:
            return Whitening(places, 1 / np.sqrt(_at_least(curved + strengths, least)))

        if n_variables > self._places.shape[1]:
            # A gradient in a dtype needs no better variables.
            root = upper_root(curved[0], least, strengths[0], dtype)
            return CoupledWhitening(places, root[None])

        factors = [
            inverse_factor(each, least, own) for each, own in zip(curved, strengths, strict=True)
        ]
        return Whitening(places, factors[0][None] if n_factors == 1 else np.stack(factors))

    def _curvatures(self, weights, bent):
        """
        Return a function of rows, by their numbers: the curvatures of each, a column for each
        output, or one for their mean. It adds to a list how many of them are not zero.
        """
        curvatures = self._of_rows(self._model, CURVATURES, weights)

        def of_rows(X, rows):
            found = np.maximum(curvatures(X, rows), 0)
            found = found if self.is_whole else found.mean(axis=1, keepdims=True)
            bent.append(np.count_nonzero(found))
            return found

        return of_rows

    def _of_rows(self, model, name, weights):
        """Return a function of rows, by their numbers: the output of a model at all weights."""
        graph = self._problem.score_graph
        dtype = self._problem.objective.dtype
        arrays = graph.arrays | views(weights.astype(dtype), self._problem.weights)
        target = self._batches.data[1]

        def of_rows(X, rows):
            inputs = {**arrays, graph.input_name: X, TARGET: target[rows]}
            return model.run(name, inputs, self._problem.device)

        return of_rows


def _places(problem, layer):
    """Return the places of a layer's weights in the vector of all weights, with a row for each output."""
    places = views(np.arange(sum(problem.n_weights)), problem.weights)
    coefficient = places[layer.coefficient]
    columns = [coefficient if layer.transposed else coefficient.T]
    if layer.intercept is not None:
        columns.append(places[layer.intercept].reshape(-1, 1))

    return np.hstack(columns)


def _at_least(curvatures, least):
    """Return curvatures. Small ones count as a part of their mean."""
    means = curvatures.mean(axis=-1, keepdims=True)
    # No row bends: each weight is its own variable.
    return np.maximum(curvatures, np.where(means > 0, least * means, 1))


def inverse_factor(
    curvature: np.ndarray, least: float, strengths: np.ndarray | float = 0.0
) -> np.ndarray:
    """
    Return L^-T of L L^T, a positive semidefinite matrix with strengths, and a little, added to its
    diagonal.
    """
    with one_blas_thread(curvature.size):
        factor = _root(curvature, least, strengths, np.dtype(np.float64))
        lapack.dtrtri(factor, overwrite_c=True)
    return factor


def upper_root(
    curvature: np.ndarray,
    least: float,
    strengths: np.ndarray | float = 0.0,
    dtype: DTypeLike = np.float64,
) -> np.ndarray:
    """Return L^T, the inverse of `inverse_factor`, in a dtype if it can be, else in float64."""
    with one_blas_thread(curvature.size):
        return _root(curvature, least, strengths, np.dtype(dtype))


def _root(curvature, least, strengths, dtype):
    """Return the root L^T of `inverse_factor`."""
    diagonal = np.diagonal(curvature) + strengths
    # Columns of very different curvature, such as rare ones, have sizes of their own.
    sizes = _at_least(diagonal, least)

    while True:
        # In Fortran's order, LAPACK works in place. In it, a symmetric matrix is its transpose.
        root = np.array(curvature.T, dtype, order="F")
        np.einsum("ii->i", root)[...] = diagonal + least * sizes
        _, failed = _POTRF[dtype.char](root, overwrite_a=True)
        if not failed:
            return root
        # Rounding has made an eigenvalue negative.
        least *= 1 if dtype == np.float32 else 10
        dtype = np.dtype(np.float64)


def gram_matrix(
    batches: Batches, curvatures: Curvatures | None = None, *, has_intercept: bool
) -> np.ndarray:
    """
    Return X^T S X / n of the rows of a training, with a column of ones if there is an intercept.

    The weights S of the rows are relative, and multiplied by a column of their curvatures, if there
    are any. The result has the shape (n_curvatures, n_inputs, n_inputs), or (1, n_inputs, n_inputs),
    and is in float64.
    """
    n_inputs = batches.data[0].shape[1] + has_intercept
    total: Any = 0.0

    with one_blas_thread(_BLOCK_ROWS * n_inputs), np.errstate(over="ignore", invalid="ignore"):
        for X, weights in _weighted_blocks(batches, curvatures):
            products = [_product(X, each, has_intercept=has_intercept) for each in weights.T]
            total = total + np.asarray(products, np.float64)

    return total / batches.n_rows


def _product(X, weights, *, has_intercept):
    """Return X^T S X, with a column of ones in X if there is an intercept."""
    if (weights == weights[0]).all():
        return weights[0] * _plain_product(X, has_intercept=has_intercept)

    counted = np.flatnonzero(weights)
    if len(counted) < len(X):
        X = X[counted]
        weights = weights[counted]

    roots = np.sqrt(weights)[:, None]
    n_columns = X.shape[1]
    rows = np.empty((len(X), n_columns + has_intercept), X.dtype)
    np.multiply(X, roots, out=rows[:, :n_columns])
    rows[:, n_columns:] = roots
    # BLAS computes half of the product of a matrix with itself.
    return rows.T @ rows


def _plain_product(X, *, has_intercept):
    """Return X^T X, with a column of ones in X if there is an intercept. It needs no copy of X."""
    n_rows, n_columns = X.shape
    n_inputs = n_columns + has_intercept
    product = np.full((n_inputs, n_inputs), n_rows, X.dtype)
    product[:n_columns, :n_columns] = X.T @ X
    if has_intercept:
        product[-1, :-1] = product[:-1, -1] = np.ones(n_rows, X.dtype) @ X

    return product


def coupled_gram(batches: Batches, probabilities: Curvatures, *, has_intercept: bool) -> np.ndarray:
    r"""
    Return the second derivative of the mean loss of a softmax by the weights of all outputs.

    .. math:: \sum_i s_i (diag(p_i) - p_i p_i^T + (1 - p_i^T p_i) 1 1^T / K^2) \otimes x_i x_i^T / n

    of the rows x, with a column of ones where there is an intercept, their relative weights s and
    their probabilities p of K classes. The last term makes it definite: a softmax is the same where
    all scores change alike. The result has the shape (1, K * n_inputs, K * n_inputs).
    """
    total: Any = None

    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for X, weights in _weighted_blocks(batches, probabilities):
            part = _coupled_product(X, weights / batches.n_rows, has_intercept=has_intercept)
            total = part if total is None else np.add(total, part, dtype=np.float64)

    return total[None]


def _coupled_product(X, weights, *, has_intercept):
    """Return the sum of a block of rows in `coupled_gram`, of probabilities times weights."""
    n_outputs = weights.shape[1]
    n_inputs = X.shape[1] + has_intercept
    rows = np.ones((len(X), n_inputs), X.dtype)
    rows[:, : X.shape[1]] = X

    weights = np.ascontiguousarray(weights.T)
    sizes = weights.sum(axis=0)
    parts = weights / np.where(sizes > 0, sizes, 1)
    least = _SURE * (parts * (sizes - weights)).sum(axis=0).mean()
    result = np.zeros((n_outputs, n_inputs, n_outputs, n_inputs), X.dtype)

    # The probabilities of the other classes are what a class lacks: 1 - p would cancel.
    for first, second in itertools.combinations(range(n_outputs), 2):
        bends = parts[first] * weights[second]
        counted = np.flatnonzero(bends > least)
        those = rows[counted] * np.sqrt(bends[counted])[:, None]
        product = those.T @ those
        result[first, :, second] = result[second, :, first] = -product
        result[first, :, first] += product
        result[second, :, second] += product

    result += np.einsum("kakb->ab", result)[:, None] / n_outputs**2
    return result.reshape(n_outputs * n_inputs, -1)


def gram_diagonal(
    batches: Batches, curvatures: Curvatures | None = None, *, has_intercept: bool
) -> np.ndarray:
    """Return the diagonals of `gram_matrix`, of shape (n_curvatures, n_inputs) or (1, n_inputs)."""
    X = batches.data[0]
    rows = source_rows(X)
    squares: Any = 0.0
    total: Any = 0.0

    if scipy.sparse.issparse(rows):
        factor: Any = X.change.inverse if isinstance(X, UnchangedRows) else 1.0
        squares = (rows.astype(np.float64).power(2).T @ batches.sample_weight * factor**2)[None]
        total = batches.sample_weight.sum(keepdims=True)
    else:
        for part, weights in _weighted_blocks(batches, curvatures):
            squares = squares + weights.T @ part**2
            total = total + weights.sum(axis=0, dtype=np.float64)

    return np.hstack([squares, total[:, None][:, : int(has_intercept)]]) / batches.n_rows


def _weighted_blocks(batches, curvatures) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """
    Yield the dense rows of a training, block by block, and their weights times curvatures, a column
    for each curvature.
    """
    X = batches.data[0]
    for begin in range(0, X.shape[0], _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        part = X[rows]
        if isinstance(part, UnchangedRows):
            part = part.change(part.rows)

        weights = batches.sample_weight[rows, None].astype(part.dtype)
        yield part, weights if curvatures is None else weights * curvatures(part, rows)
