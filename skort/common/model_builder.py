"""The only place where skort makes ONNX models of graphs."""

from collections.abc import Mapping

import onnx
import onnx.helper
from numpy.typing import DTypeLike

from skort.common.onnx_text import IR_VERSION, OPSET, Fragment, inlined, onnx_dtype


def build_model(
    graph: onnx.GraphProto,
    fragment: Fragment | None = None,
    *,
    domains: Mapping[str, int] | None = None,
    producer_name: str = "",
) -> onnx.ModelProto:
    """
    Return a graph as a model in `IR_VERSION` and `OPSET`; calls that came from `fragment` are replaced by their nodes.

    `domains` are the versions of operators of other domains.
    """
    imports = [onnx.helper.make_opsetid(*domain) for domain in {**(domains or {}), "": OPSET}.items()]
    model = onnx.helper.make_model(graph, ir_version=IR_VERSION, opset_imports=imports, producer_name=producer_name)
    return model if fragment is None else inlined(model, fragment)


def domains_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the versions of the operators of a model by domain, but for the standard ones."""
    return {o.domain: o.version for o in model.opset_import if o.domain}


def function_model(
    source: str | onnx.FunctionProto, dtype: DTypeLike, inputs: Mapping[str, tuple[int, ...]]
) -> onnx.ModelProto:
    """
    Return a model that calls one function, `source` as for `function`, on inputs of these shapes, all of one dtype.

    Its output, a matrix, has the name "result".
    """
    fragment = Fragment(dtype)
    fragment.call(source, list(inputs), ["result"])
    shapes = {**inputs, "result": (None, None)}
    *given, result = [
        onnx.helper.make_tensor_value_info(name, onnx_dtype(dtype), shape) for name, shape in shapes.items()
    ]
    return build_model(onnx.helper.make_graph(fragment.nodes, "function", given, [result]), fragment)
