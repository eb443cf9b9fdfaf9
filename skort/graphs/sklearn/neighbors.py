"""The converter of scikit-learn's `KNNImputer`, for skl2onnx."""

from typing import Any

import numpy as np
from onnx import TensorProto, helper
from skl2onnx.common.data_types import guess_tensor_type
from sklearn.impute import KNNImputer

from skort.exceptions import NotExportableError
from skort.graphs.sklearn.converters import Nodes, matrix


def convert_neighbors(scope: Any, operator: Any, container: Any) -> None:
    """Write a fitted `KNNImputer`, which skl2onnx writes for later opsets only."""
    imputer = operator.raw_operator
    _check_settings(imputer)
    nodes = Nodes(scope, container)
    values, element_type = matrix(nodes, operator)

    # A Scan imputes one row after the other: the differences from all training rows are large.
    inner = Nodes(scope, type(container)(container.target_opset))
    row = scope.get_unique_variable_name("row")
    filled = _filled(inner, row, imputer, element_type)
    body = helper.make_graph(
        inner.container.nodes,
        "neighbors",
        [helper.make_tensor_value_info(row, element_type, [imputer.n_features_in_])],
        [helper.make_tensor_value_info(filled, element_type, [_width(imputer)])],
        inner.container.initializers,
    )
    container.node_domain_version_pair_sets.update(inner.container.node_domain_version_pair_sets)
    result = operator.outputs[0].full_name
    nodes.add("Scan", [values], version=11, result=result, body=body, num_scan_inputs=1)


def set_neighbors_type(operator: Any) -> None:
    """Give the output of a `KNNImputer` its type and shape: numbers as precise as its input."""
    numbers = type(guess_tensor_type(operator.inputs[0].type))
    operator.outputs[0].type = numbers([None, _width(operator.raw_operator)])


def _check_settings(imputer: KNNImputer) -> None:
    """Raise a NotExportableError for a setting that is a Python function."""
    for name, known in (("weights", '"uniform" or "distance"'), ("metric", '"nan_euclidean"')):
        if callable(getattr(imputer, name)):
            raise NotExportableError(
                f"KNNImputer: {name} is a Python function, which ONNX cannot hold. Use {known}."
            )


def _width(imputer):
    """Return the number of columns of the result."""
    marked = 0 if imputer.indicator_ is None else len(imputer.indicator_.features_)
    return len(_kept(imputer)) + marked


def _kept(imputer):
    """Return the positions of the columns that are kept."""
    is_kept = imputer._valid_mask | imputer.keep_empty_features
    return np.flatnonzero(is_kept).tolist()


def _filled(nodes, row, imputer, element_type):
    """Write a row with what is missing filled in, and the indicators; return their name."""
    present = ~imputer._mask_fit_X
    known = np.where(present, imputer._fit_X, 0.0)
    zero = nodes.constant(0.0, element_type, "zero")
    marker = imputer.missing_values
    missing = (
        nodes.add("IsNaN", [row], "missing")
        if marker != marker
        else nodes.add("Equal", [row, nodes.constant(marker, element_type)], "missing")
    )

    squares = _squared_distances(nodes, row, missing, (known, present), element_type)
    donors, weights = _donors(nodes, squares, (known, present), imputer, element_type)
    axis = nodes.constant([1])
    total = nodes.add("ReduceSum", [weights, axis], "total", keepdims=0)
    weighted = nodes.add("Mul", [weights, donors], version=14)
    mean = nodes.add("ReduceSum", [weighted, axis], "mean", keepdims=0)
    mean = nodes.add("Div", [mean, total], "mean", version=14)

    # Without a neighbour, the mean of the column counts.
    means = known.sum(axis=0) / np.maximum(1, present.sum(axis=0))
    has_donor = nodes.add("Greater", [total, zero])
    means = nodes.constant(means, element_type, "means")
    mean = nodes.add("Where", [has_donor, mean, means], "mean", version=9)
    filled = nodes.add("Where", [missing, mean, row], "filled", version=9)
    if not imputer._valid_mask.all():
        is_valid = nodes.constant(imputer._valid_mask, TensorProto.BOOL, "valid")
        filled = nodes.add("Where", [is_valid, filled, zero], "filled", version=9)

    filled = nodes.add("Gather", [filled, nodes.constant(_kept(imputer))], "filled")
    if imputer.indicator_ is None:
        return filled

    features = nodes.constant(imputer.indicator_.features_.tolist(), name="features")
    marks = nodes.add("Cast", [nodes.add("Gather", [missing, features])], to=element_type)
    return nodes.add("Concat", [filled, marks], "filled", axis=0)


def _squared_distances(nodes, row, missing, training, element_type):
    """Write the mean squares of the differences from each training row; return their name."""
    known, present = training
    zero = nodes.constant(0.0, element_type, "zero")
    in_row = nodes.add("Cast", [nodes.add("Not", [missing], version=1)], to=element_type)
    row = nodes.add("Where", [missing, zero, row], version=9)
    rows = nodes.constant(known, element_type, "rows")
    both = nodes.add("Mul", [nodes.constant(present, element_type), in_row], "both", version=14)

    difference = nodes.add("Sub", [rows, row], "difference", version=14)
    difference = nodes.add("Mul", [difference, both], "difference", version=14)
    squares = nodes.add("Mul", [difference, difference], version=14)
    axis = nodes.constant([1])
    total = nodes.add("ReduceSum", [squares, axis], keepdims=0)
    count = nodes.add("ReduceSum", [both, axis], keepdims=0)

    infinity = nodes.constant(np.inf, element_type, "infinity")
    mean = nodes.add("Div", [total, count], version=14)
    has_both = nodes.add("Greater", [count, zero])
    return nodes.add("Where", [has_both, mean, infinity], "squares", version=9)


def _donors(nodes, squares, training, imputer, element_type):
    """Return the names of the values and weights of the neighbours, one row for each column."""
    known, present = training
    infinity = nodes.constant(np.inf, element_type, "infinity")
    is_donor = nodes.constant(present.T, TensorProto.BOOL, "is_donor")
    squares = nodes.add("Where", [is_donor, squares, infinity], version=9)
    nearest, index = (nodes.scope.get_unique_variable_name(name) for name in ("nearest", "index"))
    k = nodes.constant([min(imputer.n_neighbors, len(known))], name="k")
    nodes.container.add_node(
        "TopK", [squares, k], [nearest, index], op_version=11, axis=1, largest=0, sorted=1
    )
    columns = nodes.constant(known.T, element_type, "columns")
    donors = nodes.add("GatherElements", [columns, index], "donors", axis=1)
    if imputer.weights == "uniform":
        is_near = nodes.add("Less", [nearest, infinity])
        return donors, nodes.add("Cast", [is_near], "weights", to=element_type)

    # Neighbours at no distance leave no weight to others.
    zero = nodes.constant(0.0, element_type, "zero")
    equal = nodes.add("Cast", [nodes.add("Equal", [nearest, zero])], to=element_type)
    n_equal = nodes.add("ReduceSum", [equal, nodes.constant([1])], keepdims=1)
    inverse = nodes.add("Reciprocal", [nodes.add("Sqrt", [nearest])])
    has_equal = nodes.add("Greater", [n_equal, zero])
    return donors, nodes.add("Where", [has_equal, equal, inverse], "weights", version=9)
