"""A loss, a penalty or an update as an ONNX model of its own, with its gradient."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from skort.common.component import Component, check_parameters
from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, build_model, infos, pruned
from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, as_loss
from skort.objective.objective import LOSS, OBJECTIVE, SAMPLE_WEIGHT, SCORE_GRADIENT, TARGET, Objective
from skort.objective.penalties import PENALTIES, as_penalty
from skort.objective.regression import SquaredError
from skort.optim.optimizers import OPTIMIZERS
from skort.optim.update import Update
from skort.solvers.derived_gradients import add_custom_gradients, ruled_score_gradient, score_gradient

_SCORE, _WEIGHT, _PENALTY = "skort_score", "weight", "skort_penalty"
_L1_GRADIENT = function_text("l1_gradient (weight, strength) => (gradient)", "gradient = strength * Sign(weight)")


def part_graph(part: Any, shape: Sequence[int], *, dtype: str = "float32") -> onnx.ModelProto:
    r"""
    Return a loss, a penalty or the update of an optimizer as an ONNX model of standard operators.

    Parameters
    ----------
    part : str or instance
        A loss, a penalty or an optimizer, as the estimators take it.
    shape : tuple of int
        Of a loss, the shape of the score, (n_rows, n_outputs); of a penalty, that of a weight; of an optimizer, that of
        the vector of all weights.
    dtype : {"float32", "float64"}, default="float32"

    Returns
    -------
    model : onnx.ModelProto
        - Of a loss: from "skort_score", "skort_target", "skort_sample_weight" :math:`v_i`, of shape (n_rows, 1), and
          its own weights to "skort_loss", :math:`\sum_i v_i \, loss_i`, "skort_score_gradient", and the gradients by
          its own weights.
        - Of a penalty: from "weight" to "skort_penalty" and "weight_gradient". The gradient of an l1 term is zero at
          zero. What an own penalty gets as `start` is zero.
        - Of an optimizer: from "weights", "gradient", "eta" and what it remembers, at first the arrays of its method
          `start`, to "next_weights" and what it remembers next, each with "next\_". Its weight decay is of all weights.

    Raises
    ------
    NotTrainableError
        Where no gradient goes through an operator of a loss or penalty: it names the operator.
    ValueError
        For anything else, and for an optimizer without an ONNX update.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from skort.gradients import part_graph
    >>> model = part_graph("l2", (2,))
    >>> session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    >>> penalty, gradient = session.run(None, {"weight": np.array([100, 200], np.float32)})
    >>> print(penalty.round(3), gradient.round(3))
    2.5 [0.01 0.02]
    """
    part, shape = _resolved(part), tuple(shape)
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64", got {dtype!r}.')
    fragment, array = Fragment(np.dtype(dtype)), np.zeros(shape, dtype)
    add: Any = _add_update
    if (loss := as_loss(part)) is not None:
        add, part = _add_loss, loss
    elif (penalty := as_penalty(part)) is not None:
        add, part = _add_penalty, penalty
    # Inputs and outputs by name, as arrays of their shapes and types, and what does not change.
    inputs, outputs, fixed = add(fragment, part, array)
    held = [numpy_helper.from_array(value, name) for name, value in fixed.items()]
    graph = helper.make_graph(fragment.nodes, "part", infos(inputs), infos(outputs), held)
    return pruned(build_model(graph, fragment))


def _resolved(part):
    """Return a part that is given by its name or as an instance, validated."""
    known = {**CLASSIFICATION_LOSSES, **REGRESSION_LOSSES, **PENALTIES, **OPTIMIZERS}
    if isinstance(part, str) and part in known:
        part = known[part]()
    if as_loss(part) is None and as_penalty(part) is None and not hasattr(part, "onnx_update"):
        raise ValueError(
            f"part must be a loss, a penalty or an optimizer with onnx_update, or the name of one: {', '.join(known)}; "
            f"got {part!r}."
        )
    if isinstance(part, Component):
        check_parameters(part)
    return part


def _add_loss(fragment, loss, score):
    """Add a loss and its gradients."""
    if score.ndim != 2:
        raise ValueError(f"shape of a score must be (n_rows, n_outputs), got {score.shape}.")
    objective = Objective(loss, None, (), score.shape[1], fragment.dtype)
    objective.add_loss(fragment, _SCORE, LOSS)
    by_weights = objective.weight_gradients
    if objective.loss.gradient_function(objective.n_outputs) is None:
        derived = score_gradient(ruled_score_gradient, objective, len(score))
        names = [_SCORE, TARGET, SAMPLE_WEIGHT, *by_weights]
        fragment.call_as_is(derived, names, [SCORE_GRADIENT, *by_weights.values()])
    else:
        objective.add_score_gradient(fragment, _SCORE)
    inputs = {_SCORE: score, TARGET: score, SAMPLE_WEIGHT: score[:, :1], **dict.fromkeys(by_weights, score[0])}
    by_weights = dict.fromkeys(by_weights.values(), score[0])
    return inputs, {LOSS: np.sum(score), SCORE_GRADIENT: score, **by_weights}, {}


def _add_penalty(fragment, penalty, weight):
    """Add a penalty of one weight and its gradient."""
    start, loss = {_WEIGHT: weight}, SquaredError()
    objective = Objective(loss, penalty, (_WEIGHT,), 1, fragment.dtype, start=start)
    fragment.constant(LOSS, np.sum(weight))
    objective.add_penalty(fragment)
    fragment.node("Identity", [OBJECTIVE], [_PENALTY])
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
    """Add an update."""
    update = Update(optimizer)
    update.check_steps("part_graph")
    if weights.ndim != 1:
        raise ValueError(f"shape of the vector of all weights must be (n_weights,), got {weights.shape}.")
    rule = update.rule()
    memory = rule.start(weights.size, 0, fragment.dtype)
    inputs = {"weights": weights, "gradient": weights, "eta": np.sum(weights)}
    results = rule.add_nodes(fragment, {name: name for name in (*inputs, *memory)})
    for name, result in results.items():
        fragment.rename(result, f"next_{name}")
    changed = {name: array for name, array in memory.items() if name in results}
    fixed = {name: array for name, array in memory.items() if name not in results}
    outputs = {f"next_{name}": array for name, array in {"weights": weights, **changed}.items()}
    return {**inputs, **changed}, outputs, fixed
