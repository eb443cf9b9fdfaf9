"""All weights as one vector, and the parts of it, in a graph."""

import copy
from collections.abc import Mapping

import numpy as np
import onnx
import onnx.helper

from skort.common.onnx_text import Fragment, inlined, onnx_dtype
from skort.graphs.gradient.applied import int64s
from skort.graphs.gradient.gradient_graphs import gradient_name

#: The gradient by all weights.
GRADIENT = "skort_weights_gradient"


def unpacked_text(weights: Mapping[str, np.ndarray]) -> str:
    """Return the function that takes the vector of all weights apart."""
    sizes = int64s(w.size for w in weights.values())
    shapes = "\n".join(
        f"    shape{i} = Constant <value = {int64s(w.shape)}> ()\n    weight{i} = Reshape (part{i}, shape{i})"
        for i, w in enumerate(weights.values())
    )
    return f"""
unpacked (weights) => ({", ".join(f"weight{i}" for i in range(len(weights)))}) {{
    sizes = Constant <value = {sizes}> ()
    {", ".join(f"part{i}" for i in range(len(weights)))} = Split <axis = 0> (weights, sizes)
{shapes}
}}"""


def packed_text(weights: Mapping[str, np.ndarray]) -> str:
    """Return the function that puts the gradients by all weights together."""
    matrices = [i for i, w in enumerate(weights.values()) if w.ndim != 1]
    vectors = [f"part{i}" if i in matrices else f"gradient{i}" for i in range(len(weights))]
    parts = "\n".join(f"    part{i} = Reshape (gradient{i}, flat)" for i in matrices)
    return f"""
packed ({", ".join(f"gradient{i}" for i in range(len(weights)))}) => (gradient) {{
    flat = Constant <value = int64[1] {{-1}}> ()
{parts}
    gradient = Concat <axis = 0> ({", ".join(vectors)})
}}"""


def packed_gradients(backward: onnx.ModelProto, weights: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """Return a backward model whose gradients by the weights are one output, `GRADIENT`, in place of one for each."""
    names = {gradient_name(name): array for name, array in weights.items()}
    size, dtype = sum(array.size for array in weights.values()), next(iter(weights.values())).dtype
    fragment = Fragment(dtype)
    fragment.nodes.extend(backward.graph.node)
    fragment.call(packed_text(weights), list(names), [GRADIENT])
    packed = copy.deepcopy(backward)
    del packed.graph.node[:], packed.graph.output[:]
    packed.graph.node.extend(fragment.nodes)
    packed.graph.output.append(onnx.helper.make_tensor_value_info(GRADIENT, onnx_dtype(dtype), [size]))
    packed.graph.output.extend(output for output in backward.graph.output if output.name not in names)
    return inlined(packed, fragment)
