"""The labels of a classifier's ONNX model, in the order of its columns, found by running it."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from skort.common.onnx_text import leading_to, read_names
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.classifier_heads import part_between, rows_like, runner
from skort.graphs.onnx_models.inputs import FLOATS
from skort.graphs.onnx_models.limits import INTEGERS

_LABELS = {TensorProto.STRING, TensorProto.BOOL, *INTEGERS}
_N_ROWS = 256
# The square of the number of columns is the number of values that are tried.
_MAX_COLUMNS = 2048
# Nearer scores may be those of either label.
_NEAR = 1e-4


def label_output(model: onnx.ModelProto) -> str | None:
    """Return the name of the only output of labels beside the only output of floats, or None."""
    types = {
        # ZipMap makes dicts, whose values are floats.
        o.name: o.type.tensor_type.elem_type if o.type.HasField("tensor_type") else FLOATS[0]
        for o in model.graph.output
    }
    labels = [name for name, each in types.items() if each in _LABELS]
    n_floats = sum(each in FLOATS for each in types.values())
    return labels[0] if len(labels) == n_floats == 1 else None


def lists_unsorted_labels(model: onnx.ModelProto, name: str) -> bool:
    """Return whether a node that leads to an output of labels lists them in no sorted order."""
    graph = model.graph
    leading = leading_to(graph.node, [name])
    tables = {i.name: i for i in graph.initializer if i.data_type in _LABELS}
    listed = []
    for node in graph.node:
        if leading.isdisjoint(node.output):
            continue
        if node.op_type in ("Gather", "ArrayFeatureExtractor") and node.input[0] in tables:
            listed.append(numpy_helper.to_array(tables[node.input[0]]).ravel().tolist())
        for attribute in node.attribute:
            if attribute.name.startswith(("classlabels_", "values_")):
                listed.append([*attribute.strings, *attribute.ints])

    return any(labels != sorted(labels) for labels in listed)


def column_labels(model: onnx.ModelProto) -> np.ndarray | None:
    """
    Return the label of each column of the score of a plain model with shapes.

    A score of one column has two labels: the one of low scores, then the one of high ones. None:
    the model has no labels, or its columns do not decide them.
    """
    label = label_output(model)
    if label is None:
        return None

    (score,) = (o.name for o in model.graph.output if o.type.tensor_type.elem_type in FLOATS)
    begin = _last_common(model.graph, [label, score])
    try:
        tried = None if begin is None else _tried(model, begin)
        if tried is None:
            return None
        labels, scores = (
            tried if name == begin else _run(model, begin, name, tried) for name in (label, score)
        )
    except NotTrainableError:  # such a part does not run alone
        return None

    return _of_columns(np.asarray(labels), np.reshape(scores, (len(tried), -1)))


def _last_common(graph, ends):
    """Return the last result of X that several results are computed from, and from no other."""
    of_X = {i.name for i in graph.input[:1]}
    for node in graph.node:
        if not of_X.isdisjoint(read_names(node)):
            of_X.update(node.output)

    needed = of_X.intersection(ends)
    for node in reversed(graph.node):
        if len(needed) == 1:
            break
        if not needed.isdisjoint(node.output):
            needed.difference_update(node.output)
            needed.update(of_X.intersection(read_names(node)))

    return needed.pop() if len(needed) == 1 else None


def _tried(model, begin):
    """Return rows of a result in which each of its columns wins, and loses, or None."""
    infos = (*model.graph.value_info, *model.graph.output, *model.graph.input)
    tensor = next((i.type.tensor_type for i in infos if i.name == begin), None)
    if tensor is None or tensor.elem_type not in FLOATS:
        return None

    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    dims = [dim.dim_value for dim in tensor.shape.dim]
    random_state = np.random.RandomState(0)
    if len(dims) == 1:
        return random_state.normal(scale=3.0, size=_N_ROWS).astype(dtype)
    if len(dims) != 2 or dims[1] > _MAX_COLUMNS:
        return None

    width = dims[1] or _width(model, begin)
    if width is None:
        return None
    drawn = random_state.normal(scale=3.0, size=(_N_ROWS, width))
    # With so many columns, random rows alone would let some of them never win.
    return np.concatenate([drawn, 20 * np.eye(width), -20 * np.eye(width)]).astype(dtype)


def _width(model, begin):
    """Return the number of columns of a result that does not state it, or None."""
    dims = model.graph.input[0].type.tensor_type.shape.dim
    if len(dims) != 2 or not dims[1].dim_value:
        return None
    values = runner(model, begin)(rows_like(model.graph))
    return values.shape[1] if values.ndim == 2 and values.shape[1] <= _MAX_COLUMNS else None


def _run(model, begin, end, rows):
    part = part_between(model, begin, end)
    return runner(part, end)(rows)


def _of_columns(labels, scores):
    """Return the label of each column: that of the row in which this column wins most clearly."""
    if labels.size != len(scores) or not np.isfinite(scores).all():
        return None

    if scores.shape[1] == 1:
        # A probability decides at a half, and a score at zero.
        is_probability = scores.min() >= 0 and scores.max() <= 1
        scores = np.hstack([-scores, scores]) + ([[1, 0]] if is_probability else [[0, 0]])

    ordered = np.sort(scores, axis=1)
    lead = ordered[:, -1] - ordered[:, -2]
    winner = np.argmax(scores, axis=1)
    rows = [np.argmax(np.where(winner == column, lead, 0)) for column in range(scores.shape[1])]
    if any(winner[row] != column or lead[row] < _NEAR for column, row in enumerate(rows)):
        return None

    found = labels.ravel()[rows]
    return found if len(set(found.tolist())) == len(found) else None


def sorted_order(labels: np.ndarray | None) -> list[int]:
    """Return the positions of labels in their sorted order; without labels, none."""
    listed = [] if labels is None else labels.tolist()
    return sorted(range(len(listed)), key=listed.__getitem__)
