"""The update of `skort.optimizers.Adam` as ONNX."""

__all__ = ["adam_update"]

# Constants take the dtype of the weights. ConstantOfShape stays double, and the correction is computed in float64.
_ADAM = """\
adam (weights, gradient, eta, first_moment, second_moment, n_updates)
    => (next_weights, length, next_first_moment, next_second_moment, next_n_updates) {
    one = Constant <value = int64[1] {1}> ()
    beta_1 = ConstantOfShape <value = double[1] {%r}> (one)
    beta_2 = ConstantOfShape <value = double[1] {%r}> (one)
    unit = ConstantOfShape <value = double[1] {1}> (one)
    next_n_updates = Add (n_updates, one)
    t = Cast <to = 11> (next_n_updates)
    power_1 = Pow (beta_1, t)
    power_2 = Pow (beta_2, t)
    grown_1 = Sub (unit, power_1)
    grown_2 = Sub (unit, power_2)
    root = Sqrt (grown_2)
    correction = Div (root, grown_1)
    wide_eta = Cast <to = 11> (eta)
    wide_corrected = Mul (wide_eta, correction)
    corrected = CastLike (wide_corrected, weights)
    part_1 = Constant <value = float {%r}> ()
    part_2 = Constant <value = float {%r}> ()
    kept_2 = Constant <value = float {%r}> ()
    epsilon = Constant <value = float {%r}> ()
    change = Sub (gradient, first_moment)
    change_1 = Mul (change, part_1)
    next_first_moment = Add (first_moment, change_1)
    square = Mul (gradient, gradient)
    square_2 = Mul (square, part_2)
    second_2 = Mul (second_moment, kept_2)
    next_second_moment = Add (second_2, square_2)
    scale = Sqrt (next_second_moment)
    divisor = Add (scale, epsilon)
    ratio = Div (next_first_moment, divisor)
    step = Mul (ratio, corrected)
    next_weights = Sub (weights, step)
    length = Div (corrected, divisor)
}"""


def adam_update(beta_1: float, beta_2: float, epsilon: float) -> str:
    """
    Return the ONNX function that `Adam.onnx_update` returns.

    Parameters
    ----------
    beta_1, beta_2, epsilon : float
        The parameters of `Adam`.
    """
    return _ADAM % (beta_1, beta_2, 1 - beta_1, 1 - beta_2, beta_2, epsilon)
