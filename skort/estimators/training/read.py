"""The input of a fit: its arguments, checked and encoded before the plan. No estimator changes."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin

from skort.common.named_errors import errors_of
from skort.common.random_state import training_generator
from skort.common.sklearn_private import safe_indexing
from skort.common.user_warning import unwarned, warn_user
from skort.estimators.data.row_forms import as_rows, flat_rows
from skort.estimators.data.rows import Columns, TrainingData, training_rows
from skort.estimators.data.sample_weight import ClassWeight, weighted
from skort.estimators.data.targets import (
    EncodedTarget,
    LabelEncoder,
    NumberEncoder,
    target_encoder,
)
from skort.estimators.data.validation_set import (
    VALIDATION_SCORE,
    ValidationLoss,
    ValidationScoring,
    check_lengths,
    hold_out,
)
from skort.estimators.model.model import Model
from skort.estimators.model.wrapped import TargetTransform, WrappedModel, transformed
from skort.estimators.planning.epochs import TrainingSize, asks_to_stop_early, batch_rows
from skort.estimators.planning.loss_and_penalty import chosen_class_weight, objective_inside
from skort.estimators.planning.plan import OpenPlan
from skort.estimators.planning.scaling import dense_if_narrow
from skort.estimators.training.data_source import GivenRows
from skort.optim.callbacks import check_callbacks

if TYPE_CHECKING:
    from skort.objective.sklearn_objectives import SklearnObjective


@dataclass(frozen=True, eq=False)
class FitInput:
    """The input of a fit: its arguments, checked and encoded, and the model inside."""

    given: GivenRows
    wrapped: WrappedModel
    #: The objective of the model inside.
    objective_inside: "SklearnObjective"
    #: X. It is validated if there are no steps before the model.
    rows: Any
    columns: Columns
    encoder: LabelEncoder | NumberEncoder
    encoded: EncodedTarget
    target_transform: TargetTransform
    #: The generator of the training.
    generator: np.random.RandomState
    class_weight: ClassWeight | None = None
    #: Sample weights times class weights.
    sample_weight: np.ndarray | None = None
    #: Whether a validation set, given or held out, ends the training.
    is_validated: bool = False

    @classmethod
    def of(
        cls,
        estimator: Any,
        given: GivenRows,
        wrapped: WrappedModel,
        inside: "SklearnObjective",
        generator: np.random.RandomState,
        classes: Any = None,
    ) -> "FitInput":
        """
        Return the input of a fit, before its rows have weights. Some rows stand for all rows of the
        user's batches.
        """
        encoder = target_encoder(estimator, given.y)
        y = encoder.columns(given.y)
        has_steps = wrapped.has_steps
        X = given.X if has_steps else flat_rows(wrapped.model, given.X)

        def again(X, y):
            FitInput.of(estimator, GivenRows(X, y, None), wrapped, inside, generator, classes)

        try:
            rows, y, columns = training_rows(estimator, X, y, has_steps=has_steps)
            wrapped.check_columns(given.X)
        except ValueError as error:
            raise given.named(error, again) from error.__cause__
        target_transform = wrapped.fit_target(y)

        known = (
            wrapped.known_classes(classes, y) if isinstance(estimator, ClassifierMixin) else None
        )
        try:
            encoded = target_transform.applied(encoder.encode(y, known))
        except ValueError as error:
            raise given.named(error, again) from error.__cause__
        wrapped.check_labels(encoded)

        return cls(
            given, wrapped, inside, rows, columns, encoder, encoded, target_transform, generator
        )

    def weighted(self, estimator: Any, *, is_stream: bool) -> "FitInput":
        """Return the input with the weights of its rows: sample weights times class weights."""
        given = self.given
        class_weight = given.class_weight(
            chosen_class_weight(estimator, self.objective_inside, is_stream=is_stream), self.encoded
        )
        if given.sample_weight is None and class_weight is None:
            return self
        weights, encoded = weighted(
            given.sample_weight, self.rows, self.encoded, class_weight, is_stream=is_stream
        )
        return dataclasses.replace(
            self, encoded=encoded, class_weight=class_weight, sample_weight=weights
        )

    def of_model_inside(self, estimator: Any) -> "FitInput":
        """Return the input of an estimator that differs only in parameters of the model inside."""
        wrapped = WrappedModel.inside(estimator).with_rows_of(self.given.X)
        return dataclasses.replace(
            self, wrapped=wrapped, objective_inside=objective_inside(estimator, wrapped.model)
        )

    def plan(
        self,
        estimator: Any,
        sample_weight: np.ndarray | None,
        dtype: str | None = None,
        *,
        is_stream: bool = False,
    ) -> OpenPlan:
        """
        Return the plan of an estimator for this target and these sample weights. `dtype=None`: the
        estimator's.
        """
        given = self.given
        batch_size = batch_rows(estimator.batch_size, is_stream=is_stream)
        size = given.size(batch_size, self.encoded, sample_weight, self.class_weight)
        if is_stream:
            size = size.of_stream(size.n_rows)
        plan = OpenPlan.of(
            estimator,
            self.objective_inside,
            size,
            given.batch_size,
            dtype,
            is_stream=is_stream,
            is_validated=self.is_validated,
        )

        return plan.for_target(self.encoded)

    def encoded_target(self, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """
        Return the target and the weights of other rows. Their class weights are those of the
        training rows.
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


def check_without_rows(estimator: Any) -> None:
    """Raise the errors of the parameters of `fit_batches`, but for those that need rows."""
    with unwarned():
        inside = objective_inside(estimator, WrappedModel.inside(estimator).model)
        check_callbacks(estimator.callbacks)
        OpenPlan.of(estimator, inside, TrainingSize.of(1.0, 1, 1, 1), batch_size=1)


