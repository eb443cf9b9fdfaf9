"""The score graph of an ONNX model that a user gives."""

import contextlib
import copy
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.compose
import onnx.inliner
import onnx.shape_inference
from onnx import TensorProto, helper, numpy_helper

from skort.common.onnx_text import (
    IR_VERSION,
    Fragment,
    constant_value,
    import_each_domain_once,
    inlined,
    leading_to,
    onnx_dtype,
    pruned,
    read_names,
    replace_nodes,
)
from skort.common.user_warning import warn_user
from skort.exceptions import NotTrainableError
from skort.graphs import onnx_models
from skort.graphs.export import LABEL, PREDICTION, PROBABILITIES
from skort.graphs.layers import OFFSET, TARGET_OFFSET
from skort.graphs.onnx_models.classifier_heads import Head, find_head, in_order, rows_like, runner
from skort.graphs.onnx_models.inputs import (
    FLOATS,
    given_inputs,
    in_one_input,
    training_losses,
    with_output_shapes,
)
from skort.graphs.onnx_models.known_shapes import is_known, results, shapes_for_rows
from skort.graphs.onnx_models.labels import (
    column_labels,
    label_output,
    lists_unsorted_labels,
    sorted_order,
)
from skort.graphs.onnx_models.limits import (
    check_functions,
    check_limits,
    check_nesting,
    check_ranges,
    check_size,
)
from skort.graphs.onnx_models.operator_rules import check_numbers, check_shapes, is_safe
from skort.graphs.onnx_models.opsets import (
    cast_weights,
    in_float32,
    in_our_opset,
    with_standard_opset,
)
from skort.graphs.onnx_models.runtime_operators import RUNTIME_DOMAIN
from skort.graphs.onnx_models.standard_operators import standard_operators
from skort.graphs.onnx_models.untied import untied
from skort.graphs.score_graph import ScoreGraph, ScoreSpec
from skort.graphs.standardized import check_offsets
from skort.graphs.training_mode import in_training_mode
from skort.runtime.sessions import short_message
from skort.runtime.trial import reason_of_death

_NUMBERS = (*FLOATS, TensorProto.INT8, TensorProto.UINT8)
# Layers whose weights `find_weights` does not find: they are operands of no product or sum.
_WITHOUT_GRADIENT = (
    "ConvTranspose",
    "Einsum",
    "GRU",
    "LSTM",
    "RNN",
)


def onnx_score_graph(model: onnx.ModelProto, spec: ScoreSpec) -> ScoreGraph:
    """Return the score graph of an ONNX model. Scales are trained in the layers that learn one."""
    order = _order_of_labels(model) if spec.is_classifier else []
    model, head, normalizing = with_head(model, spec)
    graph = pruned(model, [head.result]).graph
    without_idle_nodes(graph)
    _as_column(model, graph.output[0].name)
    n_columns = _n_columns(graph.output[0])

    if head.score is not None:
        model, n_columns = _followed(model, head.score, "raw_score", spec), spec.n_outputs

    _without_side_by_side(model)
    if n_columns not in (None, spec.n_outputs):
        raise NotTrainableError(
            f"estimator: the ONNX model gives {n_columns} numbers per row, but y needs "
            f"{spec.n_outputs}."
        )

    if to_order := in_order(order, spec.n_outputs):
        model = _followed(model, to_order, "ordered_score", spec)
    graph = model.graph
    for info, width in ((graph.input[0], spec.n_features), (graph.output[0], spec.n_outputs)):
        info.CopyFrom(
            helper.make_tensor_value_info(info.name, onnx_dtype(spec.dtype), [None, width])
        )

    del graph.value_info[:]
    # The prefix keeps the names of results apart from names that are added later, such as "label".
    # Weights keep their names.
    model = onnx.compose.add_prefix(model, "model/", rename_inputs=False, rename_initializers=False)
    _check_runs(model, spec)
    score_graph = ScoreGraph.of(model)
    check_offsets(score_graph)
    _warn_of_others(score_graph)
    names = [*score_graph.trained.coefficients, *score_graph.trained.intercepts, *normalizing]

    fixed = {OFFSET, TARGET_OFFSET, *_behind_steps(score_graph, names)}

    return score_graph.training_only([name for name in names if name not in fixed])


