"""The graph behind the first product: score, loss, and the gradient by the product and by the other weights."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from skort.common.model_builder import build_model, domains_of
from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import Fragment, infos
from skort.common.parametrized_graph import Program
from skort.graphs.after_first_matmul import PRODUCT
from skort.graphs.gradient.reverse import add_gradients
from skort.graphs.score_graph import set_batch_size
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.runtime.cache import LRUCache
from skort.runtime.sessions import compiled
from skort.runtime.step_session import StepSession
from skort.solvers.base import Problem, is_small
from skort.solvers.graph.step_graph import add_loss, read_inputs_only

__all__ = ["ProductGradientGraph", "gradient_name"]

# A search has few structures. A session of a small step keeps about a MB.
_SESSIONS: LRUCache = LRUCache(16)


def gradient_name(name: str) -> str:
    """Return the name of the output that is the gradient of the loss by a weight, or by the product."""
    return f"skort_gradient_of/{name}"


@dataclass(frozen=True, eq=False)
class ProductGradientGraph:
    """
    The graph (product, target, sample weight, weights) -> (loss, its gradients) of a problem, whose numbers are inputs.

    The score graph is one as from `skort.graphs.after_first_matmul.after_first_product`.
    """

    problem: Problem

    @functools.cached_property
    def _loss(self):
        loss = Program(self.problem.objective.dtype, self.problem.batch_size, "loss")
        add_loss(loss, self.problem)
        return loss

    @functools.cached_property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers, by the names of the inputs."""
        return {**self._loss.parameters, **self.problem.score_graph.frozen_arrays}

    def model(self) -> onnx.ModelProto:
        """Return the graph as it runs, each node marked with its phase."""
        return mark_rest(_graph(self.problem, self._loss.write, self.parameters))

    def bound(self, inputs: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> StepSession:
        """Return the session, which problems of one structure share: every run reads `inputs`, overwrites `outputs`."""
        problem = self.problem

        def compile_graph():
            graph = self.model()
            return compiled(graph.SerializeToString(), problem.device), frozenset(i.name for i in graph.graph.input)

        key = problem.structure, self._loss.structure
        session, names = _SESSIONS.get(key, compile_graph) if is_small(problem) else compile_graph()
        given = {**inputs, **self.parameters}
        return StepSession(session, {name: given[name] for name in names}, outputs, {}, {}, device=problem.device)


def _graph(problem: Problem, write_loss: Any, parameters: dict[str, np.ndarray]) -> onnx.ModelProto:
    objective, score_graph = problem.objective, problem.score_graph
    fragment, model = Fragment(objective.dtype), onnx.ModelProto()
    model.CopyFrom(score_graph.structure)
    set_batch_size(model, problem.batch_size)
    graph = model.graph
    fragment.nodes.extend(graph.node)
    write_loss(fragment)
    with marked(fragment, "backward"):
        gradients = add_gradients(fragment, graph, SCORE_GRADIENT, [PRODUCT, *score_graph.trainable])
        gradients |= objective.weight_gradients
        for name, result in gradients.items():
            fragment.nodes.append(helper.make_node("Identity", [result], [gradient_name(name)]))
    scalar, width = np.zeros((), objective.dtype), score_graph.n_features
    shapes = {PRODUCT: np.zeros((problem.batch_size, width), objective.dtype), **problem.weights}
    outputs = infos({LOSS: scalar, **{gradient_name(name): shapes[name] for name in gradients}})
    loss_inputs = objective.inputs(problem.batch_size)
    inputs = {PRODUCT: graph.input[0], TARGET: loss_inputs[0], SAMPLE_WEIGHT: loss_inputs[1]}
    inputs |= {info.name: info for info in infos({**problem.weights, **parameters})}
    made = helper.make_graph(fragment.nodes, "gradient", list(inputs.values()), outputs, graph.initializer)
    return read_inputs_only(build_model(made, fragment, domains=domains_of(model)))
