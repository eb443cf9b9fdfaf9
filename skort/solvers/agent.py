"""TrainingAgent: forward with the raw-score gradient, backward, update."""

import numpy as np
import onnx

from skort.descent.averaging import Average
from skort.descent.batches import Batch
from skort.descent.clipping import clipped, norm
from skort.exceptions import RuntimeNotAvailableError
from skort.graphs.differentiable import runtime_gradient
from skort.graphs.gradient.elementwise import relu_gradient
from skort.graphs.initial import check_differentiable
from skort.objective.nodes import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET
from skort.objective.penalties import soft_threshold
from skort.onnx_text import Fragment, inlined, rewritten
from skort.runtime.device import CPU
from skort.runtime.installed import training_api, why_missing
from skort.runtime.training_agent import BoundTrainingAgent, gradient_graph
from skort.solvers.derived import check_loss, derived_score_gradient
from skort.solvers.state import everything, flat, load, saved, strengths_vector, views

__all__ = ["AgentSolver"]

_RETURNED_LOSS, _RETURNED_WEIGHT = f"{LOSS}_returned", f"{SAMPLE_WEIGHT}_returned"


class AgentSolver:
    """
    Steps through TrainingAgent.

    Forward computes the score, the objective and the gradient of the loss by the score, in closed form where the loss
    has one; backward takes that gradient to the weights; the optimizer changes them. All weights are parts of one
    vector, as are all gradients, which the runtime reads and writes in place: an update is a few operations on two
    vectors, whatever the model. The l1 term of a penalty is no part of the gradient: after the update its weights are
    moved towards zero by its strength times the length of the step, `soft_threshold`.

    Parameters
    ----------
    score_graph : ScoreGraph
    objective : Objective
    optimizer : Optimizer
    batch_size : int
    max_grad_norm, average, device, state
        As for `Solver`.

    Raises
    ------
    RuntimeNotAvailableError
        Where the installed ONNX Runtime has no TrainingAgent.
    NotTrainableError
        Where the loss brings no gradient, and ONNX Runtime does not differentiate it.
    """

    @staticmethod
    def check(dtype, optimizer, max_grad_norm=None):
        """Raise an error where the installed ONNX Runtime cannot train so this way."""
        if "TrainingAgent" not in training_api():
            raise RuntimeNotAvailableError(
                f'solver="agent" needs TrainingAgent; solver="graph" works here. {why_missing("TrainingAgent")}'
            )

    @staticmethod
    def check_model(score_graph, objective, batch_size):
        """Raise an error where the model or the loss is not differentiated."""
        check_differentiable(score_graph, "agent", runtime_gradient)
        if objective.loss.gradient_function(objective.n_outputs) is None:
            check_loss(objective, batch_size, runtime_gradient)

    def __init__(
        self,
        score_graph,
        objective,
        optimizer,
        batch_size,
        *,
        max_grad_norm=None,
        average=False,
        device=CPU,
        state=None,
    ):
        self._optimizer = optimizer
        self._max_grad_norm = max_grad_norm
        self.batch = Batch.empty(batch_size, score_graph.n_features, score_graph.n_outputs, objective.dtype)
        initial = score_graph.trained_arrays
        self._flat = flat(initial)
        self._gradient, self._clipped, self._scratch = (np.zeros_like(self._flat) for _ in range(3))
        self._weights = views(self._flat, initial)
        self._memory = optimizer.start(*score_graph.n_weights(), objective.dtype)
        self._average = Average(average, len(self._flat))
        if state is not None:
            self.restore(state)
        self._model = _gradient_graph(score_graph, objective, batch_size)
        inputs = {
            score_graph.input_name: self.batch.X,
            TARGET: self.batch.target,
            SAMPLE_WEIGHT: self.batch.sample_weight,
            **self._weights,
        }
        outputs = {_gradient_of(name): gradient for name, gradient in views(self._gradient, initial).items()}
        outputs[_RETURNED_LOSS] = loss = np.zeros((), objective.dtype)
        self.loss = loss.item
        returned = [self.batch.sample_weight]
        self._agent = BoundTrainingAgent(self._model.SerializeToString(), inputs, outputs, returned, device)
        self._l1 = strengths_vector(objective, initial, "l1")

    def step(self, eta):
        """Make one update with learning rate `eta`; return the objective on the batch before it."""
        objective = self._agent.run()
        gradient = self._gradient
        if self._max_grad_norm is not None:
            gradient = clipped(gradient, self._max_grad_norm, out=self._clipped)
        self._optimizer.update(self._flat, gradient, eta, self._memory, self._scratch)
        if self._l1 is not None:
            length = self._optimizer.step_length(eta, self._memory)
            soft_threshold(self._flat, length * self._l1, self._scratch)
        if self._average.count():
            self._average.add(self._flat)
        return objective

    def weights(self):
        """Return a copy of the trained weights, by name: of their mean where `average` has begun."""
        return views(self._average.mean(self._flat), self._weights)

    def gradient_norm(self):
        """Return the Euclidean norm of the last step's gradient, before it was clipped; 0 before the first step."""
        return norm(self._gradient)

    def state(self):
        """Return a copy of everything that training goes on from, by name."""
        return saved(self._arrays())

    def restore(self, state):
        """Go on from a state as from `state`."""
        load(self._arrays(), state)

    def _arrays(self):
        return everything(self._flat, self._memory, self._average)

    def training_graphs(self):
        """Return the graph of forward and backward; the update follows it in numpy."""
        return {"gradient": self._model}


