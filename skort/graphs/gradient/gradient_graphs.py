"""The two halves of a gradient."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx


class GradientGraphs(NamedTuple):
    """
    A model and its gradient, for one number of rows, as two models of standard operators.

    Parameters
    ----------
    forward : onnx.ModelProto
        Its first input is X; the others are the weights, trained or frozen, by their names. Its first output is the
        score; the others are what the backward model needs of it.
    backward : onnx.ModelProto
        Its first input, "skort_score_gradient", is the derivative of a loss by the score. The others are inputs and
        outputs of the forward model, by their names. Its outputs are the derivatives of the loss by X, where it was
        asked for, and by each trained weight: "coef_gradient" is that by "coef".

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort.gradients import gradient_graphs, initial_model
    >>> graphs = gradient_graphs(initial_model(LinearRegression(), 2), batch_size=10)
    >>> [output.name for output in graphs.backward.graph.output]
    ['coef_gradient', 'intercept_gradient']
    """

    forward: "onnx.ModelProto"
    backward: "onnx.ModelProto"


def gradient_name(name: str) -> str:
    """Return the name of the output of a backward model that is the gradient by `name`."""
    return f"{name}_gradient"
