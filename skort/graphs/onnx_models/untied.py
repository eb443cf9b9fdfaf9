"""Weights that only look shared: an exporter wrote equal arrays once."""

import copy
from typing import NamedTuple

import onnx
from onnx import TensorProto, helper, numpy_helper

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_PRODUCTS = ("Conv", "Gemm", "MatMul")
_NORMALIZATIONS = ("BatchNormalization", "InstanceNormalization", "LayerNormalization")
# The operators that read weights. A weight may be reshaped before.
_READERS = frozenset({*_PRODUCTS, *_NORMALIZATIONS, "Add", "Sub", "Mul", "Div", "PRelu", "Reshape"})
# What all operators share that do not read weights.
_FIXED = ("fixed",)


class Untied(NamedTuple):
    """A model in which each layer has its own weights, and name of a copy -> name of its source."""

    model: onnx.ModelProto
    copies: dict[str, str]


class _Read(NamedTuple):
    """A node that reads an array at a position, and the place of the layer that it is in."""

    node: onnx.NodeProto
    position: int
    place: tuple


def untied(model: onnx.ModelProto) -> Untied:
    """
    Return a model in which weights that only look shared are separate.

    A model without such weights is returned as it is.
    """
    # Two kinds of reads never share: running statistics are no weights, and layers that start with
    # equal numbers, such as zeros, learn different ones. Other arrays that are shared, such as the
    # matrix of an embedding and its product, are meant to be.
    copied = copy.deepcopy(model)
    graph = copied.graph
    arrays = _arrays(graph)
    taken = {*arrays, *(name for node in graph.node for name in (*node.input, *node.output))}

    copies: dict[str, str] = {}
    # Layers that start with equal numbers, as new ones do.
    filled = {name for name, tensor in arrays.items() if _is_filled(tensor)}
    for name, reads in _reads(graph, arrays, filled).items():
        for number, group in enumerate(_groups(reads, name in filled)[1:], start=2):
            new = _free_name(f"{name}/{number}", taken)
            copies[new] = name
            for read in group:
                read.node.input[read.position] = new

            tensor = copy.deepcopy(arrays[name])
            tensor.name = new
            graph.initializer.append(tensor)
            # Before version 4, an initializer had to be an input, too.
            if copied.ir_version < 4:
                graph.input.append(
                    helper.make_tensor_value_info(new, tensor.data_type, tensor.dims)
                )

    return Untied(copied if copies else model, copies)


def _arrays(graph):
    """Return the tensors of floats with dimensions, by name: initializers and constants."""
    tensors = {i.name: i for i in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t

    return {
        name: tensor
        for name, tensor in tensors.items()
        if tensor.data_type in _FLOATS and tensor.dims
    }


def _reads(graph, arrays, filled):
    """Return where each array is read: its name -> list of `_Read`."""
    # Result -> the number of its place: what was computed since the last product with weights.
    # Layers that are applied twice have one place.
    numbers: dict[tuple, int] = {}
    places = {i.name: 0 for i in graph.input if i.name not in arrays}
    # torch writes an Identity for each further use of an array.
    sources = {name: name for name in arrays}
    reads: dict[str, list[_Read]] = {}

    for node in graph.node:
        if node.op_type == "Identity" and node.input[0] in sources:
            sources[node.output[0]] = sources[node.input[0]]
            continue

        before = tuple(sorted({places[name] for name in node.input if name in places}))
        weights = [sources.get(name, name) for name in node.input[:2] if name not in places]
        is_new = node.op_type not in _PRODUCTS or not filled.isdisjoint(weights)
        here = (node.op_type, before) if is_new else (node.op_type, *weights)
        if before:
            # Two sums in a row are one place: separate summands would be of no use.
            is_sum = node.op_type == "Add" and len(before) == 1
            number = before[0] if is_sum else numbers.setdefault(here, len(numbers) + 1)
            places.update((name, number) for name in node.output)

        for position, name in enumerate(node.input):
            if name in sources:
                place = _place(node, position, before if position < 2 else here)
                reads.setdefault(sources[name], []).append(_Read(node, position, place))

    return reads


def _place(node, position, layer) -> tuple:
    """Return what tells layers apart: reads of equal places share their array."""
    if node.op_type not in _READERS or _is_statistic(node, position):
        return _FIXED
    # What is reshaped is told apart by its result.
    return (node.op_type, position, node.output[0] if node.op_type == "Reshape" else layer)


def _is_statistic(node, position):
    return node.op_type == "BatchNormalization" and position > 2


def _groups(reads, is_filled) -> list[list[_Read]]:
    """Return the reads of an array in groups that share it; its name stays with the first one."""
    groups: dict[tuple, list[_Read]] = {}
    for read in reads:
        place: tuple = ("tied",)
        if is_filled:
            place = read.place
        elif _is_statistic(read.node, read.position):
            place = _FIXED
        groups.setdefault(place, []).append(read)

    return sorted(groups.values(), key=lambda group: groups.get(_FIXED) is group)


def _is_filled(tensor):
    """Return whether all numbers of an array are equal, as those of a new layer."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return False
    array = numpy_helper.to_array(tensor).ravel()
    # One number may be learned, too.
    if array.size == 1:
        return float(array[0]) in (0, 1)
    return bool(array.size) and bool(array[0] == array[-1] and (array == array[0]).all())


def _free_name(name, taken) -> str:
    """Return a name that is not taken, and take it."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
