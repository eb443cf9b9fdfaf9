"""What a solver is."""

from typing import Protocol

import numpy as np
import onnx

from skort.descent.loop import Stepper
from skort.descent.optimizers import SGD
from skort.graphs.score_graph import ScoreGraph
from skort.objective.nodes import Objective

__all__ = ["Solver"]


class Solver(Stepper, Protocol):
    """
    One gradient step of the objective through an API of ONNX Runtime.

    All solvers make the same steps: the same weights, batches and learning rates give the same weights.
    """

    def __init__(self, score_graph: ScoreGraph, objective: Objective, optimizer: SGD, batch_size: int): ...

    @staticmethod
    def check(dtype: np.dtype) -> None:
        """Raise an error where the installed ONNX Runtime cannot train in `dtype` this way."""

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name."""
