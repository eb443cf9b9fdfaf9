"""TrainingAgent: forward with the raw-score gradient, backward, update."""

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
from skort.runtime.cache import COMPILED
from skort.runtime.sessions import inference_session, session_options
from skort.runtime.training_api import BoundTrainingAgent, gradient_graph
from skort.solvers.base import Problem, is_small
from skort.solvers.derived_gradients import add_custom_gradients, add_score_gradient, derived_score_gradient
from skort.solvers.flat_weights import flat, views
from skort.solvers.graph.step_graph import constants_graph
from skort.solvers.step import HostBackend

#: The output that is the loss.
RETURNED_LOSS, _RETURNED_WEIGHT = f"{LOSS}_returned", f"{SAMPLE_WEIGHT}_returned"


class AgentBackend(HostBackend):
    """Steps through TrainingAgent: forward, backward from the gradient by the score, the rule on numpy's vectors."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self.rule = problem.rule()
        self._flat, self._graph = flat(problem.weights), GradientGraph(problem)
        self.gradient, self._scratch = np.zeros_like(self._flat), np.zeros_like(self._flat)
        self._memory = self.rule.start(*problem.n_weights(), self._flat.dtype)
        inputs = {**self.inputs, **views(self._flat, problem.weights), **self._graph.parameters}
        outputs = {gradient_of(name): part for name, part in views(self.gradient, problem.weights).items()}
        outputs[RETURNED_LOSS] = loss = np.zeros((), self._flat.dtype)
        self._loss = loss.item
        self.session = BoundTrainingAgent(self._graph.session(), inputs, outputs, [self.batch.sample_weight])

    def run(self, eta, share):
        """Make one update with learning rate `eta` on the batch, which is this part of the epoch."""
        objective = self.session.run()
        self.update(eta)
        self.sums.add(share, objective, self._loss())

    def forward(self) -> float:
        """Return the objective of the batch, and keep what `backward` needs."""
        return self.session.forward()

    def backward(self) -> dict[str, np.ndarray]:
        """Return the gradient by each weight, without that of an l1 term: what `update` reads."""
        self.session.backward()
        return views(self.gradient, self._problem.weights)

    def update(self, eta: float) -> None:
        """Change the weights by the last gradient with learning rate `eta`."""
        self.rule.update(self._flat, self.gradient, eta, self._memory, self._scratch)

    def arrays(self):
        """Return the weights and the rule's state."""
        return {"weights": self._flat, **self._memory}

    def training_graphs(self):
        """Return the graph of forward and backward, and what it reads beside a batch; the update follows in numpy."""
        gradient, arrays = self._graph.model(), {**views(self._flat, self._problem.weights), **self._graph.parameters}
        return {"gradient": gradient, "start": constants_graph(gradient, arrays)}


def gradient_of(name: str) -> str:
    """Return the name of the output that is the gradient by a weight, or by X."""
    return f"{name}_grad"


@dataclass(frozen=True, eq=False)
class GradientGraph:
    """Forward and backward of a problem, whose numbers are inputs; `by_rows`: with the gradient by X, too."""

    problem: Problem
    by_rows: bool = False

    @functools.cached_property
    def _programs(self) -> tuple[Program, Program, Program]:
        """Values, gradient by the score, and penalty: what is written into the gradient graph of the score."""
        problem, objective = self.problem, self.problem.objective
        parts = "value", "score_gradient", "penalty_gradient"
        value, by_score, penalty = (Program(objective.dtype, problem.batch_size, part) for part in parts)
        objective.add_value(value, problem.score_graph.score_name)
        with marked(by_score, "backward"):
            score = problem.score_graph.score_name
            add_score_gradient(by_score, objective, score, problem.batch_size, derived_score_gradient, _RETURNED_WEIGHT)
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
        """The numbers, by the names of the inputs."""
        of_parts = {name: array for program in self._programs for name, array in program.parameters.items()}
        return {**of_parts, **self.problem.score_graph.frozen_arrays}

    def model(self) -> onnx.ModelProto:
        """Return the graph as it runs, each node marked with its phase."""
        problem = self.problem
        graph = problem.score_graph
        source = graph.with_frozen_inputs(problem.batch_size).SerializeToString()
        inputs = [graph.input_name] if self.by_rows else []
        model = onnx.load_from_string(gradient_graph(source, graph.trainable, inputs))
        parameters = {name: a for name, a in self.parameters.items() if name not in graph.frozen_arrays}
        return mark_rest(_with_objective(model, problem, *self._programs, parameters))

    def session(self) -> Any:
        """Return the session of all problems of a structure."""
        problem = self.problem

        def compile_graph():
            is_float64 = problem.objective.dtype == np.float64
            options = session_options(problem.device)
            # Where layers are put side by side, the pattern lets the backward run write over what it still reads.
            options.enable_mem_pattern = False
            graph = self.model().SerializeToString()
            return inference_session(graph, float64=is_float64, device=problem.device, options=options)

        key = problem.structure, self.by_rows, tuple(program.structure for program in self._programs)
        return COMPILED.get(("gradient", *key), compile_graph) if is_small(problem) else compile_graph()


def _with_objective(model, problem, value, by_score, penalty, parameters):
    """Return the runtime's gradient graph of the score, with the objective written into it."""
    # The runtime yields the score to its caller, who is to bring back the gradient by the score. Here the backward part
    # computes that gradient, and what is yielded is the objective: one call less a step, no copy, and memory that the
    # runtime plans itself. The sample weights are yielded, too, and come back as they are: all that is computed from
    # them then belongs to the backward part, without a product with one that says so.
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
                # ONNX Runtime returns a forward value only if backward uses it; hence the product with one.
                fragment.node("Mul", [LOSS, gradient_of(OBJECTIVE)], [RETURNED_LOSS])
            by_score.write(fragment)
            with marked(fragment, "backward"):
                fragment.node("Identity", [SCORE_GRADIENT], [score_gradient])
        else:
            fragment.nodes.append(node)
    penalty.write(fragment)
    replace_nodes(model.graph, fragment.nodes)
    by_weights = objective.weight_gradients
    model.graph.input.extend([*objective.inputs(problem.batch_size), *objective.weight_infos(by_weights)])
    model.graph.input.extend(infos(parameters))
    model.graph.output.extend([objective.output(RETURNED_LOSS), *objective.weight_infos(by_weights.values())])
    # ReluGrad does not exist in float64, and takes longer than the products of matrices in float32.
    return rewritten(inlined(model, fragment), {"ReluGrad": relu_gradient(objective.dtype)}, objective.dtype)


def _smooth(objective):
    """Return the names of the weights whose penalty is part of their gradient."""
    return [*objective.with_term("l2"), *objective.custom_terms]
