"""
ONNX written as text: functions that read like their formula,
calls to them, and their inlining.
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx.helper
import onnx.inliner
import onnx.parser
from numpy.typing import ArrayLike, DTypeLike
from onnx import numpy_helper

from skort.common.float64_formulas import float64_function

# Every supported runtime reads these versions: the oldest, onnxruntime-training 1.16, reads up to
# opset 19 and IR 9. No operator that skort writes needs a newer one.
OPSET = 17
IR_VERSION = 8
DOMAIN = "skort"

# Operators that combine elements one by one.
_UNARY = "Abs Cos Exp Identity Log Neg Not Reciprocal Relu Sigmoid Sign Sin Sqrt Tanh"
# Pow is left out: it is faster with a single exponent.
_BROADCASTING = "Add Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mul Sub Where"
_ELEMENTWISE = frozenset(["Constant", *_UNARY.split(), *_BROADCASTING.split()])

#: A function as text for `function`, or as a proto.
Source: TypeAlias = str | onnx.FunctionProto
_SIGNATURE = f'<domain: "{DOMAIN}", opset_import: ["" : {OPSET}]>'


def onnx_dtype(dtype: DTypeLike) -> int:
    """Return ONNX's element type of a numpy dtype: 1 for float32, 11 for float64."""
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def function(source: Source, dtype: DTypeLike) -> onnx.FunctionProto:
    """
    Return an ONNX function of the domain ``skort`` whose float constants have the dtype.

    In float64, formulas replace operators that ONNX Runtime computes in float32 only.
    """
    # A text is `name (input, ...) => (output, ...) { nodes }`. It has constants such as `value =
    # float {...}`.
    if isinstance(source, str):
        if np.dtype(dtype) == np.float64:
            source = re.sub(r"\bfloat(?=[\w\s\[\],]*\{)", "double", source)
        proto = onnx.parser.parse_function(_SIGNATURE + source)
    else:
        proto = copy.deepcopy(source)
        proto.domain = DOMAIN

    opsets = [o.version for o in proto.opset_import if o.domain == ""]
    if opsets != [OPSET]:
        raise ValueError(
            f"the operators of {proto.name!r} are of opset {opsets}: write it in opset {OPSET}."
        )

    for node in proto.node:
        if node.op_type == "Constant" and (value := constant_value(node)).dtype.kind == "f":
            tensor = numpy_helper.from_array(value.astype(dtype))
            node.attribute[0].CopyFrom(onnx.helper.make_attribute("value", tensor))

    return _in_float64(proto) if np.dtype(dtype) == np.float64 else proto


def _in_float64(proto):
    """Return a function with formulas in place of operators that are of float32 only."""
    if not any(map(float64_function, proto.node)):
        return proto

    fragment = Fragment(np.float64)
    fragment.add_for_float64(proto.node)
    return fragment.as_function(proto.name, proto.input, proto.output)


def constant_value(constant: onnx.NodeProto) -> np.ndarray:
    """
    Return the value of a Constant node, whichever attribute holds it.
    A float attribute becomes float64.
    """
    value = onnx.helper.get_attribute_value(constant.attribute[0])
    return (
        numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    )


def is_elementwise(function: onnx.FunctionProto) -> bool:
    """Return whether a function combines the elements of its inputs one by one."""
    return {node.op_type for node in function.node} <= _ELEMENTWISE


def repeated_constants(function: onnx.FunctionProto) -> onnx.FunctionProto:
    """
    Return an elementwise function whose constants have the shape of its first input.

    Any other function is returned as it is.
    """
    # ONNX Runtime combines a column with a number row by row, which takes ten times as long as
    # combining it with another column. The constants are repeated only once, when the session is
    # made.
    if not is_elementwise(function) or all(node.op_type != "Constant" for node in function.node):
        return function

    # Nobody writes a name with a slash, so this one is free.
    repeated = copy.deepcopy(function)
    shape = "shape/of_first_input"
    del repeated.node[:]
    repeated.node.append(onnx.helper.make_node("Shape", function.input[:1], [shape]))

    for node in function.node:
        repeated.node.append(node)
        if node.op_type == "Constant":
            single = f"{node.output[0]}/single"
            repeated.node[-1].output[0] = single
            repeated.node.append(onnx.helper.make_node("Expand", [single, shape], node.output))

    return repeated


