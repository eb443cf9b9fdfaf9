"""The model, the plan and the first state of a `Step`, which has no rows yet."""

import dataclasses
import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from skort.common.component import check_parameters
from skort.common.random_state import training_generator
from skort.estimators.data.rows import Columns
from skort.estimators.data.targets import EncodedTarget, class_labels
from skort.estimators.model.wrapped import WrappedModel
from skort.estimators.planning.epochs import TrainingSize, batch_rows
from skort.estimators.planning.loss_and_penalty import (
    chosen_class_weight,
    counts_rows,
    objective_inside,
)
from skort.estimators.planning.plan import OpenPlan, Plan
from skort.estimators.planning.plan_of_fit import in_steps, of_steps
from skort.estimators.planning.plan_of_stream import renewed
from skort.estimators.training.data_source import GivenRows, RowEncoder
from skort.estimators.training.read import FitInput, converted
from skort.optim.state import TrainState


def model_without_data(
    estimator: Any, n_features: int | None, n_outputs: int | None, classes: ArrayLike | None
) -> tuple[Plan, RowEncoder, TrainState]:
    """Return the plan of a model, the encoder of its batches, and the state before its first step."""
    check_parameters(estimator)
    check_sizes(n_features=n_features, n_outputs=n_outputs)
    classes = _sorted_classes(isinstance(estimator, ClassifierMixin), n_outputs, classes)
    generator = training_generator(estimator.random_state)
    result = vars(estimator).get("_result")

    if result is None:
        plan, model, columns = _of_unfitted(estimator, n_features, n_outputs, classes, generator)
        start = None
    else:
        _check_fitted(
            result.model, Columns.of(estimator).n_features, n_features, n_outputs, classes
        )
        plan, model, columns = _of_fitted(estimator, result)
        start = result.state.penalty_start

    if model.has_steps or model.target_transform.transformer is not None:
        raise ValueError(
            "estimator: there are steps before the model, or a transformer of y, which do not "
            "belong to a gradient step. Transform X and y yourself, and give the model alone."
        )

    plan = in_steps(plan)
    plan.check_steps("a Step")
    update = dataclasses.replace(plan.update, largest_rate=None)
    plan = dataclasses.replace(plan, update=update, standardize=False)
    if start is None and plan.takes_start:
        start = model.score_graph.trained_arrays
    encoder = RowEncoder(estimator, columns, model, _class_weight(estimator, plan.objective_inside))

    return plan, encoder, TrainState.start(generator, penalty_start=start)


def check_sizes(**numbers: Any) -> None:
    """Raise a ValueError for a number of columns that is neither None nor a positive int."""
    for name, number in numbers.items():
        if number is not None and not (isinstance(number, Integral) and int(number) > 0):
            raise ValueError(f"{name} must be a positive int, got {number!r}.")


def _sorted_classes(is_classifier, n_outputs, classes):
    """
    Return the labels of a classifier, sorted, or None. Raise an error for an argument that the kind
    of model does not take.
    """
    if classes is not None and not is_classifier:
        raise ValueError("classes is for classifiers, and this is a regressor.")
    if n_outputs is not None and is_classifier:
        raise ValueError(
            "n_outputs is for regressors: a classifier has the outputs that classes ask for."
        )

    return None if classes is None else class_labels(classes)


def _check_fitted(fitted, known_features, n_features, n_outputs, classes):
    """Raise an error for an argument that contradicts the fitted estimator."""
    known = {"n_features": known_features, "n_outputs": fitted.score_graph.n_outputs}
    for name, number in (("n_features", n_features), ("n_outputs", n_outputs)):
        if number not in (None, known[name]):
            raise ValueError(
                f"{name}={number}, but the fitted estimator has {known[name]}. Leave it out."
            )

    if classes is not None and (
        fitted.classes is None or classes.tolist() != fitted.classes.tolist()
    ):
        raise ValueError(
            f"classes={classes}, but the fitted estimator has {fitted.classes}. Leave it out."
        )


def _of_fitted(estimator, result):
    plan = result.plan
    model = result.model
    if not plan.has_parameters_of(estimator):
        plan = renewed(plan, model, estimator)
    targets = np.zeros((1, model.score_graph.n_outputs), estimator.dtype)
    prototype = EncodedTarget(targets, targets, None, model.single_output, outputs=model.outputs)

    return plan, model.for_stream(plan.loss, prototype), Columns(Columns.of(estimator).n_features)


