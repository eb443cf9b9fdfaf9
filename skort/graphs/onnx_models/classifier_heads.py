"""The head of an ONNX classifier: its operators after the raw score, found by running them."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from scipy.special import expit, softmax

from skort.common.onnx_text import pruned, read_names, replace_nodes
from skort.exceptions import NotTrainableError
from skort.graphs.onnx_models.inputs import picks_rows
from skort.objective.loss import function_text
from skort.runtime.sessions import InferenceModel, short_message

_PROBABILITIES = ("Sigmoid", "Softmax", "LogSoftmax")
_PRODUCTS = ("MatMul", "Gemm", "Conv")
_N_ROWS = 64
_NEGATIVE = "negative (score) => (negative) { negative = Neg (score) }"


class Head(NamedTuple):
    """
    The place of the raw score in a model.

    It is the ONNX function `score` of the result named `result`. None: it is this result itself.
    """

    result: str
    score: str | None


def find_head(model: onnx.ModelProto, output: str, n_outputs: int) -> Head:
    """
    Return the head of a classifier.

    The raw score is the output itself, or the input of a sigmoid or softmax.
    """
    # Operators from a result to the output are a head under two conditions. The output depends on X
    # through this result only. And the operators turn random scores into the probabilities of a
    # sigmoid or softmax, or into their logarithms, with columns in any order.
    values = _two_dimensional(runner(model, output)(rows_like(model.graph)))
    if values.shape[1] not in ((1, 2) if n_outputs == 1 else (n_outputs,)):
        raise NotTrainableError(
            f"estimator: the output {output!r} of the ONNX model has {values.shape[1]} columns, "
            f"one for each class, but y has {max(2, n_outputs)} classes. Name all classes in "
            "fit_batches(classes=...) or partial_fit(classes=...) if these rows lack some, or give "
            "the model an output of labels."
        )

    node = _last_probability(model.graph, output)
    head = None if node is None else _proved(model, node, output, n_outputs)
    if head is not None:
        return head

    if _are_probabilities(values, node is not None) and not _is_affine(model.graph, output):
        behind = (
            f"the {node.op_type} node {node.name!r}" if node is not None else "its own operators"
        )
        if (operator := _undifferentiable(model.graph)) is not None:
            raise NotTrainableError(
                f"estimator: the ONNX model computes with the operator {operator}, which has no "
                "gradient: gradient descent cannot train it."
            )
        raise NotTrainableError(
            f"estimator: the output {output!r} of the ONNX model is a probability, but it is "
            f"neither the sigmoid nor the softmax of one score: {behind} and what follows give "
            "other numbers. Cut the model at the score that is to be trained, with "
            "onnx.utils.Extractor."
        )
    if n_outputs > 1 or values.shape[1] != 2:
        return Head(output, None)

    return Head(output, _columns([1]) if _are_opposite(values) else _difference(0, 1))


def _undifferentiable(graph):
    """Return the first operator of trees or of support vectors, or None."""
    beginnings = ("TreeEnsemble", "SVM")
    return next((n.op_type for n in graph.node if n.op_type.startswith(beginnings)), None)


def _last_probability(graph, output):
    """
    Return the last sigmoid or softmax before `output`.

    Return None if there is none, or if a product follows it.
    """
    needed = {output}
    for node in reversed(graph.node):
        if needed.isdisjoint(node.output):
            continue
        if node.op_type in _PROBABILITIES:
            return node
        if node.op_type in _PRODUCTS:
            return None

        needed.update(read_names(node))

    return None


def _proved(model, node, output, n_outputs):
    """Return the head that begins with a node; None if it is no known head."""
    result, X = node.input[0], model.graph.input[0]
    end = part_between(model, result, output)
    if X.name in {i.name for i in end.graph.input[1:]}:
        return None

    n_columns = _two_dimensional(runner(model, result)(rows_like(model.graph))).shape[1]
    scores = np.random.RandomState(0).normal(scale=3.0, size=(_N_ROWS, n_columns)).astype(_dtype(X))
    run_end = _from_matrix(end, output)
    probabilities = run_end(scores)

    for source, score in _candidates(run_end, scores, n_outputs):
        if _is_known(probabilities, score):
            return Head(result, source)

    if n_columns != 2 or n_outputs != 1:
        return None

    # One of two columns may be the negative of the other. Random numbers lack this property, so the
    # model's own results are compared.
    probabilities, scores = (
        runner(model, name)(rows_like(model.graph)) for name in (output, result)
    )
    if not _are_opposite(scores):
        return None

    candidates = ((_columns([i]), scores[:, [i]]) for i in (1, 0))
    return next(
        (Head(result, source) for source, score in candidates if _is_known(probabilities, score)),
        None,
    )


def _from_matrix(model, output):
    """Return the function from columns to an output of a model that may take a single vector."""
    run = runner(model, output)
    is_vector = len(model.graph.input[0].type.tensor_type.shape.dim) == 1
    return (lambda columns: run(columns.ravel())) if is_vector else run


def _candidates(
    run_end, scores: np.ndarray, n_outputs: int
) -> Iterator[tuple[str | None, np.ndarray]]:
    """Yield functions that may compute the raw score from a result, each with its values."""
    n_columns = scores.shape[1]
    if n_columns == n_outputs == 1:
        yield None, scores
        yield _NEGATIVE, -scores
    elif n_outputs == 1 and n_columns == 2:
        yield _difference(0, 1), scores[:, [1]] - scores[:, [0]]
        yield _difference(1, 0), scores[:, [0]] - scores[:, [1]]
    elif n_columns == n_outputs:
        yield None, scores
        order = np.argmax(
            _two_dimensional(run_end(20 * np.eye(n_columns, dtype=scores.dtype))), axis=0
        )
        if sorted(order) == list(range(n_columns)):
            yield _columns(order.tolist()), scores[:, order]


def _is_known(probabilities: np.ndarray, score: np.ndarray) -> bool:
    """Return whether probabilities, or their logarithms, follow from a raw score."""
    probabilities = _two_dimensional(probabilities)
    if (probabilities <= 0).all():
        probabilities = np.exp(probabilities)
    if score.shape[1] > 1:
        expected = softmax(score, axis=1)
    elif probabilities.shape[1] == 1:
        expected = expit(score)
    else:
        expected = np.hstack([expit(-score), expit(score)])

    return probabilities.shape == expected.shape and np.allclose(probabilities, expected, atol=1e-5)


def _are_probabilities(values: np.ndarray, has_head: bool) -> bool:
    """
    Return whether the values for random rows are probabilities.

    They are between 0 and 1. Without a sigmoid or softmax, they must also vary or sum to 1.
    """
    if not values.size or not (values.min() >= 0 and values.max() <= 1):
        return False
    if has_head:
        return True

    return (
        np.ptp(values) > 1e-3
        if values.shape[1] == 1
        else np.allclose(values.sum(axis=1), 1, atol=1e-4)
    )


def _are_opposite(scores: np.ndarray) -> bool:
    """Return whether one of two columns is the negative of the other."""
    return np.allclose(scores.sum(axis=1), 0, atol=1e-4 * max(1.0, np.abs(scores).max()))


def _is_affine(graph, output):
    """Return whether an output is a product plus an intercept, and so a score."""
    made = {name: node for node in graph.node for name in node.output}
    node = made.get(output, onnx.NodeProto())
    terms = []
    if node.op_type == "Add":
        terms = list(node.input)
    elif len(node.input) == 3:
        # A Gemm adds its third input.
        terms = [output]
    return any(name in made and made[name].op_type in _PRODUCTS for name in terms)


def _two_dimensional(values):
    values = np.atleast_1d(values)
    return values.reshape(len(values), int(np.prod(values.shape[1:])))


def _difference(first: int, second: int) -> str:
    """Return the function that subtracts column `first` from column `second`."""
    # The indices are integers, so that they are not taken for weights.
    score = f"score = Gather(scores, [{second}], axis=1) - Gather(scores, [{first}], axis=1)"
    return function_text("difference (scores) => (score)", score)


def _columns(indices: Sequence[int]) -> str:
    """Return the function that picks some columns of the scores."""
    return function_text(
        "columns (scores) => (score)", f"score = Gather(scores, {list(map(int, indices))}, axis=1)"
    )


def in_order(order: Sequence[int], n_outputs: int) -> str | None:
    """
    Return the function that puts the columns of a raw score in an order, or None if it is theirs.

    A raw score of one column stands for two.
    """
    if list(order) == sorted(order):
        return None
    return _NEGATIVE if n_outputs == 1 else _columns(order)


def part_between(model: onnx.ModelProto, begin: str, end: str) -> onnx.ModelProto:
    """
    Return the part of a model between two results.

    Other inputs of the model stay inputs if this part needs them.
    """
    cut = copy.deepcopy(model)
    graph = model.graph
    replace_nodes(cut.graph, [node for node in graph.node if begin not in node.output])
    pruned(cut, [end], drop_inputs=True)
    first = [
        info for info in (*graph.value_info, *graph.output, *graph.input) if info.name == begin
    ]
    others = [i for i in cut.graph.input if i.name != begin]
    del cut.graph.input[:], cut.graph.value_info[:]
    cut.graph.input.extend([*first[-1:], *others])

    return cut


def rows_like(graph: onnx.GraphProto) -> np.ndarray:
    """
    Return random rows of small and large numbers for an input of two dimensions.

    Ids are zeros and ones.
    """
    X = graph.input[0]
    random_state = np.random.RandomState(0)
    width = X.type.tensor_type.shape.dim[1].dim_value
    if picks_rows(graph):
        return random_state.randint(2, size=(_N_ROWS, width)).astype(_dtype(X))

    rows = random_state.normal(size=(_N_ROWS, width)) * random_state.choice(
        [1, 10], size=(_N_ROWS, 1)
    )
    return rows.astype(_dtype(X))


def runner(model: onnx.ModelProto, result: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that computes a result of a model from its only input."""
    inference = InferenceModel(
        model, () if any(o.name == result for o in model.graph.output) else (result,)
    )
    name = model.graph.input[0].name

    def run(rows):
        try:
            return inference.run(result, {name: rows})
        except Exception as error:  # the runtime raises errors of many kinds
            raise NotTrainableError(
                f"estimator: ONNX Runtime does not run the ONNX model on {len(rows)} rows: "
                f"{short_message(error)} If it was exported for one number of rows, export it for "
                "any (dynamic_axes)."
            ) from error

    return run


def _dtype(info):
    return onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