def _order_of_labels(model):
    """Return the positions of the labels of a model in their sorted order, or warn."""
    labels = given_labels(model)
    name = label_output(model) if isinstance(model, onnx.ModelProto) else None
    if labels is None and name is not None and lists_unsorted_labels(model, name):
        warn_user(
            f"The score of the ONNX model does not decide its labels, the output {name!r}, and "
            "the file does not list them in sorted order. skort takes the columns of the score for "
            "the sorted labels of y. Sort the labels of the file, or cut them off with "
            "onnx.utils.Extractor; otherwise, the labels of to_onnx(original=True) may be wrong."
        )

    return sorted_order(labels)


def _followed(model, text, name, spec):
    """Return a model whose score, of this name, is a function of its score."""
    end = Fragment(spec.dtype)
    end.call(text, [model.graph.output[0].name], [name])
    model.graph.node.extend(end.nodes)
    model.graph.output[0].name = name
    return inlined(model, end)


def given_labels(model: Any) -> np.ndarray | None:
    """Return the labels of the columns of an ONNX model's score, see `column_labels`, or None."""
    if not isinstance(model, onnx.ModelProto) or label_output(model) is None:
        return None
    return column_labels(with_shapes(_from_columns(model)))


def with_head(model: onnx.ModelProto, spec: ScoreSpec) -> tuple[onnx.ModelProto, Head, set[str]]:
    """Return a plain model from X to its output, its head, and the scales that layers learn."""
    model = _from_columns(model)
    graph = model.graph
    X = _the_input(graph, spec)
    score = _the_output(graph, spec.outputs)
    rows = X.type.tensor_type.shape.dim[0]
    if rows.dim_value:
        # A file for a fixed number of rows states this number in its results, too.
        del graph.value_info[:]
    X.CopyFrom(
        helper.make_tensor_value_info(
            X.name, onnx_dtype(spec.dtype), [rows.dim_param or None, spec.n_features]
        )
    )
    pruned(model, [score])
    constants_to_initializers(graph)
    with _types_that_agree():
        # Before BatchNormalization is rewritten: a scale of one number would be broadcast.
        check_shapes(graph, shapes_for_rows(model, 1))
        normalizing = in_training_mode(model) | _learned_scales(graph)
    pruned(model, [score])
    model = with_shapes(model)
    score = _as_column(model, score)
    check_limits(model.graph, onnx_models.MAX_VALUES)
    check_survival(model)
    head = find_head(model, score, spec.n_outputs) if spec.is_classifier else Head(score, None)

    return model, head, normalizing


def _learned_scales(graph):
    """Return what the scales of InstanceNormalization and the slopes of PRelu are computed from."""
    names = [
        leading_to(graph.node, [node.input[1]])
        for node in graph.node
        if node.op_type in ("InstanceNormalization", "PRelu")
    ]
    # A slope that depends on X has no weights of its own.
    inputs = {info.name for info in graph.input}
    return {name for leading in names if leading.isdisjoint(inputs) for name in leading}


def check_survival(model: onnx.ModelProto) -> None:
    """
    Raise an error if a run of the model would need too much memory or end the process.

    A model that the rules do not know to be safe runs in a process of its own first.
    """
    graph = model.graph
    with _types_that_agree():
        of_one, shapes = (shapes_for_rows(model, n_rows) for n_rows in (1, 3))
    for name in results(graph):
        if is_known(shape := of_one.get(name)):
            check_size(name, shape, onnx_models.MAX_VALUES)

    check_shapes(graph, shapes)
    if is_safe(graph, shapes):
        return

    rows = rows_like(graph)
    reason = reason_of_death(model.SerializeToString(), [rows[:3], rows, rows[:1]])
    if reason is not None:
        operators = ", ".join(dict.fromkeys(node.op_type for node in graph.node))
        raise NotTrainableError(
            f"estimator: a process that ran the ONNX model on 3, {len(rows)} and 1 rows {reason}. "
            f"Look for an input of a wrong shape among its operators: {operators}. If it was "
            "exported for one number of rows, export it for any (dynamic_axes)."
        )


