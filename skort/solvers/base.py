"""What a solver is."""

from typing import Protocol

import onnx

from skort.descent.loop import Stepper

__all__ = ["Solver"]


class Solver(Stepper, Protocol):
    """
    One gradient step of the objective through an API of ONNX Runtime.

    A solver is made of a `ScoreGraph`, an `Objective`, an optimizer and a batch size. All solvers make the same steps:
    the same weights, batches and learning rates give the same weights.
    """

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return every ONNX graph that a step runs, by name."""
