"""An ONNX graph as what is drawn of it: operators with their constants inside, inputs and outputs."""

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from skort.common.node_phases import phase_of
from skort.common.onnx_text import constant_value, read_names

__all__ = ["Argument", "Operator", "inputs_of", "operators_of", "outputs_of"]

# A constant with at most so many numbers is written out.
_FEW = 6
# Characters of an attribute, and of how a constant is computed, that are shown.
_LONG, _LONGEST = 24, 120


class Argument(NamedTuple):
    """
    What an operator reads.

    Parameters
    ----------
    text : str
        The name of a result or an input; of a constant its numbers, or its name and shape where it is large or a
        weight.
    is_constant : bool
    """

    text: str
    is_constant: bool


class Operator(NamedTuple):
    """
    A node of a graph with its constants inside.

    Parameters
    ----------
    op_type : str
    arguments : list of Argument
    attributes : dict of str to str
    outputs : list of str
        The names of its results.
    phase : str or None
    """

    op_type: str
    arguments: list[Argument]
    attributes: dict[str, str]
    outputs: list[str]
    phase: str | None


def operators_of(model: onnx.ModelProto) -> list[Operator]:
    """
    Return the operators of a model in the order of its nodes.

    Constants, and what is computed from constants alone, are arguments of the operators that read them.
    """
    constants = {i.name: _weight(i.name, numpy_helper.to_array(i)) for i in model.graph.initializer}
    outputs = {output.name for output in model.graph.output}
    known, operators = {*constants, *(i.name for i in model.graph.input)}, []
    for node in model.graph.node:
        operator = _operator(node, constants, known)
        known |= set(node.output)
        is_constant = all(argument.is_constant for argument in operator.arguments) and not _has_subgraph(node)
        if is_constant and outputs.isdisjoint(node.output) and (operator.arguments or node.op_type == "Constant"):
            constants |= dict.fromkeys(operator.outputs, _folded(node, operator))
        else:
            operators.append(operator)
    return operators


def _operator(node: onnx.NodeProto, constants: dict[str, str], known: set[str]) -> Operator:
    # What a subgraph reads of the graph around it comes after the inputs.
    inside = [name for name in read_names(node) if name in known and name not in node.input]
    names = [name for name in (*node.input, *dict.fromkeys(inside)) if name]
    arguments = [Argument(constants.get(name, name), name in constants) for name in names]
    return Operator(node.op_type, arguments, _attributes(node), [n for n in node.output if n], phase_of(node))


def _folded(node: onnx.NodeProto, operator: Operator) -> str:
    """Return the text of a constant that a node computes."""
    arguments = [argument.text for argument in operator.arguments]
    if node.op_type == "Constant":
        return _described(node.output[0], constant_value(node))
    if node.op_type == "Identity":
        return arguments[0]
    if node.op_type == "ConstantOfShape" and node.attribute:
        return f"{_value(numpy_helper.to_array(node.attribute[0].t).reshape(-1)[0])} of shape {arguments[0]}"
    text = f"{node.op_type}({', '.join(arguments)})"
    return text if len(text) <= _LONGEST else node.output[0]


def inputs_of(model: onnx.ModelProto) -> dict[str, str]:
    """Return the types of the inputs that a model gets, by name."""
    given = {i.name for i in model.graph.initializer}
    return {i.name: _type(i) for i in model.graph.input if i.name not in given}


def outputs_of(model: onnx.ModelProto) -> dict[str, str]:
    """Return the types of the outputs of a model, by name."""
    return {output.name: _type(output) for output in model.graph.output}


def _type(info: onnx.ValueInfoProto) -> str:
    tensor = info.type.tensor_type
    if not tensor.elem_type:
        return info.type.WhichOneof("value") or ""
    name = "str" if tensor.elem_type == onnx.TensorProto.STRING else str(_dtype(tensor.elem_type))
    dims = [str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{name}[{', '.join(dims)}]" if dims else name


def _dtype(element_type):
    return helper.tensor_dtype_to_np_dtype(element_type)


def _weight(name: str, array: np.ndarray) -> str:
    """Return the name and the shape of weights, the numbers of other initializers."""
    return _named(name, array) if array.dtype.kind == "f" and array.ndim else _described(name, array)


def _named(name: str, array: np.ndarray) -> str:
    return f"{name}[{', '.join(map(str, array.shape))}]"


def _described(name: str, array: np.ndarray) -> str:
    """Return the numbers of a small constant, the name and the shape of a larger one."""
    if array.size == 1 and array.ndim != 1:
        return _value(array.reshape(-1)[0])
    if array.size <= _FEW and array.ndim == 1:
        return f"[{', '.join(_value(value) for value in array)}]"
    return _named(name, array)


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


def _has_subgraph(node: onnx.NodeProto) -> bool:
    return any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute)


def _attributes(node: onnx.NodeProto) -> dict[str, str]:
    """Return the attributes of a node that are short, as text."""
    found = {}
    for attribute in node.attribute:
        if attribute.type in (AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.STRING, AttributeProto.INTS):
            value = helper.get_attribute_value(attribute)
            text = f"[{', '.join(map(str, value))}]" if attribute.type == AttributeProto.INTS else _value(value)
            if len(text) <= _LONG:
                found[attribute.name] = text
    return found
