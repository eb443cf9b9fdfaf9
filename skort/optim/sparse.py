"""Sparse rows: their batches, and weights of which an update touches only those with a gradient."""

import functools
import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from skort.optim.batches import Batch, filler
from skort.optim.optimizers import LinearUpdate
from skort.optim.row_change import SparseRows, source_rows

# With a larger momentum, velocities and weights have too different sizes for float32.
_LARGEST_MOMENTUM = 0.99
# A pass over all weights is due after a scaling by so much, which is three digits of float32,
_FAR = 1e3
# and after so many steps.
_MANY_STEPS = 1000


class SparseBatch(Batch):
    """Sparse rows of an X of the given shape, which the next step reads."""

    in_place = True

    def __init__(self, shape: tuple[int, int], n_outputs: int, dtype: DTypeLike):
        self.rows: SparseRows = SparseRows(*shape, dtype)
        self.target: np.ndarray = np.zeros((shape[0], n_outputs), dtype)
        self.sample_weight: np.ndarray = np.zeros((shape[0], 1), dtype)

    def __len__(self) -> int:
        return len(self.target)

    def fillers(self, data: list[Any]) -> list[Callable[[np.ndarray], None]]:
        """Return the functions that put rows, by number, into the batch."""
        X, *others = data
        # The update multiplies by the change of the rows.
        X = source_rows(X)

        if X.indices.dtype != X.indptr.dtype:
            # The constructor makes both dtypes the same. They differ if somebody has replaced an
            # array.
            X = scipy.sparse.csr_matrix((X.data, X.indices, X.indptr), X.shape)

        take = self.rows.take
        outs = self.target, self.sample_weight
        return [
            lambda numbers: take(X, numbers),
            *(filler(a, out) for a, out in zip(others, outs, strict=False)),
        ]


