"""The faults of a custom penalty, before its training and if this diverges."""

from typing import TYPE_CHECKING

import numpy as np

from skort.common.user_warning import warn_user
from skort.estimators.variables.faults import (
    DIGITS,
    DISTANCES,
    STEPS,
    WRONG,
    falls_without_end,
    most_exact,
)
from skort.objective.custom import CustomTerm, check_term, parsed
from skort.objective.penalties import WeightPenalty

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph

# The number of elements of a weight whose derivatives are compared.
_N_ELEMENTS = 8


def warn_of_custom_penalty(penalty: WeightPenalty, score_graph: "ScoreGraph") -> None:
    """Warn, before a training, of a custom penalty with a wrong gradient or without a lower bound."""
    for name, term in _terms(penalty, score_graph).items():
        start = score_graph.arrays[name].astype(np.float64)
        check_term(term, name, start.shape)
        functions = _most_exact(term, start)
        fault = _wrong_gradient(functions, name, start) or _no_lower_bound(functions, name, start)
        if fault:
            warn_user(_of(term, fault))
            return


def fault_of_penalty(penalty: WeightPenalty, score_graph: "ScoreGraph") -> str:
    """Return the fault of a custom penalty whose training diverges; "" if none is found."""
    for name, term in _terms(penalty, score_graph).items():
        start = score_graph.arrays[name].astype(np.float64)
        functions = _most_exact(term, start, derives=True)
        fault = _no_number(functions, name, start) or _no_lower_bound(functions, name, start)
        if fault:
            return _of(term, fault)
    return ""


def _terms(penalty, score_graph):
    """Return the terms of a custom penalty, by the names of the weights."""
    return penalty.custom_terms(score_graph.coefficients, score_graph.trained.intercepts)


def _of(term, fault):
    """Return a sentence on the fault of a penalty."""
    return f"The penalty {parsed('penalty: value', term.value).name!r} {fault}"


def _no_number(functions, name, start):
    """Return a sentence on a gradient that is no number at some weights, or ""."""
    for weight, at in (
        (np.zeros_like(start), "is zero"),
        (start, "is at its start"),
        (np.ones_like(start), "is one"),
        (-np.ones_like(start), "is minus one"),
    ):
        if not np.isfinite(functions.gradient(weight)).all():
            return (
                f"has a gradient that is no number where the weight {name} {at}. It must be a "
                "number everywhere: change what Sqrt, Log, Pow or Div get in the value."
            )
    return ""


def _no_lower_bound(functions, name, start):
    """Return a sentence on a value that falls as fast far from the start as near it, or ""."""
    size = start.std() or 1.0
    signs = np.random.RandomState(0).choice([-1.0, 1.0], start.shape)
    ones = np.ones_like(start)

    for side in (ones, -ones, signs, -signs):
        values = np.array([functions.value(start + d * size * side) for d in DISTANCES])
        rounding = DIGITS[functions.dtype] * (DISTANCES[-1] * size + np.abs(values[0]))
        if falls_without_end(values, rounding):
            return (
                f"seems to have no lower bound: it is {values[0]:.3g} where the weight {name} is "
                f"{DISTANCES[0] * size:.3g} away from its start, and {values[1]:.3g} where it is "
                f"{DISTANCES[1] * size:.3g} away. Check its sign, unless the loss bounds it."
            )
    return ""


def _wrong_gradient(functions, name, start):
    """Return a sentence on a gradient that is far from finite differences of the value, or ""."""
    if not functions.has_gradient:
        return ""

    # No element is zero, or at its start: a penalty may have a kink there.
    generator = np.random.RandomState(0)
    size = start.std() or 1.0
    weight = start + size * generator.choice([-1.0, 1.0], start.shape) * generator.uniform(
        0.5, 1.5, start.shape
    )

    given = functions.gradient(weight)
    elements = np.unique(np.linspace(0, weight.size - 1, _N_ELEMENTS).astype(int))
    step = STEPS[functions.dtype] * size
    found = np.array([_difference(functions, weight, element, step) for element in elements])

    # The user may choose any gradient of steps, such as Round.
    compared = given.ravel()[elements]
    with np.errstate(all="ignore"):
        errors = np.where(np.isfinite(found) & (found != 0), np.abs(compared - found), 0.0)
        is_wrong = ~(errors <= WRONG * np.nanmax(np.abs([*compared, *found])))
    if not is_wrong.any():
        return ""

    worst = int(np.argmax(np.where(is_wrong, np.nan_to_num(errors, nan=np.inf), -1.0)))
    at = ", ".join(map(str, np.unravel_index(elements[worst], weight.shape)))
    return (
        f"has a gradient that is not the derivative of its value: for the weight {name}[{at}] at "
        f"{weight.ravel()[elements[worst]]:.4g}, it is {compared[worst]:.4g}, and a finite "
        f"difference of the value is {found[worst]:.4g}. Correct the gradient, or leave it out, "
        "unless that is meant."
    )


def _difference(functions, weight, element, step):
    """Return a central difference of a penalty by one element of a weight."""
    above, below = weight.copy(), weight.copy()
    above.flat[element] += step
    below.flat[element] -= step
    return float(functions.value(above) - functions.value(below)) / (2 * step)


def _most_exact(term, start, *, derives=False):
    """
    Return the functions in the most exact dtype that their operators have.

    With `derives`, they have a gradient even if the user gives none.
    """

    def run(functions):
        functions.value(start)
        if functions.has_gradient:
            functions.gradient(start)

    return most_exact(lambda dtype: _Functions(term, start, dtype, derives=derives), run)


class _Functions:
    """The value and the gradient of a penalty of one weight."""

    def __init__(self, term: CustomTerm, start: np.ndarray, dtype: str, *, derives: bool = False):
        self.dtype = dtype
        self._start = start
        self._inputs = term.inputs
        self._value = self._model(term.value)

        gradient = term.gradient
        if gradient is None and derives:
            from skort.solvers.derived_gradients import ruled_penalty_gradient

            gradient = ruled_penalty_gradient(term, np.dtype(dtype), start.shape)
        self.has_gradient = gradient is not None
        self._gradient = self._model(gradient) if self.has_gradient else None

    def value(self, weight):
        """Return the penalty of a weight."""
        return self._run(self._value, weight)

    def gradient(self, weight):
        """Return the derivatives of the penalty by a weight, as the penalty defines them."""
        return self._run(self._gradient, weight)

    def _model(self, source):
        from skort.common.onnx_text import function_model
        from skort.runtime.sessions import InferenceModel

        model = function_model(source, self.dtype, dict.fromkeys(self._inputs, self._start.shape))
        model.graph.output[0].type.tensor_type.ClearField("shape")
        return InferenceModel(model)

    def _run(self, model, weight):
        arrays = {"weight": weight, "start": self._start}
        given = {name: arrays[name].astype(self.dtype) for name in self._inputs}
        return np.asarray(model.run("result", given), np.float64)
