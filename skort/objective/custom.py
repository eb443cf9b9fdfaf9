"""A loss and a penalty that the user writes as ONNX functions, and checks of these functions."""

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skort.common.component import Component
from skort.common.sklearn_private import HasMethods, Interval
from skort.exceptions import NotTrainableError
from skort.objective.loss import FunctionSource, ScoreLoss, source_key
from skort.objective.penalties import LARGEST_STRENGTH, WeightPenalty, matching

if TYPE_CHECKING:
    import onnx

_FUNCTION = [str, HasMethods(["SerializeToString"])]
_NAMES = [str, list, tuple, None]
# The operators of ONNX that have other names elsewhere.
_OPERATORS = {
    **{"minus": "Sub", "subtract": "Sub", "plus": "Add", "sum": "ReduceSum", "mean": "ReduceMean"},
    **{"times": "Mul", "multiply": "Mul", "square": "Mul", "divide": "Div", "power": "Pow"},
    **{"maximum": "Max", "minimum": "Min", "negative": "Neg", "absolute": "Abs", "sgn": "Sign"},
}
_SIGNATURES = ["weight"], ["weight", "start"]
#: The number of rows in checks of shapes. It stands for n_samples, so it is an unusual number.
ROWS = 97


def parsed(what: str, source: FunctionSource) -> "onnx.FunctionProto":
    """Return the user's function as a proto; a ValueError names the parameter `what`."""
    from skort.common.onnx_text import function

    try:
        return function(source, "float32")
    except Exception as error:  # an error of onnx.parser is not a ValueError
        raise _no_function(what, error, source) from error


def check_signature(what: str, source: FunctionSource, signatures: Sequence[Sequence[str]]) -> None:
    """Raise a ValueError if a function has none of the signatures, or not exactly one output."""
    proto = parsed(what, source)
    if list(proto.input) not in [list(inputs) for inputs in signatures] or len(proto.output) != 1:
        wanted = " or ".join(f"({', '.join(inputs)})" for inputs in signatures)
        raise ValueError(
            f"{what} must be a function of {wanted} with one output, got "
            f"({', '.join(proto.input)}) => ({', '.join(proto.output)})."
        )


def used_inputs(function: "onnx.FunctionProto") -> set[str]:
    """Return the inputs that the output of a function depends on."""
    used = set(function.output)
    for node in reversed(function.node):
        if used.intersection(node.output):
            used |= {*node.input, *_captured(node)}
    return used.intersection(function.input)


def _captured(node):
    """Return the names that the graphs inside a node, as of an If, may take from around it."""
    graphs = [each.g for each in node.attribute if each.HasField("g")]
    inner = [each for graph in graphs for each in graph.node]
    of_graphs = {output.name for graph in graphs for output in graph.output}
    return of_graphs.union(*({*each.input, *_captured(each)} for each in inner))


def _check_used(what, source, name, cure):
    """Raise a NotTrainableError if a function has an optional input and does not use it."""
    function = parsed(what, source)
    if name in function.input and name not in used_inputs(function):
        raise NotTrainableError(f"{what} takes {name} and does not use it. {cure}")


def result_shape(
    what: str, source: FunctionSource, inputs: Mapping[str, tuple[int, ...]]
) -> list[int]:
    """Return the shape of a function's result for inputs of these shapes; 0: an unknown size."""
    try:
        return list(_inferred_shape(source_key(source), tuple(inputs.items())))
    except Exception as error:  # errors of onnx.checker and shape_inference are not ValueErrors
        raise _no_function(what, error, source) from error


@functools.lru_cache(64)
def _inferred_shape(key, inputs):
    """Return the shape of a function's result, cached: each fit of a search asks several times."""
    import onnx.checker
    import onnx.shape_inference

    from skort.common.onnx_text import function_model

    source = key if isinstance(key, str) else onnx.FunctionProto.FromString(key)
    model = function_model(source, "float32", dict(inputs))
    onnx.checker.check_model(model)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model = onnx.shape_inference.infer_shapes(
        model, check_type=True, strict_mode=True, data_prop=True
    )

    return tuple(dim.dim_value for dim in model.graph.output[0].type.tensor_type.shape.dim)


