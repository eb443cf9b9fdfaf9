"""A rule: how a gradient changes the weights; an optimizer, or a transform around another rule."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from skort.common.onnx_text import Fragment

__all__ = ["OptimizerRule", "Rule"]


class Rule(Protocol):
    """
    What a solver needs of an update: an `Optimizer` with a result, in numpy and as nodes of an ONNX graph.

    A transform has another rule inside, and the same methods.
    """

    def start(self, n_coefficients: int, n_others: int, dtype: np.dtype) -> dict[str, np.ndarray]:
        """Return the state before the first update, as `Optimizer.start`."""

    def update(self, weights, gradient, eta: float, state, scratch) -> None:
        """Make one update in place, as `Optimizer.update`."""

    def step_length(self, eta: float, state) -> float | np.ndarray:
        """Return how far a constant gradient of one moves a weight, as `Optimizer.step_length`."""

    def add_nodes(self, fragment: "Fragment", names: dict[str, str]) -> dict[str, str]:
        """
        Add the nodes of one update.

        Parameters
        ----------
        fragment : Fragment
            They are added here.
        names : dict of str to str
            What the result is called that holds "weights", "gradient", "eta" (a scalar), and each array of the state.

        Returns
        -------
        results : dict of str to str
            The same for "weights" and the arrays of the state that an update changes, after it, and for "length",
            the result of `step_length`.
        """

    def result(self, weights: np.ndarray, state) -> np.ndarray:
        """Return the trained weights as a new vector."""


class OptimizerRule:
    """
    An optimizer as a rule.

    Parameters
    ----------
    optimizer : Optimizer
        For `add_nodes`, an `OnnxOptimizer`.
    """

    def __init__(self, optimizer: Any):
        self.optimizer = optimizer
        self.start, self.update, self.step_length = optimizer.start, optimizer.update, optimizer.step_length

    def add_nodes(self, fragment, names):
        """Add a call to the optimizer's ONNX function."""
        from skort.common.parametrized_graph import signature

        source = self.optimizer.onnx_update()
        given, made = signature(source)
        possible = ["length", *(f"next_{name}" for name in names)]
        if not (set(given) <= names.keys() and {"next_weights", "length"} <= set(made) <= set(possible)):
            raise ValueError(
                f"optimizer={self.optimizer!r}: onnx_update has the inputs {given} and the results {made}. Its "
                f"inputs may be {list(names)}, its results {possible}; next_weights and length are required."
            )
        results = {name.removeprefix("next_"): f"skort_optimizer_{name}" for name in made}
        fragment.call(source, [names[name] for name in given], list(results.values()))
        return results

    def result(self, weights, state):
        """Return a copy of the weights."""
        return weights.copy()
