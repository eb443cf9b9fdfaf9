"""Updates after a step on sparse rows: of all weights, or of those of the rows' columns."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skort.optim.optimizers import State
from skort.optim.row_change import SparseRows
from skort.optim.sparse import LazyWeights, Recurrence
from skort.optim.transforms import norm
from skort.optim.update import PenaltyStrengths, UpdateRule
from skort.solvers.base import Problem, flat


def make_update(
    problem: Problem, shape: tuple[int, int], factor: float
) -> "FullUpdate | LazyUpdate":
    """
    Return the update for a problem.

    It changes only the weights of the rows' columns if that is exact, or if the user asked for it
    with `Adam(lazy=True)`. Otherwise it changes all weights.
    """
    recurrence = _recurrence(problem)
    if recurrence is not None:
        return LazyUpdate(problem, shape, factor, recurrence)

    # A lazy Adam must have no clipping, averaging, decay or l1 term around it.
    is_lazy_adam = (
        problem.update.tags.is_lazy and problem.update.is_plain and problem.terms.l1 is None
    )
    return (TouchedUpdate if is_lazy_adam else FullUpdate)(problem, shape, factor)


def _recurrence(problem):
    """Return the linear recurrence of the first weights in steps without gradient, or None."""
    update = problem.update
    strengths = problem.objective.strengths
    if update.max_grad_norm is not None or any(
        np.any(strength.l1) for strength in strengths.values()
    ):
        return None

    first = next(iter(problem.weights))
    l2 = np.ravel(strengths[first].l2 if first in strengths else 0.0)
    if np.any(l2 != l2[0]):
        return None

    averaging = update.rule().averaging
    mean = None if averaging is None else averaging.names[0]
    recurrence = Recurrence.of(update.tags.linear, float(l2[0]), mean)
    # An implicit step cannot be lazy.
    steep = PenaltyStrengths(l2=2 * l2[:1])
    return None if recurrence is None or (l2[0] > 0 and update.is_stiff(steep)) else recurrence


class FullUpdate:
    """
    The update of all weights by the usual rule.

    The first weights have the given `shape`. `gradient` is the gradient by the other weights.
    """

    def __init__(self, problem: Problem, shape: tuple[int, int], factor: float):
        self.rule: UpdateRule = problem.rule()
        self._factor = factor
        self._terms = problem.terms
        self.weights: np.ndarray = flat(problem.weights)
        self.whole_gradient: np.ndarray = np.zeros_like(self.weights)
        self._scratch = np.empty_like(self.weights)
        n_first = shape[0] * shape[1]
        self._first, self._by_first = (
            a[:n_first].reshape(shape) for a in (self.weights, self.whole_gradient)
        )
        self.gradient: np.ndarray = self.whole_gradient[n_first:]
        self.memory: State = self.rule.start(*problem.n_weights, self.weights.dtype)

    def product(self, rows: SparseRows) -> np.ndarray:
        """Return the product of the rows and the first weights."""
        product = rows.product(self._first)
        return np.multiply(product, self._factor, out=product)

    def update(self, rows: SparseRows, by_product: np.ndarray, eta: float) -> float:
        """
        Make one update from the gradient by the product;
        return the penalty of the weights before it.
        """
        self._by_first.fill(0)
        rows.add_transposed_product(by_product * self._factor, self._by_first)
        penalty = _add_penalty(self._terms, self.weights, self.whole_gradient, self._scratch)
        self.rule.update(self.weights, self.whole_gradient, eta, self.memory, self._scratch)
        return penalty

    def settle(self) -> None:
        """Do nothing: all weights are up to date."""

    def forget(self) -> None:
        """Do nothing: it keeps nothing but the arrays."""

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last gradient before clipping."""
        return norm(self.whole_gradient)

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        return bool(np.isfinite(self.weights).all())


