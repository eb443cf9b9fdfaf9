"""What the parameter `estimator` is made of: steps before a model, and the model."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

if TYPE_CHECKING:
    import onnx

__all__ = ["Parts", "Preprocessing", "as_rows", "check_columns", "input_tags", "plain", "prepare", "split"]


@dataclass(frozen=True)
class Parts:
    """
    The parts of an estimator.

    Parameters
    ----------
    transformers : Pipeline or None
        Copies of the steps before the model; those that are fitted to stay so are frozen.
    model : estimator or onnx.ModelProto
        The model to be trained.
    is_fitted : bool
        Whether training starts at the model's own weights.
    name : str
        The name of the model's step.
    """

    transformers: Pipeline | None
    model: Any
    is_fitted: bool
    name: str


def split(estimator):
    """
    Return the parts of an estimator.

    Parameters
    ----------
    estimator : estimator or onnx.ModelProto
        A model, a `Pipeline` that ends in one, or a `FrozenEstimator` around either, at any depth.

    Returns
    -------
    parts : Parts

    Raises
    ------
    ValueError
        Where a step before the model is no transformer, and for a pipeline without steps.
    NotFittedError
        Where a frozen model or step is not fitted.
    """
    steps, model, is_fitted, name = _split(estimator)
    for key, step in steps:
        if not hasattr(step, "transform") or isinstance(step, type):
            raise ValueError(f"estimator: the step {key!r} before the model is no transformer: {step!r}")
    memory = estimator.memory if isinstance(estimator, Pipeline) else None
    return Parts(clone(Pipeline(steps, memory=memory)) if steps else None, model, is_fitted, name)


def _split(estimator):
    if isinstance(estimator, FrozenEstimator):
        steps, model, _, name = _split(estimator.estimator)
        for _, fitted in [*steps, (name, model)]:
            # An ONNX model has nothing to fit; what is no estimator at all is refused with the model.
            if hasattr(fitted, "fit"):
                check_is_fitted(fitted)
        return [(key, FrozenEstimator(step)) for key, step in steps], model, True, name
    if not isinstance(estimator, Pipeline):
        return [], estimator, False, type(estimator).__name__.lower()
    if not estimator.steps:
        raise ValueError("estimator: the Pipeline has no steps.")
    *before, (name, last) = estimator.steps
    steps, model, is_fitted, inner_name = _split(last)
    if steps:
        memory = last.memory if isinstance(last, Pipeline) else None
        before, name = [*before, (name, Pipeline(steps, memory=memory))], inner_name
    return [(k, s) for k, s in before if s is not None and s != "passthrough"], model, is_fitted, name


def known_classes(parts, classes):
    """
    Return the classes that are known before there are labels, or None.

    Parameters
    ----------
    parts : Parts
    classes : ndarray of shape (n_classes,) or None
        Those of the user.

    Raises
    ------
    ValueError
        Where they are not those of the fitted model.
    """
    fitted = getattr(parts.model, "classes_", None) if parts.is_fitted else None
    if fitted is None or classes is None:
        return classes if fitted is None else fitted
    if not np.array_equal(fitted, classes):
        raise ValueError(f"classes={classes} are not those of the fitted estimator: {fitted}.")
    return fitted


def check_columns(parts, X):
    """Raise scikit-learn's error for other columns than those of a fitted model; steps before it check theirs."""
    if parts.transformers is None and parts.is_fitted and isinstance(parts.model, BaseEstimator):
        validate_data(parts.model, X, reset=False, skip_check_array=True)


def input_tags(estimator):
    """Return what the first step of a pipeline, fitted or not, says that it takes; None for anything else."""
    (_, first), *_ = getattr(estimator, "steps", None) or [(None, None)]
    if not hasattr(first, "__sklearn_tags__") or isinstance(first, type):
        return None
    whole = get_tags(estimator).input_tags
    return replace(get_tags(first).input_tags, sparse=whole.sparse, allow_nan=whole.allow_nan)


def as_rows(X):
    """
    Return X as steps before a model take it, unvalidated: a DataFrame as it is, others as an array or CSR matrix.

    Raises
    ------
    ValueError
        For a single row of numbers.
    """
    if hasattr(X, "columns"):
        return X
    if scipy.sparse.issparse(X):
        return X.tocsr()
    rows = np.asarray(X)
    if rows.dtype.kind == "U" and not hasattr(X, "dtype"):
        # A list of numbers and text, which numpy made text of.
        rows = np.asarray(X, dtype=object)
    if rows.ndim == 1 and rows.dtype.kind in "biuf":
        check_array(rows)
    return rows


