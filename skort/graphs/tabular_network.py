"""The score graph of a `TabularNetwork`."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from onnx import helper, numpy_helper

from skort.common.formulas import function_text
from skort.common.onnx_text import Fragment, build_model, onnx_dtype
from skort.common.user_warning import warn_user
from skort.graphs.score_graph import ScoreGraph, ScoreSpec

#: The functions of units, by their names.
ACTIVATIONS = {
    "relu": "y = Relu(x)",
    "tanh": "y = Tanh(x)",
    "logistic": "y = Sigmoid(x)",
    "identity": "y = Identity(x)",
}
# The size of an embedding: with 2, R2 is 0.007 lower on the tables with categories of
# `python -m benchmarks.tabular --parts`.
_EMBEDDING = 8

# On regressions of `benchmarks.tabular` with at most 2,000 rows, the mean R2 is 0.013 lower with 8
# bins, 0.012 lower with parts of bins up to 1, and 0.005 lower with those up to 0.25.
_BINS = 16
_BIN_SCALE = 0.5
# `python -m benchmarks.tabular --parts`: with at most 2,000 rows, bins are better on 15 tables and
# worse on 8, in each of both tasks. With 8,000 and more (`--full`), they are better by 0.01 on 3 of
# 15 regressions and worse on none; the log-loss of 7 classifications is 6 % lower in the mean. No
# table chose the number between them.
_LEAST_ROWS = 5_000
# Sixteen bins of more columns take several times as long as the columns alone.
_MOST_COLUMNS = 32
# Of standardised numbers, which float32 tells apart.
_LEAST_WIDTH = 1e-6
# A standard deviation has so many beside the mean, at least.
_DIGITS = 9
# Their quantiles are as good as those of all rows.
_MOST_ROWS = 10_000

# The row of each id in the table of all columns. Unknown ids of a column have its first row.
_ROWS = function_text(
    "rows (ids, counts, first) => (rows)",
    """
    is_known = And(LessOrEqual(0, ids), Less(ids, counts))
    position = Where(is_known, ids + 1, 0)
    rows = Cast(position, to=7) + first""",
)


def tabular_graph(network: Any, spec: ScoreSpec, random_state: np.random.RandomState) -> ScoreGraph:
    """Return the score graph of a `TabularNetwork` with its initial weights."""
    hidden = _sizes(network)
    builder = _Builder(spec, random_state)
    categories = spec.categories if network.embeddings is not None else ()
    ids = [i for i, n in enumerate(categories) if n]
    numbers = [i for i in range(spec.n_features) if i not in ids]
    if network.embeddings is not None and spec.behind_ids:
        warn_user(
            f"TabularNetwork: the step {spec.behind_ids!r} behind an OrdinalEncoder makes numbers of its "
            "ids, so that they have no embeddings. Make the encoder the last step of its columns, in a "
            "ColumnTransformer: an imputer goes before it, and a scaler is of no use, as skort "
            "standardises numbers. embeddings=None takes all ids for numbers."
        )
    elif network.embeddings not in ("auto", None) and not ids:
        warn_user(
            f"embeddings={network.embeddings} has no effect: no column has ids. Put an OrdinalEncoder "
            "before the network, inside the estimator: make_pipeline(encoder, TabularNetwork())."
        )
    size = _EMBEDDING if network.embeddings == "auto" else network.embeddings

    parts = []
    binned = _binned(network.numeric_embedding, spec, numbers)
    if binned is not None:
        parts += builder.piecewise(numbers, binned)
    elif numbers:
        parts.append(_Part(builder.columns(numbers), len(numbers)))
    if ids:
        embedded = builder.embedded(ids, [categories[i] for i in ids], size)
        parts.append(_Part(embedded, len(ids) * size, "_of_ids"))

    for n_units in hidden:
        result = builder.layer(parts, n_units)
        result = builder.call(_activation(network.activation), [result])
        if network.dropout:
            result = builder.dropout(result, network.dropout)
        parts = [_Part(result, n_units)]

    return builder.score_graph(builder.layer(parts, spec.n_outputs))


class _Numbers(NamedTuple):
    """Means and scales of columns of numbers, and the edges of their bins."""

    means: np.ndarray
    scales: np.ndarray
    edges: list[np.ndarray]


def _binned(numeric_embedding: str | None, spec: ScoreSpec, columns: list[int]) -> _Numbers | None:
    """
    Return what makes bins of columns of numbers, None if they have none.

    "auto": those of at least 5,000 dense rows of at most 32 numbers have bins, if the dtype has the
    digits for them.
    """
    is_auto = numeric_embedding == "auto"
    if not columns or numeric_embedding is None or (is_auto and not _are_many(spec, len(columns))):
        return None
    if spec.moments is None or scipy.sparse.issparse(spec.rows):
        given = "there are none" if spec.moments is None else "X is sparse"
        raise ValueError(
            f'numeric_embedding="piecewise" of TabularNetwork needs dense rows, and {given}: use '
            "numeric_embedding=None."
        )

    X = np.asarray(spec.rows)
    means, scales = (moment[columns] for moment in spec.moments())
    lost = [columns[i] for i in np.flatnonzero(~_has_digits(means, scales, spec.dtype))]
    if lost and is_auto:
        return None
    if lost:
        raise ValueError(
            f'numeric_embedding="piecewise" of TabularNetwork: {spec.dtype} lacks the digits for '
            f"column {lost[0]} of X, whose mean is {means[columns.index(lost[0])]:.2g} and whose "
            f"standard deviation is {scales[columns.index(lost[0])]:.2g}. Standardise it before, "
            'or use dtype="float64" or numeric_embedding=None.'
        )

    scales[scales == 0] = 1.0
    some_rows = X[:: -(-len(X) // _MOST_ROWS), columns].astype(np.float64)
    edges = [bin_edges(column) for column in ((some_rows - means) / scales).T]
    return _Numbers(means, scales, edges)


def _are_many(spec, n_numbers) -> bool:
    """Return whether bins are worth their time, see `_binned`."""
    has_rows = spec.rows is not None and spec.rows.shape[0] >= _LEAST_ROWS
    is_dense = not scipy.sparse.issparse(spec.rows)
    return has_rows and is_dense and n_numbers <= _MOST_COLUMNS


def _has_digits(means, scales, dtype):
    """Return whether columns less their means keep nine binary digits, or are constant."""
    limits = np.finfo(np.float64 if np.dtype(dtype) == np.float64 else np.float32)
    is_near = np.abs(means) * limits.eps <= 2.0**-_DIGITS * scales
    return (scales == 0) | (is_near & (scales >= limits.tiny) & (scales <= 1 / limits.tiny))


def bin_edges(column: np.ndarray) -> np.ndarray:
    """Return the edges of at most 16 bins with equally many elements of a standardised column."""
    # Each of them is a number of the column: few values have an edge each.
    quantiles = np.quantile(column, np.linspace(0, 1, _BINS + 1), method="nearest")
    return quantiles[np.append(True, np.diff(quantiles) > _LEAST_WIDTH)]


def _sizes(network) -> list[int]:
    """Return the sizes of the hidden layers; raise a ValueError for other values than sizes."""
    hidden: Any = network.hidden
    sizes: list[Any] = [hidden] if isinstance(hidden, Real) else list(hidden)
    if not sizes or not all(_is_size(size) for size in sizes):
        raise ValueError(f"hidden of TabularNetwork must be one or more ints > 0, got {hidden!r}.")

    return [int(size) for size in sizes]


def _is_size(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 0


def _activation(name):
    """Return a function of units as an ONNX function."""
    return function_text("activation (x) => (y)", ACTIVATIONS[name])


class _Part(NamedTuple):
    """A result that a layer reads: its name, its width, and what its weights end in."""

    name: str
    width: int
    suffix: str = ""


class _Builder:
    """The nodes and weights of a network, from X on; each method returns the name of a result."""

    def __init__(self, spec: ScoreSpec, random_state: np.random.RandomState):
        self.spec = spec
        self.random_state = random_state
        self.fragment = Fragment(spec.dtype)
        self.arrays: dict[str, np.ndarray] = {}
        self.frozen: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.n_results = 0
        self.n_layers = 0

    def node(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node of a standard operator."""
        result = self._result()
        self.fragment.node(op_type, inputs, [result], **attributes)
        return result

    def call(self, function: str, inputs: Sequence[str]) -> str:
        """Add a call to a function."""
        result = self._result()
        self.fragment.call(function, inputs, [result])
        return result

    def columns(self, positions: Sequence[int]) -> str:
        """Return some columns of X."""
        if len(positions) == self.spec.n_features:
            return "X"
        return self.node("Gather", ["X", self._constant(np.array(positions))], axis=1)

    def piecewise(self, positions: Sequence[int], binned: _Numbers) -> list[_Part]:
        """Return standardised columns, and the part of each bin of theirs that a number fills."""
        means = self._fixed("number_means", binned.means)
        centred = self.node("Sub", [self.columns(positions), means])
        inverse = self._fixed("number_inverse_scales", 1 / binned.scales)
        numbers = self.node("Mul", [centred, inverse])
        parts = [_Part(numbers, len(positions))]

        # A single bin is the number itself.
        has_bins = [i for i, edges in enumerate(binned.edges) if len(edges) > 2]
        if has_bins:
            parts.append(self._bins(numbers, has_bins, [binned.edges[i] for i in has_bins]))
        return parts

    def _bins(self, numbers, columns, edges) -> _Part:
        """Return the part of each bin of some columns that a number fills, times a scale."""
        left = np.concatenate([of_column[:-1] for of_column in edges])
        widths = np.concatenate([np.diff(of_column) for of_column in edges])
        of_bins = np.repeat(columns, [len(of_column) - 1 for of_column in edges])
        result = self.node("Gather", [numbers, self._constant(of_bins)], axis=1)
        result = self.node("Sub", [result, self._fixed("bin_edges", left)])
        result = self.node("Mul", [result, self._fixed("bin_factors", _BIN_SCALE / widths)])
        limits = [self._constant(np.array(x, self.spec.dtype)) for x in (0.0, _BIN_SCALE)]
        return _Part(self.node("Clip", [result, *limits]), len(left), "_of_bins")

    def embedded(self, positions: Sequence[int], counts: Sequence[int], size: int) -> str:
        """Return the embeddings of columns of ids side by side."""
        first = np.cumsum([0, *(count + 1 for count in counts)])
        table = self.random_state.normal(size=(first[-1], size))
        # Unknown ids are none of the known ones.
        table[first[:-1]] = 0.0
        ids = self.columns(positions)
        limits = self._constant(np.array(counts, self.spec.dtype))
        rows = self.call(_ROWS, [ids, limits, self._constant(first[:-1])])
        embedded = self.node("Gather", [self._weight("embeddings", table), rows])
        shape = self._constant(np.array([-1, len(positions) * size]))
        return self.node("Reshape", [embedded, shape])

    def layer(self, parts: Sequence[_Part], n_units: int) -> str:
        """Return a product for each part, and an intercept, added up."""
        # As scikit-learn draws the weights of its networks.
        bound = np.sqrt(6.0 / (sum(part.width for part in parts) + n_units))
        number = self.n_layers
        self.n_layers += 1
        result = ""
        for name, width, suffix in parts:
            suffix = suffix if result else ""
            drawn = self.random_state.uniform(-bound, bound, (width, n_units))
            weight = self._weight(f"coefficient{number}{suffix}", drawn)
            product = self.node("MatMul", [name, weight])
            if not result:
                drawn = self.random_state.uniform(-bound, bound, n_units)
                intercept = self._weight(f"intercept{number}", drawn)
                result = self.node("Add", [product, intercept])
            else:
                result = self.node("Add", [result, product])

        return result

    def dropout(self, x: str, ratio: float) -> str:
        """Return units of which a part is zero in a step."""
        return self.node("Dropout", [x, self._constant(np.array(ratio, np.float32))])

    def score_graph(self, score: str) -> ScoreGraph:
        """Return the graph up to a result."""
        element_type = onnx_dtype(self.spec.dtype)
        X, output = (
            helper.make_tensor_value_info(name, element_type, [None, width])
            for name, width in (("X", self.spec.n_features), (score, self.spec.n_outputs))
        )
        initializers = [
            numpy_helper.from_array(array, name)
            for name, array in {**self.constants, **self.frozen, **self.arrays}.items()
        ]
        graph = helper.make_graph(
            self.fragment.nodes, "network", [X], [output], initializer=initializers
        )
        return ScoreGraph.of(build_model(graph, self.fragment)).training_only(self.arrays)

    def _result(self):
        self.n_results += 1
        return f"network/{self.n_results}"

    def _constant(self, array):
        name = f"network/constant{len(self.constants)}"
        self.constants[name] = array
        return name

    def _fixed(self, name, array):
        """Add a weight that is not trained: fits on other rows share the structure."""
        self.frozen[name] = array.astype(self.spec.dtype)
        return name

    def _weight(self, name, array):
        self.arrays[name] = array.astype(self.spec.dtype)
        return name
