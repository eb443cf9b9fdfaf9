"""The models of the on-device API (training, eval and optimizer model), and their blueprint."""

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
from skort.objective.objective import (
    LOSS,
    OBJECTIVE,
    SAMPLE_WEIGHT,
    SCORE_GRADIENT,
    TARGET,
    Objective,
)
from skort.runtime.module import gradient_model
from skort.solvers.derived_gradients import add_custom_gradients

_SCORE = "skort_score"
_MICROSOFT = "com.microsoft"
_RESET = "lazy_reset_grad"
# The name of a scalar with the same gradients as the objective without its penalty.
_SURROGATE = "skort_surrogate"
_ONE = "skort_surrogate/one"
_SUM = function_text("sum_of_all (values) => (sum)", "sum = ReduceSum(values, keepdims=0)")
_INNER_PRODUCT = function_text(
    "inner (score, gradient) => (sum)", "sum = ReduceSum(score * gradient, keepdims=0)"
)


@dataclass(frozen=True, eq=False)
class Term:
    """A loss of one output of a graph."""

    #: The names of the score and the target, each of shape (n_rows, n_outputs).
    score: str
    target: str
    #: The name of the sample weights.
    sample_weight: str
    #: The objective whose loss this is. Its penalty does not count.
    objective: Objective
    #: The factor of the loss.
    weight: float = 1.0

    @property
    def loss(self) -> str:
        """The name of the weighted sum of the loss over the batch."""
        return f"skort_loss_of/{self.score}"

    @property
    def score_gradient(self) -> str:
        """The name of `weight` times the derivative of `loss` by the score."""
        return f"skort_score_gradient_of/{self.score}"

    @property
    def is_derived(self) -> bool:
        """Whether the loss has no gradient of its own, so that it has to be derived."""
        return self.objective.loss.gradient_function(self.objective.n_outputs) is None

    def add_loss(self, fragment: Fragment) -> None:
        """Add the nodes that compute `loss`."""
        self._call(
            fragment, lambda body: self.objective.add_loss(body, _SCORE, LOSS), {LOSS: self.loss}
        )

    def add_score_gradient(self, fragment: Fragment) -> dict[str, str]:
        """
        Add the nodes that compute `score_gradient`.

        Return the names of the gradients by the loss's own weights.
        """
        by_weights = self.objective.weight_gradients
        plain = f"{self.score_gradient}/unweighted"
        results = {SCORE_GRADIENT: plain, **{name: name for name in by_weights.values()}}
        self._call(fragment, lambda body: self.objective.add_score_gradient(body, _SCORE), results)
        factor = f"{self.score_gradient}/factor"
        fragment.constant(factor, np.asarray(self.weight, self.objective.dtype))
        fragment.node("Mul", [plain, factor], [self.score_gradient])

        return by_weights

    def _call(self, fragment, write: Callable[[Fragment], None], results: dict[str, str]) -> None:
        """
        Add the nodes of an objective as a function.

        Their names, which are the same for every term, are inside the function.
        """
        body = Fragment(self.objective.dtype)
        weights = self.objective.loss.weight_names
        write(body)
        called = body.as_function("term", [_SCORE, TARGET, SAMPLE_WEIGHT, *weights], list(results))
        fragment.call_as_is(
            called, [self.score, self.target, self.sample_weight, *weights], list(results.values())
        )


@dataclass(frozen=True, eq=False)
class Blueprint:
    """The parts of training and eval models: a graph up to its scores, float32 parameters, losses."""

    structure: onnx.ModelProto
    trainable: dict[str, np.ndarray]
    frozen: dict[str, np.ndarray]
    #: The losses. Without any, the first output of the structure is the loss.
    terms: tuple[Term, ...]
    #: The outputs of the models, the loss first.
    outputs: tuple[str, ...]
    #: The inputs besides those of the structure, such as targets. Their first dimension is the
    #: rows.
    inputs: tuple[onnx.ValueInfoProto, ...] = ()
    #: The objective with the penalty. Its loss does not count.
    penalized: Objective | None = None
    #: These functions add nodes: for targets and sample weights before the losses, and for further
    #: outputs after the objective.
    before: Callable[[Fragment], None] = lambda fragment: None
    after: Callable[[Fragment], None] = lambda fragment: None

    @property
    def user_inputs(self) -> list[onnx.ValueInfoProto]:
        """The inputs without the parameters: rows, targets and sample weights."""
        parameters = {*self.trainable, *self.frozen}
        return [*(i for i in self.structure.graph.input if i.name not in parameters), *self.inputs]


