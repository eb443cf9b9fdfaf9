"""What is to be trained through the on-device API, and its files: training, eval and optimizer model."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.shape_inference
from onnx import TensorProto, helper

from skort.common.formulas import function_text
from skort.common.node_phases import mark_rest, marked
from skort.common.onnx_text import OPSET, Fragment, build_model, infos, pruned
from skort.exceptions import NotTrainableError
from skort.graphs.differentiable import runtime_gradient, undifferentiable
from skort.graphs.gradient.reverse import add_gradients, rule_gradient
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
from skort.runtime.module import gradient_model
from skort.solvers.derived_gradients import add_custom_gradients

_SCORE = "skort_score"
_MICROSOFT = "com.microsoft"
_RESET = "lazy_reset_grad"
# A number whose gradients are those of the objective without its penalty.
_SURROGATE = "skort_surrogate"
_ONE = "skort_surrogate/one"
_SUM = function_text("sum_of_all (values) => (sum)", "sum = ReduceSum(values, keepdims=0)")
_INNER_PRODUCT = function_text("inner (score, gradient) => (sum)", "sum = ReduceSum(score * gradient, keepdims=0)")


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
        self._call(fragment, lambda body: self.objective.add_loss(body, _SCORE, LOSS), {LOSS: self.loss})

    def add_score_gradient(self, fragment: Fragment) -> dict[str, str]:
        """Add the nodes that compute `score_gradient`; return the names of the gradients by the loss's own weights."""
        by_weights = self.objective.weight_gradients
        plain = f"{self.score_gradient}/unweighted"
        results = {SCORE_GRADIENT: plain, **{name: name for name in by_weights.values()}}
        self._call(fragment, lambda body: self.objective.add_score_gradient(body, _SCORE), results)
        factor = f"{self.score_gradient}/factor"
        fragment.constant(factor, np.asarray(self.weight, self.objective.dtype))
        fragment.node("Mul", [plain, factor], [self.score_gradient])
        return by_weights

    def _call(self, fragment, write: Callable[[Fragment], None], results: dict[str, str]) -> None:
        """Call a function of one's own for the nodes of an objective, whose names are the same for every term."""
        body, weights = Fragment(self.objective.dtype), self.objective.loss.weight_names
        write(body)
        called = body.as_function("term", [_SCORE, TARGET, SAMPLE_WEIGHT, *weights], list(results))
        fragment.call_as_is(called, [self.score, self.target, self.sample_weight, *weights], list(results.values()))


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


def eval_model(plan: Plan) -> onnx.ModelProto:
    """Return the model (inputs, parameters) -> outputs of a plan, for any number of rows."""
    return _value_model(plan, None)


def training_model(plan: Plan, batch_size: int | None) -> onnx.ModelProto:
    """Return the model that computes the outputs of a plan, and adds the gradients of its parameters to buffers."""
    # What is differentiated is the sum of the products of scores and their losses' derivatives, taken for constants: so
    # the closed form of a loss's gradient is used, whoever differentiates the rest. These are skort's rules for batches
    # of `batch_size` rows; for None, any number of rows, ONNX Runtime, which takes a build for training.
    _check_inputs(plan, batch_size)
    value = _value_model(plan, batch_size)
    surrogate = _surrogate_model(plan, value)
    # Gradients need numbers for shapes, whose number of rows does not matter.
    _check_gradients(plan, batch_size, surrogate if batch_size else _surrogate_model(plan, _value_model(plan, 2)))
    fragment = Fragment(np.float32)
    gradients: dict[str, str] = {}
    for term in plan.terms:
        if not term.is_derived:
            with marked(fragment, "backward"):
                gradients |= term.add_score_gradient(fragment)
    names = [name for name in plan.trainable if name not in gradients]
    if batch_size is None:
        differentiated = gradient_model(surrogate.SerializeToString(), names, _SURROGATE)
        fragment.nodes, initializers = _with_score_gradients(onnx.load_from_string(differentiated), plan, fragment)
        gradients |= {name: f"{name}_grad" for name in names}
    else:
        fragment.nodes[:0], initializers = value.graph.node, list(value.graph.initializer)
        with marked(fragment, "backward"):
            fragment.constant(_ONE, np.ones((), np.float32))
            gradients |= add_gradients(fragment, surrogate.graph, _ONE, names)
    with marked(fragment, "penalty"):
        gradients = _with_penalty(fragment, plan, gradients)
    return mark_rest(_accumulating(plan, value, fragment, initializers, gradients))