class Fragment:
    """
    Nodes for a graph. Some of them call functions that are written as text.

    Constants in these functions have one dtype.
    """

    def __init__(self, dtype: DTypeLike):
        self.dtype = dtype
        self.nodes: list[onnx.NodeProto] = []
        self.functions: dict[bytes, onnx.FunctionProto] = {}

    def call(
        self,
        source: Source,
        inputs: Sequence[str],
        outputs: Sequence[str],
        n_columns: int | None = None,
    ) -> None:
        """
        Add a call to a function, with a `source` as for `function`.

        With `n_columns`, an elementwise function gets repeated constants.
        """
        called = function(source, self.dtype)
        self.call_as_is(
            called if n_columns is None else repeated_constants(called), inputs, outputs
        )

    def call_as_is(
        self, called: onnx.FunctionProto, inputs: Sequence[str], outputs: Sequence[str]
    ) -> None:
        """
        Add a call to a function that `function` returned:
        its constants have the right dtype already.
        """
        key = called.SerializeToString()
        if key not in self.functions:
            # The number keeps functions apart whose sources have the same name.
            self.functions[key] = copy.deepcopy(called)
            self.functions[key].name = f"{called.name}_{len(self.functions)}"

        self.nodes.append(
            onnx.helper.make_node(self.functions[key].name, inputs, outputs, domain=DOMAIN)
        )

    def add_for_float64(self, nodes: Iterable[onnx.NodeProto]) -> None:
        """Add nodes of float64, of which formulas replace those that are of float32 only."""
        for node in nodes:
            formula = float64_function(node)
            if formula is None:
                self.nodes.append(node)
            else:
                self.call(formula, node.input, node.output)

    def constant(self, name: str, array: ArrayLike) -> None:
        """Add a constant with the values and the dtype of an array."""
        value = numpy_helper.from_array(np.asarray(array))
        self.nodes.append(onnx.helper.make_node("Constant", [], [name], value=value))

    def rename(self, old: str, new: str) -> None:
        """Give a result another name, wherever it is made or read."""
        rename(self.nodes, {old: new})

    def node(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> None:
        """Add a node of a standard operator."""
        self.nodes.append(onnx.helper.make_node(op_type, inputs, outputs, **attributes))

    def as_function(
        self, name: str, inputs: Sequence[str], outputs: Sequence[str]
    ) -> onnx.FunctionProto:
        """Return the nodes as one function without calls: each is replaced by its nodes."""
        model = build_model(onnx.helper.make_graph(self.nodes, name, [], []), self)
        return onnx.helper.make_function(
            DOMAIN, name, inputs, outputs, model.graph.node, model.opset_import
        )


def infos(arrays: Mapping[str, np.ndarray]) -> list[onnx.ValueInfoProto]:
    """Return the shapes and types of arrays as inputs or outputs of a graph, by their names."""
    return [
        onnx.helper.make_tensor_value_info(name, onnx_dtype(a.dtype), a.shape)
        for name, a in arrays.items()
    ]


def read_names(node: onnx.NodeProto) -> list[str]:
    """Return the names of all results that a node and its subgraphs read."""
    names = [name for name in node.input if name]
    for graph in _subgraphs(node):
        names.extend(name for inner in graph.node for name in read_names(inner))
        names.extend(output.name for output in graph.output)

    return names


def _subgraphs(node):
    for attribute in node.attribute:
        yield from (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else []))


def name_inputs(graph: onnx.GraphProto, names: Sequence[str]) -> None:
    """Name the inputs of a graph, in place. A name inside, or an output, that is taken gets a "_"."""
    old = [i.name for i in graph.input]
    if old == list(names):
        return

    inside = _names_inside(graph).difference(old)
    taken = inside.union(names)
    renamed = dict(zip(old, names, strict=True))
    for name in sorted(inside.intersection(names)):
        free = f"{name}_"
        while free in taken:
            free += "_"
        taken.add(free)
        renamed[name] = free

    _rename_all(graph, renamed)


def _names_inside(graph):
    """Return all names in a graph and its subgraphs."""
    names = {info.name for info in (*graph.input, *graph.initializer)}
    for node in graph.node:
        names.update(node.output, *map(_names_inside, _subgraphs(node)))
    return names


def _rename_all(graph, names):
    """Rename in a graph and its subgraphs, in place."""
    rename(graph.node, names)
    for info in (*graph.input, *graph.initializer, *graph.value_info, *graph.output):
        info.name = names.get(info.name, info.name)
    for node in graph.node:
        for inner in _subgraphs(node):
            _rename_all(inner, names)


def leading_to(nodes: Iterable[onnx.NodeProto], outputs: Iterable[str]) -> set[str]:
    """Return `outputs`, and the names of all results that they depend on. Nodes are in order."""
    names = set(outputs)
    for node in reversed(list(nodes)):
        if not names.isdisjoint(node.output):
            names.update(read_names(node))
    return names


def pruned(
    model: onnx.ModelProto, outputs: Sequence[str] = (), *, drop_inputs: bool = False
) -> onnx.ModelProto:
    """
    Keep only the nodes and weights that the outputs need, in place; return the model.

    `outputs` are the names of results that become the outputs; without names, the outputs stay.
    """
    graph = model.graph
    known = {info.name: info for info in (*graph.value_info, *graph.output)}
    ends = [known.get(name, onnx.ValueInfoProto(name=name)) for name in outputs] or list(
        graph.output
    )
    names = leading_to(graph.node, [end.name for end in ends])
    replace_nodes(graph, [node for node in graph.node if not names.isdisjoint(node.output)])
    kept = (
        [i for i in graph.initializer if i.name in names],
        [i for i in graph.input if i.name in names],
    )
    del graph.initializer[:], graph.output[:]
    graph.initializer.extend(kept[0])
    graph.output.extend(ends)

    if drop_inputs:
        del graph.input[:]
        graph.input.extend(kept[1])

    return model