def eval_model(blueprint: Blueprint) -> onnx.ModelProto:
    """Return the model (inputs, parameters) -> outputs of a blueprint, for any number of rows."""
    return _value_model(blueprint, None)


def training_model(blueprint: Blueprint, batch_size: int | None) -> onnx.ModelProto:
    """
    Return the model that computes the outputs of a blueprint, and adds gradients to buffers.

    skort's own rules differentiate the model for batches of `batch_size` rows. With None, for any
    number of rows, ONNX Runtime differentiates it, which needs a build for training.
    """
    # The differentiated scalar is the sum of the products of each score and the derivative of its
    # loss, which counts as a constant. So the gradient of a loss is its closed form, if it has one.
    _check_inputs(blueprint, batch_size)
    value = _value_model(blueprint, batch_size)
    surrogate = _surrogate_model(blueprint, value, batch_size)

    # The check of the gradients needs known shapes. Any number of rows will do.
    _check_gradients(
        blueprint,
        batch_size,
        surrogate if batch_size else _surrogate_model(blueprint, _value_model(blueprint, 2), 2),
    )
    fragment = Fragment(np.float32)
    gradients: dict[str, str] = {}

    for term in blueprint.terms:
        if not term.is_derived:
            with marked(fragment, "backward"):
                gradients |= term.add_score_gradient(fragment)

    names = [name for name in blueprint.trainable if name not in gradients]
    if batch_size is None:
        differentiated = gradient_model(surrogate.SerializeToString(), names, _SURROGATE)
        fragment.nodes, initializers = _with_score_gradients(
            onnx.load_from_string(differentiated), blueprint, fragment
        )
        gradients |= {name: f"{name}_grad" for name in names}
    else:
        fragment.nodes[:0], initializers = value.graph.node, list(value.graph.initializer)
        with marked(fragment, "backward"):
            fragment.constant(_ONE, np.ones((), np.float32))
            gradients |= add_gradients(fragment, surrogate.graph, _ONE, names)

    with marked(fragment, "penalty"):
        gradients = _with_penalty(fragment, blueprint, gradients)
    return mark_rest(_accumulating(blueprint, value, fragment, initializers, gradients))


def optimizer_model(name: str, options: Mapping[str, float] | None = None) -> onnx.ModelProto:
    """
    Return the optimizer model "SGD" or "AdamW".

    Its inputs are the learning rate, the step, parameters, gradients and moments. Its output says
    whether it has updated the parameters.
    """
    # ONNX Runtime passes first moments to every optimizer model.
    sequences = ["params", "gradients", "first_order_moments"]
    nodes = []
    shape = [1]

    if name == "SGD":
        # ONNX Runtime expects a scalar output. The kernel gives it the shape of the learning rate,
        # which is (1,).
        nodes = [helper.make_node("Squeeze", ["learning_rate"], ["rate"], doc_string="update")]
        node = helper.make_node("SGDOptimizerV2", ["rate", "params", "gradients"], ["updated"])
        shape = []
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
            # Add epsilon to the root of the uncorrected moment, as Adam of scikit-learn and skort
            # do.
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


def _check_inputs(blueprint, batch_size):
    """
    Raise an error if there is nothing to train, or if an input has a fixed number of rows.

    With a `batch_size`, inputs may have a fixed number of rows.
    """
    if not blueprint.trainable:
        raise NotTrainableError("trainable: there is no parameter to train.")

    if batch_size is None:
        for value in blueprint.user_inputs:
            dims = value.type.tensor_type.shape.dim
            if dims and (n := dims[0].dim_value):
                raise ValueError(
                    f"batch_size=None: the input {value.name!r} has {n} rows. Use batch_size={n}, "
                    "or export the model for any number of rows."
                )