def read_fit(
    estimator: Any, given: GivenRows, *, classes: Any = None, is_stream: bool = False
) -> FitInput:
    """Return the input of a fit, or of the first call of a stream."""
    wrapped = WrappedModel.inside(estimator).with_rows_of(given.X)
    inside = objective_inside(estimator, wrapped.model)
    check_callbacks(estimator.callbacks)
    generator = training_generator(estimator.random_state)
    read = FitInput.of(estimator, given, wrapped, inside, generator, classes)
    # The first rows of a stream may not show what later ones are like.
    if isinstance(estimator, ClassifierMixin) and not is_stream:
        _warn_of_one_hot(read.encoded)
    return read.weighted(estimator, is_stream=is_stream)


def _warn_of_one_hot(encoded):
    """Warn of a multi-label y in which each row has one label, as `get_dummies` makes it."""
    if encoded.is_one_hot:
        warn_user(
            "y is multi-label, and each row has exactly one label. If the labels are classes, give "
            "y.argmax(axis=1), or the column that get_dummies was made from: predict then returns "
            "one class for each row."
        )


def with_validation_set(
    estimator: Any, read: FitInput, X_val: Any = None, y_val: ArrayLike | None = None
) -> tuple[FitInput, ValidationLoss | ValidationScoring | None, np.ndarray | None]:
    """
    Return three things: the input, which now knows whether a validation set ends the training; the
    scoring of that set, or None; and the weights of the other rows.
    """
    are_given = is_given(X_val, y_val)
    has_rows = are_given or read.given.batch_size is None
    if has_rows and asks_to_stop_early(estimator.early_stopping):
        read = dataclasses.replace(read, is_validated=True)

    if are_given:
        return read, _given_set(estimator, read, X_val, y_val), read.sample_weight
    if read.is_validated:
        return read, *_held_out_set(estimator, read)
    return read, None, read.sample_weight


def _given_set(estimator, read, X_val, y_val):
    """Return the scoring of the user's validation set."""
    y_val = read.encoder.columns(y_val, "y_val")
    check_lengths(X_val, y_val)
    if estimator.scoring is not None:
        return ValidationScoring(X_val, y_val, estimator.scoring, name=VALIDATION_SCORE)

    target, weights = _encoded_y_val(read, y_val)
    return ValidationLoss(X_val, target, weights, decides=read.is_validated)


def _held_out_set(estimator, read):
    """Return the scoring of rows that are held out, and the weights of the other rows."""
    y = read.encoded.y
    weights = read.sample_weight
    rows, rest = hold_out(
        estimator, y, weights, read.generator, may_lack_classes=read.wrapped.is_fitted
    )
    # If X is an iterator, it was read before: `read.rows` has its texts.
    X = read.rows if read.wrapped.has_steps else as_rows(read.given.X)
    X = safe_indexing(X, rows)
    if estimator.scoring is None:
        weights = None if weights is None else weights[rows]
        return ValidationLoss(X, read.encoded.target[rows], weights, decides=True), rest

    # A score uses the sample weights, but no class weights.
    given = read.given.sample_weight
    given = None if given is None else np.broadcast_to(np.asarray(given), len(y))[rows]
    return ValidationScoring(X, y[rows], estimator.scoring, given, name=VALIDATION_SCORE), rest


def is_given(X_val: Any, y_val: Any) -> bool:
    """Return whether there is a validation set; raise an error if X_val or y_val is missing."""
    if (X_val is None) != (y_val is None):
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"{given} was given without {missing}: a validation set needs both.")
    return X_val is not None


def _encoded_y_val(read, y_val):
    """Return the target and the weights of a validation set. Errors name y_val."""
    with errors_of("y_val"):
        return read.encoded_target(y_val)


def model_and_data(
    read: FitInput, plan: OpenPlan, sample_weight: np.ndarray | None, trainable: Any
) -> tuple[Model, TrainingData]:
    """
    Return the model, with the weights of the loss, if that has any, and the rows that it is trained
    on.
    """
    target = read.encoded.target
    try:
        plan.loss.check_target(target)
        model, X = converted(read, plan, trainable)
    except ValueError as error:
        raise read.given.named(error, functools.partial(_check_rows, read, plan)) from (
            error.__cause__
        )
    data = TrainingData(dense_if_narrow(X), target, sample_weight)
    if plan.loss.weight_names:
        initial = plan.loss.initial_weights(data.counted(target), read.wrapped.fitted_model)
        model = model.with_loss_weights(initial)
    return model, data


def converted(read: FitInput, plan: OpenPlan, trainable: Any) -> tuple[Model, Any]:
    """Fit the steps before the model. Return the model at its initial weights, and X after the steps."""
    from skort.graphs.score_graph import ScoreSpec

    wrapped = read.wrapped
    encoded = read.encoded
    n_outputs = encoded.target.shape[1]
    spec = functools.partial(
        ScoreSpec,
        n_outputs=n_outputs,
        dtype=plan.dtype,
        is_classifier=encoded.classes is not None,
        keeps_link=plan.loss.inverse_link_function(n_outputs) is None,
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


def _check_rows(read, plan, X, y):
    """Raise the error of the loss for some y, or of fitted steps for some X, if there is one."""
    plan.loss.check_target(
        read.encoder.encode(read.encoder.columns(y), read.encoded.classes).target
    )
    steps = read.wrapped.transformers
    if steps is not None:
        transformed(steps, steps.transform, as_rows(X), plan.dtype)
