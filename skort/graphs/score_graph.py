"""A model as ONNX up to its raw score, with its named weights."""

import copy
import functools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
import onnx.compose
import onnx.shape_inference
from numpy.typing import DTypeLike
from onnx import helper, numpy_helper

from skort.common.onnx_text import (
    constant_value,
    import_each_domain_once,
    known_shapes,
    name_inputs,
    read_names,
    with_parameter_inputs,
)
from skort.graphs.differentiable import Gradient, undifferentiable
from skort.graphs.gradient.elementwise import CURVED
from skort.graphs.layers import TARGET_OFFSET, Layer, first_layer, last_layer, reads_ids

_PRODUCTS = ("MatMul", "Gemm", "Conv")
_SAME_NUMBERS = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
# Operators whose result holds the numbers of weights, and the positions of these: a weight may be
# stretched, cut or masked before it meets X. By the divisor it is not trained.
_FROM_WEIGHTS = {
    **dict.fromkeys(_SAME_NUMBERS, slice(1)),
    **dict.fromkeys(("Div", "Expand", "Gather", "Slice", "Split", "Tile"), slice(1)),
    "Concat": slice(None),
    "Mul": slice(2),
    "Where": slice(1, 3),
}
# Layers with a scale and a shift.
_NORMALIZATIONS = ("InstanceNormalization", "LayerNormalization")
_LINEAR = (["MatMul"], ["MatMul", "Add"], ["Sub", "MatMul", "Add"])
_ACTIVATIONS = frozenset({"Exp", "Identity", "Relu", "Sigmoid", "Tanh"})


@dataclass(frozen=True)
class ScoreSpec:
    """
    The requirements of data and loss for a score graph.

    `keeps_link` means that the score includes the exponential of a model with a log link.
    `categories` has the number of ids of each column, and zero for a column of numbers. It is empty
    without columns of ids. `behind_ids` names the first step that makes numbers of ids, "" without
    one. `rows` are X as the model reads it, None where it is made without rows,
    and `moments` gives the means and standard deviations of their columns.
    """

    n_features: int
    n_outputs: int
    dtype: DTypeLike
    is_classifier: bool = False
    keeps_link: bool = True
    outputs: tuple[str, ...] = ()
    categories: tuple[int, ...] = ()
    behind_ids: str = ""
    rows: Any = field(default=None, compare=False)
    moments: Callable[[], tuple[np.ndarray, np.ndarray]] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Weights:
    """
    The names of weights by kind, in the order of the graph.

    Coefficients multiply X or its results. Intercepts are added to such products. Scales are all
    others.
    """

    coefficients: tuple[str, ...]
    intercepts: tuple[str, ...]
    scales: tuple[str, ...] = ()

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """All names: coefficients, intercepts, scales."""
        return self.coefficients + self.intercepts + self.scales

    def only(self, names: Collection[str]) -> "Weights":
        """Return the weights that are among `names`."""
        kinds = (self.coefficients, self.intercepts, self.scales)
        return Weights(*(tuple(name for name in kind if name in names) for kind in kinds))


