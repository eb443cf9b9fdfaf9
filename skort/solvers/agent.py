"""Solver "agent": TrainingAgent runs forward and backward, and numpy makes the update."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import Fragment, infos, inlined, replace_nodes, rewritten
from skort.common.parametrized_graph import Program
from skort.graphs.gradient.elementwise import relu_gradient
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT
from skort.optim.update import UpdateRule
from skort.runtime.cache import COMPILED
from skort.runtime.sessions import inference_session, session_options
from skort.runtime.training_api import BoundTrainingAgent, gradient_graph
from skort.solvers.base import HostBackend, Problem, flat, is_small, views
from skort.solvers.derived_gradients import (
    add_custom_gradients,
    add_score_gradient,
    derived_score_gradient,
)
from skort.solvers.graph.backend import constants_graph

#: The name of the output with the loss.
RETURNED_LOSS, _RETURNED_WEIGHT = f"{LOSS}_returned", f"{SAMPLE_WEIGHT}_returned"


class AgentBackend(HostBackend):
    """Steps of TrainingAgent: it runs forward and backward, and the rule updates numpy vectors."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.rule: UpdateRule = problem.rule()
        self._flat, self._graph = flat(problem.weights), GradientGraph(problem)
        self.gradient: np.ndarray = np.zeros_like(self._flat)
        self._scratch = np.zeros_like(self._flat)
        self._memory = self.rule.start(*problem.n_weights, self._flat.dtype)
        inputs = {**self.inputs, **views(self._flat, problem.weights), **self._graph.parameters}
        outputs = {
            gradient_of(name): part for name, part in views(self.gradient, problem.weights).items()
        }
        outputs[RETURNED_LOSS] = loss = np.zeros((), self._flat.dtype)
        self._loss = loss.item
        self.session: BoundTrainingAgent = BoundTrainingAgent(
            self._graph.session(), inputs, outputs, [self.batch.sample_weight]
        )

    def run(self, eta: float, share: float) -> None:
        """Make one update with learning rate `eta` on the batch, a part `share` of the epoch."""
        objective = self.session.run()
        self.update(eta)
        self.sums.add(share, objective, self._loss())

    def forward(self) -> float:
        """Return the objective of the batch, and keep the intermediate results for `backward`."""
        return self.session.forward()

    def backward(self) -> dict[str, np.ndarray]:
        """Return the gradient by each weight, without the l1 term. `update` reads these arrays."""
        self.session.backward()
        return Gradients(views(self.gradient, self._problem.weights))

    def update(self, eta: float) -> None:
        """Update the weights by the last gradient with learning rate `eta`."""
        self.rule.update(self._flat, self.gradient, eta, self._memory, self._scratch)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights and the rule's state."""
        return {"weights": self._flat, **self._memory}

    def training_graphs(self) -> dict[str, onnx.ModelProto]:
        """Return the graph of forward and backward, and a graph of its other inputs."""
        gradient = self._graph.model()
        arrays = {**views(self._flat, self._problem.weights), **self._graph.parameters}
        return {"gradient": gradient, "start": constants_graph(gradient, arrays)}


class Gradients(dict[str, np.ndarray]):
    """The gradient by each weight. A new array for a name is written into the one that is used."""

    def __setitem__(self, name: str, value: np.ndarray) -> None:
        self[name][...] = value


def gradient_of(name: str) -> str:
    """Return the name of the output with the gradient by a weight or by X."""
    return f"{name}_grad"


