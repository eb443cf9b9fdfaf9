"""A model as ONNX up to its raw score, with its named weights."""

import copy
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.helper
from onnx import TensorProto, numpy_helper

__all__ = ["ScoreGraph", "affine_weights"]


@dataclass(frozen=True)
class ScoreGraph:
    """
    X -> raw score.

    Parameters
    ----------
    model : onnx.ModelProto
        One input of shape (any, n_features), one output of shape (any, n_outputs).
    coefficients : tuple of str
        Trained weights that multiply inputs, in the order of the graph.
    intercepts : tuple of str
        Trained weights that are added.
    """

    model: onnx.ModelProto
    coefficients: tuple[str, ...]
    intercepts: tuple[str, ...]

    @property
    def trainable(self):
        """Names of all trained weights."""
        return self.coefficients + self.intercepts

    @property
    def input_name(self):
        """Name of the input."""
        return self.model.graph.input[0].name

    @property
    def score_name(self):
        """Name of the output."""
        return self.model.graph.output[0].name

    @property
    def n_features(self):
        """Number of columns of the input."""
        return _dims(self.model.graph.input[0])[1].dim_value

    @property
    def dtype(self):
        """float32 or float64."""
        return onnx.helper.tensor_dtype_to_np_dtype(self.model.graph.input[0].type.tensor_type.elem_type)

    @property
    def n_outputs(self):
        """Number of columns of the raw score."""
        return _dims(self.model.graph.output[0])[1].dim_value

    def weights(self):
        """Return copies of the trained weights: name -> array."""
        arrays = {i.name: i for i in self.model.graph.initializer}
        return {name: numpy_helper.to_array(arrays[name]).copy() for name in self.trainable}

    def n_weights(self):
        """Return the numbers of coefficients and of other trained weights, element by element."""
        sizes = {name: array.size for name, array in self.weights().items()}
        n_coefficients = sum(sizes[name] for name in self.coefficients)
        return n_coefficients, sum(sizes.values()) - n_coefficients

    def linear_weights(self):
        """
        Return the weights of a linear model, in scikit-learn's shapes.

        Returns
        -------
        weights : (coef, intercept) or None
            Arrays of shapes (n_outputs, n_features) and (n_outputs,); None where the model is not linear.
        """
        if {node.op_type for node in self.model.graph.node} - {"MatMul", "Add"} or len(self.coefficients) != 1:
            return None
        arrays = {i.name: numpy_helper.to_array(i) for i in self.model.graph.initializer}
        (_, (intercept,)) = affine_weights(self.model.graph)
        return arrays[self.coefficients[0]].T.copy(), arrays[intercept].ravel().copy()

    def with_weights(self, weights):
        """Return a copy with the values `weights`, name -> array."""
        model = copy.deepcopy(self.model)
        for initializer in model.graph.initializer:
            if initializer.name in weights:
                array = np.ascontiguousarray(weights[initializer.name])
                initializer.CopyFrom(numpy_helper.from_array(array, initializer.name))
        return ScoreGraph(model, self.coefficients, self.intercepts)

    def with_batch_size(self, batch_size):
        """Return a copy of the model for exactly `batch_size` rows: its gradient graph is half as long."""
        model = copy.deepcopy(self.model)
        for info in (model.graph.input[0], model.graph.output[0]):
            _dims(info)[0].dim_value = batch_size
        return model


def affine_weights(graph):
    """
    Find the weights of a graph by its structure.

    Parameters
    ----------
    graph : onnx.GraphProto

    Returns
    -------
    coefficients, intercepts : tuple of str
        The float initializers that multiply (`MatMul`, `Gemm`) and are added to (`Add`, `Gemm`) what comes from the
        input. Other initializers, such as shapes, scales and constants of an activation, are not weights.
    """
    floats = {i.name for i in graph.initializer if i.data_type in (TensorProto.FLOAT, TensorProto.DOUBLE)}
    reached = {graph.input[0].name}
    coefficients, intercepts = [], []
    for node in graph.node:
        if reached.isdisjoint(node.input):
            continue
        reached.update(node.output)
        if node.op_type in ("MatMul", "Gemm"):
            coefficients += [name for name in node.input[:2] if name in floats]
            intercepts += [name for name in node.input[2:] if name in floats]
        elif node.op_type == "Add":
            intercepts += [name for name in node.input if name in floats]
    return tuple(coefficients), tuple(intercepts)


def _dims(info):
    return info.type.tensor_type.shape.dim