def _no_function(what: str, error: Exception, source: FunctionSource) -> ValueError:
    """Return the error of a function that cannot run."""
    reason = error.args[0] if error.args else ""
    reason = reason.decode() if isinstance(reason, bytes) else str(reason)
    reason = " ".join(reason.split())
    advice = _advice(reason, source)
    reason = f"{reason.rstrip('.')}.{advice}" if advice else reason
    return ValueError(f"{what} is not an ONNX function that can run: {reason}")


def _advice(reason, source):
    """Return a sentence, after a space, on what to write in place of what onnx refuses, if known."""
    if "ParseError" in reason:
        return (
            f" A function has the form: {Loss._example}. Calls do not nest, no comma or semicolon "
            "ends a line, and a number is a Constant: half = Constant <value = float {0.5}> ()."
        )
    if "has output size" in reason:
        return (
            " Several names before = are the results of one operator: no comma stands between two "
            "lines."
        )
    if found := re.search(r"No Op registered for (\w+)", reason):
        return _advice_on_operator(found[1])
    if found := re.search(r"input '(\w+)' of node", reason):
        return _advice_on_name(found[1], source)
    if "is not an output of any node" in reason:
        return _advice_on_output(source)
    if found := re.search(r"op_type:(\w+).* has inconsistent type", reason):
        return _advice_on_integers(found[1], source)
    return ""


def _advice_on_operator(name):
    import onnx.defs

    known = sorted(schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain)
    same = [each for each in known if each.lower() == name.lower()]
    similar = _OPERATORS.get(name.lower()) or next(
        iter(same or difflib.get_close_matches(name, known, 1, 0.7)), None
    )
    return f" Did you mean {similar}?" if similar else " onnx.ai/onnx/operators lists them."


def _advice_on_name(name, source):
    proto = _proto(source)
    known = [*proto.input, *(output for node in proto.node for output in node.output)]
    similar = difflib.get_close_matches(name, [each for each in known if each != name], 1, 0.6)
    return (
        f" Did you mean {similar[0]}?"
        if similar
        else f" Nothing before it has the name {name}; the inputs are {', '.join(proto.input)}."
    )


def _advice_on_output(source):
    """Return a sentence, after a space, on an output that no node makes."""
    proto = _proto(source)
    (output,) = proto.output
    similar = difflib.get_close_matches(output, [o for node in proto.node for o in node.output], 1)
    advice = f" Did you mean {similar[0]}?" if similar else ""
    return f" No line computes the output {output}.{advice}"


def _advice_on_integers(operator, source):
    """Return a sentence, after a space, that writes the integers that an operator takes as floats."""
    from skort.common.onnx_text import constant_value

    proto = _proto(source)
    taken = {name for node in proto.node if node.op_type == operator for name in node.input}
    floats = [
        f"{node.output[0]} = Constant <value = float {{{constant_value(node).item()}}}> ()"
        for node in proto.node
        if node.op_type == "Constant"
        and node.output[0] in taken
        and constant_value(node).size == 1
        and constant_value(node).dtype.kind in "iu"
    ]
    return (
        f" Its inputs are floats, and so must be the numbers that {operator} takes: write "
        f"{' and '.join(floats)}."
        if floats
        else ""
    )


def _proto(source):
    """Return a function that onnx can read as a proto."""
    from skort.common.onnx_text import function

    return function(source, "float32")


class _OnnxFunctions(Component):
    """Parameters that are ONNX functions; the error for a function of Python says how to write one."""

    _example: str

    def _validate_params(self) -> None:
        for name, value in self.get_params(deep=False).items():
            if callable(value):
                raise ValueError(
                    f"{type(self).__name__}: {name} is a function of Python. ONNX Runtime computes "
                    f"the gradient, so {name} is a function of ONNX, as text, such as "
                    f"{self._example!r}."
                )

        super()._validate_params()


