"""What is wrong with a custom penalty before its training."""

from typing import TYPE_CHECKING

import numpy as np

from skort.common.user_warning import warn_user
from skort.objective.custom import CustomTerm, check_term, parsed
from skort.objective.penalties import WeightPenalty

if TYPE_CHECKING:
    from skort.graphs.score_graph import ScoreGraph

# A derivative that is off by a larger part of the largest one is that of another function.
_WRONG = 0.1
# The step of the differences, as a part of the size of the weights: in float64, and in float32 where
# an operator has no other kernel.
_STEPS = {"float64": 1e-6, "float32": 1e-2}
# The number of elements of a weight whose derivatives are compared.
_N_ELEMENTS = 8


def warn_of_custom_penalty(penalty: WeightPenalty, score_graph: "ScoreGraph") -> None:
    """Warn, before a training, of a custom penalty with a wrong gradient."""
    terms = penalty.custom_terms(score_graph.coefficients, score_graph.trained.intercepts)
    for name, term in terms.items():
        if term.gradient is not None and (fault := _wrong_gradient(term, name, score_graph)):
            warn_user(f"The penalty {parsed('penalty: value', term.value).name!r} {fault}")
            return


def _wrong_gradient(term, name, score_graph):
    """Return what is said of a gradient that is far from finite differences of the value, or ""."""
    start = score_graph.arrays[name].astype(np.float64)
    check_term(term, name, start.shape)

    # No element is zero, or at its start, where a penalty may have a kink.
    generator = np.random.RandomState(0)
    size = start.std() or 1.0
    weight = start + size * generator.choice([-1.0, 1.0], start.shape) * generator.uniform(
        0.5, 1.5, start.shape
    )
    functions = _most_exact(term, start)

    given = functions.gradient(weight)
    elements = np.unique(np.linspace(0, weight.size - 1, _N_ELEMENTS).astype(int))
    step = _STEPS[functions.dtype] * size
    found = np.array([_difference(functions, weight, element, step) for element in elements])

    # Of steps, such as Round, the user may choose any gradient.
    compared = given.ravel()[elements]
    with np.errstate(all="ignore"):
        errors = np.where(np.isfinite(found) & (found != 0), np.abs(compared - found), 0.0)
        is_wrong = ~(errors <= _WRONG * np.nanmax(np.abs([*compared, *found])))
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


def _most_exact(term, start):
    """Return the functions in float64, or in float32 where an operator has no other kernel."""
    functions = _Functions(term, start, "float64")
    try:
        functions.value(start)
        functions.gradient(start)
    except Exception:  # an error of the runtime is no ValueError
        return _Functions(term, start, "float32")
    return functions


class _Functions:
    """The value and the gradient of a penalty of one weight."""

    def __init__(self, term: CustomTerm, start: np.ndarray, dtype: str):
        self.dtype = dtype
        self._start = start
        self._inputs = term.inputs
        self._value = self._model(term.value)
        self._gradient = self._model(term.gradient)

    def value(self, weight):
        """Return the penalty of a weight."""
        return self._run(self._value, weight)

    def gradient(self, weight):
        """Return the derivatives of the penalty by a weight, as the penalty has them."""
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
