"""What an estimator keeps from one training to the next, and that an error changes nothing of it."""

import contextlib

import numpy as np

from skort.estimators.components import parameter_names
from skort.estimators.hardware import training_device

__all__ = ["last_weights", "refitting", "settings", "unchanged_by_errors"]


@contextlib.contextmanager
def refitting(estimator):
    """Forget an earlier fit, and put everything back where the new one fails."""
    with unchanged_by_errors(estimator) as before:
        for name in before:
            if name.endswith("_") and not name.startswith("_"):
                delattr(estimator, name)
        yield before


@contextlib.contextmanager
def unchanged_by_errors(estimator):
    """Put everything back after an error."""
    before = dict(vars(estimator))
    try:
        yield before
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def last_weights(estimator, before):
    """
    Return the weights that `warm_start` goes on from.

    Parameters
    ----------
    estimator : BaseOrtSGD
        With the score graph of the new fit.
    before : dict
        The attributes of the estimator before it.

    Returns
    -------
    weights : dict of str to ndarray

    Raises
    ------
    ValueError
        Where the last fit had other weights or classes.
    """
    weights = before["_score_graph"].weights()
    shapes, expected = ({k: w.shape for k, w in arrays.items()} for arrays in (weights, estimator.weights_))
    if shapes != expected or not np.array_equal(before.get("classes_", ()), getattr(estimator, "classes_", ())):
        raise ValueError(
            "warm_start=True goes on from the weights of the last fit, which had other features, outputs or classes, "
            "or another model. Use warm_start=False."
        )
    return {name: w.astype(estimator.dtype) for name, w in weights.items()}


def settings(estimator):
    """Return the parameters of an estimator, theirs, and its device: a solver made with the same is still right."""
    parameters = {name: getattr(estimator, name) for name in parameter_names(type(estimator))}
    del parameters["estimator"], parameters["callbacks"]
    theirs = {n: _snapshot(value.get_params()) for n, value in parameters.items() if hasattr(value, "get_params")}
    return parameters, theirs, training_device(estimator)


def _snapshot(value):
    """Return what is equal to a later snapshot where the value, which may be changed in place, still is the same."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, dict):
        return {key: _snapshot(part) for key, part in value.items()}
    return [_snapshot(part) for part in value] if isinstance(value, (list, tuple)) else value