@dataclass(eq=False, repr=False)
class Loss(_OnnxFunctions, ScoreLoss):
    r"""
    A custom loss, written as an ONNX function of the raw score and the target.

    Parameters
    ----------
    value : str or onnx.FunctionProto
        The function ``(score, target) => (loss)`` or ``(score, target, weight) => (loss)`` of opset
        17. The score and the target have the shape (n_samples, n_outputs). The result has the same
        shape, and skort takes the mean of its columns; or it has the shape (n_samples, 1). Write
        constants as ``Constant <value = float {0.5}> ()``, whatever the dtype of the training.
    gradient : str or onnx.FunctionProto, default=None
        The derivative of `value` with respect to the score: a function of the same inputs, with a
        result of the shape of `score`. With None, the solver derives it; then every operator
        between the score and the loss needs a gradient. Solver "session" always derives it.
    inverse_link : str or onnx.FunctionProto, default=None
        The prediction of a regressor: a function ``(score) => (prediction)`` with a result of the
        shape of `score`. With None, the prediction is the score. A classifier with a custom loss
        predicts labels, but no probabilities.

    Notes
    -----
    A classifier with two classes has one score, and the target is 0 or 1. With more classes, the
    target is one-hot.

    The training multiplies the loss by the sample weights and sums it. If the function has the
    input `weight`, of shape (n_samples, 1), the function has to multiply by it itself. `weight` is
    the sample weight of a row, divided by the mean of all. skort also divides it by the number of
    columns and by the unit below. It is zero for rows that only fill up a short batch.

    `value` gets the score and the target in units of y, even if a regressor standardises y with
    mean m and standard deviation s. Without an inverse link, the training then uses the score
    :math:`score' = (score - m) / s`. It divides the loss by a unit, so that steps are as long as
    for other losses:

    .. math:: unit = loss(m + s, m) + loss(m - s, m)

    with the target as the first argument. For half the squared error, the unit is :math:`s^2`. If
    the sum is not positive and finite, the unit is 1. With an inverse link, y and the score stay as
    they are.

    Examples
    --------
    The logarithm of the hyperbolic cosine, a smooth absolute error, fits the mean of symmetric
    data. Its value is written as :math:`|r| + \log(1 + e^{-2 |r|}) - \log 2`, since :math:`\cosh r`
    overflows in float32 above r = 89:

    >>> import numpy as np
    >>> from skort import OrtSGDRegressor
    >>> from skort.objective import Loss
    >>> log_cosh = Loss('''
    ... log_cosh (score, target) => (loss) {
    ...     one = Constant <value = float {1.0}> ()
    ...     minus_two = Constant <value = float {-2.0}> ()
    ...     log_two = Constant <value = float {0.6931471805599453}> ()
    ...     residual = Sub (score, target)
    ...     distance = Abs (residual)
    ...     exponent = Mul (minus_two, distance)
    ...     small = Exp (exponent)
    ...     ratio = Add (one, small)
    ...     log_ratio = Log (ratio)
    ...     sum = Add (distance, log_ratio)
    ...     loss = Sub (sum, log_two)
    ... }''')
    >>> X, y = np.zeros((3, 1)), [1.0, 2.0, 3.0]
    >>> OrtSGDRegressor(loss=log_cosh, eta0=0.5, max_iter=100, tol=None).fit(X, y).predict(
    ...     X[:1]
    ... ).round(2)
    array([2.])
    """

    __module__ = "skort.objective"
    _example = "square (score, target) => (loss) { d = Sub (score, target) loss = Mul (d, d) }"
    _parameter_constraints = {
        "value": _FUNCTION,
        "gradient": [*_FUNCTION, None],
        "inverse_link": [*_FUNCTION, None],
    }
    value: FunctionSource
    gradient: "FunctionSource | None" = None
    inverse_link: "FunctionSource | None" = None

    @property
    def estimator_types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Regressors and classifiers, or only regressors if there is an inverse link."""
        return ("regressor", "classifier") if self.inverse_link is None else ("regressor",)

    @property
    def custom_parts(self) -> tuple[ScoreLoss, ...]:  # type: ignore[override]
        """The loss itself."""
        return (self,)

    @property
    def for_others(self) -> str:  # type: ignore[override]
        """How to make it a loss of a classifier, if it has an inverse link."""
        if self.inverse_link is None:
            return ""
        return (
            "Leave inverse_link out, which is for regressors: a classifier with a custom loss gives "
            "labels and scores, and CalibratedClassifierCV of sklearn.calibration makes "
            "probabilities of them."
        )

    @property
    def takes_weight(self) -> bool:  # type: ignore[override]
        """Whether `value` has the third input, `weight`."""
        return "weight" in parsed("loss: value", self.value).input

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return `value`, checked."""
        self.weight_scale(n_outputs)
        return self.value

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `gradient`, checked, or None."""
        if self.gradient is not None:
            check_signature(
                "loss: gradient", self.gradient, [list(parsed("loss: value", self.value).input)]
            )
            _check_columns("loss: gradient", self.gradient, n_outputs, {n_outputs})

        return self.gradient

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `inverse_link`, checked, or None."""
        if self.inverse_link is not None:
            check_signature("loss: inverse_link", self.inverse_link, [["score"]])
            _check_columns("loss: inverse_link", self.inverse_link, n_outputs, {n_outputs})
        return self.inverse_link

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1 / the number of columns of `value`."""
        check_signature(
            "loss: value", self.value, [["score", "target"], ["score", "target", "weight"]]
        )
        _check_used(
            "loss: value",
            self.value,
            "weight",
            "Multiply the loss by it, or leave this input out: skort then multiplies.",
        )
        return 1.0 / _check_columns("loss: value", self.value, n_outputs, {1, n_outputs})


def _check_columns(name, source, n_outputs, allowed):
    """Return the number of columns of a function's result, which must be one of `allowed`."""
    shapes = {"score": (ROWS, n_outputs), "target": (ROWS, n_outputs), "weight": (ROWS, 1)}
    shape = result_shape(name, source, {key: shapes[key] for key in parsed(name, source).input})
    if len(shape) != 2 or shape[0] != ROWS or shape[1] not in allowed:
        wanted = " or ".join(f"(n_samples, {columns})" for columns in sorted(allowed))
        got = ", ".join("n_samples" if size == ROWS else str(size or "?") for size in shape)
        raise ValueError(f"{name} must return an array of shape {wanted} here, got ({got}).")

    return shape[1]