@dataclass(frozen=True)
class Recurrence:
    """
    The update (w, v, M) <- A (w, v, M) + B g of a weight, its velocity and its mean. The gradient
    is g + b w.
    """

    # The coordinates of A are p = w + kappa v, v and M. With b = 0, p does not depend on v, which is
    # the best condition that A can have.

    #: Zero: there is no velocity.
    momentum: float
    #: Whether the momentum is Nesterov's.
    is_ahead: bool
    l2: float
    #: The name of the mean in a state. None: there is no mean.
    mean: str | None = None

    @classmethod
    def of(
        cls, update: LinearUpdate | None, l2: float, mean: str | None = None
    ) -> "Recurrence | None":
        """Return the recurrence of an update. None: it is no recurrence, or loses digits as one."""
        if update is None or update.momentum > _LARGEST_MOMENTUM:
            return None
        return cls(update.momentum, update.is_ahead, float(l2), mean)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arrays in the state of a rule, the weights first."""
        return (
            "weights",
            *(["velocity"] if self.momentum else []),
            *([self.mean] if self.mean else []),
        )

    @functools.cached_property
    def basis(self) -> np.ndarray:
        """The matrix from (w, v, M) to the coordinates (p, v, M)."""
        mu = self.momentum
        kappa = mu**2 / (1 - mu) if self.is_ahead else mu / (1 - mu)
        basis = np.array([[1, kappa, 0], [0, 1, 0], [0, 0, 1]])
        return basis[np.ix_(self._used, self._used)]

    @functools.cached_property
    def inverse_basis(self) -> np.ndarray:
        """The inverse of `basis`."""
        return np.linalg.inv(self.basis)

    @property
    def _used(self):
        return [0, *([1] if self.momentum else []), *([2] if self.mean else [])]

    def step(self, eta: float, share: float) -> tuple[np.ndarray, np.ndarray]:
        """
        Return A and B, in the coordinates of `basis`. The mean moves by a `share` of the way to the
        weights after the step.
        """
        (A_0, B_0), (A_1, B_1) = self._ends
        A, B = A_0 + eta * (A_1 - A_0), B_0 + eta * (B_1 - B_0)
        if self.mean:
            of_weight = share * self.inverse_basis[0]
            A[-1], B[-1] = of_weight @ A, of_weight @ B
            A[-1, -1] += 1 - share

        return A, B

    @functools.cached_property
    def _ends(self):
        """
        The matrices of `step` for the learning rates zero and one, without a mean. All others are
        between them, on a line.
        """
        return [self._at(eta) for eta in (0.0, 1.0)]

    def _at(self, eta):
        mu = self.momentum
        fall = eta * self.l2
        # The columns are w, v, M, g.
        velocity = np.array([-fall, mu, 0, -eta])
        step = mu * velocity + np.array([-fall, 0, 0, -eta]) if self.is_ahead else velocity
        weight = np.array([1.0, 0, 0, 0]) + step
        rows = np.array([weight, velocity, np.zeros(4)])
        used = self._used
        A = rows[np.ix_(used, used)]
        B = rows[used, 3]

        return self.basis @ A @ self.inverse_basis, self.basis @ B


class _Scales:
    """
    The matrix P after `n_steps` steps since the last pass over all weights. It remembers the scales
    after the next step.
    """

    # After a pass, the same steps often come again, at the same learning rate.

    def __init__(
        self, recurrence: Recurrence, P: np.ndarray, inverse: np.ndarray, n_steps: int = 0
    ):
        self._recurrence = recurrence
        self._inverse = inverse
        self._n_steps = n_steps

        #: The matrix from the held arrays to the state of the rule.
        self.to_natural = recurrence.inverse_basis @ P
        #: The factors of the held arrays in the weights.
        self.shares: list[float] = self.to_natural[0].tolist()

        #: Whether a pass over all weights is due.
        self.is_far = n_steps >= _MANY_STEPS or bool(np.abs(inverse).max() > _FAR)
        self._P = P
        self._key = (math.nan, 0.0)

    def after(self, eta: float, share: float) -> tuple[list[float], "_Scales"]:
        """Return the factor of the gradient in each array in the next step, and the scales after it."""
        if self._key != (eta, share):
            A, B = self._recurrence.step(eta, share)
            P = A @ self._P
            inverse = self._inverse @ np.linalg.inv(A)

            # Without decay, steps of SGD change nothing.
            is_same = np.array_equal(P, self._P)
            following = (
                self if is_same else _Scales(self._recurrence, P, inverse, self._n_steps + 1)
            )
            self._key = (eta, share)
            self._next = ((inverse @ B).tolist(), following)

        return self._next


class LazyWeights:
    """
    The weights of a layer with sparse rows, and the other arrays of a recurrence. Each has the
    shape (n_columns, n_outputs).
    """

    # A step without a gradient multiplies the coordinates x of every weight by one small matrix. So
    # the arrays hold u with x = P u, where P is the same for all weights. Such a step changes only
    # P. A gradient g changes the rows of u in which it is not zero, by P^-1 B g. For one array,
    # this is the scale of the weights in `sklearn.linear_model.SGDClassifier`. `settle` makes a
    # pass over all weights.

    def __init__(self, recurrence: Recurrence, arrays: dict[str, np.ndarray], factor: float):
        # `factor` multiplies the rows. The arrays change in place, and hold the right values only
        # after `settle`.
        self._factor = factor
        self._basis = recurrence.basis
        arrays = {name: arrays[name] for name in recurrence.names}

        # The mean is in float64. What it has gained since the last pass has an array of its own.
        self._mean = arrays.pop(recurrence.mean, None) if recurrence.mean else None
        #: The weights, and maybe their velocities.
        self._moving = list(arrays.values())
        self._held = (
            self._moving if self._mean is None else [*self._moving, np.zeros_like(self._moving[0])]
        )
        identity = np.eye(len(self._held))
        self._first_scales = _Scales(recurrence, identity, identity)

        #: None: they are settled.
        self._scales: _Scales | None = None
        # The products of pairs of arrays, by number. None: there is no l2 term.
        self._products: dict[tuple[int, int], float] | None = {} if recurrence.l2 else None

        #: Of the weights before the last update: their squared norm, and their product with the
        #: gradient without the l2 term. Both are zero without an l2 term.
        self.square: float = 0.0
        self.along: float = 0.0

    def settle(self) -> None:
        """Make the arrays hold the weights, the velocities and the mean."""
        if self._scales is not None:
            self._combine(self._scales.to_natural)
            if self._mean is not None:
                self._mean *= self._scales.to_natural[-1, -1]
                self._mean += self._held[-1]
            self.forget()

    def forget(self) -> None:
        """Continue from arrays that somebody has overwritten."""
        self._scales = None
        if self._mean is not None:
            self._held[-1].fill(0)

    def products(self, rows: SparseRows) -> tuple[np.ndarray, list[np.ndarray]]:
        """
        Return the product of the rows, times the factor, with the weights, and those with the
        arrays that the weights are sums of.
        """
        if self._scales is None:
            # After `settle`, turn the arrays into u.
            self._combine(self._basis)
            if self._products is not None:
                pairs = itertools.product(enumerate(self._moving), repeat=2)
                self._products = {(i, j): float(np.vdot(a, b)) for (i, a), (j, b) in pairs}
            self._scales = self._first_scales

        parts = [rows.product(held) for held in self._moving]
        shares = self._scales.shares
        product = parts[0] * (shares[0] * self._factor)
        for part, share in zip(parts[1:], shares[1:], strict=False):
            product += part * (share * self._factor)

        return product, parts

    def update(
        self,
        rows: SparseRows,
        parts: list[np.ndarray],
        gradient: np.ndarray,
        eta: float,
        share: float = 0.0,
    ) -> None:
        """
        Make one update from the gradient by the products, (n_rows, n_outputs). `parts` comes from
        `products`. The mean moves by a `share` of the way to the new weights, and begins with one.
        """
        factor = self._factor
        scales = self._scales
        assert scales is not None  # They are settled no longer since `products`.
        begins = share == 1
        lengths, self._scales = scales.after(eta, 0.0 if begins else share)

        for held, length in zip(self._held, lengths, strict=True):
            if length:
                rows.add_transposed_product(gradient * (length * factor), held)

        if self._products is not None:
            along = [factor * float(np.vdot(part, gradient)) for part in parts]
            self.square = self._square(scales.shares)
            self.along = sum(map(operator.mul, scales.shares, along))

            if lengths[0]:
                # This squared norm of the gradient needs no pass over all weights.
                moved = factor * float(np.vdot(rows.product(self._held[0]), gradient))
                squared = (moved - along[0]) / lengths[0]

                for i, j in self._products:
                    step = (
                        lengths[i] * along[j]
                        + lengths[j] * along[i]
                        + lengths[i] * lengths[j] * squared
                    )
                    self._products[i, j] += step

        if begins or (self._scales is not scales and self._scales.is_far):
            self.settle()
        if begins:
            assert self._mean is not None  # Only a mean has shares.
            self._mean[...] = self._moving[0]

    def squared_gradient(self, rows: SparseRows, gradient: np.ndarray) -> float:
        """Return the squared norm of the gradient by the weights, from the gradient by the products."""
        gradient = gradient * self._factor
        by_weight = np.zeros_like(self._held[0])
        rows.add_transposed_product(gradient, by_weight)
        return float(np.vdot(rows.product(by_weight), gradient))

    def is_finite(self) -> bool:
        """Return whether all numbers are finite."""
        if (
            self._scales is not None
            and self._products is not None
            and math.isfinite(self._square([1.0] * len(self._moving)))
        ):
            return True

        return all(np.isfinite(held.sum()) for held in self._held)

    def _square(self, shares):
        """Return the squared norm of a sum of the moving arrays, each times its share."""
        return sum(
            shares[i] * shares[j] * product for (i, j), product in (self._products or {}).items()
        )

    def _combine(self, matrix):
        """Replace the held arrays by sums of them, with the rows of a matrix as factors."""
        mixed = matrix.copy()
        np.fill_diagonal(mixed, 0)
        added = [self._sum(shares) if shares.any() else None for shares in mixed]

        for held, share, more in zip(self._held, np.diag(matrix), added, strict=True):
            if share != 1:
                np.multiply(held, float(share), out=held)
            if more is not None:
                np.add(held, more, out=held)

    def _sum(self, shares):
        """Return a sum of the arrays, each times its share."""
        terms = [
            held * float(share) for held, share in zip(self._held, shares, strict=True) if share
        ]
        return sum(terms[1:], terms[0])
