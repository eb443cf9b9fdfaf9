"""How a training begins: its variables, its first weights and its learning rate, from the data."""

import dataclasses
import functools
import math
from collections.abc import Iterator

import numpy as np

from skort.estimators.data.rows import DataStatistics, TrainingData
from skort.estimators.model.model import Model
from skort.estimators.training.config import TrainConfig
from skort.estimators.training.loss_scale import estimated_curvature, has_units
from skort.estimators.training.reparametrization import Reparametrization, moved_state, standardization_of, with_offsets
from skort.optim.standardization import moments
from skort.optim.state import TrainState

_NETWORK = 0.2  # Its first learning rate.
# By what a fitted network multiplies X, as if in other units, or else its weights, where its loss is a larger part of
# that of a constant prediction, of few rows more: each has to be better by a twentieth than those before it.
_GAINS = (1.0, *(2.0 ** (sign * k) for k in range(1, 11) for sign in (-1, 1)))
_FACTORS = 0.8, 0.65, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01
_KNOWN, _BETTER = 0.3, 0.95
# So many rows say how well a fitted network knows them. The rate on fewer is nearly zero: that of this share.
_FEW_ROWS, UNKNOWN = 20, 1e-4
# A drawn network takes its whole rate with two rows, and one more for so many columns.
_ROW_COLUMNS = 10


def begin(
    settings: TrainConfig, model: Model, facts: DataStatistics, state: TrainState
) -> tuple[TrainState, Model, Reparametrization]:
    """Return a state before its first update, the model at its initial weights, and the variables of the training."""
    # Weights that were drawn are for columns of mean zero and standard deviation one; others for X and y themselves.
    standardization = _chosen_standardization(settings, model.score_graph, facts)
    score_graph, initial = model.score_graph, model.score_graph.trained_arrays
    if standardization is not None:
        score_graph = with_offsets(score_graph, settings.loss, standardization)
    variables = settings.variables(score_graph, standardization)
    if model.is_drawn:
        score_graph = score_graph.with_weights(variables.model_weights(initial))
    rate_scale, row_norm = _first_rates(settings, variables, score_graph, facts)
    start = state.penalty_start or (score_graph.trained_arrays if settings.takes_start else None)
    scales = {"standardization": standardization, "rate_scale": rate_scale, "row_norm": row_norm}
    state = dataclasses.replace(state, solver=None, penalty_start=start, **scales)
    return state, dataclasses.replace(model, score_graph=score_graph, is_drawn=False), variables


def tries_rates(settings: TrainConfig, model: Model, state: TrainState) -> bool:
    """Return whether the first rate is found by trying some: X of a network keeps its scales."""
    used, has_gain = state.standardization, settings.update.tags.gain is not None
    is_unscaled = used is None or used.scale is None
    return settings.is_rate_auto and has_gain and is_unscaled and not model.score_graph.is_linear


def fitted_start(
    settings: TrainConfig, model: Model, variables: Reparametrization, facts: DataStatistics
) -> tuple[Model, float, float]:
    """Return a fitted network as it begins on new rows, its share of the best constant's loss, and that; or inf."""
    from skort.estimators.training.row_loss import RowLoss, some_of

    if settings.loss.is_least_at_zero or not settings.can_restart:
        return model, 1.0, math.inf
    rows = some_of(facts.some_rows)
    loss = RowLoss(settings, model.score_graph, variables, rows)
    with np.errstate(all="ignore"):
        weights = variables.training_weights(model.trained_weights)
        constant = loss.best_constant(weights)
        if not constant > 0:
            return model, 1.0, math.inf
        start, least = model, np.fmin(loss.at(weights), np.inf)
        chance = 1 + _FEW_ROWS / rows.n_rows
        known = _KNOWN * chance * constant
        if not least <= known:
            # What is sure and wrong takes long to unlearn, and smaller weights learn faster: so do those of a regressor
            # that understands no rows in any units.
            factors = () if settings.is_classifier or least <= chance * known else _FACTORS
            shrunk = (_shrunk(variables, model, factor) for factor in factors)
            gained = in_units(settings, model, rows)
            for others, most in ((gained, np.inf if settings.is_classifier else known), (shrunk, np.inf)):
                for other in others:
                    now = loss.at(variables.training_weights(other.trained_weights))
                    start, least = (other, now) if now < _BETTER * least and now <= most else (start, least)
        return start, float(np.fmin(least / constant, 1.0)), constant


