"""How a training begins: its variables, its first weights and its learning rate, from the data."""

import dataclasses
import math

import numpy as np

from skort.estimators.data.rows import DataStatistics
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.loss_scale import estimated_curvature
from skort.estimators.training.network import STREAM_ROWS
from skort.estimators.training.reparametrization import Reparametrization, standardization_of, with_offsets
from skort.optim.standardization import mean_norm, moments
from skort.optim.state import TrainState

_NETWORK = 0.2  # Its first learning rate.


def begin(
    settings: TrainConfig, model: Model, facts: DataStatistics, state: TrainState, *, is_stream: bool = False
) -> tuple[TrainState, Model, Reparametrization]:
    """Return a state before its first update, the model at its initial weights, and the variables of the training."""
    # Weights that were drawn are for columns of mean zero and standard deviation one; others for X and y themselves.
    standardization = _chosen_standardization(settings, model.score_graph, facts)
    score_graph, initial = model.score_graph, model.score_graph.trained_arrays
    if standardization is not None:
        score_graph = with_offsets(score_graph, settings.loss, standardization)
    variables = settings.variables(score_graph, standardization)
    variables.check_range()
    if model.is_drawn:
        score_graph = score_graph.with_weights(variables.model_weights(initial))
    find_rate = stream_rate if is_stream else _fit_rate
    state = dataclasses.replace(
        state,
        solver=None,
        penalty_start=state.penalty_start or (score_graph.trained_arrays if settings.takes_start else None),
        standardization=standardization,
        rate_scale=find_rate(settings, variables, score_graph, facts),
        is_rate_auto=settings.is_rate_auto,
    )
    return state, dataclasses.replace(model, score_graph=score_graph, is_drawn=False), variables


def fitted_share(
    settings: TrainConfig, model: Model, variables: Reparametrization, facts: DataStatistics
) -> tuple[float, float]:
    """Return the loss of a fitted network as a part of that of the best constant prediction, and that; or 0, inf."""
    from skort.estimators.training.row_loss import RowLoss, some_of

    if settings.loss.is_least_at_zero:
        return 0.0, math.inf
    loss = RowLoss(settings, model.score_graph, variables, some_of(facts.some_rows))
    weights = variables.training_weights(model.trained_weights)
    with np.errstate(all="ignore"):
        constant = loss.best_constant(weights)
        return (float(np.fmin(loss.at(weights) / constant, np.inf)), constant) if constant > 0 else (0.0, math.inf)


def drawn_anew(settings: TrainConfig, model: Model, generator: np.random.RandomState) -> Model | None:
    """Return a fitted network at new weights, drawn as those of a new one; None where they are to stay, or unknown."""
    from skort.graphs.initialization import drawn_weights

    if settings.given["warm_start"] or settings.inside["trainable"] is not None:
        return None
    weights = drawn_weights(model.inner.model, model.score_graph, generator)
    return None if weights is None else dataclasses.replace(model.with_weights(weights), is_drawn=True)


def _chosen_standardization(settings, score_graph, facts):
    """Return the standardization that a training begins with, or None; an error where True is not possible."""
    if not settings.standardize:
        return None
    terms = settings.loss, settings.penalty, facts, settings.batch_size
    standardization = standardization_of(score_graph, *terms, is_classifier=settings.is_classifier)
    if settings.standardize is True and (standardization is None or standardization.scale is None):
        raise ValueError(
            "standardize=True needs a model that first multiplies X by trained weights, so that they can take the "
            'change back. Use standardize="auto" or False.'
        )
    return standardization


def _fit_rate(settings: TrainConfig, variables: Reparametrization, score_graph, facts: DataStatistics) -> float:
    """Return what the rates of a fit are multiplied by: 1, or for eta0="auto" the largest stable rate of a batch."""
    if not settings.is_rate_auto:
        return settings.whole_rate
    tags, is_linear = settings.update.tags, score_graph.is_linear
    if tags.gain is None:
        return settings.whole_rate * tags.first_rates[0 if is_linear else 1]
    if not is_linear:
        return (
            settings.whole_rate * _NETWORK / (tags.gain * _mean_square(variables.standardization, score_graph, facts))
        )
    norm = facts.largest_norm(variables.standardization)
    smoothness = facts.smoothness(settings.batch_size, variables.standardization, norm)
    return settings.whole_rate / (tags.gain * _stiffness(settings, variables, score_graph, facts, smoothness))


