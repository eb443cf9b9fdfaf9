"""Conversion of ONNX models of any opset, or of float16, to the opset and types of skort."""

from collections.abc import Iterator

import onnx
import onnx.checker
import onnx.shape_inference
import onnx.version_converter
from onnx import TensorProto, helper, numpy_helper

from skort.common.onnx_text import OPSET
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.limits import constants_of, with_branches
from skort.graphs.onnx_models.standard_operators import LATER, LATER_DOMAIN
from skort.runtime.sessions import short_message

# Attributes that came after `OPSET`, by operator. Those of casts matter for 8-bit floats only.
_LATER_ATTRIBUTES = dict.fromkeys(("Cast", "CastLike"), ("saturate", "round_mode")) | {
    "Split": ("num_outputs",)
}


def with_standard_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Return a model that imports the standard operators under the domain "".

    A file of operators of ai.onnx.ml alone need not import them, and "ai.onnx" is another name.
    """
    if any(o.domain == "" for o in model.opset_import):
        return model

    model = onnx.ModelProto.FromString(model.SerializeToString())
    standard = [o for o in model.opset_import if o.domain == "ai.onnx"]
    for opset in standard:
        opset.domain = ""
    # Standard operators without an import stay an error of the checker.
    if not standard and all(node.domain not in ("", "ai.onnx") for node in _nodes(model)):
        model.opset_import.add(domain="", version=OPSET)

    return model


def in_our_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Return a model, which must not have functions, converted to `OPSET`.

    Operators of `LATER` get the domain `LATER_DOMAIN`.
    """
    opset = next((o.version for o in model.opset_import if o.domain == ""), None)
    if opset == OPSET:
        return model

    model = onnx.ModelProto.FromString(model.SerializeToString())
    for node in _nodes(model):
        # torch writes this attribute beside axes, where it has no effect. The converter would keep
        # it in operators that lack it in `OPSET`.
        for attribute in [
            a for a in node.attribute if a.name == "noop_with_empty_axes" and len(node.input) > 1
        ]:
            node.attribute.remove(attribute)

    later = [node for node in _nodes(model) if node.domain == "" and node.op_type in LATER]
    for node in later:
        node.domain = LATER_DOMAIN
    if later:
        model.opset_import.add(domain=LATER_DOMAIN, version=1)
    try:
        return onnx.version_converter.convert_version(model, OPSET)
    except Exception as error:  # the converter raises errors of many kinds
        reason = error

    try:
        if opset is not None and opset > OPSET and opset <= onnx.defs.onnx_opset_version():
            return _relabelled(model)
    except Exception as error:  # the checker does, too
        reason = error

    raise NotTrainableError(
        f"estimator: the ONNX model of opset {opset} cannot be read as opset {OPSET}, which all "
        f"supported runtimes know: {short_message(reason)} Export it with target_opset={OPSET}."
    ) from reason


def in_float32(model: onnx.ModelProto) -> None:
    """
    Convert a model of float16 to float32, in place.

    An InferenceError of onnx says that the types of the model do not agree.
    """
    types = {i.data_type for part in with_branches(model.graph) for i in part.initializer}
    types |= {i.type.tensor_type.elem_type for i in (*model.graph.input, *model.graph.output)}
    types |= {a.i for node in _nodes(model) for a in node.attribute if a.name in ("to", "dtype")}
    if TensorProto.FLOAT16 not in types:
        return

    onnx.shape_inference.infer_shapes(model, check_type=True)
    recast(model, TensorProto.FLOAT16, TensorProto.FLOAT)


def cast_weights(graph: onnx.GraphProto) -> None:
    """
    Store initializers in the type of floats that all their readers cast them to, in place.

    So a weight that a file keeps in another type is one of the type of X.
    """
    read: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            read.setdefault(name, []).append(node)

    for tensor in graph.initializer:
        readers = read.get(tensor.name, [])
        types = {a.i for node in readers for a in node.attribute if a.name == "to"}
        is_cast = all(node.op_type == "Cast" for node in readers) and len(types) == 1
        if is_cast and {tensor.data_type, *types} == {TensorProto.FLOAT, TensorProto.DOUBLE}:
            dtype = helper.tensor_dtype_to_np_dtype(*types)
            array = numpy_helper.to_array(tensor).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def recast(model: onnx.ModelProto, old: int, new: int) -> None:
    """Replace the type `old` of floats by the type `new` in a model, in place."""
    dtype = helper.tensor_dtype_to_np_dtype(new)
    for part in with_branches(model.graph):
        for tensor in (*part.initializer, *(a.t for node in part.node for a in node.attribute)):
            if tensor.data_type == old:
                tensor.CopyFrom(
                    numpy_helper.from_array(
                        numpy_helper.to_array(tensor).astype(dtype), tensor.name
                    )
                )

        for info in (*part.input, *part.output, *part.value_info):
            if info.type.tensor_type.elem_type == old:
                info.type.tensor_type.elem_type = new

        for attribute in (a for node in part.node for a in node.attribute):
            if attribute.name in ("to", "dtype") and attribute.i == old:
                attribute.i = new


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    return (node for part in with_branches(model.graph) for node in part.node)


def _relabelled(model):
    """
    Label a model of a later opset as `OPSET`, in place, and return it after a check.

    Later versions of most operators only accept more types.
    """
    constants = constants_of(list(with_branches(model.graph)))
    for node in _nodes(model):
        for attribute in list(node.attribute):
            if attribute.name in _LATER_ATTRIBUTES.get(node.op_type, ()):
                node.attribute.remove(attribute)

        if (
            node.op_type.startswith("Reduce")
            and node.op_type != "ReduceSum"
            and len(node.input) > 1
        ):
            # In `OPSET` the axes are an attribute.
            node.attribute.append(helper.make_attribute("axes", constants[node.input[1]].tolist()))
            del node.input[1:]

    next(o for o in model.opset_import if o.domain == "").version = OPSET
    onnx.checker.check_model(model, full_check=True)
    return model