class CustomTerm(NamedTuple):
    r"""The custom penalty of a trained weight v: :math:`strength \cdot value(factor \odot v)`."""

    value: FunctionSource
    gradient: "FunctionSource | None"
    strength: float
    factor: float | np.ndarray = 1.0

    @property
    def inputs(self) -> list[str]:
        """The inputs of the functions: "weight", and maybe "start"."""
        return list(parsed("penalty: value", self.value).input)


@dataclass(eq=False, repr=False)
class Penalty(_OnnxFunctions, WeightPenalty):
    r"""
    A custom penalty, written as an ONNX function of one weight array.

    .. math:: penalty(w) = \alpha \sum_{w} value(w)

    The sum is over the weights that have this penalty. Each weight is a matrix or vector of the
    model, in units of the data, even if the training standardises X and y.

    Parameters
    ----------
    value : str or onnx.FunctionProto
        The function ``(weight) => (penalty)`` or ``(weight, start) => (penalty)`` of opset 17. Its
        result is a scalar. `weight` has the shape of the weight in `weights_`. `start` has the same
        shape, and the values of the weight before the training. Write constants as
        ``Constant <value = float {0.5}> ()``, whatever the dtype of the training.
    gradient : str or onnx.FunctionProto, default=None
        The derivative of `value` by `weight`: a function of the same inputs, with a result of the
        shape of `weight`. With None, skort derives it; then every operator between the weight and
        the value needs a gradient. Solver "session" always derives it.
    weights : str or list of str, default=None
        Names of the weights with this penalty, or patterns with `*`, `?` and `[...]`. They must be
        weights that multiply inputs. None is all trained ones, and an empty list is none of them.
    intercepts : str or list of str, default=None
        Names or patterns of the intercepts with this penalty. None is no intercept. If an intercept
        has the penalty, the training does not subtract the means of X and y, see `standardize`.
    alpha : float, default=1.0
        Strength of the penalty, not negative.

    Notes
    -----
    The derivative of the penalty is part of the gradient, so it must be a number everywhere. The
    norm of a group lasso has a kink if a whole group is zero. Write
    :math:`\sqrt{\lVert w_g \rVert^2 + \epsilon}` instead. Weights become small, but not exactly
    zero. The learning rate of `eta0="auto"` does not depend on the penalty.

    `start` has the weights of a fitted or ONNX model, or of `coef_init`. In a stream, it has the
    weights before the first `partial_fit`. A training that resumes from a checkpoint must begin
    with the same weights: give `random_state` if they are random.

    Examples
    --------
    The penalty :math:`\frac{\alpha}{2} \lVert w - w_0 \rVert^2` pulls weights towards those of a
    fitted model. It keeps coefficients that a few new rows do not determine. Here, the new rows
    vary only in the first column, whose coefficient is 3 in them:

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
    >>> model = OrtSGDRegressor(
    ...     FrozenEstimator(fitted), penalty=Penalty(pull, alpha=1.0), eta0=0.2, tol=1e-8
    ... )
    >>> model.fit(X_new, X_new @ [3.0, 0.0]).coef_.round(2)
    array([ 2.5, -1. ], dtype=float32)
    """

    __module__ = "skort.objective"
    is_custom = True
    _example = "square (weight) => (penalty) { s = Mul (weight, weight) penalty = ReduceSum <keepdims = 0> (s) }"
    _parameter_constraints = {
        "value": _FUNCTION,
        "gradient": [*_FUNCTION, None],
        "weights": _NAMES,
        "intercepts": _NAMES,
        "alpha": [Interval(Real, 0, LARGEST_STRENGTH, closed="both")],
    }
    value: FunctionSource
    gradient: "FunctionSource | None" = None
    weights: str | Sequence[str] | None = None
    intercepts: str | Sequence[str] | None = None
    alpha: float = 1.0

    @property
    def takes_start(self) -> bool:  # type: ignore[override]
        """Whether the penalty depends on the weights at the start of the training."""
        return "start" in parsed("penalty: value", self.value).input

    def custom_terms(
        self, coefficients: tuple[str, ...], intercepts: tuple[str, ...]
    ) -> dict[str, CustomTerm]:
        """Return the terms by the names of the weights, after checks of functions and names."""
        check_signature("penalty: value", self.value, _SIGNATURES)
        _check_used("penalty: value", self.value, "start", "Leave this input out.")
        if self.gradient is not None:
            check_signature(
                "penalty: gradient",
                self.gradient,
                [list(parsed("penalty: value", self.value).input)],
            )

        names = (
            list(coefficients)
            if self.weights is None
            else matching("weights", self.weights, coefficients)
        )
        if self.intercepts is not None:
            names += matching("intercepts", self.intercepts, intercepts)
        term = CustomTerm(self.value, self.gradient, float(self.alpha))

        return dict.fromkeys(names, term) if term.strength else {}


def check_term(term: CustomTerm, name: str, shape: tuple[int, ...]) -> None:
    """Raise a ValueError if the functions of a penalty do not run on a weight of this shape."""
    inputs = dict.fromkeys(term.inputs, shape)
    of_value = result_shape("penalty: value", term.value, inputs)
    if of_value:
        raise ValueError(
            "penalty: value must return one number without dimensions, got shape "
            f"{tuple(of_value)} for the weight {name!r}. End it with ReduceSum <keepdims = 0>."
        )

    if term.gradient is not None:
        of_gradient = result_shape("penalty: gradient", term.gradient, inputs)
        if tuple(of_gradient) != tuple(shape):
            raise ValueError(
                f"penalty: gradient must return an array of the shape {tuple(shape)} of the weight "
                f"{name!r}, got {tuple(of_gradient)}."
            )