def optimizer_model(name: str, options: Mapping[str, float] | None = None) -> onnx.ModelProto:
    """Return the model (rate, step, parameters, gradients, moments) -> whether it has updated: "SGD" or "AdamW"."""
    # ONNX Runtime gives moments to every optimizer.
    sequences = ["params", "gradients", "first_order_moments"]
    nodes, shape = [], [1]
    if name == "SGD":
        # ONNX Runtime expects a number as the output, whose shape the kernel takes from the learning rate, (1,).
        nodes = [helper.make_node("Squeeze", ["learning_rate"], ["rate"], doc_string="update")]
        node, shape = helper.make_node("SGDOptimizerV2", ["rate", "params", "gradients"], ["updated"]), []
    else:
        options = options or {}
        sequences.append("second_order_moments")
        node = helper.make_node(
            "AdamWOptimizer",
            ["learning_rate", "step", *sequences],
            ["updated"],
            alpha=float(options["beta_1"]),
            beta=float(options["beta_2"]),
            epsilon=float(options["epsilon"]),
            weight_decay=float(options["weight_decay"]),
            correct_bias=1,
            # epsilon is added to the root of the uncorrected moment, as in scikit-learn's and skort's Adam.
            adam_mode=1,
        )
    node.domain = _MICROSOFT
    inputs = [
        helper.make_tensor_value_info("learning_rate", TensorProto.FLOAT, [1]),
        helper.make_tensor_value_info("step", TensorProto.INT64, [1]),
        *(helper.make_tensor_sequence_value_info(s, TensorProto.FLOAT, None) for s in sequences),
    ]
    output = helper.make_tensor_value_info("updated", TensorProto.BOOL, shape)
    return mark_rest(_model(helper.make_graph([*nodes, node], "optimizer", inputs, [output])))


def _check_inputs(plan, batch_size):
    """Raise an error where there is nothing to train, and where an input is for one number of rows."""
    if not plan.trainable:
        raise NotTrainableError("trainable: there is no parameter to train.")
    if batch_size is None:
        for value in plan.user_inputs:
            dims = value.type.tensor_type.shape.dim
            if dims and (n := dims[0].dim_value):
                raise ValueError(
                    f"batch_size=None: the input {value.name!r} has {n} rows. Use batch_size={n}, or export the model "
                    "for any number of rows."
                )


def _check_gradients(plan, batch_size, surrogate):
    """Raise an error where an operator between a parameter and the loss has no gradient."""
    gradient = runtime_gradient if batch_size is None else rule_gradient
    loss_weights = {name for term in plan.terms for name in term.objective.loss.weight_names}
    of_model = [name for name in plan.trainable if name not in loss_weights]
    obstacle = undifferentiable(surrogate.graph, of_model, gradient)
    if obstacle is not None:
        operator, node = obstacle
        advice = "batch_size (skort's own rules)" if batch_size is None else "batch_size=None (those of ONNX Runtime)"
        raise NotTrainableError(
            f"No gradient goes through the operator {operator}{f' (node {node!r})' if node else ''} between a "
            f"parameter and the loss. Train parameters after it (trainable), or try {advice}."
        )


def _value_model(plan, batch_size):
    """Return the model (inputs, parameters) -> outputs: of `batch_size` rows, or of any."""
    source, fragment = plan.structure.graph, Fragment(np.float32)
    with marked(fragment, "loss"):
        plan.before(fragment)
        losses = []
        for term in plan.terms:
            term.add_loss(fragment)
            fragment.constant(f"{term.loss}/weight", np.asarray(term.weight, np.float32))
            fragment.node("Mul", [term.loss, f"{term.loss}/weight"], [f"{term.loss}/weighted"])
            losses.append(f"{term.loss}/weighted")
        _add_sum(fragment, losses or [source.output[0].name], LOSS)
    fragment.nodes[:0] = source.node
    with marked(fragment, "penalty"):
        if plan.penalized is None:
            fragment.node("Identity", [LOSS], [OBJECTIVE])
        else:
            plan.penalized.add_penalty(fragment)
    with marked(fragment, "loss"):
        plan.after(fragment)
    inputs = [*(_with_rows(i, batch_size) for i in plan.user_inputs), *infos({**plan.trainable, **plan.frozen})]
    outputs = [onnx.ValueInfoProto(name=name) for name in plan.outputs]
    graph = helper.make_graph(fragment.nodes, "value", inputs, outputs, source.initializer)
    model = onnx.shape_inference.infer_shapes(_model(graph, fragment, plan.structure), data_prop=True)
    known = {i.name: i for i in (*model.graph.value_info, *model.graph.output)}
    scalar = infos({name: np.zeros((), np.float32) for name in (LOSS, OBJECTIVE)})
    known |= {i.name: i for i in scalar}
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in plan.outputs)
    return model