def _as_column(model, score):
    """Make a score of shape (any,) a column, in place; return the name of the score."""
    graph = model.graph
    (output,) = graph.output
    if len(output.type.tensor_type.shape.dim) != 1:
        return score

    last = next((node for node in graph.node if score in node.output), onnx.NodeProto())
    columns = {i.name for i in graph.value_info if [*_sizes(i)[1:]] == [1]}
    if last.op_type in ("Squeeze", "Reshape", "Flatten") and last.input[0] in columns:
        # The column is there before it is made a vector.
        column = last.input[0]
        graph.node.remove(last)
    else:
        column = _side_by_side(graph, [score])

    output.CopyFrom(
        helper.make_tensor_value_info(column, output.type.tensor_type.elem_type, [None, 1])
    )
    return column


def _sizes(value):
    """Return the sizes that the type of a result states; 0: any."""
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _from_columns(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a plain model with one input X, without the losses of a training graph."""
    model = unexpanded(plain_model(model))
    if losses := training_losses(model):
        pruned(
            model, [o.name for o in model.graph.output if o.name not in losses], drop_inputs=True
        )

    in_one_input(model.graph)
    return model


def unexpanded(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Drop the Expand to the shape of the labels that torch's mean squared error has, in place.

    The score has this shape already.
    """
    graph = model.graph
    shapes = (
        {node.output[0] for node in graph.node if node.op_type == "Shape"}
        if training_losses(model)
        else set()
    )
    for node in (n for n in graph.node if n.op_type == "Expand" and n.input[1] in shapes):
        node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output, name=node.name))
    return model


def _warn_of_others(score_graph: ScoreGraph) -> None:
    """Warn of weights that are not trained, because their layers have no gradient."""
    graph = score_graph.structure.graph
    arrays = {i.name for i in graph.initializer if i.data_type in _NUMBERS and i.dims}
    made = {name for node in graph.node for name in node.output}
    reached = {graph.input[0].name}

    for node in graph.node:
        if reached.isdisjoint(read_names(node)):
            continue

        reached.update(node.output)
        if node.op_type in _WITHOUT_GRADIENT or node.domain == RUNTIME_DOMAIN:
            names = [name for name in node.input if name in arrays]
            _warn_of_layer(node, names)
        elif node.op_type in ("Conv", "Gemm", "MatMul"):
            _warn_of_operand(graph, node, made - reached, arrays)


def _behind_steps(score_graph, names) -> list[str]:
    """Return the weights that reach the score through Sign alone, with a warning."""
    nodes = [node for node in score_graph.structure.graph.node if node.op_type != "Sign"]
    alive = leading_to(nodes, [score_graph.score_name])
    frozen = [name for name in names if name in score_graph.arrays and name not in alive]
    if frozen:
        warn_user(
            f"The weights {', '.join(frozen)} of the ONNX model are not trained: they reach the "
            "output through Sign alone, and its gradient is zero. They stay as they are."
        )

    return frozen


def _warn_of_layer(node, names):
    if names:
        warn_user(
            f"The weights {', '.join(names)} of the {node.op_type} node of the ONNX model are "
            f"not trained: there is no gradient of {node.op_type}. They stay as they are, and "
            "so do the weights before them."
        )