def stream_rate(settings: TrainConfig, variables: Reparametrization, score_graph, facts: DataStatistics) -> float:
    """Return what the rates of a stream are multiplied by: 1, or for eta0="auto" its first rate."""
    tags, batch_size = settings.update.tags, settings.batch_size
    if not settings.is_rate_auto:
        return 1.0
    if tags.gain is None:
        # The root mean square of gradients, which divides them, is about the root of 1 / batch_size.
        return tags.first_rates[0 if score_graph.is_linear else 2] * min(1.0, math.sqrt(batch_size / STREAM_ROWS))
    # A row has the rate that it has in a batch of so many rows, however small the calls are.
    n_rows = max(batch_size, STREAM_ROWS)
    if not score_graph.is_linear:
        return batch_size / n_rows * _NETWORK / tags.gain
    return stable_rate(settings, variables, score_graph, facts, n_rows) / 4


def stable_rate(
    settings: TrainConfig,
    variables: Reparametrization,
    score_graph,
    facts: DataStatistics,
    n_rows: int,
    *,
    is_rough: bool = False,
) -> float:
    """Return the largest rate at which a linear model is stable in the mean square; a rough one is not larger."""
    # Of batches of an endless stream: the expected smoothness for n -> infinity, see `smoothness`.
    used = variables.standardization
    norm = mean_norm(facts.some_rows.X, facts.some_rows.sample_weight, used)
    largest = norm if is_rough else facts.smoothness(facts.some_rows.n_rows, used, norm)
    smoothness = facts.mean_weight * ((n_rows - 1) * largest + norm) / n_rows
    stiffness = _stiffness(settings, variables, score_graph, facts, smoothness)
    return settings.batch_size / n_rows / (settings.update.tags.gain * stiffness)


def _stiffness(settings, variables, score_graph, facts, smoothness):
    """Return how fast the gradient of a linear model's objective changes, for rows of a smoothness."""
    loss, n_outputs = variables.loss, score_graph.n_outputs
    curvature = loss.curvature(n_outputs) or loss.typical_curvature
    curvature = curvature or _estimated(settings, variables, score_graph, facts)
    curvature *= loss.weight_scale(n_outputs) * smoothness
    strengths = {} if variables.penalty is None else variables.penalty.strengths(score_graph.coefficients)
    l2 = np.concatenate([np.zeros(1), *(np.ravel(strength.l2) for strength in strengths.values())])
    # A step of a stiffer penalty is implicit.
    return curvature + float(np.max(l2[l2 <= curvature]))


def _mean_square(used, score_graph, facts) -> float:
    """Return the mean square of the columns that the first layer is trained on, at least 1: that of scaled columns."""
    from skort.graphs.standardized import first_layer

    if first_layer(score_graph) is None or (used is not None and used.scale is not None):
        return 1.0
    mean, deviation = moments(facts.some_rows.X, facts.some_rows.sample_weight)
    square = deviation**2 + (0.0 if used is not None and used.mean is not None else mean**2)
    return max(1.0, float(np.mean(square)))


def _estimated(settings: TrainConfig, variables: Reparametrization, score_graph, facts: DataStatistics) -> float:
    """Return the second derivative of a loss that says none, by the score of the training, from targets as they are."""
    from skort.graphs.standardized import linear_weights

    if settings.is_classifier:
        return estimated_curvature(settings.loss, score_graph.n_outputs)
    linear = linear_weights(score_graph)
    assert linear is not None  # The rate of a network is that of its optimizer.
    coef, start = linear
    if coef.any() and not facts.some_rows.is_sparse:
        start = start + coef @ facts.columns[0]
    mean, deviation = facts.targets
    curvature = estimated_curvature(settings.loss, score_graph.n_outputs, (start, mean, deviation))
    return curvature * (1.0 if variables.score is None else variables.score.scale**2) / variables.in_units.unit
