"""Converters of scikit-learn's classifiers with a moved threshold, for skl2onnx."""

import copy

import numpy as np
import skl2onnx
from skl2onnx._supported_operators import get_model_alias
from skl2onnx.common.data_types import (
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
    guess_proto_type,
    guess_tensor_type,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline

from skort.graphs.sklearn.converters import Nodes

_OPTIONS = {
    "nocl": [False],
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
}


def register_thresholds() -> None:
    """Register the converters of classifiers with a moved threshold in skl2onnx."""
    # skl2onnx has no converter of FixedThresholdClassifier, and its own of
    # TunedThresholdClassifierCV gives the labels at the threshold .5.
    for classifier in (FixedThresholdClassifier, TunedThresholdClassifierCV):
        skl2onnx.update_registered_converter(
            classifier, f"Skort{classifier.__name__}", _set_types, _convert, options=_OPTIONS
        )


def _set_types(operator):
    """Set the types of the labels and of the scores."""
    rows = operator.inputs[0].get_first_dimension()
    classes = operator.raw_operator.classes_
    label = StringTensorType if classes.dtype.kind in "OU" else Int64TensorType
    operator.outputs[0].set_type(label([rows]))
    numbers = type(guess_tensor_type(operator.inputs[0].type))
    operator.outputs[1].set_type(numbers([rows, len(classes)]))


def _convert(scope, operator, container):
    """Write the classifier inside, and the labels at the threshold."""
    model = operator.raw_operator
    classifier = _inside(model)
    scores = _scores(scope, operator, container, classifier, raw=False)
    container.add_node("Identity", [scores.full_name], [operator.outputs[1].full_name])
    if _is_raw(model, classifier) and hasattr(classifier, "predict_proba"):
        scores = _scores(scope, operator, container, classifier, raw=True)

    nodes = Nodes(scope, container)
    threshold, positive = _threshold(model, classifier)
    classes = model.classes_
    # A raw score is that of the second class, which comes last in one column or two.
    is_raw = _is_raw(model, classifier)
    position = nodes.constant(-1 if is_raw else positive)
    column = nodes.add("Gather", [scores.full_name, position], "column", axis=1)
    if is_raw and not positive:
        column = nodes.add("Neg", [column], "column")

    element_type = guess_proto_type(scores.type)
    limit = nodes.constant(threshold, element_type, "threshold")
    reached = nodes.add("GreaterOrEqual", [column, limit], "reached", version=16)
    is_text = classes.dtype.kind in "OU"
    labels = nodes.constant(
        [str(c) if is_text else int(c) for c in (classes[1 - positive], classes[positive])],
        guess_proto_type(operator.outputs[0].type),
        "labels",
    )
    index = nodes.add("Cast", [reached], to=guess_proto_type(Int64TensorType()))
    nodes.add("Gather", [labels, index], result=operator.outputs[0].full_name)


def _inside(model):
    """Return the fitted classifier whose threshold is moved."""
    classifier = getattr(model, "estimator_", model.estimator)
    while isinstance(classifier, FrozenEstimator):
        classifier = classifier.estimator
    return classifier


def _is_raw(model, classifier):
    """Return whether the threshold is one of raw scores."""
    method = model.response_method
    return method == "decision_function" or not hasattr(classifier, "predict_proba")


def _threshold(model, classifier):
    """Return the threshold, and the position of the class that is above it."""
    if isinstance(model, TunedThresholdClassifierCV):
        threshold = model.best_threshold_
        positive = model._curve_scorer._get_pos_label()
    else:
        threshold = model.threshold
        positive = model.pos_label
        if threshold == "auto":
            threshold = 0.0 if _is_raw(model, classifier) else 0.5

    position = 1 if positive is None else int(np.flatnonzero(model.classes_ == positive)[0])
    return threshold, position


def _scores(scope, operator, container, classifier, *, raw):
    """Let skl2onnx write a classifier; return its probabilities, or raw scores of both classes."""
    if raw:
        # Options are those of an object: a copy has options of its own.
        classifier = _copied(classifier)
        last = classifier[-1] if isinstance(classifier, Pipeline) else classifier
        container.add_options(id(last), {"raw_scores": True})
        scope.add_options(id(last), {"raw_scores": True})

    inner = scope.declare_local_operator(get_model_alias(type(classifier)), classifier)
    inner.inputs = operator.inputs
    label = type(operator.outputs[0].type)()
    numbers = type(operator.outputs[1].type)() if operator.outputs[1].type else FloatTensorType()
    inner.outputs.append(scope.declare_local_variable("label", label))
    inner.outputs.append(scope.declare_local_variable("scores", numbers))
    return inner.outputs[1]


def _copied(classifier):
    """Return a copy of a classifier and, if it is a pipeline, of its last step."""
    classifier = copy.copy(classifier)
    if isinstance(classifier, Pipeline):
        name, last = classifier.steps[-1]
        classifier.steps = [*classifier.steps[:-1], (name, _copied(last))]
    return classifier