def _warn_of_operand(graph, node, computed, arrays):
    """Warn of the factor of a product that is computed from frozen arrays alone."""
    weights = {info.name for info in graph.input}
    for operand in computed.intersection(node.input[:2]):
        names = leading_to(graph.node, [operand])
        if names.isdisjoint(weights) and not names.isdisjoint(arrays):
            makers = [n.op_type for n in graph.node if not names.isdisjoint(n.output)]
            frozen = ", ".join(i.name for i in graph.initializer if i.name in names & arrays)
            warn_user(
                f"The weights {frozen} before a {node.op_type} node of the ONNX model are not "
                f"trained: skort does not train through {', '.join(dict.fromkeys(makers))} to "
                "them. They stay as they are. Write the result as one initializer to train it."
            )


def spec_of(model: onnx.ModelProto, outputs: tuple[str, ...] = ()) -> ScoreSpec:
    """Return the numbers of columns and the dtype that an ONNX model states."""
    shaped = with_shapes(_from_columns(model))
    graph = shaped.graph
    X = next(iter(given_inputs(graph)), onnx.ValueInfoProto())

    if outputs:
        widths = [_n_columns(X), *output_widths(shaped, outputs).values()]
    else:
        score = _the_output(graph)
        (output,) = (o for o in graph.output if o.name == score)
        # A score of shape (any,) is one column.
        widths = [_n_columns(X), 1 if len(_sizes(output)) == 1 else _n_columns(output)]

    if X.type.tensor_type.elem_type not in FLOATS or None in widths:
        raise NotTrainableError(
            "model: the ONNX model must have one input and outputs of floats with known numbers of "
            f"columns; its inputs are {[_described(i) for i in graph.input]}, its outputs "
            f"{[_described(o) for o in graph.output]}."
        )

    dtype = helper.tensor_dtype_to_np_dtype(X.type.tensor_type.elem_type)
    return ScoreSpec(widths[0], sum(widths[1:]), dtype, outputs=outputs)


def output_widths(model: Any, names: tuple[str, ...]) -> dict[str, int | None]:
    """Return the number of columns of each named output of an ONNX model; None if it is unknown."""
    if not isinstance(model, onnx.ModelProto):
        raise ValueError(
            "loss by the names of outputs needs an estimator that is an onnx.ModelProto, got "
            f"{model!r}. Give one loss."
        )

    dims = {
        o.name: o.type.tensor_type.shape.dim
        for o in model.graph.output
        if o.type.tensor_type.elem_type in FLOATS
    }
    known = {name: sizes for name, sizes in dims.items() if len(sizes) in (1, 2)}

    for name in names:
        if name not in known:
            raise ValueError(
                f"loss names the output {name!r}, but the outputs of floats of the ONNX model, of "
                f"one or two dimensions, are {', '.join(known) or 'none'}."
            )
        if name in (PREDICTION, LABEL, PROBABILITIES) or name.startswith("skort_"):
            raise ValueError(
                f"The name of the output {name!r} is also a name inside the ONNX model: rename it."
            )

    if not names:
        raise ValueError(
            "loss is an empty dict: give a loss for one of the outputs "
            f"{', '.join(known) or 'none'}."
        )

    return {
        name: 1 if len(known[name]) == 1 else (known[name][1].dim_value or None) for name in names
    }


def without_idle_nodes(graph: onnx.GraphProto) -> None:
    """
    Drop identities, casts without effect and a last reshape, in place.

    skl2onnx and Keras write them, and they would hide layers.
    """
    weights = [
        helper.make_tensor_value_info(i.name, i.data_type, i.dims) for i in graph.initializer
    ]
    infos = {info.name: info for info in (*weights, *graph.value_info, *graph.input)}
    renamed: dict[str, str] = {}

    kept = []
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        if _is_idle(node, infos):
            renamed[node.output[0]] = node.input[0]
        else:
            kept.append(node)

    source = infos.get(renamed.get(graph.output[0].name))
    if source in graph.input or any(a.HasField("g") for node in graph.node for a in node.attribute):
        return

    replace_nodes(graph, kept)
    if source is not None:
        graph.output[0].CopyFrom(source)
    last = next((node for node in graph.node if graph.output[0].name in node.output), None)
    if last is None or last.op_type != "Reshape":
        return

    shapes = {
        i.name: numpy_helper.to_array(i).tolist()
        for i in graph.initializer
        if i.name == last.input[1]
    }
    info = infos.get(last.input[0])
    n_columns = (
        None if info is None or len(info.type.tensor_type.shape.dim) != 2 else _n_columns(info)
    )

    if n_columns is not None and shapes.get(last.input[1]) in ([-1, n_columns], [0, n_columns]):
        graph.node.remove(last)
        graph.output[0].CopyFrom(info)


