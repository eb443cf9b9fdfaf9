"""The steps before a model: fitted scikit-learn transformers -> ONNX, checked against scikit-learn."""

import warnings

import numpy as np

from skort.graphs.conversion import to_onnx
from skort.runtime.inference import InferenceModel

__all__ = ["sample", "transformer_graph"]

# Rows that are transformed both ways.
_SAMPLE = 100
# Largest difference between both, in standard deviations of a column, that is taken for rounding.
_TOLERANCE = 1e-3


def sample(X):
    """Return a copy of some rows of X, evenly spaced, to check a conversion on."""
    return X[:: -(-len(X) // _SAMPLE)].copy()


def transformer_graph(transformers, X, dtype):
    """
    Convert fitted transformers to ONNX and check that it transforms X as scikit-learn does.

    Parameters
    ----------
    transformers : Pipeline
        Fitted.
    X : ndarray of shape (n_samples, n_features)
        Some rows of what they were fitted on.
    dtype : dtype
        float32 or float64.

    Returns
    -------
    model : onnx.ModelProto

    Raises
    ------
    ValueError
        Where a step cannot be converted or its conversion does not run. Names the step.

    Warns
    -----
    UserWarning
        Where the conversion gives other values than scikit-learn. Names the step.
    """
    steps = [name for name, _ in transformers.steps]
    cure = "put the step in a Pipeline before this estimator."
    try:
        model, difference = _convert(transformers, X, dtype)
    except _ConversionError as error:
        name, reason = next(_failures(transformers, X, dtype), (steps[-1], error))
        raise ValueError(
            f"estimator: the step {name!r} cannot be part of an ONNX model in {dtype}: {reason} Instead, {cure}"
        ) from error
    if difference > _TOLERANCE:
        beginnings = ((name, transformers[: i + 1]) for i, name in enumerate(steps[:-1]))
        differing = (name for name, beginning in beginnings if _convert(beginning, X, dtype)[1] > _TOLERANCE)
        name = next(differing, steps[-1])
        warnings.warn(
            f"estimator: the step {name!r} gives other values as ONNX in {dtype} than in scikit-learn, by up to "
            f"{difference:.2g} standard deviations of a feature. The model is trained on the one and predicts on the "
            f'other. Use dtype="float64", or {cure}',
            UserWarning,
            stacklevel=6,  # the line that calls fit
        )
    return model


class _ConversionError(Exception):
    pass


def _failures(transformers, X, dtype):
    """Yield the name of each step before the last up to which the conversion fails, and why."""
    for i, (name, _) in enumerate(transformers.steps[:-1]):
        try:
            _convert(transformers[: i + 1], X, dtype)
        except _ConversionError as error:
            yield name, error


def _convert(transformers, X, dtype):
    """Return the converted model, and its largest difference from scikit-learn in standard deviations of a column."""
    # A copy: transformers with copy=False change what they are given.
    expected = transformers.transform(X.copy())
    expected = np.asarray(expected.toarray() if hasattr(expected, "toarray") else expected)
    # skl2onnx and the runtime raise errors of many kinds for what they cannot convert or run.
    try:
        model = to_onnx(transformers, X.shape[1], dtype)
        outputs = [output.name for output in model.graph.output]
        with np.errstate(over="ignore"):
            values = InferenceModel(model).run(outputs[0], X.astype(dtype))
    except Exception as error:
        raise _ConversionError(
            f"{type(error).__name__}: {(str(error) or 'no reason given').splitlines()[0]}"
        ) from error
    if len(outputs) > 1 or values.dtype != dtype or values.shape != expected.shape:
        raise _ConversionError("its conversion gives something else than its transform.")
    if not np.isfinite(values).all():
        raise _ConversionError("its conversion gives infinities or NaN.")
    deviation = expected.std(axis=0)
    # In a column that hardly varies, rounding is all there is.
    scale = np.where(deviation > 1e-3 * deviation.max(), deviation, deviation.max() or np.abs(expected).max() or 1.0)
    return model, np.max(np.abs(values - expected) / scale)
