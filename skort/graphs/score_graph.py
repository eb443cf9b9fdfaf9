"""A model as ONNX up to its raw score, with its named weights."""

import copy
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.compose
import onnx.helper
from onnx import numpy_helper

from skort.onnx_text import import_each_domain_once

__all__ = ["ScoreGraph", "Weights", "find_weights", "joined"]


_PRODUCTS = ("MatMul", "Gemm", "Conv")


@dataclass(frozen=True)
class Weights:
    """
    Names of the weights of a graph, in the order of the graph.

    Parameters
    ----------
    coefficients : tuple of str
        They multiply what comes from the input: `MatMul`, `Gemm`, `Conv`.
    intercepts : tuple of str
        They are added to such a product: `Add`, `Gemm`, `Conv`.
    scales : tuple of str, default=()
        Other numbers that are added, subtracted, multiplied or divided by, such as those of a scaler.
    """

    coefficients: tuple[str, ...]
    intercepts: tuple[str, ...]
    scales: tuple[str, ...] = ()

    @property
    def names(self):
        """All names, the coefficients first."""
        return self.coefficients + self.intercepts + self.scales

    def __add__(self, other):
        return Weights(
            self.coefficients + other.coefficients, self.intercepts + other.intercepts, self.scales + other.scales
        )

    def only(self, names):
        """Return those among `names`."""
        kinds = (self.coefficients, self.intercepts, self.scales)
        return Weights(*(tuple(name for name in kind if name in names) for kind in kinds))


@dataclass(frozen=True)
class ScoreGraph:
    """
    X -> raw score.

    Parameters
    ----------
    model : onnx.ModelProto
        One input of shape (any, n_features), one output of shape (any, n_outputs).
    trained : Weights
        The weights that are trained. All other initializers stay as they are.
    """

    model: onnx.ModelProto
    trained: Weights

    @property
    def trainable(self):
        """Names of all trained weights."""
        return self.trained.names

    @property
    def coefficients(self):
        """Names of the trained weights that multiply inputs."""
        return self.trained.coefficients

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

    def weights(self, names=None):
        """Return copies of the trained weights, or of those of some names: name -> array."""
        arrays = {i.name: i for i in self.model.graph.initializer}
        return {name: numpy_helper.to_array(arrays[name]).copy() for name in names or self.trainable}

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
        nodes = [node.op_type for node in self.model.graph.node if node.op_type != "Exp"]
        if nodes not in (["MatMul"], ["MatMul", "Add"]):
            return None
        coef, *intercept = self.weights(find_weights(self.model.graph).names).values()
        return coef.T.copy(), intercept[0].ravel() if intercept else np.zeros(self.n_outputs, self.dtype)

    def training_only(self, names):
        """Return the same graph with only those weights trained that have one of these names."""
        return ScoreGraph(self.model, find_weights(self.model.graph).only(names))

    def with_weights(self, weights):
        """Return a copy with the values `weights`, name -> array."""
        model = copy.deepcopy(self.model)
        for initializer in model.graph.initializer:
            if initializer.name in weights:
                array = np.ascontiguousarray(weights[initializer.name])
                initializer.CopyFrom(numpy_helper.from_array(array, initializer.name))
        return ScoreGraph(model, self.trained)

    def with_batch_size(self, batch_size):
        """Return a copy of the model for exactly `batch_size` rows: its gradient graph is half as long."""
        model = copy.deepcopy(self.model)
        for info in (model.graph.input[0], model.graph.output[0]):
            _dims(info)[0].dim_value = batch_size
        return model


def joined(graphs):
    """Return score graphs, each of which takes what the one before gives, as one."""
    first, *others = graphs
    for second in others:
        link = [(first.score_name, second.input_name)]
        model = onnx.compose.merge_models(first.model, second.model, io_map=link)
        import_each_domain_once(model)
        first = ScoreGraph(model, first.trained + second.trained)
    return first


def find_weights(graph):
    """
    Find the weights of a graph by its structure.

    Parameters
    ----------
    graph : onnx.GraphProto
        With one input, of the type of its weights.

    Returns
    -------
    weights : Weights
        Initializers that do not meet what comes from the input in one of these operators, such as shapes, those of
        another type, and numbers without dimensions, such as the constants of an activation, are not weights.
    """
    element_type = graph.input[0].type.tensor_type.elem_type
    # The result that holds an initializer -> the name of the initializer.
    constants = {i.name: i.name for i in graph.initializer if i.data_type == element_type and i.dims}
    reached, multiplied = {graph.input[0].name}, set()
    kinds: dict[str, str] = {}
    for node in graph.node:
        if node.op_type in ("Identity", "Transpose") and node.input[0] in constants:
            constants[node.output[0]] = constants[node.input[0]]
        if reached.isdisjoint(node.input):
            continue
        reached.update(node.output)
        product = node.op_type in _PRODUCTS
        if product or not multiplied.isdisjoint(node.input):
            multiplied.update(node.output)
        for position, name in enumerate(node.input):
            kind = _kind(node.op_type, position, not multiplied.isdisjoint(node.output))
            if name in constants and kind is not None:
                kinds.setdefault(constants[name], kind)
    return Weights(*(tuple(n for n, k in kinds.items() if k == kind) for kind in ("coefficient", "intercept", "scale")))


def _kind(op_type, position, multiplied):
    """Return what an initializer is that a node of this type has at this position of its inputs."""
    if op_type in _PRODUCTS:
        return "coefficient" if position < 2 else "intercept"
    if op_type == "Add" and multiplied:
        return "intercept"
    return "scale" if op_type in ("Add", "Sub", "Mul", "Div") else None


def _dims(info):
    return info.type.tensor_type.shape.dim
