"""A loss or a penalty in float64, and the error of its gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skort.objective.objective import LOSS, SAMPLE_WEIGHT, TARGET
from skort.runtime.sessions import inference_session
from skort.solvers.part_graph import part_graph


def gradient_error(
    value: Callable[[np.ndarray], Any],
    point: np.ndarray,
    gradient: np.ndarray,
    epsilon: float | np.ndarray,
) -> float:
    """
    Return the largest difference from central differences, divided by the largest derivative.

    `epsilon` is the step of the differences, or that of each number of the point.
    """
    steps = np.broadcast_to(epsilon, point.shape).ravel()
    shifts = np.diag(steps).reshape(-1, *point.shape)
    rises = np.array([value(point + by) - value(point - by) for by in shifts])
    differences = rises / (2 * steps)
    largest = max(np.abs(differences).max(), np.abs(gradient).max()) or 1.0

    return float(np.abs(differences - gradient.ravel()).max() / largest)


def differentiated_part(
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