def _without_side_by_side(model):
    """Make a score that is picked from concatenated columns the output itself, in place."""
    graph = model.graph
    made = {name: node for node in graph.node for name in node.output}
    values = {
        i.name: numpy_helper.to_array(i)
        for i in graph.initializer
        if i.data_type == TensorProto.INT64
    }
    values |= {n.output[0]: constant_value(n) for n in graph.node if n.op_type == "Constant"}
    pick = made.get(graph.output[0].name, onnx.NodeProto())
    columns = (
        made.get(pick.input[0], onnx.NodeProto()) if pick.op_type == "Gather" else onnx.NodeProto()
    )
    dims = {i.name: i.type.tensor_type.shape.dim for i in graph.value_info}
    is_single = all(
        len(dims.get(name, "")) == 2 and dims[name][1].dim_value == 1 for name in columns.input
    )

    indices: Any = values.get(pick.input[1], np.array([])).ravel() if columns.op_type else ()
    if columns.op_type == "Concat" and is_single and len(indices) == 1:
        pruned(model, [columns.input[indices[0]]])


def _is_idle(node, infos):
    """Return whether the result of a node is its input."""
    if node.input and node.input[0] in infos and node.domain == "":
        to = infos[node.input[0]].type.tensor_type.elem_type
        return node.op_type == "Identity" or (node.op_type == "Cast" and node.attribute[0].i == to)
    return False


@contextlib.contextmanager
def _types_that_agree():
    """Raise a NotTrainableError if a model states other types or shapes than its nodes compute."""
    try:
        yield
    except onnx.shape_inference.InferenceError as error:
        raise NotTrainableError(
            f"estimator: the ONNX model is not valid: {short_message(error)}"
        ) from error


def with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """
    Return a model with inferred shapes.

    The shape that the model states for an output is used only if none is inferred.
    """
    written = [copy.deepcopy(output.type) for output in model.graph.output]
    bare = copy.deepcopy(model)

    for output in bare.graph.output:
        if output.type.tensor_type.elem_type:
            # skl2onnx states wrong shapes, such as that of X.
            output.type.tensor_type.ClearField("shape")

    with _types_that_agree():
        onnx.shape_inference.infer_shapes(model)
        bare = onnx.shape_inference.infer_shapes(bare, data_prop=True)

    for output, before in zip(bare.graph.output, written, strict=True):
        if not output.type.tensor_type.HasField("shape"):
            output.type.CopyFrom(before)

    return bare


