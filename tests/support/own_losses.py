"""Losses of one's own, as ONNX text, that several test files train with."""

#: (score - target)^4
FOURTH = """\
fourth (score, target) => (loss) {
    residual = Sub (score, target)
    square = Mul (residual, residual)
    loss = Mul (square, square)
}"""
#: The largest |score - target| of a row
ROW = """\
row (score, target) => (loss) {
    residual = Sub (score, target)
    distance = Abs (residual)
    loss = ReduceMax <axes = [1], keepdims = 1> (distance)
}"""
