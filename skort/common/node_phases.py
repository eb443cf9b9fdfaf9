"""
The phase of a training step that a node belongs to.

It is the doc_string of the node, which every runtime and viewer reads.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, get_args

import onnx

Phase: TypeAlias = Literal["forward", "loss", "backward", "penalty", "update"]
#: In the order of a step.
PHASES: tuple[Phase, ...] = get_args(Phase)

# The doc_string that ONNX Runtime gives to the nodes of gradients and updates.
_OF_RUNTIME = "Backward pass"
_UPDATES = ("SGDOptimizer", "SGDOptimizerV2", "AdamOptimizer", "AdamWOptimizer")


@contextlib.contextmanager
def marked(writer: Any, phase: Phase) -> Iterator[None]:
    """
    Mark the nodes that are added to a Fragment or Program in this context with a phase.

    The nodes of the functions that they call get the same mark.
    """
    first = len(writer.nodes)
    yield
    for node in writer.nodes[first:]:
        node.doc_string = phase


def mark_rest(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Mark the nodes of a step that have no mark yet, in place.

    ONNX Runtime's nodes are in the update or the backward pass, others in the forward pass.
    """
    for node in model.graph.node:
        if node.op_type in _UPDATES:
            node.doc_string = "update"
        elif phase_of(node) is None:
            node.doc_string = "backward" if node.doc_string == _OF_RUNTIME else "forward"

    return model


def phase_of(node: onnx.NodeProto) -> str | None:
    """Return the phase that a node is marked with, or None."""
    return node.doc_string if node.doc_string in PHASES else None