def plain_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a checked copy of a model without functions, in skort's opset and IR version."""
    model = with_output_shapes(with_standard_opset(model))
    opset = next((o.version for o in model.opset_import if o.domain == ""), None)
    outside = [i.name for i in model.graph.initializer if i.data_location == TensorProto.EXTERNAL]
    if outside:
        raise NotTrainableError(
            f"estimator: the values of {', '.join(outside)} are in a file beside the ONNX model. "
            "Read both with onnx.load(path), or call "
            "onnx.external_data_helper.load_external_data_for_model(model, folder)."
        )

    sparse = [i.values.name for i in model.graph.sparse_initializer]
    if sparse:
        raise NotTrainableError(
            f"estimator: the initializers {sparse} of the ONNX model are sparse. Make them dense."
        )

    # skl2onnx may import a domain twice.
    imports = list(dict.fromkeys((o.domain, o.version) for o in model.opset_import))
    if len({domain for domain, _ in imports}) < len(imports):
        raise NotTrainableError(
            f"estimator: the ONNX model imports a domain of operators in two versions: {imports}."
        )

    # The checker and the converter raise errors of many kinds.
    try:
        # The checker refuses opsets that are newer than the installed onnx.
        if opset is None or opset <= onnx.defs.onnx_opset_version():
            onnx.checker.check_model(model)
        _check_text(model)
        _check_values(model.graph)
        check_functions(model)
        plain = onnx.inliner.inline_local_functions(untied(model).model)
        import_each_domain_once(plain)
    except Exception as error:
        raise NotTrainableError(
            f"estimator: the ONNX model is not valid: {short_message(error)}"
        ) from error

    check_nesting(plain.graph)
    check_numbers(plain.graph)
    plain = in_our_opset(plain)
    with _types_that_agree():
        in_float32(plain)
    plain.ir_version = IR_VERSION
    plain = standard_operators(plain)
    cast_weights(plain.graph)
    check_ranges(plain.graph, onnx_models.MAX_VALUES)

    return plain


