"""Comparison of a gradient with finite differences, both in float64."""

import copy
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto
from sklearn.utils import check_random_state

from skort.common.onnx_text import Fragment, inlined, replace_nodes
from skort.estimators.score_graph_of import score_graph_of
from skort.graphs.onnx_models.opsets import recast
from skort.objective.objective import LOSS, SAMPLE_WEIGHT, TARGET
from skort.runtime.sessions import inference_session
from skort.solvers.base import flat
from skort.solvers.graph.gradient_sessions import GradientSessions
from skort.solvers.part_graph import part_graph

# The rounding of a difference, as a part of what is subtracted.
_ROUNDING = 2 * np.finfo(np.float64).eps
# A rounding above this part of the largest derivative would hide a wrong gradient.
_SMALL_ROUNDING = 1e-3


def check_gradient(
    part: Any,
    x0: ArrayLike,
    target: Any = None,
    *,
    trainable: Any = None,
    epsilon: float = 1e-6,
    random_state: Any = None,
) -> float:
    r"""
    Return the error of a gradient, compared with central finite differences in float64.

    Parameters
    ----------
    part : onnx.ModelProto, estimator, loss, penalty or str
        A model as for `gradient_graphs`, or a loss or penalty as for `part_graph`. The gradient of
        a model is the derivative of a random sum of its scores by the trained weights. A loss is
        differentiated by the score, and a penalty by the weight.
    x0 : array-like
        The point of the comparison: X for a model, the score of shape (n_rows, n_outputs) for a
        loss, or a weight for a penalty.
    target : array-like of the shape of the score, default=None
        The targets of a loss.
    trainable : str or list of str, default=None
        The trained weights of a model, as for `gradient_graphs`.
    epsilon : float, default=1e-6
        The step of the differences. The differences of a model are also taken with this step
        divided by the largest :math:`|X|`, if that is above 1: a step of a weight times a large
        column crosses kinks. For each weight, the difference nearer to the gradient counts.
    random_state : int, RandomState or None, default=None
        The seed of the random sum of the scores.

    Returns
    -------
    error : float
        The largest difference, divided by the largest derivative. For a correct gradient, it is
        1e-7 or less, or more if `x0` is nearer than `epsilon` to several kinks. A gradient between
        the slopes on both sides of `x0` has no error, as at a kink of a loss or of its gradient.
        Where values are so large that float64 rounds their differences, the error has this rounding
        too. It is NaN where the value is not finite within `epsilon` of `x0`.
        Like `scipy.optimize.check_grad`, the function does not raise an error for a wrong gradient.

    Raises
    ------
    NotTrainableError, ValueError
        If an operator has no gradient; the message names the operator. If `part` is an optimizer,
        an array has the wrong shape, or the value at `x0` is not finite.

    Examples
    --------
    >>> from skort.gradients import check_gradient
    >>> check_gradient("log_loss", [[0.5], [-2.0]], target=[[1.0], [0.0]]) < 1e-8
    True
    """
    x0 = np.array(x0, dtype=np.float64)
    is_model = isinstance(part, onnx.ModelProto) or hasattr(part, "predict")
    value, point, gradient = (
        _of_model(part, x0, trainable, random_state) if is_model else _of_part(part, x0, target)
    )
    at_point = value(point)
    _check_value(at_point)
    steps = (
        {epsilon, epsilon / max(1.0, float(np.abs(x0).max(initial=0.0)))} if is_model else {epsilon}
    )

    return _gradient_error(value, point, at_point, gradient.ravel(), steps)


def _check_value(value):
    """Raise a ValueError if the value at the point of the comparison is not finite."""
    if not np.isfinite(value):
        raise ValueError(
            f"x0: the value of part is {float(value)} here, which has no differences. Take an x0, "
            "or a formula, whose value is finite: a logarithm of 0 is not."
        )


