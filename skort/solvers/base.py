"""What a solver is."""

from typing import Protocol

import numpy as np
import onnx

from skort.descent.optimizers import Optimizer
from skort.descent.training import Stepper
from skort.graphs.score_graph import ScoreGraph
from skort.objective.nodes import Objective
from skort.runtime.device import CPU, Device

__all__ = ["Solver"]


class Solver(Stepper, Protocol):
    """
    One gradient step of the objective through an API of ONNX Runtime.

    All solvers make the same steps: the same weights, batches and learning rates give the same weights.

    Parameters
    ----------
    score_graph : ScoreGraph
        With the initial weights.
    objective : Objective
    optimizer : Optimizer
    batch_size : int
    max_grad_norm : float or None, default=None
        A longer gradient is shortened to this Euclidean norm.
    average : bool or int, default=False
        From which update on the mean of the weights takes the place of the weights, see `Average`.
    device : Device, default=CPU
        What the steps run on.
    state : dict of str to ndarray, default=None
        As from `state`: what to go on from. None: the initial weights.
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
        device: Device = CPU,
        state: dict[str, np.ndarray] | None = None,
    ): ...

    @staticmethod
    def check(dtype: np.dtype, optimizer: Optimizer, max_grad_norm: float | None = None) -> None:
        """Raise an error where the installed ONNX Runtime cannot train so this way."""

    @staticmethod
    def check_model(score_graph: ScoreGraph, objective: Objective, batch_size: int) -> None:
        """Raise a NotTrainableError where an operator of the model or of its loss has no gradient here."""

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name."""
