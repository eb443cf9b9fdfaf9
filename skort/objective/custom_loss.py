"""A loss that the user writes."""

from sklearn.utils._param_validation import HasMethods

from skort.common.component import Component
from skort.objective.base import FunctionSource, ScoreLoss
from skort.objective.custom_functions import check_signature, parsed, result_shape

__all__ = ["Loss"]

_FUNCTION = [str, HasMethods(["SerializeToString"])]
# The number of rows with which shapes are checked: no other dimension has this size.
_ROWS = 97


class Loss(Component, ScoreLoss):
    r"""
    A loss of your own, written as an ONNX function of the raw score and the target.

    Parameters
    ----------
    value : str or onnx.FunctionProto
        The function ``(score, target) => (loss)``. `score` and `target` have shape (n_samples, n_outputs); for a
        classifier with two classes there is one column, and the target is 0 or 1; with more classes the target is
        one-hot. The result has the same shape, and skort takes the mean of its columns; or it has the shape (n_samples,
        1). Training multiplies it by the sample weights and sums it. A function ``(score, target, weight) => (loss)``
        has to multiply by `weight` itself. `weight` has shape (n_samples, 1): the sample weights divided by their mean,
        by the number of columns, and by the unit below. It is zero for rows that only fill up a short batch. Operators
        are those of opset 17. Write constants as ``Constant <value = float {0.5}> ()``, whatever the dtype of the
        training.
    gradient : str or onnx.FunctionProto, default=None
        The derivative of `value` with respect to the score: a function of the same inputs, with a result of the shape
        of `score`. None: the solver derives it, and every operator between the score and the loss needs a gradient.
        Solver "session" always derives it.
    inverse_link : str or onnx.FunctionProto, default=None
        What a regressor predicts: ``(score) => (prediction)``, of the same shape. None: the score. A classifier with a
        custom loss predicts labels, and no probabilities.

    Notes
    -----
    `value` gets score and target in units of y, also if a regressor standardises y for the training, with mean m and
    standard deviation s. Without an inverse link, the training then works with the score :math:`score' = (score - m) /
    s`, and divides the loss by a unit, so that steps are as long as for other losses:

    .. math:: unit = loss(m + s, m) + loss(m - s, m)

    with the target first, or 1 where this is not positive and finite: :math:`s^2` for half the squared error. With an
    inverse link, y and score stay as they are.

    Examples
    --------
    The logarithm of the hyperbolic cosine, a smooth absolute error, fits the mean of symmetric data. Its value is
    written as :math:`|r| + \log(1 + e^{-2 |r|}) - \log 2`, since :math:`\cosh r` overflows in float32 above r = 89:

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
    >>> OrtSGDRegressor(loss=log_cosh, eta0=0.5).fit(X, y).predict(X[:1]).round(2)
    array([2.])
    """

    _parameter_constraints = {
        "value": _FUNCTION,
        "gradient": [*_FUNCTION, None],
        "inverse_link": [*_FUNCTION, None],
    }

    def __init__(
        self,
        value: FunctionSource,
        gradient: "FunctionSource | None" = None,
        inverse_link: "FunctionSource | None" = None,
    ):
        self.value = value
        self.gradient = gradient
        self.inverse_link = inverse_link

    @property
    def estimator_types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Both, or only regressors if there is an inverse link."""
        return ("regressor", "classifier") if self.inverse_link is None else ("regressor",)

    @property
    def takes_weight(self) -> bool:  # type: ignore[override]
        """Whether `value` has the third input, `weight`."""
        return "weight" in _parsed("value", self.value).input

    def value_function(self, n_outputs: int) -> FunctionSource:
        """Return `value`, checked."""
        self.weight_scale(n_outputs)
        return self.value

    def gradient_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `gradient`, checked, or None."""
        if self.gradient is not None:
            _check_inputs("gradient", self.gradient, [list(_parsed("value", self.value).input)])
            _check_columns("gradient", self.gradient, n_outputs, {n_outputs})
        return self.gradient

    def inverse_link_function(self, n_outputs: int) -> "FunctionSource | None":
        """Return `inverse_link`, checked, or None."""
        if self.inverse_link is not None:
            _check_inputs("inverse_link", self.inverse_link, [["score"]])
            _check_columns("inverse_link", self.inverse_link, n_outputs, {n_outputs})
        return self.inverse_link

    def weight_scale(self, n_outputs: int) -> float:
        """Return 1 / the number of columns of `value`."""
        _check_inputs("value", self.value, [["score", "target"], ["score", "target", "weight"]])
        return 1.0 / _check_columns("value", self.value, n_outputs, {1, n_outputs})


def _parsed(name, source):
    return parsed(f"loss: {name}", source)


def _check_inputs(name, source, signatures):
    check_signature(f"loss: {name}", source, signatures)


def _check_columns(name, source, n_outputs, allowed):
    """Return the number of columns of the result for `n_outputs` scores, one of `allowed`."""
    shapes = {"score": (_ROWS, n_outputs), "target": (_ROWS, n_outputs), "weight": (_ROWS, 1)}
    inputs = {key: shapes[key] for key in _parsed(name, source).input}
    shape = result_shape(f"loss: {name}", source, inputs)
    if len(shape) != 2 or shape[0] != _ROWS or shape[1] not in allowed:
        wanted = " or ".join(f"(n_samples, {columns})" for columns in sorted(allowed))
        got = ", ".join("n_samples" if size == _ROWS else str(size or "?") for size in shape)
        raise ValueError(f"loss: {name} must return an array of shape {wanted} here, got ({got}).")
    return shape[1]
