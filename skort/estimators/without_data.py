"""The model of an estimator where there are no rows yet: what a fit finds in X and y is given."""

import copy
import dataclasses
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from skort.estimators.inner_model import InnerModel
from skort.estimators.labels import EncodedTarget, class_labels
from skort.estimators.own_terms import TrainingSize, chosen_class_weight
from skort.estimators.random_state import own_generator
from skort.estimators.row_encoder import RowEncoder
from skort.estimators.settings import Settings
from skort.estimators.target_transform import TargetTransform

__all__ = ["check_sizes", "encoder_without_data"]


def encoder_without_data(
    estimator: Any, n_features: int | None, n_outputs: int | None, classes: ArrayLike | None
) -> tuple[RowEncoder, np.random.RandomState]:
    """
    Return the model of an estimator with what encodes rows for it, and the generator that drew its weights.

    A fitted estimator has its own model, with its weights. The variables are those of X and y themselves, whatever
    `standardize` says, and no learning rate is known.

    Parameters
    ----------
    estimator : OrtSGDRegressor or OrtSGDClassifier
        It is not changed.
    n_features, n_outputs : int or None
        None: those of the fitted or ONNX model inside; one output where it says nothing.
    classes : array-like of shape (n_classes,) or None
        The labels of a classifier. None: those of the fitted estimator, or model inside.

    Raises
    ------
    ValueError
        Where a parameter is not as it must be or not as the fitted model says, where something is to be given, and for
        steps before the model.
    """
    estimator._validate_params()
    check_sizes(n_features=n_features, n_outputs=n_outputs)
    classes = _sorted_classes(is_classifier(estimator), n_outputs, classes)
    generator = own_generator(estimator.random_state)
    if hasattr(estimator, "_fitted"):
        _check_fitted(estimator, n_features, n_outputs, classes)
        draft, fitted, settings = _of_fitted(estimator)
    else:
        draft, fitted, settings = _of_unfitted(estimator, n_features, n_outputs, classes, generator)
    if fitted.has_steps or fitted.target_transform.transformer is not None:
        raise ValueError(
            "estimator: there are steps before the model, or a transformer of y, which do not belong to a gradient "
            "step. Transform X and y yourself, and give the model alone."
        )
    update = dataclasses.replace(settings.update, largest_rate=None)
    settings = dataclasses.replace(settings, update=update, standardize=False).starting_at(fitted.score_graph)
    class_weight = _class_weight(draft, settings.own)
    return RowEncoder(draft, fitted, settings, class_weight), generator


def check_sizes(**numbers: Any) -> None:
    """Raise a ValueError where a number of columns, by its name, is neither None nor one."""
    for name, number in numbers.items():
        if number is not None and not (isinstance(number, Integral) and int(number) > 0):
            raise ValueError(f"{name} must be a positive int, got {number!r}.")


def _sorted_classes(is_classifier, n_outputs, classes):
    """Return the labels of a classifier, sorted, or None; raise an error for what the other kind of model takes."""
    if classes is not None and not is_classifier:
        raise ValueError("classes is for classifiers, and this is a regressor.")
    if n_outputs is not None and is_classifier:
        raise ValueError("n_outputs is for regressors: a classifier has the outputs that classes ask for.")
    return None if classes is None else class_labels(classes)


def _check_fitted(estimator, n_features, n_outputs, classes):
    """Raise an error where something is given that a fitted estimator has, and has otherwise."""
    fitted = estimator._fitted
    known = {"n_features": estimator.n_features_in_, "n_outputs": fitted.score_graph.n_outputs}
    for name, number in (("n_features", n_features), ("n_outputs", n_outputs)):
        if number not in (None, known[name]):
            raise ValueError(f"{name}={number}, but the fitted estimator has {known[name]}. Leave it out.")
    if classes is not None and (fitted.classes is None or classes.tolist() != fitted.classes.tolist()):
        raise ValueError(f"classes={classes}, but the fitted estimator has {fitted.classes}. Leave it out.")


def _of_fitted(estimator):
    draft, settings = copy.copy(estimator), estimator._settings
    if not settings.hold(estimator):
        settings = settings.renewed(estimator)
    vars(draft).pop("feature_names_in_", None)
    targets = np.zeros((1, estimator._fitted.score_graph.n_outputs), estimator.dtype)
    prototype = EncodedTarget(targets, targets, None, estimator._fitted.single_output)
    return draft, estimator._fitted.for_stream(settings.loss, prototype), settings


