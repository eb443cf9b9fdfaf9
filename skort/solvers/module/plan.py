"""What is to be trained through the on-device API: a graph, its parameters and its losses."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from skort.common.onnx_text import DOMAIN, Fragment, build_model
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective

_SCORE = "skort_score"


@dataclass(frozen=True, eq=False)
class Term:
    """A loss of one output of a graph, by the names of score and target, (n_rows, n_outputs), and of weights."""

    score: str
    target: str
    sample_weight: str
    #: Its loss counts, its penalty does not.
    objective: Objective
    #: What the loss is multiplied by.
    weight: float = 1.0

    @property
    def loss(self) -> str:
        """The name of the weighted sum of the loss over the batch."""
        return f"skort_loss_of/{self.score}"

    @property
    def score_gradient(self) -> str:
        """The name of the derivative of `loss`, times `weight`, by the score."""
        return f"skort_score_gradient_of/{self.score}"

    @property
    def is_derived(self) -> bool:
        """Whether the loss brings no gradient of its own."""
        return self.objective.loss.gradient_function(self.objective.n_outputs) is None

    def add_loss(self, fragment: Fragment) -> None:
        """Add the nodes that compute `loss`."""
        called = self._function(lambda body: self.objective.add_loss(body, _SCORE, LOSS), [LOSS])
        fragment.call_as_is(called, self._inputs(), [self.loss])

    def add_score_gradient(self, fragment: Fragment) -> dict[str, str]:
        """Add the nodes that compute `score_gradient`; return the names of the gradients by the loss's own weights."""
        by_weights = self.objective.weight_gradients
        outputs = [SCORE_GRADIENT, *by_weights.values()]
        called = self._function(lambda body: self.objective.add_score_gradient(body, _SCORE), outputs)
        plain = [f"{self.score_gradient}/unweighted", *by_weights.values()]
        fragment.call_as_is(called, self._inputs(), plain)
        factor = f"{self.score_gradient}/factor"
        fragment.constant(factor, np.asarray(self.weight, self.objective.dtype))
        fragment.node("Mul", [plain[0], factor], [self.score_gradient])
        return by_weights

    def _inputs(self):
        return [self.score, self.target, self.sample_weight, *self.objective.loss.weight_names]

    def _function(self, write: Callable[[Fragment], None], outputs):
        """Return a function of one's own for the nodes of an objective, whose names are the same for every term."""
        body, inputs = Fragment(self.objective.dtype), [_SCORE, TARGET, SAMPLE_WEIGHT]
        write(body)
        model = build_model(helper.make_graph(body.nodes, "term", [], []), body)
        inputs += self.objective.loss.weight_names
        return helper.make_function(DOMAIN, "term", inputs, outputs, model.graph.node, model.opset_import)


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be trained: a graph up to its scores, its parameters in float32, and its losses."""

    structure: onnx.ModelProto
    trainable: dict[str, np.ndarray]
    frozen: dict[str, np.ndarray]
    #: Empty: the first output of the structure is the loss.
    terms: tuple[Term, ...]
    #: What the models are to return, the loss first.
    outputs: tuple[str, ...]
    #: What the user gives beside the inputs of the structure, such as targets. The first dimension is that of the rows.
    inputs: tuple[onnx.ValueInfoProto, ...] = ()
    #: Its penalty counts, its loss does not.
    penalized: Objective | None = None
    #: Add targets and sample weights, made of the inputs, and further outputs of the objective.
    before: Callable[[Fragment], None] = lambda fragment: None
    after: Callable[[Fragment], None] = lambda fragment: None

    @property
    def user_inputs(self) -> list[onnx.ValueInfoProto]:
        """What the user gives: rows, targets and sample weights."""
        parameters = {*self.trainable, *self.frozen}
        return [*(i for i in self.structure.graph.input if i.name not in parameters), *self.inputs]
