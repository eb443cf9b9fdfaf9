"""What a fit reads of its arguments, before it knows how it trains; no estimator is changed."""

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skort.common.random_state import own_generator
from skort.estimators.data.data_source import GivenRows
from skort.estimators.data.rows import Columns, TrainingData, training_rows
from skort.estimators.data.sample_weight import ClassWeight, weighted
from skort.estimators.data.targets import EncodedTarget, TargetEncoder, target_encoder
from skort.estimators.model.model import Model
from skort.estimators.model.target_transform import TargetTransform
from skort.estimators.model.wrapped import WrappedModel
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.terms import chosen_class_weight, own_objective_of
from skort.optim.callbacks import check_callbacks

if TYPE_CHECKING:
    from skort.objective.sklearn_objectives import SklearnObjective


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit reads of its arguments and of the model inside: it does not depend on how the model is trained."""

    given: GivenRows
    wrapped: WrappedModel
    #: What the model inside minimises.
    own: "SklearnObjective"
    #: X, validated where no steps before the model take it.
    rows: Any
    columns: Columns
    encoder: TargetEncoder
    encoded: EncodedTarget
    class_weight: ClassWeight | None
    #: Class weights included.
    sample_weight: np.ndarray | None
    target_transform: TargetTransform
    #: The training's own.
    generator: np.random.RandomState

    def config(self, estimator: Any, sample_weight: np.ndarray | None) -> TrainConfig:
        """Return the parameters of an estimator for this target, and the sample weights that it is trained with."""
        given = self.given
        size = given.size(estimator.batch_size, self.encoded, sample_weight, self.class_weight)
        return TrainConfig.of(estimator, self.own, size, given.batch_size).for_target(self.encoded)


def converted(read: FitData, config: TrainConfig, trainable: Any) -> tuple[Model, Any]:
    """Fit the steps before the model; return the model at its initial weights, and X as it is trained on."""
    from skort.graphs.score_graph import ScoreSpec

    wrapped, encoded = read.wrapped, read.encoded
    n_outputs = encoded.target.shape[1]
    spec = functools.partial(
        ScoreSpec,
        n_outputs=n_outputs,
        dtype=config.dtype,
        is_classifier=encoded.classes is not None,
        own_link=config.loss.inverse_link_function(n_outputs) is None,
        outputs=() if encoded.outputs is None else tuple(encoded.outputs.widths),
    )
    y = read.target_transform.for_steps(encoded.y)
    preprocessing, X, score_graph = wrapped.fit(read.rows, y, spec, read.generator, trainable)
    model = Model(
        wrapped.without_data(),
        preprocessing,
        score_graph,
        config.loss,
        encoded.classes,
        encoded.single_output,
        read.target_transform,
        outputs=encoded.outputs,
        is_drawn=wrapped.draws_weights,
    )
    model.warn_without_onnx()
    return model, X


def model_and_data(
    read: FitData, config: TrainConfig, sample_weight: np.ndarray | None, trainable: Any
) -> tuple[Model, TrainingData]:
    """Return what `converted` does, with the weights that the loss has of its own, and the rows it is trained on."""
    target = read.encoded.target
    config.loss.check_target(target)
    model, X = converted(read, config, trainable)
    loss_weights = config.loss.initial_weights(target, sample_weight, read.wrapped.fitted_model)
    return model.with_loss_weights(loss_weights), TrainingData(X, target, sample_weight)


def validated(estimator: Any, given: GivenRows, *, classes: Any = None, one_epoch: bool = False) -> FitData:
    """Return what a fit reads; one epoch is the first `partial_fit`."""
    wrapped = WrappedModel.inside(estimator)
    own = own_objective_of(estimator, None if estimator.estimator is None else wrapped.model)
    check_callbacks(estimator.callbacks)
    encoder = target_encoder(estimator, given.y)
    y = encoder.columns(given.y)
    rows, y, columns = training_rows(estimator, given.X, y, has_steps=wrapped.has_steps)
    wrapped.check_columns(given.X)
    target_transform = wrapped.fit_target(y)
    encoded = target_transform.applied(encoder.encode(y, wrapped.known_classes(classes)))
    wrapped.check_labels(multi_label=encoded.multi_label)
    class_weight = given.class_weight(chosen_class_weight(estimator, own, one_epoch=one_epoch), encoded)
    weights, encoded = weighted(given.sample_weight, rows, encoded, class_weight)
    generator = own_generator(estimator.random_state)
    return FitData(
        given, wrapped, own, rows, columns, encoder, encoded, class_weight, weights, target_transform, generator
    )