def _check_text(message):
    """Raise a ValueError for text that is not UTF-8, which protobuf returns as bytes."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                _check_text(part)
        elif field.type == field.TYPE_STRING:
            for text in [value] if isinstance(value, str | bytes) else value:
                if isinstance(text, bytes):
                    raise ValueError(f"{field.name} is no UTF-8 text: {text!r}.")


def _check_values(graph):
    """
    Raise a ValueError if the shape of an initializer does not fit its values.

    onnx's checker accepts too many values.
    """
    for tensor in graph.initializer:
        if any(dim < 0 for dim in tensor.dims):
            raise ValueError(f"the shape of {tensor.name!r} is {list(tensor.dims)}.")

        try:
            numpy_helper.to_array(tensor)
        except ValueError as error:
            raise ValueError(f"the values of {tensor.name!r}: {error}") from error


def _the_input(graph: onnx.GraphProto, spec: ScoreSpec) -> onnx.ValueInfoProto:
    """Return the only input that is not an initializer, and drop all others, in place."""
    inputs = given_inputs(graph)
    names = [i.name for i in inputs]
    dims = inputs[0].type.tensor_type.shape.dim if len(inputs) == 1 else []
    if len(dims) != 2 or inputs[0].type.tensor_type.elem_type not in FLOATS:
        raise NotTrainableError(
            "estimator: the ONNX model needs inputs of numbers, of shape (any, n_features), or "
            "of more dimensions of known sizes, such as (any, 3, 32, 32), whose X are images or their "
            f"flattened rows; it has the inputs {names}: {[_described(i) for i in inputs]}."
        )

    (X,) = inputs
    if X.type.tensor_type.elem_type != onnx_dtype(spec.dtype):
        other = helper.tensor_dtype_to_np_dtype(X.type.tensor_type.elem_type)
        raise NotTrainableError(
            f"estimator: the ONNX model computes in {other}, got dtype={str(spec.dtype)!r}."
        )
    if dims[1].dim_value not in (0, spec.n_features):
        raise ValueError(
            f"X has {spec.n_features} features, but the ONNX model is expecting "
            f"{dims[1].dim_value} features."
        )

    del graph.input[:]
    graph.input.append(X)
    return graph.input[0]


def _the_output(graph, names=None):
    """
    Return the name of the only output of floats, or of the named outputs side by side.

    The nodes that put them side by side are added in place.
    """
    floats = [o.name for o in graph.output if o.type.tensor_type.elem_type in FLOATS]
    if names:
        return _side_by_side(graph, names)
    if len(floats) != 1:
        raise NotTrainableError(
            "estimator: the ONNX model needs one output of floats, beside labels; it has the "
            f"outputs {[o.name for o in graph.output]}: {[_described(o) for o in graph.output]}. "
            "Cut it with onnx.utils.Extractor, convert a classifier with zipmap=False, or give a "
            'regressor a loss for each output: loss={"name": "squared_error"}.'
        )

    return floats[0]


def _side_by_side(graph, names):
    """Concatenate the columns of some outputs, in place; return the name of the result."""
    dims = {o.name: len(o.type.tensor_type.shape.dim) for o in graph.output}
    columns = []
    for name in names:
        columns.append(name if dims[name] == 2 else f"{name}/column")
        if dims[name] == 1:
            axis = numpy_helper.from_array(np.array([1], np.int64))
            graph.node.append(helper.make_node("Constant", [], [f"{name}/axis"], value=axis))
            graph.node.append(
                helper.make_node("Unsqueeze", [name, f"{name}/axis"], [f"{name}/column"])
            )

    if len(columns) == 1:
        return columns[0]

    graph.node.append(helper.make_node("Concat", columns, ["columns_of_outputs"], axis=1))
    return "columns_of_outputs"


def constants_to_initializers(graph: onnx.GraphProto) -> None:
    """Turn constants of floats into initializers, which may be weights, in place."""
    for node in [node for node in graph.node if node.op_type == "Constant"]:
        (attribute,) = node.attribute
        if attribute.name == "value" and attribute.t.data_type in FLOATS:
            graph.initializer.append(attribute.t)
            graph.initializer[-1].name = node.output[0]
            graph.node.remove(node)


def _check_runs(model, spec):
    """Raise an error if the model does not run on any number of rows, or if it mixes rows."""
    rows = rows_like(model.graph)
    run = runner(model, model.graph.output[0].name)
    score = run(rows[:3])
    if score.shape != (3, spec.n_outputs):
        raise NotTrainableError(
            f"estimator: the ONNX model gives an array of shape {score.shape} for 3 rows, but y "
            f"needs {(3, spec.n_outputs)}."
        )

    if not np.isfinite(run(rows)).any():
        # The model may take a logarithm of X, so try positive rows.
        rows = np.abs(rows)
        score = run(rows[:3])

    together = run(rows)
    alone = np.concatenate([run(rows[i : i + 1]) for i in range(8)])
    if not np.isfinite(together).any():
        arrays = {
            i.name: numpy_helper.to_array(i)
            for i in model.graph.initializer
            if i.data_type in FLOATS
        }
        names = ", ".join(name for name, array in arrays.items() if not np.isfinite(array).all())
        raise NotTrainableError(
            "estimator: the ONNX model gives NaN or infinities for several random rows. Its "
            "weights are "
            f"{f'finite but for {names}' if names else 'all finite: look for a division by zero'}."
        )

    near = 1e-3 * max(1.0, float(np.abs(alone[np.isfinite(alone)]).max(initial=0.0)))
    pairs = ((together[:3], score), (together[:8], alone))
    if not all(np.allclose(values, others, atol=near, equal_nan=True) for values, others in pairs):
        raise NotTrainableError(
            "estimator: the ONNX model mixes rows: the prediction of a row depends on the other "
            "rows of the call. Look for an operator over axis 0 among "
            f"{', '.join(dict.fromkeys(node.op_type for node in model.graph.node))}."
        )


def _n_columns(value):
    dims = value.type.tensor_type.shape.dim
    if len(dims) not in (0, 2):
        raise NotTrainableError(
            f"estimator: the ONNX model gives {_described(value)}, and not numbers of shape "
            "(any, n_outputs)."
        )

    return (dims[1].dim_value or None) if dims else None


def _described(value):
    tensor = value.type.tensor_type
    if not tensor.elem_type:
        return "no tensor"
    if tensor.elem_type not in TensorProto.DataType.values():
        return f"a tensor of the unknown type {tensor.elem_type}"

    dims = [d.dim_value or d.dim_param or "any" for d in tensor.shape.dim]
    return (
        f"{helper.tensor_dtype_to_string(tensor.elem_type).removeprefix('TensorProto.').lower()} "
        f"of shape {dims}"
    )
