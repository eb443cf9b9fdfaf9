"""The scores of several models at once, as one graph."""

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import DTypeLike
from onnx import helper, numpy_helper

from skort.common.onnx_text import onnx_dtype
from skort.graphs.chain import Link

__all__ = ["chain_graph", "parts_of"]


def parts_of(chain: tuple[Link, ...], arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """
    Return the weights of one model in the form and order in which `chain_graph` takes them.

    Parameters
    ----------
    chain : tuple of Link
    arrays : dict of str to ndarray
        By the names of the weights, and in their shapes.

    Returns
    -------
    parts : list of ndarray
        For each layer the coefficients, with a row for each output, and the intercepts, as a column; for the first
        layer both are one matrix.
    """
    parts: list[np.ndarray] = []
    for k, link in enumerate(chain):
        coefficient = arrays[link.coefficient].T
        intercept = [] if link.intercept is None else [arrays[link.intercept].reshape(-1, 1)]
        parts += [np.hstack([coefficient, *intercept])] if k == 0 else [coefficient, *intercept]
    return parts


class _Nodes:
    """The nodes of a graph, each with a name of its own for its result."""

    def __init__(self):
        self.all: list[onnx.NodeProto] = []

    def add(self, op_type, inputs, result=None, **attributes):
        """Add a node; return the name of its result."""
        result = result or f"skort_lanes/{len(self.all)}"
        self.all.append(helper.make_node(op_type, inputs, [result], **attributes))
        return result

    def reshape(self, name, shape, result=None):
        """Add the nodes that give a result another shape; return its name."""
        value = self.add("Constant", [], value=numpy_helper.from_array(np.array(shape, np.int64)))
        return self.add("Reshape", [name, value], result)


def chain_graph(
    chain: tuple[Link, ...],
    parts: Mapping[str, tuple[int, ...]],
    rows: tuple[str, int],
    score_name: str,
    n_lanes: int,
    dtype: DTypeLike,
) -> onnx.GraphProto:
    r"""
    Return the function from X and the weights of several models of the same layers to their scores.

    Rows and columns change places: the activations of one layer of model c are a matrix :math:`H_c` with a row for each
    unit and a column for each row of X. The first layer is one product for all models, whose coefficients are one below
    the other; further layers have a product for each model:

    .. math:: H = f(V^T X^T), \qquad H_c' = f(V_c'^T H_c + b_c')

    Nothing has to be moved in memory for that, if each :math:`V_c` is stored as its transpose. The intercepts of the
    first layer are the coefficients of a column of ones in X.

    Parameters
    ----------
    chain : tuple of Link
    parts : dict of str to tuple of int
        The shapes of `parts_of` one model, by the names that they have here.
    rows : tuple of str and int
        The name of X, which ends with the column of ones, and its number of rows.
    score_name : str
        The name of the output.
    n_lanes : int
        Number of models.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    graph : onnx.GraphProto
        X -> the scores of shape (n_lanes * n_rows, n_outputs), one model after the other. Further inputs are the parts,
        of shape (n_lanes, n_elements).
    """
    nodes, (X, n_rows), given = _Nodes(), rows, iter(parts.items())
    result = X
    for k, link in enumerate(chain):
        name, (n_out, n_in) = next(given)
        if k == 0:
            result = nodes.add("Gemm", [nodes.reshape(name, (n_lanes * n_out, n_in)), X], transB=1)
        else:
            result = nodes.reshape(result, (n_lanes, n_in, n_rows)) if k == 1 else result
            result = nodes.add("MatMul", [nodes.reshape(name, (n_lanes, n_out, n_in)), result])
            if link.intercept is not None:
                name, _ = next(given)
                result = nodes.add("Add", [result, nodes.reshape(name, (n_lanes, n_out, 1))])
        for activation in link.activations:
            result = nodes.add(activation, [result])
    if n_out > 1:
        result = nodes.reshape(result, (n_lanes, n_out, n_rows))
        result = nodes.add("Transpose", [result], perm=[0, 2, 1])
    nodes.reshape(result, (n_lanes * n_rows, n_out), score_name)
    n_columns = next(iter(parts.values()))[1]
    shapes = {X: (n_rows, n_columns)} | {name: (n_lanes, int(np.prod(shape))) for name, shape in parts.items()}
    return helper.make_graph(
        nodes.all,
        "lanes",
        [_info(name, shape, dtype) for name, shape in shapes.items()],
        [_info(score_name, (n_lanes * n_rows, n_out), dtype)],
    )


def _info(name, shape, dtype):
    return helper.make_tensor_value_info(name, onnx_dtype(dtype), shape)