def with_parameter_inputs(
    model: onnx.ModelProto, arrays: Mapping[str, np.ndarray]
) -> onnx.ModelProto:
    """
    Return a copy of a model in which the initializers with the names of `arrays` are inputs.

    They are the last inputs.
    """
    copied = copy.deepcopy(model)
    names = {i.name for i in model.graph.initializer}
    del copied.graph.initializer[:], copied.graph.input[:]
    copied.graph.initializer.extend(i for i in model.graph.initializer if i.name not in arrays)
    copied.graph.input.extend(i for i in model.graph.input if i.name not in names)
    copied.graph.input.extend(infos(arrays))

    return copied


def rename(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Rename results (old name -> new name) wherever nodes write or read them, in place."""
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]


def known_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Return the shapes of initializers, inputs and results, by name, if they are all numbers."""
    shapes = {i.name: tuple(i.dims) for i in graph.initializer}
    for info in (*graph.input, *graph.value_info, *graph.output):
        shape = info.type.tensor_type.shape
        if info.type.tensor_type.HasField("shape") and all(
            dim.HasField("dim_value") for dim in shape.dim
        ):
            shapes[info.name] = tuple(dim.dim_value for dim in shape.dim)

    return shapes


def replace_nodes(graph: onnx.GraphProto, nodes: Iterable[onnx.NodeProto]) -> None:
    """Replace the nodes of a graph, in place."""
    nodes = list(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def inlined(model: onnx.ModelProto, fragment: Fragment) -> onnx.ModelProto:
    """
    Return a copy of a model in which nodes replace each call from `fragment`.

    The nodes get the doc_string of the call.
    """
    calls = copy.deepcopy(model)
    calls.opset_import.add(domain=DOMAIN, version=1)
    calls.functions.extend(fragment.functions.values())
    calls.functions.extend(_documented(calls.graph, fragment))
    plain = onnx.inliner.inline_local_functions(calls)
    import_each_domain_once(plain)

    return plain


def _documented(graph, fragment):
    """
    Give calls with a doc_string functions of their own; return these functions.

    The nodes of such a function have the doc_string of the call.
    """
    functions = {f.name: f for f in fragment.functions.values()}
    documented = {}
    for node in graph.node:
        if node.domain != DOMAIN or not node.doc_string:
            continue

        key = node.op_type, node.doc_string
        if key not in documented:
            documented[key] = copy.deepcopy(functions[node.op_type])
            documented[key].name = f"{node.op_type}_documented_{len(documented)}"
            for inner in documented[key].node:
                inner.doc_string = node.doc_string

        node.op_type = documented[key].name

    return documented.values()


def rewritten(
    model: onnx.ModelProto, functions: dict[str, str], dtype: DTypeLike
) -> onnx.ModelProto:
    """
    Return a copy of a model in which functions replace the operators of some types.

    `functions` has the text of the function for each type.
    """
    fragment = Fragment(dtype)
    for node in model.graph.node:
        if node.op_type in functions:
            fragment.call(functions[node.op_type], node.input, node.output)
            fragment.nodes[-1].doc_string = node.doc_string
        else:
            fragment.nodes.append(node)

    copied = copy.deepcopy(model)
    replace_nodes(copied.graph, fragment.nodes)
    return inlined(copied, fragment)


def import_each_domain_once(model: onnx.ModelProto) -> None:
    """Drop repeated opset imports, and the import of skort's own functions, in place."""
    versions = {o.domain: o.version for o in model.opset_import if o.domain != DOMAIN}
    del model.opset_import[:]
    model.opset_import.extend(
        onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()
    )


def build_model(
    graph: onnx.GraphProto,
    fragment: Fragment | None = None,
    *,
    domains: Mapping[str, int] | None = None,
    producer_name: str = "",
) -> onnx.ModelProto:
    """
    Return a graph as a model, in which nodes replace calls from `fragment`.

    `domains` are the versions of all domains of operators but the standard one.
    """
    # No other function of skort makes a ModelProto of a graph.
    imports = [
        onnx.helper.make_opsetid(*domain) for domain in {**(domains or {}), "": OPSET}.items()
    ]
    model = onnx.helper.make_model(
        graph, ir_version=IR_VERSION, opset_imports=imports, producer_name=producer_name
    )
    return model if fragment is None else inlined(model, fragment)


def domains_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the versions of all domains of a model but the standard one."""
    return {o.domain: o.version for o in model.opset_import if o.domain}


def function_model(
    source: Source, dtype: DTypeLike, inputs: Mapping[str, tuple[int | None, ...]]
) -> onnx.ModelProto:
    """
    Return a model that calls one function, as for `function`, on inputs of these shapes.

    Its output "result" is a matrix.
    """
    fragment = Fragment(dtype)
    fragment.call(source, list(inputs), ["result"])
    shapes = {**inputs, "result": (None, None)}
    *given, result = [
        onnx.helper.make_tensor_value_info(name, onnx_dtype(dtype), shape)
        for name, shape in shapes.items()
    ]

    return build_model(
        onnx.helper.make_graph(fragment.nodes, "function", given, [result]), fragment
    )
