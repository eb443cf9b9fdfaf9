"""A loss, a penalty or an update as an ONNX model of its own, with its gradient."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.common.component import check_parameters
from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, build_model, infos, pruned
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, as_loss
from skort.objective.objective import (
    LOSS,
    OBJECTIVE,
    SAMPLE_WEIGHT,
    SCORE_GRADIENT,
    TARGET,
    Objective,
)
from skort.objective.penalties import PENALTIES, as_penalty
from skort.objective.regression import SquaredError
from skort.optim.optimizers import OPTIMIZERS
from skort.optim.update import Update
from skort.solvers.derived_gradients import add_custom_gradients, add_score_gradient

_SCORE = "skort_score"
_WEIGHT = "weight"
_PENALTY = "skort_penalty"
_L1_GRADIENT = function_text(
    "l1_gradient (weight, strength) => (gradient)", "gradient = strength * Sign(weight)"
)


def part_graph(part: Any, shape: Sequence[int], *, dtype: str = "float32") -> onnx.ModelProto:
    r"""
    Return a loss, a penalty or the update of an optimizer as an ONNX model of standard operators.

    Parameters
    ----------
    part : str or instance
        A loss, a penalty or an optimizer, as the estimators take it.
    shape : tuple of int
        For a loss, the shape (n_rows, n_outputs) of the score. For a penalty, the shape of a
        weight. For an optimizer, the shape (n_weights,) of the vector of all weights.
    dtype : {"float32", "float64"}, default="float32"

    Returns
    -------
    model : onnx.ModelProto
        - For a loss, the inputs are "skort_score", "skort_target", "skort_sample_weight"
          :math:`v_i` of shape (n_rows, 1), and the weights of the loss. The outputs are
          "skort_loss", :math:`\sum_i v_i \, loss_i`, "skort_score_gradient", and the gradients by
          the weights of the loss.
        - For a penalty, the input is "weight", and the outputs are "skort_penalty" and
          "weight_gradient". The gradient of an l1 term is zero at zero. A custom penalty gets zeros
          as `start`.
        - For an optimizer, the inputs are "weights", "gradient", "eta" and the arrays of the
          optimizer's state, which its method `start` returns at first. The outputs are
          "next_weights" and the next state, with "next\_" before each name. The weight decay
          applies to all weights.

    Raises
    ------
    NotTrainableError, ValueError
        If an operator of a loss or penalty has no gradient; the message names the operator. If an
        optimizer has no ONNX update.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from skort.gradients import part_graph
    >>> model = part_graph("l2", (2,))
    >>> session = onnxruntime.InferenceSession(
    ...     model.SerializeToString(), providers=["CPUExecutionProvider"]
    ... )
    >>> penalty, gradient = session.run(None, {"weight": np.array([100, 200], np.float32)})
    >>> print(penalty.round(3), gradient.round(3))
    2.5 [0.01 0.02]
    """
    part = _resolved(part)
    shape = tuple(shape)
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}.')

    fragment = Fragment(np.dtype(dtype))
    array = np.zeros(shape, dtype)
    loss = as_loss(part)
    penalty = as_penalty(part)
    add: Any = _add_update
    if loss is not None:
        add = _add_loss
    elif penalty is not None:
        add = _add_penalty
    if array.ndim != {_add_loss: 2, _add_update: 1}.get(add, array.ndim):
        raise ValueError(
            "shape must be (n_rows, n_outputs) for a loss, (n_weights,) for an "
            f"optimizer, got {shape}."
        )

    # Inputs and outputs by name, as arrays with their shapes and types, and constants.
    inputs, outputs, fixed = add(fragment, loss or penalty or part, array)
    graph = helper.make_graph(fragment.nodes, "part", infos(inputs), infos(outputs))
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in fixed.items())

    return pruned(build_model(graph, fragment))


def _resolved(part):
    """Return the validated loss, penalty or optimizer for a name or an instance."""
    known = {**CLASSIFICATION_LOSSES, **REGRESSION_LOSSES, **PENALTIES, **OPTIMIZERS}
    part = known[part]() if isinstance(part, str) and part in known else part
    if as_loss(part) is None and as_penalty(part) is None and not hasattr(part, "onnx_update"):
        names = f"or the name of one: {', '.join(known)}"
        raise ValueError(
            "part must be a loss, a penalty or an optimizer with onnx_update, "
            f"{names}; got {part!r}."
        )

    check_parameters(part)
    return part


def _add_loss(fragment, loss, score):
    """Add the nodes of a loss and its gradients."""
    objective = Objective(loss, None, (), score.shape[1], fragment.dtype)
    objective.add_loss(fragment, _SCORE, LOSS)
    add_score_gradient(fragment, objective, _SCORE, len(score))
    by_weights = objective.weight_gradients
    inputs = {
        _SCORE: score,
        TARGET: score,
        SAMPLE_WEIGHT: score[:, :1],
        **dict.fromkeys(by_weights, score[0]),
    }
    by_weights = dict.fromkeys(by_weights.values(), score[0])

    return inputs, {LOSS: np.sum(score), SCORE_GRADIENT: score, **by_weights}, {}


def _add_penalty(fragment, penalty, weight):
    """Add the nodes of a penalty of one weight and its gradient."""
    start = {_WEIGHT: weight}
    loss = SquaredError()
    objective = Objective(loss, penalty, (_WEIGHT,), 1, fragment.dtype, start=start)
    fragment.constant(LOSS, np.sum(weight))
    objective.add_penalty(fragment)
    fragment.rename(OBJECTIVE, _PENALTY)
    fragment.constant("skort_zeros", weight)
    terms = ["skort_zeros", *objective.add_l2_gradients(fragment).values()]
    terms += add_custom_gradients(fragment, objective, start).values()

    for strength in objective.with_term("l1").values():
        fragment.constant("skort_l1", np.asarray(strength, fragment.dtype))
        fragment.call(_L1_GRADIENT, [_WEIGHT, "skort_l1"], ["skort_l1_gradient"])
        terms.append("skort_l1_gradient")

    fragment.node("Sum", terms, [f"{_WEIGHT}_gradient"])
    return start, {_PENALTY: np.sum(weight), f"{_WEIGHT}_gradient": weight}, {}


def _add_update(fragment, optimizer, weights):
    """Add the nodes of an update."""
    Update(optimizer).check_steps("part_graph")
    rule = Update(optimizer).rule()
    memory = rule.start(weights.size, 0, fragment.dtype)
    inputs = {"weights": weights, "gradient": weights, "eta": np.sum(weights)}
    results = rule.add_nodes(fragment, {name: name for name in (*inputs, *memory)})
    for name, result in results.items():
        fragment.rename(result, f"next_{name}")
    changed, fixed = (
        {n: a for n, a in memory.items() if (n in results) == is_new} for is_new in (True, False)
    )
    outputs = {f"next_{name}": array for name, array in {"weights": weights, **changed}.items()}

    return {**inputs, **changed}, outputs, fixed