def stream_part(settings: TrainConfig, model: Model, facts: DataStatistics) -> tuple[float, bool]:
    """Return what few rows multiply the rates of a network by, and whether they say how it has to begin."""
    if not settings.can_restart or model.score_graph.is_linear:
        return 1.0, True
    rows = facts.some_rows
    if model.inner.draws_weights:
        # The mean of few standardised rows is long: its squared norm is about the number of columns a row.
        n_rows = min(rows.n_rows, settings.batch_size)
        part = 1.0 if rows.is_sparse else n_rows / (2 + rows.X.shape[1] / _ROW_COLUMNS)
        return min(1.0, part), not model.is_drawn or rows.n_rows >= _FEW_ROWS
    # Any network seems to be sure and right, or wrong, on rows of one class.
    is_told = rows.n_rows >= _FEW_ROWS and bool(np.ptp(rows.target, axis=0).any())
    return min(1.0, rows.n_rows / _FEW_ROWS), is_told


def _shrunk(variables, model, factor):
    weights = variables.training_weights(model.without_loss_weights(model.trained_weights))
    return model.with_weights(variables.model_weights({n: w * w.dtype.type(factor) for n, w in weights.items()}))


def in_units(settings: TrainConfig, model: Model, rows: TrainingData) -> Iterator[Model]:
    """Yield a fitted network that multiplies X by 1 and other gains; a regressor's scores on the line that fits y."""
    from skort.graphs.export import PREDICTION
    from skort.graphs.score_graph import TARGET_OFFSET
    from skort.graphs.standardized import first_layer, last_layer

    graph, last = model.score_graph, last_layer(model.score_graph)
    first, offset = first_layer(graph) or last, graph.arrays.get(TARGET_OFFSET, 0.0)
    has_line = not settings.is_classifier and model.inverse_link is None
    target_mean, _ = moments(rows.target, rows.sample_weight)
    for gain in _GAINS:
        weights, scaled = model.trained_weights, model
        if first is not None:
            weights[first.coefficient] = weights[first.coefficient] * graph.dtype.type(gain)
            scaled = model.with_weights(weights)
        if has_line and last is not None and last.intercept is not None:
            score = scaled.run(PREDICTION, rows.X, settings.device).reshape(rows.target.shape)
            mean, deviation = moments(score, rows.sample_weight)
            products = np.average((score - mean) * (rows.target - target_mean), axis=0, weights=rows.sample_weight)
            slope = np.where(deviation > 0, products / deviation**2, 1.0)
            weights[last.coefficient] = weights[last.coefficient] * (slope[:, None] if last.transposed else slope)
            weights[last.intercept] = slope * (weights[last.intercept] + offset - mean) + target_mean - offset
            scaled = model.with_weights({name: array.astype(graph.dtype) for name, array in weights.items()})
        yield scaled


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


def go_on(
    settings: TrainConfig, model: Model, state: TrainState, facts: DataStatistics
) -> tuple[TrainState, dict[str, np.ndarray] | None]:
    """Return the state from which a `partial_fit` goes on, its scales following the rows, and another of the solver."""
    # A column that leaves its scale keeps the weights of the standardized column, or in the other state its own: which
    # is better depends on how well they are known.
    score_graph, used, solver, other = model.score_graph, state.standardization, state.solver, None
    renewed = used
    if used is not None:
        has_link = settings.loss.inverse_link_function(score_graph.n_outputs) is not None
        _check_loss(settings.loss, score_graph.n_outputs, used, has_link=has_link)
        _check_penalty(settings.penalty, used, has_link=has_link)
        first = used.with_new_scales(facts, of_target=not has_link)
        renewed = first.following(facts, of_target=not has_link, is_robust=settings.loss.is_robust)
        # Drawn weights of a network are those of columns of scale one: others would make its steps too long.
        if solver is not None and (score_graph.is_linear or not model.inner.draws_weights):
            moves = functools.partial(_moved, settings, model)
            solver = moves(solver, used, first)
            other = None if renewed is first else moves(solver, first, renewed)
    rate_scale, row_norm = _next_rates(settings, score_graph, renewed, facts, state)
    start = state.penalty_start or (score_graph.trained_arrays if settings.takes_start else None)
    resumed = dataclasses.replace(
        state, solver=solver, standardization=renewed, rate_scale=rate_scale, row_norm=row_norm, penalty_start=start
    )
    return resumed, other