@dataclass(frozen=True, eq=False)
class GradientGraph:
    """
    The graph of forward and backward of a problem. The numbers of the problem are inputs.

    With `by_rows`, the graph also returns the gradient by X.
    """

    problem: Problem
    by_rows: bool = False

    @functools.cached_property
    def _programs(self) -> tuple[Program, Program, Program]:
        """The parts that `model` adds to the runtime's graph: values, score gradient, penalty."""
        problem = self.problem
        objective = self.problem.objective
        parts = "value", "score_gradient", "penalty_gradient"
        value, by_score, penalty = (
            Program(objective.dtype, problem.batch_size, part) for part in parts
        )
        objective.add_value(value, problem.score_graph.score_name)

        with marked(by_score, "backward"):
            score = problem.score_graph.score_name
            add_score_gradient(
                by_score,
                objective,
                score,
                problem.batch_size,
                derived_score_gradient,
                _RETURNED_WEIGHT,
            )

        added = {name: [f"{name}_data_grad"] for name in _smooth(objective)}
        with marked(penalty, "penalty"):
            of_l2 = objective.add_l2_gradients(penalty)
            custom = add_custom_gradients(penalty, objective, problem.weights)
            for name, gradient in (*of_l2.items(), *custom.items()):
                added[name].append(gradient)
            for name, gradients in added.items():
                penalty.node("Sum", gradients, [gradient_of(name)])

        return value, by_score, penalty

    @functools.cached_property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers of the problem, by the names of their inputs."""
        of_parts = {
            name: array for program in self._programs for name, array in program.parameters.items()
        }
        return {**of_parts, **self.problem.score_graph.frozen_arrays}

    def model(self) -> onnx.ModelProto:
        """Return the graph that runs. Each node is marked with its phase."""
        problem = self.problem
        graph = problem.score_graph
        source = graph.with_frozen_inputs(problem.batch_size).SerializeToString()
        inputs = [graph.input_name] if self.by_rows else []
        model = onnx.load_from_string(gradient_graph(source, graph.trainable, inputs))
        parameters = {
            name: a for name, a in self.parameters.items() if name not in graph.frozen_arrays
        }

        return mark_rest(_with_objective(model, problem, *self._programs, parameters))

    def session(self) -> Any:
        """Return the session, which small problems of the same structure share."""
        problem = self.problem

        def compile_graph():
            is_float64 = problem.objective.dtype == np.float64
            options = session_options(problem.device)
            # With layers side by side, the memory pattern lets the backward run overwrite memory
            # that it still reads.
            options.enable_mem_pattern = False
            graph = self.model().SerializeToString()

            return inference_session(
                graph, float64=is_float64, device=problem.device, options=options
            )

        key = (
            problem.structure,
            self.by_rows,
            tuple(program.structure for program in self._programs),
        )
        return (
            COMPILED.get(("gradient", *key), compile_graph)
            if is_small(problem)
            else compile_graph()
        )


def _with_objective(model, problem, value, by_score, penalty, parameters):
    """Return the runtime's gradient graph of the score, with the objective added to it."""
    # In the runtime's graph, the YieldOp gives the score to the caller, and takes the gradient by
    # the score from the caller. Here, the backward part computes this gradient, and the YieldOp
    # gives the objective to the caller. This saves one call per step and a copy, and the runtime
    # plans the memory. The YieldOp also gives the sample weights, and takes them back unchanged. So
    # all nodes that read them from there belong to the backward part.
    objective = problem.objective
    data_gradients = {gradient_of(name): f"{name}_data_grad" for name in _smooth(objective)}
    fragment = Fragment(objective.dtype)

    for node in model.graph.node:
        node.output[:] = [data_gradients.get(name, name) for name in node.output]
        if node.op_type == "YieldOp":
            (score_gradient,) = node.output
            value.write(fragment)
            node.input[:] = [OBJECTIVE, SAMPLE_WEIGHT]
            node.output[:] = [gradient_of(OBJECTIVE), _RETURNED_WEIGHT]
            node.attribute[0].ints[:] = [0, 1]

            with marked(fragment, "loss"):
                fragment.nodes.append(node)
                # ONNX Runtime returns a forward value only if backward uses it. Hence the product
                # of the loss and one, the gradient of the objective by itself.
                fragment.node("Mul", [LOSS, gradient_of(OBJECTIVE)], [RETURNED_LOSS])

            by_score.write(fragment)
            with marked(fragment, "backward"):
                fragment.node("Identity", [SCORE_GRADIENT], [score_gradient])
        else:
            fragment.nodes.append(node)

    penalty.write(fragment)
    replace_nodes(model.graph, fragment.nodes)
    by_weights = objective.weight_gradients
    model.graph.input.extend(
        [*objective.inputs(problem.batch_size), *objective.weight_infos(by_weights)]
    )
    model.graph.input.extend(infos(parameters))
    model.graph.output.extend(
        [objective.output(RETURNED_LOSS), *objective.weight_infos(by_weights.values())]
    )

    # ReluGrad does not exist in float64. In float32, it takes longer than the products of matrices.
    return rewritten(
        inlined(model, fragment), {"ReluGrad": relu_gradient(objective.dtype)}, objective.dtype
    )


def _smooth(objective):
    """Return the names of the weights with a penalty that is part of the gradient."""
    return [*objective.with_term("l2"), *objective.custom_terms]