def _of_model(model, X, trainable, random_state):
    """Return a random sum of the scores as a function of the weights, the weights, its gradient."""
    given = score_graph_of(model, trainable)
    structure = copy.deepcopy(given.structure)
    recast(structure, TensorProto.FLOAT, TensorProto.DOUBLE)
    fragment = Fragment(np.float64)
    fragment.add_for_float64(structure.graph.node)
    replace_nodes(structure.graph, fragment.nodes)
    structure = inlined(structure, fragment)
    arrays = {
        name: a.astype(np.float64) if a.dtype == np.float32 else a
        for name, a in given.arrays.items()
    }
    score_graph = replace(given, structure=structure, arrays=arrays)
    if X.ndim != 2 or X.shape[1] != score_graph.n_features:
        raise ValueError(
            f"x0 must be an X of shape (n_rows, {score_graph.n_features}), got {X.shape}."
        )

    sessions, frozen = GradientSessions(score_graph), score_graph.frozen_arrays
    factors = check_random_state(random_state).normal(size=(len(X), score_graph.n_outputs))
    pair = sessions.pair(len(X), input_gradient=False)
    point = flat(score_graph.trained_arrays)
    arrays = sessions.arrays(point, frozen)
    gradient, _ = sessions.backward(pair, factors, X, arrays, sessions.forward(pair, X, arrays)[1])

    return (
        lambda weights: np.sum(factors * sessions.score(X, sessions.arrays(weights, frozen))),
        point,
        gradient,
    )


def _gradient_error(
    value: Callable[[np.ndarray], Any],
    point: np.ndarray,
    at_point: float,
    gradient: np.ndarray,
    steps: Collection[float],
) -> float:
    """Return the largest difference from central differences, divided by the largest derivative."""
    errors = np.full(gradient.size, np.nan)
    largest = np.abs(gradient).max()
    for step in steps:
        shifts = step * np.eye(point.size).reshape(-1, *point.shape)
        above = np.array([value(point + by) for by in shifts])
        below = np.array([value(point - by) for by in shifts])
        # A value that is not finite has no differences.
        is_known = np.isfinite(above) & np.isfinite(below)
        above, below = (np.where(is_known, values, np.nan) for values in (above, below))
        central = (above - below) / (2 * step)
        largest = max(largest, np.abs(central).max(initial=0.0, where=is_known))
        right, left = (above - at_point) / step, (at_point - below) / step
        # Where the gradient has a kink, the central difference is wrong by some steps, and this
        # may be all that it is.
        # That of the values, and that of the points.
        sizes = np.maximum(np.abs(above), np.abs(below))
        sizes += np.abs(point).ravel() * np.maximum(np.abs(left), np.abs(right))
        rounding = _ROUNDING * sizes / step
        is_between = (
            (gradient >= np.minimum(left, right) - rounding)
            & (gradient <= np.maximum(left, right) + rounding)
            & (rounding <= _SMALL_ROUNDING * largest)
        )
        errors = np.fmin(errors, np.where(is_between, 0.0, np.abs(central - gradient)))

    return float(errors.max() / (largest or 1.0))


def _of_part(
    part: Any, point: np.ndarray, target: Any
) -> tuple[Callable[[np.ndarray], Any], np.ndarray, np.ndarray]:
    """Return a loss or a penalty as a function, the point of the comparison, and the gradient."""
    model = part_graph(part, point.shape, dtype="float64")
    session = inference_session(model.SerializeToString(), float64=True)
    name, *others = (i.name for i in model.graph.input)
    if name == "weights":
        raise ValueError(
            f"part must be a model, a loss or a penalty: {part!r} is an optimizer, which "
            "has no gradient."
        )

    value, gradient, *_ = (output.name for output in model.graph.output)
    fixed = {other: np.ones(point.shape[1]) for other in others} if value == LOSS else {}

    if value == LOSS:
        if target is None or np.shape(target) != point.shape:
            raise ValueError(
                f"target must have the shape {point.shape} of x0, the score, got "
                f"{np.shape(target)}."
            )

        fixed |= {
            TARGET: np.array(target, dtype=np.float64),
            SAMPLE_WEIGHT: np.ones((len(point), 1)),
        }

    at_point = session.run([gradient], {name: point, **fixed})[0]
    return lambda x: session.run([value], {name: x, **fixed})[0], point, at_point