class TouchedUpdate(FullUpdate):
    """
    The usual rule, but only for later layers and for the weights of columns with values in the
    batch.
    """

    def __init__(self, problem: Problem, shape: tuple[int, int], factor: float):
        super().__init__(problem, shape, factor)
        self._outputs, self._later = (
            np.arange(shape[1]),
            np.arange(shape[0] * shape[1], len(self.weights)),
        )
        self._moments = [
            name for name, array in self.memory.items() if array.shape == self.weights.shape
        ]
        self._norm = 0.0
        self.forget()

    def update(self, rows: SparseRows, by_product: np.ndarray, eta: float) -> float:
        """
        Make one update from the gradient by the product;
        return the penalty of the weights before it.
        """
        rows.add_transposed_product(by_product * self._factor, self._by_first)
        by_column = rows.columns()[:, None] * len(self._outputs) + self._outputs
        touched = np.concatenate([by_column.ravel(), self._later])
        weights = self.weights[touched]
        gradient = self.whole_gradient[touched]
        scratch = np.empty_like(weights)
        self.whole_gradient[by_column.ravel()] = 0
        l2 = None if self._terms.l2 is None else self._terms.l2[touched]
        moments = {name: self.memory[name][touched] for name in self._moments}
        penalty = self._penalty
        before = _add_penalty(PenaltyStrengths(l2=l2), weights, gradient, scratch)
        self.rule.update(weights, gradient, eta, {**self.memory, **moments}, scratch)
        if l2 is not None:
            self._penalty += _l2_value(l2, weights) - before
        self.weights[touched], self._norm = weights, norm(gradient)
        for name, array in moments.items():
            self.memory[name][touched] = array

        return penalty

    def forget(self) -> None:
        """Continue from overwritten arrays: compute the penalty again."""
        l2 = self._terms.l2
        self._penalty = 0.0 if l2 is None else _l2_value(l2, self.weights)

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last gradient by the weights that the update changed."""
        return self._norm


class LazyUpdate:
    """
    An exact update of all weights that only touches the weights of columns with values in the
    batch.

    The other weights follow a linear recurrence. They catch up when their columns have values
    again.
    """

    def __init__(
        self, problem: Problem, shape: tuple[int, int], factor: float, recurrence: Recurrence
    ):
        self._recurrence = recurrence
        self._update = problem.update
        self._terms = problem.terms_of(dict(list(problem.weights.items())[1:]))

        # This rule updates the later layers only, but its `result`, which does not depend on the
        # penalty, is right for all weights.
        self.rule: UpdateRule = problem.update.rule(self._terms)
        self.weights: np.ndarray = flat(problem.weights)
        n_first = shape[0] * shape[1]
        self.memory: State = self.rule.start(*problem.n_weights, self.weights.dtype)
        held = {"weights": self.weights, **self.memory}
        by_weight = {name for name, array in held.items() if array.shape == self.weights.shape}
        first = {name: held[name][:n_first].reshape(shape) for name in by_weight}
        self._lazy = LazyWeights(recurrence, first, factor)
        self.settle: Callable[[], None] = self._lazy.settle
        self.forget: Callable[[], None] = self._lazy.forget
        self._other_weights = self.weights[n_first:]
        self._other_memory = {
            n: a[n_first:] if n in by_weight else a for n, a in self.memory.items()
        }
        self.gradient: np.ndarray = np.zeros_like(self._other_weights)
        self._scratch = np.zeros_like(self._other_weights)

        # Start the rule again, so that its own arrays have the size of the other weights.
        self.rule.start(0, len(self._other_weights), self.weights.dtype)
        self._last: Callable[[], float] = float

    def product(self, rows: SparseRows) -> np.ndarray:
        """Return the product of the rows and the first weights."""
        product, self._parts = self._lazy.products(rows)
        return product

    def update(self, rows: SparseRows, by_product: np.ndarray, eta: float) -> float:
        """
        Make one update from the gradient by the product;
        return the penalty of the weights before it.
        """
        penalty = _add_penalty(self._terms, self._other_weights, self.gradient, self._scratch)
        self.rule.update(self._other_weights, self.gradient, eta, self._other_memory, self._scratch)
        lazy = self._lazy
        l2 = self._recurrence.l2
        averaging = self.rule.averaging
        share = 0.0 if averaging is None else averaging.share(self.memory)
        lazy.update(rows, self._parts, by_product, eta, share)
        self._last = lambda: lazy.squared_gradient(rows, by_product)

        return penalty + 0.5 * l2 * lazy.square

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last gradient."""
        l2 = self._recurrence.l2
        first = self._last() + l2 * (2 * self._lazy.along + l2 * self._lazy.square)
        return float(np.sqrt(max(first, 0.0) + norm(self.gradient) ** 2))

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        return self._lazy.is_finite() and bool(np.isfinite(self._other_weights).all())


def _l2_value(strengths, weights):
    return 0.5 * float(np.vdot(strengths * weights, weights))


def _add_penalty(terms: PenaltyStrengths, weights: Any, gradient: Any, scratch: Any) -> float:
    """Add the gradient of the l2 term to `gradient`; return the value of the whole penalty."""
    penalty = 0.0
    if terms.l2 is not None:
        np.multiply(terms.l2, weights, out=scratch)
        np.add(gradient, scratch, out=gradient)
        penalty += 0.5 * float(np.vdot(scratch, weights))

    if terms.l1 is not None:
        np.abs(weights, out=scratch)
        penalty += float(np.vdot(terms.l1, scratch))

    return penalty
