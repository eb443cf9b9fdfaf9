"""The phase of a training step that a node belongs to: its doc_string, which every runtime and viewer reads."""

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

import onnx

Phase: TypeAlias = Literal["forward", "loss", "backward", "penalty", "update"]
#: In the order of a step.
PHASES: tuple[Phase, ...] = get_args(Phase)

# What ONNX Runtime writes into the nodes of the gradients and updates that it makes.
_OF_RUNTIME = "Backward pass"
_UPDATES = ("SGDOptimizer", "SGDOptimizerV2", "AdamOptimizer", "AdamWOptimizer")


@contextlib.contextmanager
def marked(writer: Any, phase: Phase) -> Iterator[None]:
    """Mark the nodes that are added to a Fragment or Program meanwhile, and those of the functions that they call."""
    first = len(writer.nodes)
    yield
    for node in writer.nodes[first:]:
        node.doc_string = phase


def mark_rest(model: onnx.ModelProto) -> onnx.ModelProto:
    """Mark the nodes of a step that have no mark yet, in place: those of ONNX Runtime, and then the forward pass."""
    for node in model.graph.node:
        if node.op_type in _UPDATES:
            node.doc_string = "update"
        elif phase_of(node) is None:
            node.doc_string = "backward" if node.doc_string == _OF_RUNTIME else "forward"
    return model


def phase_of(node: onnx.NodeProto) -> str | None:
    """Return the phase that a node is marked with, or None."""
    return node.doc_string if node.doc_string in PHASES else None