def _gradient_of(name):
    return f"{name}_grad"


def _gradient_graph(score_graph, objective, batch_size):
    """
    Return the runtime's gradient graph of the score, with the objective written into it.

    The runtime yields the score to its caller, who is to bring back the gradient by the score. Here the backward part
    computes that gradient, and what is yielded is the objective: one call less a step, no copy, and memory that the
    runtime plans itself. The sample weights are yielded, too, and come back as they are: all that is computed from them
    then belongs to the backward part, without a product with one that says so.
    """
    model = score_graph.with_batch_size(batch_size)
    model = onnx.load_from_string(gradient_graph(model.SerializeToString(), score_graph.trainable))
    smooth = [name for name, strength in objective.strengths.items() if strength.l2]
    data_gradients = {_gradient_of(name): f"{name}_data_grad" for name in smooth}
    fragment = Fragment(objective.dtype)
    for node in model.graph.node:
        node.output[:] = [data_gradients.get(name, name) for name in node.output]
        if node.op_type == "YieldOp":
            (score_gradient,) = node.output
            objective.add_value(fragment, score_graph.score_name)
            fragment.nodes.append(node)
            node.input[:] = [OBJECTIVE, SAMPLE_WEIGHT]
            node.output[:] = [_gradient_of(OBJECTIVE), _RETURNED_WEIGHT]
            node.attribute[0].ints[:] = [0, 1]
            # Times one: what forward computes is an output only where backward computes with it.
            fragment.node("Mul", [LOSS, _gradient_of(OBJECTIVE)], [_RETURNED_LOSS])
            _add_score_gradient(fragment, objective, score_graph.score_name, batch_size)
            fragment.node("Identity", [SCORE_GRADIENT], [score_gradient])
        else:
            fragment.nodes.append(node)
    for name in smooth:
        gradient = _gradient_of(name)
        objective.add_weight_gradient(fragment, name, data_gradients[gradient], gradient)
    del model.graph.node[:]
    model.graph.node.extend(fragment.nodes)
    model.graph.input.extend(objective.inputs(batch_size))
    model.graph.output.append(objective.output(_RETURNED_LOSS))
    # ReluGrad does not exist in float64, and takes longer than the products of matrices in float32.
    return rewritten(inlined(model, fragment), {"ReluGrad": relu_gradient(objective.dtype)}, objective.dtype)


def _add_score_gradient(fragment, objective, score, batch_size):
    if objective.loss.gradient_function(objective.n_outputs) is None:
        gradient = derived_score_gradient(objective, batch_size)
        fragment.call_as_is(gradient, [score, TARGET, _RETURNED_WEIGHT], [SCORE_GRADIENT])
    else:
        objective.add_score_gradient(fragment, score, _RETURNED_WEIGHT)