def _of_unfitted(estimator, n_features, n_outputs, classes, generator):
    wrapped = WrappedModel.inside(estimator)
    if wrapped.has_steps or wrapped.target is not None:
        raise ValueError(
            "estimator: a Pipeline or TransformedTargetRegressor transforms whole data, and not "
            "single batches. Transform X and y yourself, and give the model alone."
        )

    inside = objective_inside(estimator, wrapped.model)
    n_features = _n_features(wrapped, n_features)
    y = _prototype(estimator, wrapped, n_outputs, classes)
    given = GivenRows(np.zeros((len(y), n_features), estimator.dtype), y, None)
    read = FitInput.of(estimator, given, wrapped, inside, generator, classes)

    n_rows = estimator.n_total
    batch_size = batch_rows(estimator.batch_size)
    _check_size_is_known(estimator, inside)
    n_outputs = read.encoded.target.shape[1]
    size = TrainingSize(float(n_rows or batch_size), 1.0, batch_size, n_outputs)

    # If class weights are those of positives only, the loss may take them.
    _class_weight(estimator, inside)
    read = read.weighted(estimator, is_stream=False)
    plan = OpenPlan.of(estimator, inside, size).for_target(read.encoded)
    if plan.loss.weight_names:
        raise ValueError(
            f"loss={plan.loss!r} has weights of its own, whose initial values come from all of y. "
            "Fit an estimator with it, for instance for one epoch, and give the fitted estimator."
        )

    return of_steps(plan), converted(read, plan, estimator.trainable)[0], read.columns


def _class_weight(estimator, inside):
    """Return the class weights. Raise an error for "balanced", which needs all rows."""
    class_weight = chosen_class_weight(estimator, inside, is_stream=False)
    if class_weight is not None and isinstance(class_weight.given, str):
        raise ValueError(
            'class_weight="balanced" needs the labels of all rows, which are not known. Give a '
            "dict: class -> weight."
        )

    return class_weight


def _n_features(inner: WrappedModel, n_features):
    known = _onnx_dim(inner.model, "input") or getattr(inner.model, "n_features_in_", None)
    if n_features is None and known is None:
        raise ValueError("Give n_features: the model does not say how many columns X has.")
    if inner.is_fitted and None not in (n_features, known) and n_features != known:
        raise ValueError(f"n_features={n_features}, but the model has {known} features.")

    return known if n_features is None else n_features


def _prototype(estimator, wrapped, n_outputs, classes):
    """Return the smallest y with all classes, or with all outputs."""
    if not isinstance(estimator, ClassifierMixin):
        n_outputs = n_outputs or _known_outputs(estimator.loss, wrapped) or 1
        return np.zeros((1, n_outputs)) if n_outputs > 1 else np.zeros(1)

    classes = wrapped.known_classes(classes)
    if classes is None:
        raise ValueError("Give classes: a batch may lack some of the labels.")

    return classes


def _check_size_is_known(estimator, inside):
    """Raise an error if the model's own penalty needs the number of rows, which is not known."""
    if counts_rows(estimator, inside):
        inside, ours = type(estimator.estimator).__name__, type(estimator).__name__
        raise ValueError(
            f"penalty: the one of {inside} is divided by the number of rows, which is not known. Give "
            f"{ours}({inside}(...), n_total=...) with the number of all rows, or penalty=None, or "
            "another penalty."
        )


def _known_outputs(loss, inner):
    """Return the number of columns of the model's score, or None if the model does not say it."""
    if isinstance(loss, dict):
        from skort.graphs.onnx_models.onnx_score_graph import output_widths

        return sum(width or 1 for width in output_widths(inner.model, tuple(loss)).values())
    if inner.is_fitted:
        from skort.graphs.initialization import n_score_columns

        return n_score_columns(inner.model)
    return _onnx_dim(inner.model, "output")


def _onnx_dim(model, kind):
    """
    Return the number of columns of the only input or output of floats, or None if an ONNX model
    does not say it.
    """
    import onnx

    if not isinstance(model, onnx.ModelProto):
        return None

    from skort.common.onnx_text import leading_to
    from skort.graphs.onnx_models.inputs import training_losses

    graph = model.graph
    # A training graph has one more output, the loss, and one more input, the labels.
    losses = training_losses(model)
    of_score = leading_to(graph.node, {o.name for o in graph.output}.difference(losses))
    weights = {i.name for i in graph.initializer}
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    infos = [
        i
        for i in getattr(graph, kind)
        if i.name in of_score - weights and i.type.tensor_type.elem_type in floats
    ]
    dims = infos[0].type.tensor_type.shape.dim if len(infos) == 1 else []
    # Rows of several dimensions are flattened.
    may_be = len(dims) == 2 or (len(dims) > 2 and kind == "input")

    return (math.prod(dim.dim_value for dim in dims[1:]) or None) if may_be else None
