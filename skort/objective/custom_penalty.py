"""A penalty that the user writes."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval

from skort.common.component import Component
from skort.objective.base import FunctionSource
from skort.objective.custom_functions import check_signature, parsed, result_shape
from skort.objective.penalties import WeightPenalty, no_such_weight

__all__ = ["CustomTerm", "Penalty", "check_term"]

_FUNCTION = [str, HasMethods(["SerializeToString"])]
_NAMES = [str, list, tuple, None]
_SIGNATURES = ["weight"], ["weight", "start"]


class CustomTerm(NamedTuple):
    r"""
    What an own penalty is of one weight of a training.

    .. math:: term(v) = strength \cdot value(factor \odot v)

    Parameters
    ----------
    value : str or onnx.FunctionProto
    gradient : str or onnx.FunctionProto, or None
        None: it is to be derived.
    strength : float
    factor : float or ndarray, default=1.0
        What the weight of the training is multiplied by in the model.
    """

    value: FunctionSource
    gradient: "FunctionSource | None"
    strength: float
    factor: float | np.ndarray = 1.0

    @property
    def inputs(self) -> list[str]:
        """The inputs of the functions: "weight" and, where the penalty asks for it, "start"."""
        return list(parsed("penalty: value", self.value).input)


class Penalty(Component, WeightPenalty):
    r"""
    A penalty of your own, written as an ONNX function of one weight array.

    .. math:: penalty(w) = \alpha \sum_{w} value(w)

    The sum is over the weights that have this penalty. Each of them is a matrix or vector of the model, in units of the
    data, also if the training standardises X and y.

    Parameters
    ----------
    value : str or onnx.FunctionProto
        The function ``(weight) => (penalty)`` or ``(weight, start) => (penalty)``. `weight` has the shape that
        `weights_` of a fitted estimator shows, (n_features, n_outputs) in a linear model; `start` holds the values with
        which the training began: those of a fitted model, of an ONNX model or of `coef_init`; in a stream, those before
        the first `partial_fit`. A training that is resumed from a checkpoint has to begin with the same values: give
        `random_state` if they are random. The result is one number, without dimensions. Operators are those of opset
        17. Write constants as ``Constant <value = float {0.5}> ()``, whatever the dtype of the training.
    gradient : str or onnx.FunctionProto, default=None
        The derivative of `value` by `weight`, a function of the same inputs with a result of the shape of `weight`.
        None: it is derived, and every operator between the weight and the value needs a gradient. Solver "session"
        always derives it.
    weights : str or list of str, default=None
        Names of weights that multiply inputs, or patterns with `*`, `?` and `[...]`. None: all that are trained. An
        empty list: none.
    intercepts : str or list of str, default=None
        Names or patterns of intercepts. None: none of them has the penalty. If one has it, a training does not subtract
        the means of X and y, see `standardize`.
    alpha : float, default=1.0
        Strength, not negative.

    Notes
    -----
    The derivative of the penalty is part of the gradient, so it must be a number everywhere. A group lasso has a kink
    where a whole group is zero: write :math:`\sqrt{\lVert w_g \rVert^2 + \epsilon}`. Weights become small, but not
    exactly zero. The learning rate of `eta0="auto"` does not depend on the penalty. If the training diverges, it begins
    again at a tenth of the rate.

    Examples
    --------
    A pull towards the weights of a fitted model, :math:`\frac{\alpha}{2} \lVert w - w_0 \rVert^2`, keeps what few new
    rows say nothing about. The new rows vary in the first column only, and say that its coefficient is 3:

    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LinearRegression
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import Penalty
    >>> pull = '''
    ... pull (weight, start) => (penalty) {
    ...     half = Constant <value = float {0.5}> ()
    ...     distance = Sub (weight, start)
    ...     square = Mul (distance, distance)
    ...     sum = ReduceSum <keepdims = 0> (square)
    ...     penalty = Mul (half, sum)
    ... }'''
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> fitted = LinearRegression().fit(X, X @ [2.0, -1.0])
    >>> X_new = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> model = OrtSGDRegressor(FrozenEstimator(fitted), penalty=Penalty(pull, alpha=1.0), eta0=0.2, tol=1e-8)
    >>> model.fit(X_new, X_new @ [3.0, 0.0]).coef_.round(2)
    array([ 2.5, -1. ], dtype=float32)
    """

    is_custom = True
    _parameter_constraints = {
        "value": _FUNCTION,
        "gradient": [*_FUNCTION, None],
        "weights": _NAMES,
        "intercepts": _NAMES,
        "alpha": [Interval(Real, 0, float(np.finfo(np.float32).max), closed="both")],
    }

    def __init__(
        self,
        value: FunctionSource,
        gradient: "FunctionSource | None" = None,
        weights: str | Sequence[str] | None = None,
        intercepts: str | Sequence[str] | None = None,
        alpha: float = 1.0,
    ):
        self.value = value
        self.gradient = gradient
        self.weights = weights
        self.intercepts = intercepts
        self.alpha = alpha

    @property
    def takes_start(self) -> bool:  # type: ignore[override]
        """Whether the penalty is of the weights at the start, too."""
        return "start" in parsed("penalty: value", self.value).input

    def custom_terms(self, coefficients: tuple[str, ...], intercepts: tuple[str, ...]) -> dict[str, CustomTerm]:
        """
        Return the terms of the weights that have the penalty, by name.

        Parameters
        ----------
        coefficients, intercepts : tuple of str
            The names of the trained weights.

        Raises
        ------
        ValueError
            Where `value` or `gradient` are no such functions, and where a name or pattern matches no weight.
        """
        check_signature("penalty: value", self.value, _SIGNATURES)
        if self.gradient is not None:
            check_signature("penalty: gradient", self.gradient, [list(parsed("penalty: value", self.value).input)])
        names = list(coefficients) if self.weights is None else _matching("weights", self.weights, coefficients)
        if self.intercepts is not None:
            names += _matching("intercepts", self.intercepts, intercepts)
        term = CustomTerm(self.value, self.gradient, float(self.alpha))
        return dict.fromkeys(names, term) if term.strength else {}


def check_term(term: CustomTerm, name: str, shape: tuple[int, ...]) -> None:
    """
    Raise an error where the functions of a penalty do not fit a weight.

    Parameters
    ----------
    term : CustomTerm
    name : str
        That of the weight.
    shape : tuple of int

    Raises
    ------
    ValueError
        Where they cannot run on a weight of this shape, and where their results have other shapes than they must have.
    """
    inputs = dict.fromkeys(term.inputs, shape)
    of_value = result_shape("penalty: value", term.value, inputs)
    if of_value:
        raise ValueError(
            f"penalty: value must return one number without dimensions, got shape {tuple(of_value)} for the weight "
            f"{name!r}. End it with ReduceSum <keepdims = 0>."
        )
    if term.gradient is not None:
        of_gradient = result_shape("penalty: gradient", term.gradient, inputs)
        if tuple(of_gradient) != tuple(shape):
            raise ValueError(
                f"penalty: gradient must return an array of the shape {tuple(shape)} of the weight {name!r}, got "
                f"{tuple(of_gradient)}."
            )


def _matching(parameter, patterns, names):
    """Return those of the weights `names` that a pattern matches."""
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    for pattern in patterns:
        if not any(fnmatchcase(name, str(pattern)) for name in names):
            raise no_such_weight(parameter, pattern, names)
    return [name for name in names if any(fnmatchcase(name, str(pattern)) for pattern in patterns)]