def _of_unfitted(estimator, n_features, n_outputs, classes, generator):
    draft, inner = estimator._unfitted(), estimator._inner_model()
    if inner.has_steps or inner.target is not None:
        raise ValueError(
            "estimator: a Pipeline or TransformedTargetRegressor transforms whole data, and not single batches. "
            "Transform X and y yourself, and give the model alone."
        )
    own = estimator._own_objective(None if estimator.estimator is None else inner.model)
    draft.n_features_in_ = _n_features(inner, n_features)
    encoded = _prototype(draft, inner, n_outputs, classes)
    n_rows, batch_size = estimator.n_total, 200 if estimator.batch_size == "auto" else estimator.batch_size
    _check_size_is_known(estimator, own)
    size = TrainingSize(float(n_rows or batch_size), 1.0, batch_size, encoded.target.shape[1])
    # Class weights may be those of positives only, which are a matter of the loss.
    _, encoded = draft._weighted(None, encoded.target, encoded, _class_weight(draft, own))
    settings = Settings.of(estimator, own, size).for_target(encoded)
    if settings.loss.weight_names:
        raise ValueError(
            f"loss={settings.loss!r} has weights of its own, whose initial values come from all of y. Fit an "
            "estimator with it, for instance for one epoch, and give the fitted estimator."
        )
    rows = np.zeros((1, draft.n_features_in_), estimator.dtype)
    fitted, _ = draft._convert(inner, rows, encoded, TargetTransform(), settings, generator)
    draft._keep_model(fitted)
    return draft, fitted, settings


def _class_weight(draft, own):
    """Return the class weights; raise an error where they depend on all rows."""
    class_weight = chosen_class_weight(draft, own, one_epoch=False)
    if class_weight is not None and isinstance(class_weight.given, str):
        raise ValueError(
            'class_weight="balanced" needs the labels of all rows, which are not known. Give a dict: class -> weight.'
        )
    return class_weight


def _n_features(inner: InnerModel, n_features):
    known = _onnx_dim(inner.model, "input") or getattr(inner.model, "n_features_in_", None)
    if n_features is None and known is None:
        raise ValueError("Give n_features: the model does not say how many columns X has.")
    if inner.is_fitted and None not in (n_features, known) and n_features != known:
        raise ValueError(f"n_features={n_features}, but the model has {known} features.")
    return known if n_features is None else n_features


def _prototype(draft, inner, n_outputs, classes) -> EncodedTarget:
    """Return the targets of rows of every kind that there may be."""
    if not is_classifier(draft):
        n_outputs = n_outputs or _known_outputs(draft.loss, inner) or 1
        y = np.zeros((1, n_outputs)) if n_outputs > 1 else np.zeros(1)
        return draft._encode(y, None)
    classes = inner.known_classes(classes)
    if classes is None:
        raise ValueError("Give classes: a batch may lack some of the labels.")
    return draft._encode(classes, classes)


def _check_size_is_known(estimator, own):
    """Raise an error where the strength of the model's own penalty is that of a sum over an unknown number of rows."""
    is_own = isinstance(estimator.penalty, str) and isinstance(estimator.alpha, str) and own.penalty is not None
    if is_own and own.alpha_per == "sum" and estimator.n_total is None:
        raise ValueError(
            f"penalty: the one of {type(estimator.estimator).__name__} is divided by the number of rows, which is not "
            "known. Set n_total of OrtSGDRegressor or OrtSGDClassifier, penalty=None, or a penalty of your own."
        )


def _known_outputs(loss, inner):
    """Return the number of columns of what the model gives to a loss; None where it does not say."""
    if isinstance(loss, dict):
        from skort.graphs.onnx_models.onnx_score_graph import output_widths

        return sum(width or 1 for width in output_widths(inner.model, tuple(loss)).values())
    if inner.is_fitted:
        from skort.graphs.initialization import n_score_columns

        return n_score_columns(inner.model)
    return _onnx_dim(inner.model, "output")


def _onnx_dim(model, kind):
    """Return the number of columns of the only floats that an ONNX model takes or gives; None where it does not say."""
    import onnx

    if not isinstance(model, onnx.ModelProto):
        return None
    weights = {i.name for i in model.graph.initializer}
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    infos = [i for i in getattr(model.graph, kind) if i.name not in weights]
    infos = [i for i in infos if i.type.tensor_type.elem_type in floats]
    dims = infos[0].type.tensor_type.shape.dim if len(infos) == 1 else []
    return (dims[-1].dim_value or None) if len(dims) == 2 else None
