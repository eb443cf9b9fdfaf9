"""Score graphs that are a chain of layers: linear models and neural networks."""

from dataclasses import dataclass

from skort.graphs.score_graph import ScoreGraph

_ACTIVATIONS = frozenset({"Exp", "Identity", "Relu", "Sigmoid", "Tanh"})


@dataclass(frozen=True)
class Link:
    """One layer of a chain: a product with the result of the one before, an intercept, and operators with one input."""

    coefficient: str
    intercept: str | None = None
    activations: tuple[str, ...] = ()


def chain_of(score_graph: ScoreGraph) -> tuple[Link, ...] | None:
    """Return the layers of a model, from X to the score; None where it is no chain of layers that are all trained."""
    result, links, used = score_graph.input_name, list[Link](), list[str]()
    for node in score_graph.structure.graph.node:
        others = [name for name in node.input if name != result]
        if len(others) != len(node.input) - 1:
            return None
        if node.op_type == "MatMul" and node.input[0] == result:
            links.append(Link(*others))
        elif links and node.op_type == "Add" and links[-1].intercept is None and not links[-1].activations:
            links[-1] = Link(links[-1].coefficient, *others)
        elif links and node.op_type in _ACTIVATIONS:
            last = links[-1]
            links[-1] = Link(last.coefficient, last.intercept, (*last.activations, node.op_type))
        else:
            return None
        used += others
        result = node.output[0]
    is_whole = result == score_graph.score_name and sorted(used) == sorted(score_graph.trainable)
    return tuple(links) if is_whole and _fits(score_graph, links) else None


def _fits(score_graph, links):
    """Return whether the weights of all layers have the shapes of layers."""
    shapes = [(score_graph.arrays[link.coefficient].shape, link.intercept) for link in links]
    return all(len(shape) == 2 and (not b or score_graph.arrays[b].size == shape[1]) for shape, b in shapes)
