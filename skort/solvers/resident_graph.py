"""The step graph as a device runs it: it takes its rows out of all data, and adds up what is read once an epoch."""

import onnx
from onnx import helper

from skort.objective.nodes import LOSS, OBJECTIVE, TARGET
from skort.onnx_text import Fragment, inlined, onnx_dtype
from skort.solvers.step_graph import ETA, WEIGHTS, next_name

__all__ = ["CONTROLS", "SUMS", "WEIGHT_SUM", "indices_name", "resident_graph", "table_name"]

#: The learning rate, the batch's share of the epoch, and whether the weights after the step count in their mean.
CONTROLS = "skort_controls"
#: The objective and the loss, added up.
SUMS = "skort_sums"
#: The weights, added up.
WEIGHT_SUM = "skort_weight_sum"

_CONTROLLED = """
controlled (controls) => (eta, share, counts) {
    eta_of_one, share, counts = Split <axis = 0> (controls)
    flat = Constant <value = int64[1] {0}> ()
    scalar = Squeeze (eta_of_one, flat)
    eta = Cast <to = %d> (scalar)
}"""

_ADDED = """
added (sums, share, objective, loss) => (next_sums) {
    flat = Constant <value = int64[1] {1}> ()
    objective_of_one = Reshape (objective, flat)
    loss_of_one = Reshape (loss, flat)
    values = Concat <axis = 0> (objective_of_one, loss_of_one)
    precise = Cast <to = 11> (values)
    parts = Mul (share, precise)
    next_sums = Add (sums, parts)
}"""

_COUNTED = """
counted (sum, counts, weights) => (next_sum) {
    precise = Cast <to = 11> (weights)
    more = Add (sum, precise)
    does = Cast <to = 9> (counts)
    next_sum = Where (does, more, sum)
}"""


def table_name(name):
    """Return the name of the input that holds all rows of the step's input `name`."""
    return f"skort_all/{name}"


def indices_name(name):
    """Return the name of the input that says which of them are the batch."""
    return f"skort_rows/{name}"


def resident_graph(step, X_name, dtype, *, average):
    r"""
    Return the step of a device.

    In place of a batch and of the learning rate it takes all rows, the numbers of the batch's, and `CONTROLS`
    :math:`(\eta, share, counts)`. It goes on from one step to the next with the sums, in float64,

    .. math:: \sum share \cdot (objective, loss), \qquad \sum counts \cdot w

    Parameters
    ----------
    step : onnx.ModelProto
        As from `step_graph`.
    X_name : str
        The name of its input X.
    dtype : dtype
    average : bool
        Whether there is a sum of the weights.

    Returns
    -------
    model : onnx.ModelProto
    """
    fragment = Fragment(dtype)
    inputs = {i.name: i for i in step.graph.input}
    tables, double = [], onnx.TensorProto.DOUBLE
    for name in (X_name, TARGET):
        batch_size, n_columns = (d.dim_value for d in inputs.pop(name).type.tensor_type.shape.dim)
        tables.append(helper.make_tensor_value_info(table_name(name), onnx_dtype(dtype), [None, n_columns]))
        tables.append(helper.make_tensor_value_info(indices_name(name), onnx.TensorProto.INT64, [batch_size]))
        fragment.nodes.append(helper.make_node("Gather", [table_name(name), indices_name(name)], [name], axis=0))
    shape = [d.dim_value for d in inputs[WEIGHTS].type.tensor_type.shape.dim]
    del inputs[ETA]
    fragment.call(_CONTROLLED % onnx_dtype(dtype), [CONTROLS], [ETA, "skort_share", "skort_counts"])
    fragment.nodes.extend(step.graph.node)
    fragment.call(_ADDED, [SUMS, "skort_share", OBJECTIVE, LOSS], [next_name(SUMS)])
    sums = {SUMS: [2]}
    if average:
        fragment.call(_COUNTED, [WEIGHT_SUM, "skort_counts", next_name(WEIGHTS)], [next_name(WEIGHT_SUM)])
        sums[WEIGHT_SUM] = shape
    model = onnx.ModelProto()
    model.CopyFrom(step)
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.extend(fragment.nodes)
    given = {CONTROLS: [3], **sums}
    model.graph.input.extend([*tables, *inputs.values()])
    model.graph.input.extend(helper.make_tensor_value_info(name, double, shape) for name, shape in given.items())
    model.graph.output.extend(helper.make_tensor_value_info(next_name(n), double, s) for n, s in sums.items())
    return inlined(model, fragment)