def _moved(settings, model, solver, before, after):
    """Return the state of a solver in the variables of another standardization, for the same weights of the model."""
    if after is before:
        return solver
    # Fewer than all where `average` was set later.
    n_updates = solver["average_n_updates"][0] if "average_n_updates" in solver else 0
    n_averaged = int(n_updates) - int(settings.update.average) + 1
    old, new = (settings.variables(model.score_graph, each) for each in (before, after))
    return moved_state(solver, model.trained_weights, old, new, n_averaged)


def _check_loss(loss, n_outputs, used, *, has_link):
    mean = used.target_mean
    if mean is not None and (not has_units(loss, n_outputs) or (has_link and mean.any())):
        raise ValueError(
            f"loss={loss!r} does not suit the standardized y of earlier calls. Call fit, or use standardize=False from "
            "the first call on."
        )


def _check_penalty(penalty, used, *, has_link):
    means = [mean for mean in (used.mean, used.target_mean) if mean is not None]
    is_centred = any(np.any(mean) for mean in means) or (has_link and used.target_mean is not None)
    if is_centred and penalty is not None and penalty.intercepts is not None:
        raise ValueError(
            f"penalty={type(penalty).__name__} covers intercepts, but earlier calls subtracted the means of X or "
            "y. Call fit, or use standardize=False from the first call on."
        )


def _first_rates(settings, variables, score_graph, facts) -> tuple[float, float]:
    """Return the `rate_scale` and the `row_norm` of a progress to begin with; a user's own rates stay as they are."""
    if not settings.is_rate_auto:
        return 1.0, 0.0
    row_norm = facts.largest_norm(variables.standardization)
    return _rate(settings, variables, score_graph, facts, row_norm), row_norm


def _next_rates(settings, score_graph, used, facts, progress) -> tuple[float, float]:
    """Return the `rate_scale` and the `row_norm` that a progress goes on with, after more rows."""
    if not (settings.is_rate_auto and progress.is_rate_auto):
        return _first_rates(settings, settings.variables(score_graph, used), score_graph, facts)
    rate_scale, is_new = progress.rate_scale, used is not progress.standardization
    norm = facts.largest_norm(used)
    row_norm = max(progress.row_norm, norm)
    if row_norm == progress.row_norm and not is_new:
        return rate_scale, row_norm
    # What a network begins with says nothing of its rows; those so far had no norm in the columns that are new.
    if not is_new and settings.update.tags.gain is not None and not score_graph.is_linear:
        rate_scale *= progress.row_norm / row_norm
    variables = settings.variables(score_graph, used)
    return min(rate_scale, _rate(settings, variables, score_graph, facts, norm)), row_norm


def _rate(settings: TrainConfig, variables: Reparametrization, score_graph, facts: DataStatistics, norm) -> float:
    """Return the learning rate to begin with, for rows of a largest squared norm."""
    tags, is_linear = settings.update.tags, score_graph.is_linear
    gain = tags.gain
    if gain is None:
        return tags.first_rates[0 if is_linear else 1]
    if not is_linear:
        return _NETWORK / gain
    loss, n_outputs = variables.loss, score_graph.n_outputs
    curvature = loss.curvature(n_outputs) or loss.typical_curvature
    curvature = curvature or _estimated(settings, variables, score_graph, facts)
    curvature *= loss.weight_scale(n_outputs)
    curvature *= facts.smoothness(settings.batch_size, variables.standardization, norm)
    strengths = {} if variables.penalty is None else variables.penalty.strengths(score_graph.coefficients)
    l2 = np.concatenate([np.zeros(1), *(np.ravel(strength.l2) for strength in strengths.values())])
    # A step of a stiffer penalty is implicit.
    return 1.0 / (gain * (curvature + float(np.max(l2[l2 <= curvature]))))


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
