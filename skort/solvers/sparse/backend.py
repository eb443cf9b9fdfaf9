"""
The backends of solvers "graph" and "agent" for sparse X.

The product of X and the first layer is computed outside the graph.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import Fragment, build_model, domains_of, infos, pruned
from skort.graphs.gradient.forward_backward import add_model
from skort.graphs.gradient.reverse import add_gradients
from skort.graphs.standardized import PRODUCT, after_first_product, product_layer
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.optim.sparse import SparseBatch
from skort.optim.update import UpdateRule
from skort.runtime.sessions import StepSession
from skort.runtime.training_api import BoundTrainingAgent
from skort.solvers.agent import RETURNED_LOSS, GradientGraph, gradient_of
from skort.solvers.base import Backend, Problem, Sums, step_session, views
from skort.solvers.graph.backend import constants_graph, loss_program
from skort.solvers.sparse.updates import FullUpdate, make_update

# The name of the output with the gradient of the loss by a weight or by the product.
_GRADIENT_OF = "skort_gradient_of/%s"


class SparseBackend(Backend):
    """
    Steps on sparse rows.

    scipy multiplies them by the first layer, a session of `bind` computes the loss and the
    gradients, and numpy updates the weights.
    """

    def __init__(self, problem: Problem, bind: Callable[..., tuple[Any, Callable[[], Any]]]):
        layer = product_layer(problem.score_graph)
        graph = problem.score_graph
        dtype = problem.objective.dtype
        assert layer is not None and problem.row_factor is not None
        n_first = graph.arrays[layer.coefficient].size
        shape = graph.n_features, n_first // graph.n_features
        self._update = make_update(problem, shape, problem.row_factor)
        self.rule: UpdateRule = self._update.rule
        self.sums: Any = Sums()
        objective = dataclasses.replace(problem.objective, penalty=None)
        self._rest = dataclasses.replace(
            problem,
            score_graph=after_first_product(graph, layer),
            objective=objective,
            row_factor=None,
        )
        self.batch: Any = SparseBatch(
            (problem.batch_size, graph.n_features), graph.n_outputs, dtype
        )
        self._product, self._by_product = (
            np.zeros((problem.batch_size, shape[1]), dtype) for _ in range(2)
        )
        loss = np.zeros((), dtype)
        weights = self._rest.weights
        self._loss = loss.item
        batch = {
            PRODUCT: self._product,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
        }
        gradients = {PRODUCT: self._by_product, **views(self._update.gradient, weights)}
        self._later_weights = views(self._update.weights[n_first:], weights)
        self._graph, self._run = bind(self._rest, {**batch, **self._later_weights}, gradients, loss)

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return the graph from the first product to the gradients, and a graph of its weights."""
        self._update.settle()
        gradient = self._graph.model()
        weights = self._later_weights
        return {
            "gradient": gradient,
            "start": constants_graph(gradient, {**weights, **self._graph.parameters}),
        }

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        rows = self.batch.rows
        self._product[...] = self._update.product(rows)
        self._run()
        loss = self._loss()
        self.sums.add(share, loss + self._update.update(rows, self._by_product, eta), loss)

    def last_gradient(self) -> np.ndarray:
        """Return the gradient of the last step. A lazy update has none by all weights."""
        assert isinstance(self._update, FullUpdate)
        return self._update.whole_gradient

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of the last gradient before clipping; 0 before a step."""
        return self._update.gradient_norm()

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""
        return self._update.is_finite()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the rule's state."""
        self._update.settle()
        return {"weights": self._update.weights, **self._update.memory}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Overwrite the weights and the rule's state."""
        super().load(arrays)
        self._update.forget()


def sparse_graph_backend(problem: Problem) -> SparseBackend:
    """
    Return the backend of solver "graph" for sparse rows.

    Its graph has standard operators only.
    """

    def bind(rest, inputs, gradients, loss):
        graph = ProductGradientGraph(rest)
        outputs = {LOSS: loss} | {_GRADIENT_OF % name: array for name, array in gradients.items()}
        session = step_session(
            rest, ("sparse", rest.structure, loss_program(rest).structure), graph.model
        )
        return graph, StepSession(
            session, {**inputs, **graph.parameters}, outputs, {}, device=rest.device
        ).run

    return SparseBackend(problem, bind)


def sparse_agent_backend(problem: Problem) -> SparseBackend:
    """
    Return the backend of solver "agent" for sparse rows.

    ONNX Runtime differentiates its graph.
    """

    def bind(rest, inputs, gradients, loss):
        graph = GradientGraph(rest, by_rows=True)
        outputs = {gradient_of(name): array for name, array in gradients.items()} | {
            RETURNED_LOSS: loss
        }
        given = {**inputs, **graph.parameters}
        return graph, BoundTrainingAgent(
            graph.session(), given, outputs, [inputs[SAMPLE_WEIGHT]]
        ).run

    return SparseBackend(problem, bind)


@dataclass(frozen=True, eq=False)
class ProductGradientGraph:
    """
    The graph (product, target, sample weight, weights) -> (loss, gradients) after the first
    product.
    """

    problem: Problem

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers of the problem, by the names of their inputs."""
        return {**loss_program(self.problem).parameters, **self.problem.score_graph.frozen_arrays}

    def model(self) -> onnx.ModelProto:
        """Return the graph that runs. Each node is marked with its phase."""
        problem = self.problem
        objective = self.problem.objective
        score_graph = self.problem.score_graph
        fragment = Fragment(objective.dtype)
        model = add_model(fragment, score_graph, problem.batch_size)
        graph = model.graph
        loss_program(problem).write(fragment)

        with marked(fragment, "backward"):
            gradients = add_gradients(
                fragment, graph, SCORE_GRADIENT, [PRODUCT, *score_graph.trainable]
            )
            gradients |= objective.weight_gradients
            for name, result in gradients.items():
                fragment.node("Identity", [result], [_GRADIENT_OF % name])

        product = np.zeros((problem.batch_size, score_graph.n_features), objective.dtype)
        shapes = {PRODUCT: product, **problem.weights}
        outputs = [
            objective.output(LOSS),
            *infos({_GRADIENT_OF % name: shapes[name] for name in gradients}),
        ]
        numbers = infos({**problem.weights, **self.parameters})
        inputs = [graph.input[0], *objective.inputs(problem.batch_size), *numbers]
        made = helper.make_graph(fragment.nodes, "gradient", inputs, outputs, graph.initializer)

        return mark_rest(
            pruned(build_model(made, fragment, domains=domains_of(model)), drop_inputs=True)
        )
