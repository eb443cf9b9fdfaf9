"""A fit from top to bottom: read, plan, then `run_fit`, which starts, runs and returns the result."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from skort.estimators.model.model import Model
from skort.estimators.planning.fine_tuning import is_compared
from skort.estimators.planning.plan import OpenPlan
from skort.estimators.planning.plan_of_fit import for_model
from skort.estimators.training.cross_validation import at_fitted, chosen_weights
from skort.estimators.training.data_source import GivenRows, RowEncoder
from skort.estimators.training.observers import Observers, SklearnCallbacks, has_callbacks
from skort.estimators.training.read import FitInput, model_and_data, read_fit, with_validation_set
from skort.estimators.training.result import KEEPS, FitResult
from skort.estimators.training.run import run_fit
from skort.estimators.training.warnings_at_start import warn_of_absent
from skort.estimators.variables.reparametrization import WeightRangeError
from skort.optim.state import TrainState


def fit(
    estimator: Any,
    given: GivenRows,
    *,
    X_val: Any = None,
    y_val: Any = None,
    init: tuple[Any, Any] = (None, None),
    classes: Any = None,
) -> tuple[FitResult, FitInput]:
    """Train an estimator's model from the beginning. Return the result and the input."""
    read = read_fit(estimator, given, classes=classes)
    read, scoring, weights = with_validation_set(estimator, read, X_val, y_val)

    def train(plan):
        model, data = model_and_data(read, plan, weights, estimator.trainable)
        model = at_given_weights(estimator, model, init)
        rows = data if given.batch_size is None else None
        planned = for_model(plan, model, rows)

        of_sklearn = []
        if has_callbacks(estimator):
            of_sklearn.append(SklearnCallbacks(estimator, given, planned.max_iter))
        observers = Observers(estimator, read.columns, scoring, of_sklearn)

        def run(plan, model):
            encoder = RowEncoder(estimator, read.columns, model, read.class_weight)
            source = given.source(data, encoder)
            return run_fit(plan, model, source, TrainState.start(read.generator), observers)

        if not read.wrapped.is_fitted:
            return run(planned, model)

        absent = given.absent(read.encoded)
        if rows is None or model.is_drawn or _are_given(init) or not is_compared(planned, model):
            warn_of_absent(absent)
            return run(planned, model)

        plan_of = functools.partial(read.plan, estimator, dtype=plan.dtype)
        chosen = chosen_weights(planned, plan_of, model, rows, observers, read.generator)
        if chosen.kept in KEEPS:
            return at_fitted(lambda plan: run(plan, model), planned, chosen)

        warn_of_absent(absent)
        result = run(for_model(plan, chosen.model, rows), chosen.model)
        return dataclasses.replace(result, kept=result.kept or chosen.kept)

    return in_wide_enough_dtype(estimator, read, weights, train), read


def in_wide_enough_dtype(
    estimator: Any,
    read: FitInput,
    weights: np.ndarray | None,
    train: Callable[[OpenPlan], FitResult],
    *,
    is_stream: bool = False,
) -> FitResult:
    """
    Return the result of a plan. If float32 cannot hold the weights in the units of X and y, the
    plan is one in float64.
    """
    last = vars(estimator).get("_result")
    # The default model is linear, and draws nothing before its range is checked.
    drawn = None if read.wrapped.is_default else read.generator.get_state(legacy=False)
    if estimator.warm_start and last is not None and last.plan.dtype == "float64":
        # The training continues from weights that float32 may be unable to hold.
        return train(read.plan(estimator, weights, "float64", is_stream=is_stream))

    try:
        return train(read.plan(estimator, weights, is_stream=is_stream))
    except WeightRangeError as error:
        if estimator.dtype == "float64":
            raise

        try:
            wider = read.plan(estimator, weights, "float64", is_stream=is_stream)
        except ValueError:  # The solver has no float64.
            raise error from None

    if drawn is not None:
        # The same numbers are drawn again.
        read.generator.set_state(drawn)
    return train(wider)


def at_given_weights(estimator: Any, model: Model, init: tuple[Any, Any]) -> Model:
    """Return a model with the weights of the last fit, or of the user, if there are any."""
    last = vars(estimator).get("_result")
    if estimator.warm_start and last is not None:
        model = model.going_on_from(last.model)
    return model.starting_at(*init) if _are_given(init) else model


def _are_given(init):
    """Return whether the user gives first coefficients or intercepts."""
    return any(values is not None for values in init)
