"""The step graph as a device runs it: it takes its rows out of all data, and adds up what is read once an epoch."""

import onnx
from onnx import helper

from skort.common.onnx_text import Fragment, inlined, onnx_dtype
from skort.objective.objective import LOSS, OBJECTIVE, TARGET
from skort.solvers.graph.step import ETA, next_name

__all__ = ["CONTROLS", "SUMS", "device_step_graph", "indices_name", "rows_name"]

#: The learning rate, and the batch's share of the epoch.
CONTROLS = "skort_controls"
#: The objective and the loss, added up.
SUMS = "skort_sums"

_CONTROLLED = """
controlled (controls) => (eta, share) {
    eta_of_one, share = Split <axis = 0> (controls)
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


def rows_name(name):
    """Return the name of the input that holds all rows of the step's input `name`."""
    return f"skort_all/{name}"


def indices_name(name):
    """Return the name of the input that says which of them are the batch."""
    return f"skort_rows/{name}"


def device_step_graph(step, X_name, dtype):
    r"""
    Return the step of a device.

    In place of a batch and of the learning rate it takes all rows, the numbers of the batch's rows, and `CONTROLS`
    :math:`(\eta, share)`. It goes on from one step to the next with the sum, in float64,

    .. math:: \sum share \cdot (objective, loss)

    Parameters
    ----------
    step : onnx.ModelProto
        As from `step_graph`.
    X_name : str
        The name of its input X.
    dtype : dtype

    Returns
    -------
    model : onnx.ModelProto
    """
    fragment = Fragment(dtype)
    inputs = {i.name: i for i in step.graph.input}
    tables, double = [], onnx.TensorProto.DOUBLE
    for name in (X_name, TARGET):
        batch_size, n_columns = (d.dim_value for d in inputs.pop(name).type.tensor_type.shape.dim)
        tables.append(helper.make_tensor_value_info(rows_name(name), onnx_dtype(dtype), [None, n_columns]))
        tables.append(helper.make_tensor_value_info(indices_name(name), onnx.TensorProto.INT64, [batch_size]))
        fragment.nodes.append(helper.make_node("Gather", [rows_name(name), indices_name(name)], [name], axis=0))
    del inputs[ETA]
    fragment.call(_CONTROLLED % onnx_dtype(dtype), [CONTROLS], [ETA, "skort_share"])
    fragment.nodes.extend(step.graph.node)
    fragment.call(_ADDED, [SUMS, "skort_share", OBJECTIVE, LOSS], [next_name(SUMS)])
    model = onnx.ModelProto()
    model.CopyFrom(step)
    del model.graph.node[:], model.graph.input[:]
    model.graph.node.extend(fragment.nodes)
    pairs = [helper.make_tensor_value_info(name, double, [2]) for name in (CONTROLS, SUMS)]
    model.graph.input.extend([*tables, *inputs.values(), *pairs])
    model.graph.output.append(helper.make_tensor_value_info(next_name(SUMS), double, [2]))
    return inlined(model, fragment)
