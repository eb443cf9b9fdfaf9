"""
What a fit reads of its arguments, or has without rows, before it knows how it trains;
no estimator is changed.
"""

import dataclasses
import functools
import math
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from skort.common.component import check_parameters
from skort.common.named_errors import errors_of
from skort.common.random_state import own_generator
from skort.common.sklearn_private import safe_indexing
from skort.estimators.data.data_source import GivenRows, RowEncoder
from skort.estimators.data.flat_rows import flat_rows
from skort.estimators.data.rows import Columns, TrainingData, training_rows
from skort.estimators.data.sample_weight import ClassWeight, weighted
from skort.estimators.data.targets import (
    EncodedTarget,
    LabelEncoder,
    NumberEncoder,
    class_labels,
    target_encoder,
)
from skort.estimators.data.validation_set import (
    VALIDATION_SCORE,
    ValidationLoss,
    ValidationScoring,
    check_lengths,
    hold_out,
    is_given,
)
from skort.estimators.model.model import Model
from skort.estimators.model.preprocessing import as_rows
from skort.estimators.model.target_transform import TargetTransform
from skort.estimators.model.wrapped import WrappedModel
from skort.estimators.planning.batches import TrainingSize, batch_rows
from skort.estimators.planning.objective import chosen_class_weight, own_objective_of
from skort.estimators.planning.plan import Plan
from skort.estimators.planning.stopping import early_stopping_of
from skort.optim.callbacks import check_callbacks
from skort.optim.state import TrainState

if TYPE_CHECKING:
    from skort.objective.sklearn_objectives import SklearnObjective