def _check_gradients(blueprint, batch_size, surrogate):
    """Raise an error if an operator between a parameter and the loss has no gradient."""
    gradient = runtime_gradient if batch_size is None else rule_gradient
    loss_weights = {name for term in blueprint.terms for name in term.objective.loss.weight_names}
    of_model = [name for name in blueprint.trainable if name not in loss_weights]
    obstacle = undifferentiable(surrogate.graph, of_model, gradient)
    if obstacle is not None:
        operator, node = obstacle
        raise NotTrainableError(
            "No gradient goes through the operator "
            f"{operator}{f' (node {node!r})' if node else ''} between a parameter and the loss. "
            f"Train parameters after it (trainable), or "
            f"{_way_around(surrogate.graph, of_model, batch_size)}."
        )


def _way_around(graph, names, batch_size):
    """Return what to do about an operator without a gradient of the chosen kind."""
    other = rule_gradient if batch_size is None else runtime_gradient
    if undifferentiable(graph, names, other) is not None:
        return (
            "write it with other operators: neither skort nor ONNX Runtime has its gradient. If "
            'it is the loss, end the model at its scores, and name one: loss="log_loss"'
        )
    if batch_size is None:
        return "try batch_size (skort's own rules)"
    return "try batch_size=None (those of ONNX Runtime)"


def _value_model(blueprint, batch_size):
    """Return the model (inputs, parameters) -> outputs for `batch_size` rows; None: for any."""
    source = blueprint.structure.graph
    fragment = Fragment(np.float32)

    with marked(fragment, "loss"):
        blueprint.before(fragment)
        losses = []
        for term in blueprint.terms:
            term.add_loss(fragment)
            fragment.constant(f"{term.loss}/weight", np.asarray(term.weight, np.float32))
            fragment.node("Mul", [term.loss, f"{term.loss}/weight"], [f"{term.loss}/weighted"])
            losses.append(f"{term.loss}/weighted")

        _add_sum(fragment, losses or [source.output[0].name], LOSS)

    fragment.nodes[:0] = source.node
    with marked(fragment, "penalty"):
        if blueprint.penalized is None:
            fragment.node("Identity", [LOSS], [OBJECTIVE])
        else:
            blueprint.penalized.add_penalty(fragment)

    with marked(fragment, "loss"):
        blueprint.after(fragment)
    inputs = [
        *(_with_rows(i, batch_size) for i in blueprint.user_inputs),
        *infos({**blueprint.trainable, **blueprint.frozen}),
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in blueprint.outputs]
    graph = helper.make_graph(fragment.nodes, "value", inputs, outputs, source.initializer)
    model = onnx.shape_inference.infer_shapes(
        _model(graph, fragment, blueprint.structure), data_prop=True
    )
    known = {i.name: i for i in (*model.graph.value_info, *model.graph.output)}
    scalar = infos({name: np.zeros((), np.float32) for name in (LOSS, OBJECTIVE)})
    known |= {i.name: i for i in scalar}
    del model.graph.output[:]
    model.graph.output.extend(known[name] for name in blueprint.outputs)

    return model


def _add_sum(fragment, names, result):
    """Add the sum of scalars as Add nodes: ONNX Runtime cannot differentiate Sum."""
    total = names[0]
    for i, name in enumerate(names[1:], start=1):
        fragment.node("Add", [total, name], [f"{result}/{i}"])
        total = f"{result}/{i}"
    fragment.node("Identity", [total], [result])


def _with_rows(value, batch_size):
    """Return a copy of an input for `batch_size` rows, or with None for any number."""
    value, dims = copy.deepcopy(value), value.type.tensor_type.shape.dim
    if dims and batch_size is not None and dims[0].dim_value not in (0, batch_size):
        raise ValueError(
            f"batch_size={batch_size}: the input {value.name!r} has {dims[0].dim_value} rows."
        )

    if dims and not dims[0].dim_value:
        dim = value.type.tensor_type.shape.dim[0]
        dim.Clear()

        if batch_size is None:
            dim.dim_param = "n_rows"
        else:
            dim.dim_value = batch_size

    return value


