"""The steps of solvers "graph" and "agent" where X is sparse."""

import abc
import dataclasses
from typing import Any

import numpy as np

from skort.graphs.after_first_matmul import PRODUCT, after_first_product, product_layer
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, TARGET
from skort.optim.sparse import SparseBatch
from skort.runtime.training_agent import BoundTrainingAgent
from skort.solvers.agent import RETURNED_LOSS, AgentSolver, GradientGraph, gradient_of
from skort.solvers.base import BaseSolver, Problem
from skort.solvers.flat_weights import views
from skort.solvers.graph.solver import GraphSolver
from skort.solvers.graph.step_graph import constants_graph
from skort.solvers.sparse.gradient_graph import ProductGradientGraph, gradient_name
from skort.solvers.sparse.updates import make_update

__all__ = ["SparseAgentSolver", "SparseGraphSolver"]


class _SparseSolver(BaseSolver):
    """
    Steps in which neither the rows nor the gradient by the weights that they are multiplied by become dense.

    scipy computes the product of the rows and the coefficients of the first layer. A graph takes the product, and gives
    the loss and the gradients by the product and by all other weights; a subclass says how it runs. The gradient by the
    first coefficients is again a product of the rows. The weights change in numpy: with SGD and momentum only where the
    rows have values, see `LazyWeights`; where a rule has no such form, all of them.

    Parameters
    ----------
    problem : Problem
        With a `row_factor`.
    """

    def __init__(self, problem: Problem):
        layer, graph, dtype = product_layer(problem.score_graph), problem.score_graph, problem.objective.dtype
        assert layer is not None and problem.row_factor is not None
        n_first = graph.arrays[layer.coefficient].size
        shape = graph.n_features, n_first // graph.n_features
        self._update = make_update(problem, shape, problem.row_factor)
        self._start(problem.weights, self._update.rule)
        objective = dataclasses.replace(problem.objective, penalty=None)
        self._rest = dataclasses.replace(
            problem, score_graph=after_first_product(graph, layer), objective=objective, row_factor=None
        )
        self.batch = SparseBatch((problem.batch_size, graph.n_features), graph.n_outputs, dtype)
        self._product, self._by_product = (np.zeros((problem.batch_size, shape[1]), dtype) for _ in range(2))
        loss, weights = np.zeros((), dtype), self._rest.weights
        self._loss = loss.item
        batch = {PRODUCT: self._product, TARGET: self.batch.target, SAMPLE_WEIGHT: self.batch.sample_weight}
        gradients = {PRODUCT: self._by_product, **views(self._update.gradient, weights)}
        self._later_weights = views(self._update.weights[n_first:], weights)
        self._run = self._bound({**batch, **self._later_weights}, gradients, loss).run

    @abc.abstractmethod
    def _bound(self, inputs: dict[str, np.ndarray], gradients: dict[str, np.ndarray], loss: np.ndarray) -> Any:
        """Return what runs the graph of the rest of the problem: it reads `inputs`, and writes the others."""

    def training_graphs(self):
        """Return the graph from the first product to the gradients, and what it reads; scipy and numpy do the rest."""
        self._update.settle()
        gradient, weights = self._graph.model(), self._later_weights
        return {"gradient": gradient, "start": constants_graph(gradient, {**weights, **self._graph.parameters})}

    def step(self, eta, share):
        """Make one update with learning rate `eta` on the batch, which is this part of the epoch."""
        rows = self.batch.rows
        self._product[...] = self._update.product(rows)
        self._run()
        loss = self._loss()
        self._add(share, loss + self._update.update(rows, self._by_product, eta), loss)

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""
        return self._update.gradient_norm()

    def is_finite(self):
        """Return whether all weights are finite."""
        return self._update.is_finite()

    def _read(self):
        self._update.settle()
        return {"weights": self._update.weights, **self._update.memory}

    def _write(self, state):
        for name, array in self._read().items():
            array[...] = state[name]
        self._update.forget()


class SparseGraphSolver(_SparseSolver):
    """
    Solver "graph" for sparse rows: the graph is one of standard operators.

    Parameters
    ----------
    problem : Problem
        With a `row_factor`.
    """

    name, check = GraphSolver.name, GraphSolver.check
    gradient = staticmethod(GraphSolver.gradient)

    def _bound(self, inputs, gradients, loss):
        self._graph = ProductGradientGraph(self._rest)
        outputs = {gradient_name(name): array for name, array in gradients.items()}
        return self._graph.bound(inputs, {LOSS: loss, **outputs})


class SparseAgentSolver(_SparseSolver):
    """
    Solver "agent" for sparse rows: ONNX Runtime differentiates the graph.

    Parameters
    ----------
    problem : Problem
        With a `row_factor`.
    """

    name, check = AgentSolver.name, AgentSolver.check
    gradient = staticmethod(AgentSolver.gradient)

    def _bound(self, inputs, gradients, loss):
        self._graph = GradientGraph(self._rest, by_rows=True)
        outputs = {gradient_of(name): array for name, array in gradients.items()}
        outputs[RETURNED_LOSS] = loss
        inputs = {**inputs, **self._graph.parameters}
        return BoundTrainingAgent(self._graph.session(), inputs, outputs, [self.batch.sample_weight])
