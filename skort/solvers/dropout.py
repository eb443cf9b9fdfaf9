"""Dropout: what draws the masks of every step, around a solver that reads them."""

from typing import Any

import numpy as np
import onnx

from skort.exceptions import NotTrainableError
from skort.solvers.base import BaseSolver, Problem

__all__ = ["DropoutSolver"]

_STATE = "dropout"


class DropoutSolver:
    """
    A solver, and the masks that each of its steps multiplies by.

    The masks of a step depend on the seed and on the number of the step alone: a training that is resumed goes on with
    the same ones.

    Parameters
    ----------
    solver : BaseSolver
        Of the problem. Its step reads the masks where they are.
    problem : Problem
        Its score graph has masks.
    seed : int
        Not negative, below 2^32.

    Raises
    ------
    NotTrainableError
        For a device with memory of its own.
    """

    def __init__(self, solver: BaseSolver, problem: Problem, seed: int):
        if problem.device.is_remote:
            raise NotTrainableError(
                f"estimator: the ONNX model has a Dropout in training mode, whose masks are drawn on the CPU, got "
                f'device="{problem.device.name}". Use device="cpu", or export the model in evaluation mode.'
            )
        self._solver: Any = solver
        self.batch = solver.batch
        graph = problem.score_graph
        self._masks = [(graph.arrays[name], ratio) for name, ratio in graph.dropout.items()]
        self._seed, self._n_steps = seed, 0
        self.objective, self.means, self.gradient_norm = solver.objective, solver.means, solver.gradient_norm
        self.weights, self.read, self.is_finite = solver.weights, solver.read, solver.is_finite

    def step(self, eta: float, share: float) -> None:
        """Draw masks, and make one update with learning rate `eta`."""
        self._draw()
        self._solver.step(eta, share)

    def forward(self) -> float:
        """Draw masks, and return the objective of the batch; see `AgentSolver.forward`."""
        self._draw()
        return self._solver.forward()

    def backward(self) -> dict[str, np.ndarray]:
        """Return the gradients with the masks of `forward`."""
        return self._solver.backward()

    def update(self, eta: float) -> None:
        """Change the weights by the last gradient."""
        self._solver.update(eta)

    def state(self) -> dict[str, np.ndarray]:
        """Return a copy of everything that training goes on from, the seed and the number of steps included."""
        return {**self._solver.state(), _STATE: np.array([self._seed, self._n_steps], np.int64)}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """
        Go on from a state as from `state`.

        Raises
        ------
        ValueError
            Where the state is that of another model or of other parameters.
        """
        if _STATE not in state or state[_STATE].shape != (2,):
            raise ValueError("state does not fit: it comes from a training without Dropout.")
        self._solver.restore({name: array for name, array in state.items() if name != _STATE})
        self._seed, self._n_steps = (int(number) for number in state[_STATE])

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name: the masks are inputs."""
        return self._solver.training_graphs()

    def _draw(self):
        self._n_steps += 1
        generator = np.random.Generator(np.random.Philox(key=self._seed, counter=self._n_steps << 128))
        for mask, ratio in self._masks:
            np.multiply(generator.random(mask.shape, np.float32) >= ratio, 1 / (1 - ratio), out=mask, casting="unsafe")