@dataclass(frozen=True)
class Preprocessing:
    """
    The fitted steps before what is trained: scikit-learn transforms X, and deployed models hold the same as ONNX.

    Parameters
    ----------
    transformers : Pipeline or None
    graph : onnx.ModelProto or None
        The same as ONNX.
    dtype : str
        "float32" or "float64", of what comes out.
    """

    transformers: Pipeline | None
    graph: "onnx.ModelProto | None"
    dtype: str

    def transform(self, X):
        """Return what the steps make of X: an array or a CSR matrix of `dtype`."""
        if self.transformers is None:
            return X
        return _numbers(self.transformers.transform(X), self.dtype)


def prepare(parts, X, y, n_outputs, dtype, random_state, *, trainable, is_classifier, own_link=True):
    """
    Fit the steps before a model, and convert the model to ONNX.

    Parameters
    ----------
    parts : Parts
    X : array-like, sparse matrix, DataFrame or texts of shape (n_samples, ...)
        Validated, where there are no steps.
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
    n_outputs : int
        Number of columns of the raw score.
    dtype : str
        "float32" or "float64".
    random_state : numpy.random.RandomState
        Draws the initial weights.
    trainable : None, str or list of str
        See `skort.graphs.trainable.select_trainable`. None: the weights of the model.
    is_classifier : bool
    own_link : bool, default=True
        See `skort.graphs.score_graph.ScoreSpec`.

    Returns
    -------
    preprocessing : Preprocessing
        The steps before the first one that is trained.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        What they make of X.
    score_graph : ScoreGraph
        What is trained.
    """
    from skort.graphs.export import check_names
    from skort.graphs.initial import initial_score_graph
    from skort.graphs.score_graph import ScoreSpec
    from skort.graphs.trainable import select_trainable
    from skort.graphs.transformers import sample, trainable_steps, transformer_graph

    transformers, rows, raw_X = parts.transformers, sample(X), X
    if transformers is not None:
        X = _numbers(transformers.fit_transform(X, y), dtype)
    spec = ScoreSpec(X.shape[1], n_outputs, dtype, is_classifier, own_link)
    score_graph = initial_score_graph(parts.model, spec, random_state, is_fitted=parts.is_fitted)
    if trainable is not None:
        first, score_graph = select_trainable(score_graph, trainable_steps(transformers, dtype), trainable)
        if first is not None:
            transformers = transformers[:first] if first else None
            X = _numbers(raw_X if transformers is None else transformers.transform(raw_X), dtype)
    graph = None if transformers is None else transformer_graph(transformers, rows, dtype)
    check_names(score_graph, graph)
    return Preprocessing(transformers, graph, dtype), X, score_graph


def plain(parts, preprocessing, score_graph, fitted, *, has_link=False):
    """
    Return fitted steps and a trained model as plain scikit-learn.

    Parameters
    ----------
    parts : Parts
    preprocessing : Preprocessing
    score_graph : ScoreGraph
        With the trained weights.
    fitted : dict
        The attributes `classes_`, `feature_names_in_` and `_single_output`, where there are such.
    has_link : bool, default=False
        Whether the trained score is the logarithm of the prediction.

    Returns
    -------
    model : estimator or Pipeline

    Raises
    ------
    ValueError
        Where scikit-learn has no place for the weights.
    """
    from skort.graphs.families import FAMILY, has_log_link, score_model, trained_model

    if type(score_model(parts.model)) not in FAMILY:
        name = type(parts.model).__name__
        raise ValueError(f"estimator={name} cannot be given back as a scikit-learn model: use to_onnx().")
    if has_link and not has_log_link(parts.model):
        raise ValueError(
            f"estimator={type(parts.model).__name__} predicts its score, which the loss took for the logarithm of the "
            "prediction: use to_onnx(), or train a model with a log link, such as PoissonRegressor."
        )
    steps = parts.transformers.steps if parts.transformers is not None else []
    kept = preprocessing.transformers.steps if preprocessing.transformers is not None else []
    if len(kept) < len(steps):
        raise ValueError(
            f"Weights of the step {steps[len(kept)][0]!r} were trained, which scikit-learn has no place for: use "
            "to_onnx()."
        )
    names = score_graph.weight_names
    weights = {name: array.copy() for name, array in score_graph.arrays.items()}
    coefs = [weights[name] for name in names.coefficients]
    intercepts = [weights[name].ravel() for name in names.intercepts] or [np.zeros(coefs[-1].shape[1], coefs[-1].dtype)]
    model = trained_model(
        parts.model, coefs, intercepts, fitted.get("classes_"), single_output=fitted.get("_single_output", True)
    )
    if not steps:
        if "feature_names_in_" in fitted:
            model.feature_names_in_ = fitted["feature_names_in_"]
        return model
    return Pipeline([*((name, _thawed(step)) for name, step in kept), (parts.name, model)])


def _thawed(step):
    return step.estimator if isinstance(step, FrozenEstimator) else step


def _numbers(X, dtype):
    return check_array(X, dtype=dtype, order="C", accept_sparse="csr", input_name="transformed X")
