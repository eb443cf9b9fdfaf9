"""What the first layer of a fitted model multiplies the columns of its input by."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from skort.estimators.training.result import result_of


class FirstLayer(NamedTuple):
    """Weights by feature."""

    weights: np.ndarray
    #: What the steps of a pipeline inside call their results; those of the columns of X without steps.
    feature_names: list[str]
    #: The classes of a linear classifier, otherwise numbers.
    outputs: list[str]
    is_linear: bool


def first_layer(estimator: Any, columns: Sequence[str] | None = None) -> FirstLayer:
    """Return the weights of the first layer of a fitted estimator."""
    fitted = result_of(estimator).model
    linear = hasattr(estimator, "coef_")
    weights = np.atleast_2d(_dense(estimator.coef_)) if linear else _of_network(fitted.score_graph)
    names = _feature_names(
        getattr(estimator, "feature_names_in_", columns), fitted.preprocessing.transformers, weights.shape[1]
    )
    classes = list(getattr(estimator, "classes_", ()))
    outputs = classes if linear and len(classes) == len(weights) else range(len(weights))
    return FirstLayer(weights, names, [str(output) for output in outputs], linear)


def _dense(coef):
    return coef.toarray() if scipy.sparse.issparse(coef) else np.asarray(coef)


def _of_network(score_graph):
    """Return the first coefficients of a network, a row a unit."""
    n_features = score_graph.n_features
    for name in score_graph.weight_names.coefficients:
        weights = score_graph.arrays[name]
        if weights.ndim == 2 and weights.shape[0] == n_features:
            return weights.T
        if weights.ndim == 2 and weights.shape[1] == n_features:
            return weights
        break
    raise ValueError(f"estimator: its first layer has no weights of {n_features} features.")


def _feature_names(columns, transformers, n_features):
    """Return the names of the features of the first layer; numbers where the steps before it have none."""
    names = columns
    if transformers is not None:
        try:
            names = transformers.get_feature_names_out(columns)
        except (AttributeError, ValueError):
            names = None
    if names is None or len(names) != n_features:
        return [f"x{i}" for i in range(n_features)]
    return [str(name) for name in names]
