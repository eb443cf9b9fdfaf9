"""What a solver is."""

from typing import Protocol

import numpy as np
import onnx

from skort.descent.loop import Stepper
from skort.descent.optimizers import Optimizer
from skort.graphs.score_graph import ScoreGraph
from skort.objective.nodes import Objective

__all__ = ["Solver"]


class Solver(Stepper, Protocol):
    """
    One gradient step of the objective through an API of ONNX Runtime.

    All solvers make the same steps: the same weights, batches and learning rates give the same weights.
    """

    def __init__(
        self,
        score_graph: ScoreGraph,
        objective: Objective,
        optimizer: Optimizer,
        batch_size: int,
        *,
        max_grad_norm: float | None = None,
        average: bool | int = False,
        state: dict[str, np.ndarray] | None = None,
    ): ...

    @staticmethod
    def check(dtype: np.dtype, optimizer: Optimizer, max_grad_norm: float | None = None) -> None:
        """Raise an error where the installed ONNX Runtime cannot train so this way."""

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""

    def state(self) -> dict[str, np.ndarray]:
        """
        Return a copy of everything that training goes on from, by name.

        A solver that is made with it as `state` makes the same steps, to the last bit, as this one would.
        """

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name."""