@dataclass(frozen=True, eq=False)
class FitInput:
    """
    What a fit reads of its arguments and of the model inside:
    it does not depend on how the model is trained.
    """

    given: GivenRows
    wrapped: WrappedModel
    #: What the model inside minimises.
    own: "SklearnObjective"
    #: X, validated where no steps before the model take it.
    rows: Any
    columns: Columns
    encoder: LabelEncoder | NumberEncoder
    encoded: EncodedTarget
    target_transform: TargetTransform
    #: The training's own.
    generator: np.random.RandomState
    class_weight: ClassWeight | None = None
    #: Class weights included.
    sample_weight: np.ndarray | None = None
    #: Whether a validation set, given or held out, says when the training ends.
    is_validated: bool = False

    @classmethod
    def of(
        cls,
        estimator: Any,
        given: GivenRows,
        wrapped: WrappedModel,
        own: "SklearnObjective",
        generator: np.random.RandomState,
        classes: Any = None,
    ) -> "FitInput":
        """Return what rows, or those that stand for all, say before any row has a weight."""
        encoder = target_encoder(estimator, given.y)
        y = encoder.columns(given.y)
        has_steps = wrapped.has_steps
        X = given.X if has_steps else flat_rows(wrapped.model, given.X)
        rows, y, columns = training_rows(estimator, X, y, has_steps=has_steps)
        wrapped.check_columns(given.X)
        target_transform = wrapped.fit_target(y)

        known = (
            wrapped.known_classes(classes, y) if isinstance(estimator, ClassifierMixin) else None
        )
        encoded = target_transform.applied(encoder.encode(y, known))
        several = encoded.multi_label
        one_hot = several and bool(np.all(encoded.target.sum(axis=1) == 1))
        wrapped.check_labels(multi_label=several, one_hot=one_hot)

        return cls(
            given, wrapped, own, rows, columns, encoder, encoded, target_transform, generator
        )

    def weighted(self, estimator: Any, *, is_stream: bool) -> "FitInput":
        """Return it with the weights of the rows: sample weights times class weights."""
        given = self.given
        class_weight = given.class_weight(
            chosen_class_weight(estimator, self.own, is_stream=is_stream), self.encoded
        )
        weights, encoded = weighted(
            given.sample_weight, self.rows, self.encoded, class_weight, is_stream=is_stream
        )
        return dataclasses.replace(
            self, encoded=encoded, class_weight=class_weight, sample_weight=weights
        )

    def of_model_inside(self, estimator: Any) -> "FitInput":
        """Return what another estimator reads, whose model differs in its parameters alone."""
        wrapped = WrappedModel.inside(estimator).with_rows_of(self.given.X)
        return dataclasses.replace(self, wrapped=wrapped, own=_own_of(estimator, wrapped))

    def plan(
        self,
        estimator: Any,
        sample_weight: np.ndarray | None,
        dtype: str | None = None,
        *,
        is_stream: bool = False,
    ) -> Plan:
        """
        Return the parameters of an estimator for this target, and the sample weights;
        None: of its own dtype.
        """
        given = self.given
        batch_size = estimator.batch_size
        if is_stream and isinstance(batch_size, str):
            batch_size = batch_rows(is_stream=True)
        size = given.size(batch_size, self.encoded, sample_weight, self.class_weight)
        if is_stream:
            size = size.of_stream(size.n_rows)
        plan = Plan.of(
            estimator,
            self.own,
            size,
            given.batch_size,
            dtype,
            is_stream=is_stream,
            is_validated=self.is_validated,
        )

        return plan.for_target(self.encoded)

    def encoded_rows(self, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """
        Return the target of other rows, and what each counts:
        class weights are those of the rows trained on.
        """
        known = self.encoded
        class_weight = self.class_weight
        given = self.given
        encoded = self.target_transform.applied(self.encoder.encode(y, known.classes))
        if encoded.target.shape[1] != known.target.shape[1]:
            raise ValueError(
                f"y_val has another number of columns than y: {encoded.target.shape[1]}, "
                f"not {known.target.shape[1]}."
            )

        if (
            class_weight is not None
            and known.classes is not None
            and class_weight.given == "balanced"
        ):
            class_weight = class_weight.of_rows(known.classes, known.y, given.sample_weight)

        weights, encoded = weighted(None, encoded.target, encoded, class_weight)
        return encoded.target, weights


def converted(read: FitInput, plan: Plan, trainable: Any) -> tuple[Model, Any]:
    """
    Fit the steps before the model; return the model at its initial weights,
    and X as it is trained on.
    """
    from skort.graphs.score_graph import ScoreSpec

    wrapped = read.wrapped
    encoded = read.encoded
    n_outputs = encoded.target.shape[1]
    spec = functools.partial(
        ScoreSpec,
        n_outputs=n_outputs,
        dtype=plan.dtype,
        is_classifier=encoded.classes is not None,
        own_link=plan.loss.inverse_link_function(n_outputs) is None,
        outputs=() if encoded.outputs is None else tuple(encoded.outputs.widths),
    )
    y = read.target_transform.for_steps(encoded.y)
    preprocessing, X, score_graph = wrapped.fit(read.rows, y, spec, read.generator, trainable)
    model = Model(
        wrapped.without_data(),
        preprocessing,
        score_graph,
        plan.loss,
        encoded.classes,
        encoded.single_output,
        read.target_transform,
        outputs=encoded.outputs,
        is_drawn=wrapped.draws_weights,
    )
    model.warn_without_onnx()

    return model, X


def model_and_data(
    read: FitInput, plan: Plan, sample_weight: np.ndarray | None, trainable: Any
) -> tuple[Model, TrainingData]:
    """
    Return what `converted` does, with the weights that the loss has of its own,
    and the rows it is trained on.
    """
    target = read.encoded.target
    plan.loss.check_target(target)
    model, X = converted(read, plan, trainable)
    data = TrainingData(X, target, sample_weight)
    if plan.loss.weight_names:
        initial = plan.loss.initial_weights(data.counted(target), read.wrapped.fitted_model)
        model = model.with_loss_weights(initial)
    return model, data


def read_fit(
    estimator: Any, given: GivenRows, *, classes: Any = None, is_stream: bool = False
) -> FitInput:
    """Return what a fit reads, or the first call of a stream."""
    wrapped = WrappedModel.inside(estimator).with_rows_of(given.X)
    own = _own_of(estimator, wrapped)
    check_callbacks(estimator.callbacks)
    generator = own_generator(estimator.random_state)
    read = FitInput.of(estimator, given, wrapped, own, generator, classes)
    return read.weighted(estimator, is_stream=is_stream)


def _own_of(estimator, wrapped):
    """Return what the model inside an estimator minimises."""
    return own_objective_of(estimator, None if estimator.estimator is None else wrapped.model)


def with_validation_set(
    estimator: Any, read: FitInput, X_val: Any = None, y_val: ArrayLike | None = None
) -> tuple[FitInput, ValidationLoss | ValidationScoring | None, np.ndarray | None]:
    """
    Return what a fit reads with whether a validation set ends the training, what scores the set,
    given or held out, if there is one, and the weights of the other rows.
    """
    weights = read.sample_weight
    scoring = estimator.scoring
    are_given = is_given(X_val, y_val)
    has_rows = are_given or read.given.batch_size is None
    if has_rows and _stops_early(estimator, read):
        read = dataclasses.replace(read, is_validated=True)

    if are_given:
        y_val = read.encoder.columns(y_val, "y_val")
        check_lengths(X_val, y_val)
        if scoring is not None:
            return read, ValidationScoring(X_val, y_val, scoring, name=VALIDATION_SCORE), weights

        target, of_target = _encoded_y_val(read, y_val)
        scores = ValidationLoss(X_val, target, of_target, decides=read.is_validated)
        return read, scores, weights
    if not read.is_validated:
        return read, None, weights

    y = read.encoded.y
    of_rows = read.given.sample_weight
    rows, rest = hold_out(
        estimator, y, weights, read.generator, may_lack_classes=read.wrapped.is_fitted
    )
    X = safe_indexing(as_rows(read.given.X), rows)
    if scoring is None:
        weights = None if weights is None else weights[rows]
        return read, ValidationLoss(X, read.encoded.target[rows], weights, decides=True), rest

    of_rows = None if of_rows is None else np.broadcast_to(np.asarray(of_rows), len(y))[rows]
    return read, ValidationScoring(X, y[rows], scoring, of_rows, name=VALIDATION_SCORE), rest


def _stops_early(estimator, read):
    """Return whether a validation set ends the training of an estimator, where it has one."""
    weights = read.sample_weight
    n_rows = len(read.encoded.target) if weights is None else int(np.count_nonzero(weights))
    return early_stopping_of(estimator, read.wrapped, n_rows)


def _encoded_y_val(read, y_val):
    """Return the target of a validation set, and what each row counts; errors name y_val."""
    with errors_of("y_val"):
        return read.encoded_rows(y_val)


def model_without_data(
    estimator: Any, n_features: int | None, n_outputs: int | None, classes: ArrayLike | None
) -> tuple[Plan, RowEncoder, TrainState]:
    """
    Return the model of an estimator with what encodes rows for it,
    and the state before its first step.
    """
    check_parameters(estimator)
    check_sizes(n_features=n_features, n_outputs=n_outputs)
    classes = _sorted_classes(isinstance(estimator, ClassifierMixin), n_outputs, classes)
    generator = own_generator(estimator.random_state)
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

    plan = plan.in_steps()
    plan.check_steps("a Step")
    update = dataclasses.replace(plan.update, largest_rate=None)
    plan = dataclasses.replace(plan, update=update, standardize=False)
    if start is None and plan.takes_start:
        start = model.score_graph.trained_arrays
    encoder = RowEncoder(estimator, columns, model, _class_weight(estimator, plan.own))

    return plan, encoder, TrainState.start(generator, penalty_start=start)


def check_sizes(**numbers: Any) -> None:
    """Raise a ValueError where a number of columns, by its name, is neither None nor one."""
    for name, number in numbers.items():
        if number is not None and not (isinstance(number, Integral) and int(number) > 0):
            raise ValueError(f"{name} must be a positive int, got {number!r}.")


def _sorted_classes(is_classifier, n_outputs, classes):
    """
    Return the labels of a classifier, sorted, or None;
    raise an error for what the other kind of model takes.
    """
    if classes is not None and not is_classifier:
        raise ValueError("classes is for classifiers, and this is a regressor.")
    if n_outputs is not None and is_classifier:
        raise ValueError(
            "n_outputs is for regressors: a classifier has the outputs that classes ask for."
        )

    return None if classes is None else class_labels(classes)


def _check_fitted(fitted, known_features, n_features, n_outputs, classes):
    """Raise an error where something is given that a fitted estimator has, and has otherwise."""
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
    if not plan.hold(estimator):
        plan = plan.renewed(estimator)
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

    own = _own_of(estimator, wrapped)
    n_features = _n_features(wrapped, n_features)
    y = _prototype(estimator, wrapped, n_outputs, classes)
    given = GivenRows(np.zeros((len(y), n_features), estimator.dtype), y, None)
    read = FitInput.of(estimator, given, wrapped, own, generator, classes)

    n_rows = estimator.n_total
    given_size = estimator.batch_size
    batch_size = batch_rows() if isinstance(given_size, str) else given_size
    _check_size_is_known(estimator, own)
    n_outputs = read.encoded.target.shape[1]
    size = TrainingSize(float(n_rows or batch_size), 1.0, batch_size, n_outputs)

    # Class weights may be those of positives only, which are a matter of the loss.
    _class_weight(estimator, own)
    read = read.weighted(estimator, is_stream=False)
    plan = Plan.of(estimator, own, size).for_target(read.encoded)
    if plan.loss.weight_names:
        raise ValueError(
            f"loss={plan.loss!r} has weights of its own, whose initial values come from all of y. "
            "Fit an estimator with it, for instance for one epoch, and give the fitted estimator."
        )

    return plan, converted(read, plan, estimator.trainable)[0], read.columns


def _class_weight(estimator, own):
    """Return the class weights; raise an error where they depend on all rows."""
    class_weight = chosen_class_weight(estimator, own, is_stream=False)
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
    """Return a y with a value of every kind that there may be."""
    if not isinstance(estimator, ClassifierMixin):
        n_outputs = n_outputs or _known_outputs(estimator.loss, wrapped) or 1
        return np.zeros((1, n_outputs)) if n_outputs > 1 else np.zeros(1)

    classes = wrapped.known_classes(classes)
    if classes is None:
        raise ValueError("Give classes: a batch may lack some of the labels.")

    return classes


def _check_size_is_known(estimator, own):
    """
    Raise an error where the strength of the model's own penalty is that
    of a sum over an unknown number of rows.
    """
    is_own = (
        isinstance(estimator.penalty, str)
        and isinstance(estimator.alpha, str)
        and own.penalty is not None
    )
    if is_own and own.alpha_per == "sum" and estimator.n_total is None:
        raise ValueError(
            f"penalty: the one of {type(estimator.estimator).__name__} is divided by the number of "
            "rows, which is not known. Set n_total of OrtSGDRegressor or OrtSGDClassifier, "
            "penalty=None, or a custom penalty."
        )


def _known_outputs(loss, inner):
    """
    Return the number of columns of what the model gives to a loss;
    None where it does not say.
    """
    if isinstance(loss, dict):
        from skort.graphs.onnx_models.onnx_score_graph import output_widths

        return sum(width or 1 for width in output_widths(inner.model, tuple(loss)).values())
    if inner.is_fitted:
        from skort.graphs.initialization import n_score_columns

        return n_score_columns(inner.model)
    return _onnx_dim(inner.model, "output")


def _onnx_dim(model, kind):
    """
    Return the number of columns of the only floats that an ONNX model takes or gives;
    None where it does not say.
    """
    import onnx

    if not isinstance(model, onnx.ModelProto):
        return None

    from skort.common.onnx_text import leading_to
    from skort.graphs.onnx_models.inputs import training_losses

    graph = model.graph
    # A training graph has a loss beside its score, and an input for the labels beside X.
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
    # Rows of an input of more dimensions are flattened.
    may_be = len(dims) == 2 or (len(dims) > 2 and kind == "input")

    return (math.prod(dim.dim_value for dim in dims[1:]) or None) if may_be else None