@dataclass(frozen=True, eq=False)
class ScoreGraph:
    """
    The function (X, weights) -> raw score as ONNX, and the values of the weights.

    Graphs share their models and arrays, so these are never changed in place. What a graph knows of
    its structure, graphs with other values know, too.
    """

    structure: onnx.ModelProto
    arrays: dict[str, np.ndarray]
    trained: Weights
    dropout: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, model: onnx.ModelProto) -> "ScoreGraph":
        """
        Return the score graph of a model with one input and one output.

        All weights that `find_weights` finds are trained.
        """
        weights = find_weights(model.graph)
        values = {i.name: i for i in model.graph.initializer}
        arrays = {name: numpy_helper.to_array(values[name]) for name in weights.names}
        return cls(with_parameter_inputs(model, arrays), arrays, weights)

    @property
    def model(self) -> onnx.ModelProto:
        """A new model X -> raw score, with the weights as initializers. Masks stay inputs."""
        model = copy.deepcopy(self.structure)
        del model.graph.input[1:], model.graph.initializer[:]
        model.graph.input.extend(i for i in self.structure.graph.input if i.name in self.dropout)
        weights = {name: array for name, array in self.arrays.items() if name not in self.dropout}
        model.graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in weights.items()
        )
        model.graph.initializer.extend(self.structure.graph.initializer)

        return model

    @functools.cached_property
    def key(self) -> tuple[bytes, Weights]:
        """A hashable value of the structure and the names of trained weights, without values."""
        return self.structure.SerializeToString(deterministic=True), self.trained

    @property
    def frozen_arrays(self) -> dict[str, np.ndarray]:
        """The values of the weights that are not trained, not copied."""
        trained = self.trained.names
        return {name: array for name, array in self.arrays.items() if name not in trained}

    @functools.cached_property
    def weight_names(self) -> Weights:
        """The names of all weights, trained or frozen."""
        return find_weights(self.structure.graph)

    @property
    def trainable(self) -> tuple[str, ...]:
        """Names of the trained weights."""
        return self.trained.names

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the trained weights that multiply inputs."""
        return self.trained.coefficients

    @property
    def trained_arrays(self) -> dict[str, np.ndarray]:
        """The values of the trained weights, not copied."""
        return {name: self.arrays[name] for name in self.trained.names}

    @functools.cached_property
    def input_name(self) -> str:
        """Name of the input X."""
        return self.structure.graph.input[0].name

    @functools.cached_property
    def score_name(self) -> str:
        """Name of the output."""
        return self.structure.graph.output[0].name

    @functools.cached_property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.structure.graph.input[0].type.tensor_type.shape.dim[1].dim_value

    @functools.cached_property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return helper.tensor_dtype_to_np_dtype(
            self.structure.graph.input[0].type.tensor_type.elem_type
        )

    @functools.cached_property
    def n_outputs(self) -> int:
        """Number of columns of the raw score."""
        return self.structure.graph.output[0].type.tensor_type.shape.dim[1].dim_value

    @functools.cached_property
    def has_dropout(self) -> bool:
        """Whether a node is a `Dropout`: a training draws its masks."""
        return any(node.op_type == "Dropout" for node in self.structure.graph.node)

    def weights(self) -> dict[str, np.ndarray]:
        """Return copies of the trained weights, for callers who change them."""
        return {name: array.copy() for name, array in self.trained_arrays.items()}

    @functools.cached_property
    def n_weights(self) -> tuple[int, int]:
        """The numbers of elements of trained coefficients and of other trained weights."""
        trained = self.trained
        of_kinds = [
            sum(self.arrays[name].size for name in names)
            for names in (trained.coefficients, trained.intercepts, trained.scales)
        ]
        return of_kinds[0], of_kinds[1] + of_kinds[2]

    @functools.cached_property
    def has_curved_units(self) -> bool:
        """Whether the model has units such as tanh, which small weights make linear."""
        return any(node.op_type in CURVED for node in self.structure.graph.node)

    @functools.cached_property
    def order(self) -> tuple[int, ...] | None:
        """
        The columns of the last result but one in the order of the score, (-1,) for the negative of
        its only column, or None.
        """
        before, last = [onnx.NodeProto(), *self.structure.graph.node][-2:]
        if last.op_type == "Neg" and self.n_outputs == 1:
            return (-1,)
        if (before.op_type, last.op_type) != ("Constant", "Gather") or self.n_outputs == 1:
            return None

        order = tuple(constant_value(before).ravel().tolist())
        return order if sorted(order) == [*range(self.n_outputs)] else None

    @functools.cached_property
    def is_linear(self) -> bool:
        """Whether the model is one layer, perhaps with an exponential or an order after it."""
        nodes = [node.op_type for node in self.structure.graph.node if node.op_type != "Exp"]
        if nodes in _LINEAR:
            return True

        order = self.order
        if order is not None:
            nodes = nodes[: -1 if order == (-1,) else -2]
        nodes = nodes[:-1] if TARGET_OFFSET in self.arrays else nodes
        return nodes in _LINEAR

    @functools.cached_property
    def first_layer(self) -> Layer | None:
        """The layer that reads X, see `skort.graphs.layers.first_layer`."""
        return first_layer(self)

    @functools.cached_property
    def last_layer(self) -> Layer | None:
        """The layer that computes the score, see `skort.graphs.layers.last_layer`."""
        return last_layer(self)

    @functools.cached_property
    def reads_ids(self) -> bool:
        """Whether some columns are read apart, see `skort.graphs.layers.reads_ids`."""
        return reads_ids(self)

    def explored(self) -> "ScoreGraph":
        """Return the graph, after all is found that graphs with other weights will know of it."""
        for name, attribute in vars(ScoreGraph).items():
            if isinstance(attribute, functools.cached_property):
                getattr(self, name)
        return self

    def training_only(self, names: Collection[str]) -> "ScoreGraph":
        """Return the same graph, in which only the weights of these names are trained."""
        return replace(self, trained=self.weight_names.only(names))

    def with_weights(self, weights: Mapping[str, np.ndarray]) -> "ScoreGraph":
        """Return the same graph with other values for some weights. The arrays are not copied."""
        for name, array in weights.items():
            known = self.arrays.get(name)
            if known is None or known.shape != array.shape or known.dtype != array.dtype:
                raise ValueError(
                    f"There is no weight {name!r} of shape {array.shape} and dtype {array.dtype}."
                )

        changed = copy.copy(self)
        vars(changed)["arrays"] = {**self.arrays, **weights}
        return changed

    def with_input_name(self, name: str) -> "ScoreGraph":
        """Return the same graph whose input X has another name."""
        structure = copy.deepcopy(self.structure)
        weights = [i.name for i in structure.graph.input[1:]]
        name_inputs(structure.graph, [name, *weights])
        return replace(self, structure=structure)

    def with_frozen_inputs(self, batch_size: int) -> onnx.ModelProto:
        """Return a new model for exactly `batch_size` rows, with frozen weights as inputs, too."""
        model = copy.deepcopy(self.structure)
        del model.graph.input[:]
        model.graph.input.extend(
            i for i in self.structure.graph.input if i.name not in self.trainable
        )
        model.graph.initializer.extend(
            numpy_helper.from_array(a, name) for name, a in self.trained_arrays.items()
        )
        set_batch_size(model, batch_size)

        return model


def shared_edit(edit: Callable[..., None]) -> Callable[..., onnx.ModelProto]:
    """Return the function (structure, hashable options) -> edited copy. Fits share the copies."""

    @functools.lru_cache(maxsize=8)
    def edited(serialized, *options):
        structure = onnx.ModelProto.FromString(serialized)
        edit(structure.graph, *options)
        return structure

    return lambda structure, *options: edited(structure.SerializeToString(), *options)


def set_batch_size(model: onnx.ModelProto, batch_size: int) -> None:
    """
    Fix the number of rows of the first input,
    of masks and of the output of a model, in place.
    """
    first, *others = model.graph.input
    masks = [info for info in others if _dims(info) and not _dims(info)[0].dim_value]
    for info in (first, *masks, model.graph.output[0]):
        _dims(info)[0].dim_value = batch_size


def step_work(score_graph: ScoreGraph, n_rows: int) -> int:
    """Return the number of floating-point operations in all products of a score and gradient."""
    return _step_work(*score_graph.key, n_rows)


@functools.lru_cache(maxsize=64)
def _step_work(serialized, trained, n_rows):
    model = onnx.ModelProto.FromString(serialized)
    set_batch_size(model, n_rows)
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = known_shapes(graph)
    reached = set(trained.names)

    work = 0
    for node in graph.node:
        names = read_names(node)
        if not reached.isdisjoint(names):
            reached.update(node.output)
        factors = [shapes.get(name, ()) for name in (*node.input[:2], *node.output[:1])]
        if node.op_type in _PRODUCTS and all(factors):
            first, second, result = factors
            length = math.prod(second[1:]) if node.op_type == "Conv" else first[-1]
            # The gradient is a product for each factor that depends on trained weights.
            work += (
                2
                * math.prod(result)
                * length
                * (1 + sum(name in reached for name in node.input[:2]))
            )

    return work


def obstacle_of(score_graph: ScoreGraph, names: Iterable[str], gradient: Gradient) -> str:
    """
    Return the operator, and its node, that stops every gradient from a name to the score.

    Return "" if there is none.
    """
    structure = copy.deepcopy(score_graph.structure)
    # Some rules depend on shapes, but none on the number of rows.
    set_batch_size(structure, 2)
    operator, node = undifferentiable(structure.graph, names, gradient) or ("", "")
    return f"{operator} (node {node!r})" if node else operator


def joined(graphs: Sequence[ScoreGraph]) -> ScoreGraph:
    """
    Return several score graphs as one, in which all weights are trained.

    The X of each graph is the score of the graph before it.
    """
    first, *others = graphs
    for second in others:
        link = [(first.score_name, second.input_name)]
        structure = onnx.compose.merge_models(first.structure, second.structure, io_map=link)
        import_each_domain_once(structure)
        weights = find_weights(structure.graph)
        arrays = {**first.arrays, **second.arrays}
        first = ScoreGraph(structure, {name: arrays[name] for name in weights.names}, weights)

    return first


def find_weights(graph: onnx.GraphProto) -> Weights:
    """Return the weights of a graph: initializers of the type of X, and inputs after X."""
    # An operator combines a weight with X or with a result of X. A weight has dimensions: numbers
    # without dimensions are constants of an activation.
    X, *inputs = graph.input
    element_type = _element_type(graph)
    # The name of a result -> the names of the initializers and inputs that it holds.
    constants = {
        i.name: (i.name,) for i in graph.initializer if i.data_type == element_type and i.dims
    }
    constants |= {i.name: (i.name,) for i in inputs}
    reached = {X.name}
    multiplied = set[str]()
    kinds: dict[str, str] = {}

    for node in graph.node:
        is_apart = reached.isdisjoint(read_names(node))
        # The shape of a weight may depend on X.
        if is_apart or node.op_type in _SAME_NUMBERS:
            held = _held(graph, node, constants)
            constants |= dict.fromkeys(node.output, held) if held else {}
        if is_apart:
            continue

        reached.update(node.output)
        # Picking rows of a table by ids is a product of the table with ones and zeros.
        product = node.op_type in _PRODUCTS or (
            node.op_type == "Gather" and node.input[0] in constants
        )
        if product or not multiplied.isdisjoint(node.input):
            multiplied.update(node.output)
        for position, name in enumerate(node.input):
            kind = _kind(node.op_type, position, not multiplied.isdisjoint(node.output))
            if kind is not None:
                found = [weight for weight in constants.get(name, ()) if weight not in kinds]
                kinds |= dict.fromkeys(found, kind)

    return Weights(
        *(
            tuple(n for n, k in kinds.items() if k == kind)
            for kind in ("coefficient", "intercept", "scale")
        )
    )


def _held(graph, node, constants) -> tuple[str, ...]:
    """Return the names of the weights whose numbers the result of a node holds."""
    is_cast = node.op_type == "Cast" and node.attribute[0].i == _element_type(graph)
    positions = slice(1) if is_cast else _FROM_WEIGHTS.get(node.op_type, slice(0))
    names = [name for operand in node.input[positions] for name in constants.get(operand, ())]
    # The zeros in the place of what a mask hides have to stay zero.
    fillings = _filled(graph, names) if node.op_type == "Where" else set()
    if node.op_type == "Mul":
        # A number may scale a weight. Of two arrays, one may be a mask.
        fillings = _numbers(graph)
        names = names if len(set(names) - fillings) == 1 else []

    return tuple(dict.fromkeys(name for name in names if name not in fillings))


def _numbers(graph) -> set[str]:
    """Return the names of initializers and inputs of one element."""
    dims = {i.name: list(i.dims) for i in graph.initializer}
    dims |= {i.name: [dim.dim_value for dim in _dims(i)] for i in graph.input}
    return {name for name, sizes in dims.items() if math.prod(sizes) == 1}


def _element_type(graph):
    """Return the type of X."""
    return graph.input[0].type.tensor_type.elem_type


def _filled(graph, names) -> set[str]:
    """Return those of the names that are initializers in which all numbers are equal."""
    arrays = {i.name: numpy_helper.to_array(i) for i in graph.initializer if i.name in names}
    return {name for name, array in arrays.items() if (array == array.flat[:1]).all()}


def _kind(op_type: str, position: int, multiplied: bool) -> str | None:
    """
    Return the kind of weight that a node of this type reads at this position;
    None if it is no weight.
    """
    if op_type in (*_PRODUCTS, "Gather"):
        return "coefficient" if position < 2 else "intercept"
    if (op_type == "Add" or (op_type in _NORMALIZATIONS and position == 2)) and multiplied:
        return "intercept"
    return "scale" if op_type in ("Add", "Sub", "Mul", "Div", "PRelu", *_NORMALIZATIONS) else None


def _dims(info):
    return info.type.tensor_type.shape.dim


@dataclass(frozen=True)
class Link:
    """One layer of a chain: a product, an intercept, and then operators with one input."""

    coefficient: str
    intercept: str | None = None
    activations: tuple[str, ...] = ()


def chain_of(score_graph: ScoreGraph) -> tuple[Link, ...] | None:
    """
    Return the layers of a model from X to the score; None unless all are in one chain.

    All weights of the chain have to be trained.
    """
    result = score_graph.input_name
    links = list[Link]()
    used = list[str]()
    for node in score_graph.structure.graph.node:
        others = [name for name in node.input if name != result]
        if len(others) != len(node.input) - 1:
            return None

        if node.op_type == "MatMul" and node.input[0] == result:
            links.append(Link(*others))
        elif (
            links
            and node.op_type == "Add"
            and links[-1].intercept is None
            and not links[-1].activations
        ):
            links[-1] = Link(links[-1].coefficient, *others)
        elif links and node.op_type in _ACTIVATIONS:
            last = links[-1]
            links[-1] = Link(last.coefficient, last.intercept, (*last.activations, node.op_type))
        else:
            return None

        used += others
        result = node.output[0]

    arrays = score_graph.arrays
    is_whole = result == score_graph.score_name and sorted(used) == sorted(score_graph.trainable)
    layers = [(arrays[link.coefficient].shape, link.intercept) for link in links if is_whole]
    fits = all(len(shape) == 2 and (not b or arrays[b].size == shape[1]) for shape, b in layers)

    return tuple(links) if is_whole and fits else None
