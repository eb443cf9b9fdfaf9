"""How far converted steps are from scikit-learn's, on some rows of X, of which no large part is made dense."""

from typing import Any, NamedTuple

import numpy as np
import onnx
import scipy.sparse
from numpy.typing import DTypeLike
from sklearn.utils import _safe_indexing
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import _num_samples

from skort.graphs.sklearn.raw_inputs import RawInput, feeds, text_columns
from skort.runtime.inference import InferenceModel

# Number of rows on which ONNX is compared with scikit-learn, and of further ones for characters that those may lack.
_SAMPLE = 100
# The largest number of values that are dense at once, and of characters of texts, filled up to the longest.
_BLOCK = 2**18


class Difference(NamedTuple):
    """How far a conversion is from scikit-learn: the largest, in standard deviations of its column, and where it is."""

    size: float
    column: int
    row: int = 0


class UnlikeError(ValueError):
    """What the conversion gives cannot be compared with what scikit-learn gives."""


def sample(X: Any) -> Any:
    """Return up to 100 evenly spaced rows of X, and of text up to 100 in which characters beyond ASCII occur first."""
    n_samples = _num_samples(X)
    spaced = np.arange(0, n_samples, -(-n_samples // _SAMPLE))
    return _safe_indexing(X, np.union1d(spaced, _rows_of_new_characters(X)))


def _rows_of_new_characters(X):
    """Return the rows in which characters occur first: tokens and small letters differ in those beyond ASCII."""
    known, rows = set(map(chr, range(128))), []
    for texts in text_columns(X):
        for position, text in enumerate(texts.flat):
            if isinstance(text, str) and not text.isascii() and not known.issuperset(text):
                known.update(text)
                rows.append(position // texts.shape[1])
                if len(rows) == _SAMPLE:
                    return np.array(rows)
    return np.array(rows, dtype=np.int64)


def largest_difference(
    expected: Any, model: onnx.ModelProto, X: Any, inputs: tuple[RawInput, ...], dtype: DTypeLike
) -> Difference:
    """Return how far what transformers make of X (`expected`) is from what their ONNX model, of one output, gives."""
    is_sparse = scipy.sparse.issparse(expected)
    expected = expected.tocsr().astype(np.float64) if is_sparse else np.asarray(expected, dtype=np.float64)
    scale, inference, largest = _scales(expected), InferenceModel(model), Difference(0.0, 0)
    width = max(1, _length_of_texts(X), *expected.shape[1:], sum(i.width for i in inputs))
    n_rows = max(1, _BLOCK // width)
    for start in range(0, expected.shape[0], n_rows):
        rows = np.arange(start, min(start + n_rows, expected.shape[0]))
        values = inference.run(model.graph.output[0].name, feeds(_safe_indexing(X, rows), inputs, dtype))
        part = expected[rows].toarray() if is_sparse else expected[rows]
        if values.shape != part.shape:
            raise UnlikeError("its conversion gives something else than its transform.")
        finite = np.isfinite(part)
        if not np.isfinite(values[finite]).all():
            raise UnlikeError("its conversion gives infinities or NaN.")
        difference = np.subtract(values, part, where=finite, out=np.zeros_like(part))
        sizes = np.abs(difference) / scale
        row, column = np.unravel_index(sizes.argmax(), sizes.shape) if sizes.size else (0, 0)
        if sizes.size and sizes[row, column] > largest.size:
            largest = Difference(float(sizes[row, column]), int(column), start + int(row))
    return largest


def _length_of_texts(X):
    """Return the number of characters of the longest text."""
    texts = (text for column in text_columns(X) for text in column.flat if isinstance(text, (str, bytes)))
    return max(map(len, texts), default=0)


def _scales(expected):
    """Return the unit of each column; one that hardly varies holds nothing but rounding errors."""
    if scipy.sparse.issparse(expected):
        deviation = np.sqrt(mean_variance_axis(expected, axis=0)[1])
        most = np.nanmax(np.abs(expected.data), initial=0.0)
    else:
        deviation, most = np.nanstd(expected, axis=0), np.nanmax(np.abs(expected))
    largest = deviation.max()
    return np.where(deviation > 1e-3 * largest, deviation, largest or most or 1)