def _add_sum(fragment, names, result):
    """Add the sum of some numbers; ONNX Runtime differentiates Add, and does not differentiate Sum."""
    total = names[0]
    for i, name in enumerate(names[1:], start=1):
        fragment.node("Add", [total, name], [f"{result}/{i}"])
        total = f"{result}/{i}"
    fragment.node("Identity", [total], [result])


def _with_rows(value, batch_size):
    """Return an input for a number of rows."""
    value, dims = copy.deepcopy(value), value.type.tensor_type.shape.dim
    if dims and batch_size is not None and dims[0].dim_value not in (0, batch_size):
        raise ValueError(f"batch_size={batch_size}: the input {value.name!r} has {dims[0].dim_value} rows.")
    if dims and not dims[0].dim_value:
        dim = value.type.tensor_type.shape.dim[0]
        dim.Clear()
        if batch_size is None:
            dim.dim_param = "n_rows"
        else:
            dim.dim_value = batch_size
    return value


def _with_penalty(fragment, plan, gradients):
    """Return the names of the gradients to which those of the penalty are added, but for those of an l1 term."""
    if plan.penalized is None:
        return gradients
    parts = [
        plan.penalized.add_l2_gradients(fragment),
        add_custom_gradients(fragment, plan.penalized, {**plan.trainable, **plan.frozen}),
    ]
    for i, by_weight in enumerate(parts):
        for name in by_weight.keys() & gradients.keys():
            total = f"skort_{name}_gradient/{i}"
            fragment.node("Add", [gradients[name], by_weight[name]], [total])
            gradients = gradients | {name: total}
    return gradients


def _surrogate_model(plan, value):
    """Return a model with one output, a number, whose gradients by the parameters are those of the losses."""
    fragment, parts = Fragment(np.float32), []
    fragment.nodes.extend(value.graph.node)
    given = []
    for term in plan.terms:
        if term.is_derived:
            parts.append(f"{term.loss}/weighted")
            continue
        score = next(i for i in (*value.graph.value_info, *value.graph.output) if i.name == term.score)
        given.append(copy.deepcopy(score))
        given[-1].name = term.score_gradient
        parts.append(f"{term.score_gradient}/sum")
        fragment.call(_INNER_PRODUCT, [term.score, term.score_gradient], [parts[-1]])
    if plan.terms:
        _add_sum(fragment, parts, _SURROGATE)
    else:
        fragment.call(_SUM, [plan.structure.graph.output[0].name], [_SURROGATE])
    output = infos({_SURROGATE: np.zeros((), np.float32)})
    inputs = [*value.graph.input, *given]
    graph = helper.make_graph(fragment.nodes, "surrogate", inputs, output, value.graph.initializer)
    return onnx.shape_inference.infer_shapes(_model(graph, fragment, plan.structure), data_prop=True)


def _with_score_gradients(model, plan, fragment):
    """Return the nodes of a gradient graph, among which those of the score gradients are, and its initializers."""
    after = {term.score_gradient for term in plan.terms if not term.is_derived}
    early, late = [], []
    for node in model.graph.node:
        if _SURROGATE in node.output:
            continue
        if after.isdisjoint(node.input):
            early.append(node)
        else:
            late.append(node)
            after.update(node.output)
    return [*early, *fragment.nodes, *late], list(model.graph.initializer)


def _accumulating(plan, value, fragment, initializers: Sequence[TensorProto], gradients):
    """Return the training model: every gradient is added to its buffer, an input that the node changes in place."""
    buffers, outputs = {}, list(value.graph.output)
    for name, array in plan.trainable.items():
        accumulation = f"{name}_grad.accumulation"
        buffers[f"{accumulation}.buffer"] = array
        read = [f"{accumulation}.buffer", gradients[name], _RESET]
        fragment.node("InPlaceAccumulatorV2", read, [f"{accumulation}.out"], domain=_MICROSOFT)
        fragment.nodes[-1].doc_string = "backward"
        outputs.append(helper.make_tensor_value_info(f"{accumulation}.out", TensorProto.BOOL, [1]))
    inputs = [*value.graph.input, *infos(buffers), helper.make_tensor_value_info(_RESET, TensorProto.BOOL, [1])]
    graph = helper.make_graph(fragment.nodes, "training", inputs, outputs, initializers)
    return pruned(_model(graph, fragment, plan.structure))


def _model(graph, fragment=None, source=None):
    """Return a graph as a model with the operators of a source, and with those of ONNX Runtime."""
    domains = {o.domain: o.version for o in (() if source is None else source.opset_import)}
    domains |= {"": OPSET, _MICROSOFT: 1}
    return build_model(graph, fragment, domains=domains, producer_name="skort")