def _with_penalty(fragment, blueprint, gradients):
    """
    Return the names of the gradients, by weight, after adding those of the penalty.

    The gradient of an l1 term is not added.
    """
    if blueprint.penalized is None:
        return gradients

    parts = [
        blueprint.penalized.add_l2_gradients(fragment),
        add_custom_gradients(
            fragment, blueprint.penalized, {**blueprint.trainable, **blueprint.frozen}
        ),
    ]
    for i, by_weight in enumerate(parts):
        for name in by_weight.keys() & gradients.keys():
            total = f"skort_{name}_gradient/{i}"
            fragment.node("Add", [gradients[name], by_weight[name]], [total])
            gradients = gradients | {name: total}

    return gradients


def _surrogate_model(blueprint, value, batch_size):
    """Return a model whose scalar output has the same gradients by the parameters as the losses."""
    fragment = Fragment(np.float32)
    parts = []
    fragment.nodes.extend(value.graph.node)

    given = []
    for term in blueprint.terms:
        if term.is_derived:
            parts.append(f"{term.loss}/weighted")
            continue

        # Shape inference may not find the shape of the score, as behind a BatchNormalization.
        shape = ["n_rows" if batch_size is None else batch_size, term.objective.n_outputs]
        given.append(helper.make_tensor_value_info(term.score_gradient, TensorProto.FLOAT, shape))
        parts.append(f"{term.score_gradient}/sum")
        fragment.call(_INNER_PRODUCT, [term.score, term.score_gradient], [parts[-1]])

    if blueprint.terms:
        _add_sum(fragment, parts, _SURROGATE)
    else:
        fragment.call(_SUM, [blueprint.structure.graph.output[0].name], [_SURROGATE])

    output = infos({_SURROGATE: np.zeros((), np.float32)})
    inputs = [*value.graph.input, *given]
    graph = helper.make_graph(fragment.nodes, "surrogate", inputs, output, value.graph.initializer)

    return onnx.shape_inference.infer_shapes(
        _model(graph, fragment, blueprint.structure), data_prop=True
    )


def _with_score_gradients(model, blueprint, fragment):
    """
    Return the nodes and the initializers of a gradient graph.

    The nodes of the score gradients stand before the nodes that read them.
    """
    after = {term.score_gradient for term in blueprint.terms if not term.is_derived}
    early = []
    late = []
    for node in model.graph.node:
        if _SURROGATE in node.output:
            continue

        if after.isdisjoint(node.input):
            early.append(node)
        else:
            late.append(node)
            after.update(node.output)

    return [*early, *fragment.nodes, *late], list(model.graph.initializer)


def _accumulating(blueprint, value, fragment, initializers: Sequence[TensorProto], gradients):
    """
    Return the training model, which adds each gradient to its buffer.

    The buffers are inputs that InPlaceAccumulatorV2 changes in place.
    """
    buffers = {}
    outputs = list(value.graph.output)

    for name, array in blueprint.trainable.items():
        accumulation = f"{name}_grad.accumulation"
        buffers[f"{accumulation}.buffer"] = array
        read = [f"{accumulation}.buffer", gradients[name], _RESET]
        fragment.node("InPlaceAccumulatorV2", read, [f"{accumulation}.out"], domain=_MICROSOFT)
        fragment.nodes[-1].doc_string = "backward"
        outputs.append(helper.make_tensor_value_info(f"{accumulation}.out", TensorProto.BOOL, [1]))

    inputs = [
        *value.graph.input,
        *infos(buffers),
        helper.make_tensor_value_info(_RESET, TensorProto.BOOL, [1]),
    ]
    graph = helper.make_graph(fragment.nodes, "training", inputs, outputs, initializers)
    return pruned(_model(graph, fragment, blueprint.structure))


def _model(graph, fragment=None, source=None):
    """Return a graph as a model with the operator sets of a source and of ONNX Runtime."""
    domains = {o.domain: o.version for o in (() if source is None else source.opset_import)}
    domains |= {"": OPSET, _MICROSOFT: 1}
    return build_model(graph, fragment, domains=domains, producer_name="skort")
