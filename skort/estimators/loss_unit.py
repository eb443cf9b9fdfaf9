"""The unit of a loss that is only known in the units of y, such as one of the user's own."""

import numpy as np

from skort.objective.base import ScoreLoss

__all__ = ["has_units", "is_of_y", "loss_unit"]

# Sample weights are divided by it in float32.
_USABLE = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def is_of_y(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a regressor's loss is only known in the units of y, which are those of its score."""
    return not (hasattr(loss, "in_units") or loss.weight_names) and loss.inverse_link_function(n_outputs) is None


def has_units(loss: ScoreLoss, n_outputs: int) -> bool:
    """Return whether a regressor's loss can be minimised with a standardized y."""
    return hasattr(loss, "in_units") or is_of_y(loss, n_outputs)


def loss_unit(loss: ScoreLoss, mean: np.ndarray, scale: float) -> float:
    r"""
    Return what makes a loss similar to half the squared error of standardized scores and targets.

    It is twice the mean loss of the score :math:`mean` over the targets :math:`mean \pm scale`: of half the squared
    error, its unit :math:`scale^2`.

    Parameters
    ----------
    loss : ScoreLoss
        Without weights of its own.
    mean : ndarray of shape (n_outputs,)
    scale : float

    Returns
    -------
    unit : float
        1 where this is not positive, or not finite in float32.

    Examples
    --------
    >>> import numpy as np
    >>> from skort.estimators.loss_unit import loss_unit
    >>> from skort.objective import Loss
    >>> error = Loss("error (score, target) => (loss) { residual = Sub (score, target)  loss = Abs (residual) }")
    >>> loss_unit(error, np.array([5000.0]), scale=300.0)
    600.0
    """
    from skort.objective.nodes import LOSS, SAMPLE_WEIGHT, TARGET, Objective
    from skort.runtime.inference import InferenceModel

    n_outputs = len(mean)
    objective = Objective(loss, None, (), n_outputs, np.dtype(np.float32))
    model = InferenceModel(lambda: _loss_model(objective), structure=("loss", objective.loss_key))
    score = np.tile(mean, (2, 1))
    inputs = {
        "score": score,
        TARGET: score + np.array([[scale], [-scale]]),
        SAMPLE_WEIGHT: np.full((2, 1), objective.sample_weight_scale / 2),
    }
    with np.errstate(over="ignore"):
        inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    unit = 2 * float(model.run(LOSS, inputs))
    return unit if _USABLE[0] <= unit <= _USABLE[1] else 1.0


def _loss_model(objective):
    """Return the model of score, target and sample weight that gives the weighted sum of the loss over two rows."""
    from onnx import helper

    from skort.common.model_builder import build_model
    from skort.common.onnx_text import Fragment, onnx_dtype
    from skort.objective.nodes import LOSS

    fragment = Fragment(objective.dtype)
    objective.add_loss(fragment, "score", LOSS)
    score = helper.make_tensor_value_info("score", onnx_dtype(objective.dtype), [2, objective.n_outputs])
    graph = helper.make_graph(fragment.nodes, "loss", [score, *objective.inputs(2)], [objective.output(LOSS)])
    return build_model(graph, fragment)
