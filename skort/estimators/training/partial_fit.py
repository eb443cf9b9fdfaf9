"""
A call of `partial_fit` from top to bottom: the first one plans a stream, later ones go on with it.

A stream differs from a `fit`:

- A call is one epoch. Nothing ends the training, and nothing begins it again.
- If scales or the first rate come from the first rows, these wait until there are 20. All columns
  of a network have the same variance, however relevant they are.
- A batch has the rows of the first call, at most 16.
- A step of a linear model is multiplied by the inverse root of the covariance of the columns in
  the first rows.
- Steps are made by an optimizer of batches, never by L-BFGS. `eta0` of a linear model is the rate
  of a row, and falls with the rows seen; that of a network stays.
- If the penalty of the model inside depends on the number of rows, it counts the rows so far.
- Sample weights multiply the losses as they are, and are not divided by their mean.
- No rows are held out, and no validation set is scored.
"""

import dataclasses
from typing import Any

from skort.estimators.data.rows import Columns, TrainingData
from skort.estimators.data.sample_weight import is_counted, weighted
from skort.estimators.planning.loss_and_penalty import chosen_class_weight
from skort.estimators.planning.plan_of_stream import (
    check_same_model,
    going_on,
    of_first_rows,
    of_seen_rows,
    of_stream,
    with_batches_of_call,
)
from skort.estimators.planning.scaling import dense_if_narrow
from skort.estimators.training.data_source import GivenRows, encoded_rows
from skort.estimators.training.fit import at_given_weights, in_wide_enough_dtype
from skort.estimators.training.observers import Observers
from skort.estimators.training.read import FitInput, model_and_data, read_fit
from skort.estimators.training.result import FitResult
from skort.estimators.training.run_stream import run_stream
from skort.estimators.training.warnings_at_start import warn_of_absent
from skort.optim.callbacks import check_callbacks
from skort.optim.state import TrainState

# A call of fewer rows may lack a class by chance.
_ROWS_PER_CLASS = 20


def first_call(estimator: Any, given: GivenRows, classes: Any = None) -> tuple[FitResult, FitInput]:
    """Train on the first call of a stream. Return the result and the input."""
    read = read_fit(estimator, given, classes=classes, is_stream=True)
    weights = read.sample_weight
    # A plan needs rows that count. If none counts, it is made as if all did, and the rows wait.
    of_plan = weights if is_counted(weights) else None

    if read.wrapped.is_fitted and is_counted(weights):
        _warn_of_absent(given, read.encoded)

    def train(plan):
        model, data = model_and_data(read, plan, weights, estimator.trainable)
        model = at_given_weights(estimator, model, (None, None))
        observers = Observers(estimator, read.columns)
        state = dataclasses.replace(TrainState.start(read.generator), n_seen=data.n_rows)
        return run_stream(of_stream(plan, model), model, data, state, observers)

    return in_wide_enough_dtype(estimator, read, of_plan, train, is_stream=True), read


def next_call(
    estimator: Any, last: FitResult, given: GivenRows
) -> tuple[FitResult, Columns] | None:
    """Train on a later call. Return the result and the columns of its rows, or None if no row counts."""
    check_callbacks(estimator.callbacks)
    plan = _present_plan(estimator, last)
    check_same_model(last.plan, estimator)

    columns = Columns.of(estimator)
    rows, encoded = encoded_rows(estimator, last.model, given.X, given.y, columns)
    class_weight = chosen_class_weight(estimator, plan.objective_inside, is_stream=True)
    weights, encoded = weighted(given.sample_weight, rows, encoded, class_weight, is_stream=True)
    if not is_counted(weights):
        return None

    is_after_fit = not last.plan.is_stream
    if is_after_fit:
        _warn_of_absent(given, encoded)
        plan = with_batches_of_call(plan, len(encoded.target))
    plan = plan.for_target(encoded)
    plan.loss.check_target(encoded.target)
    model = last.model.for_stream(plan.loss, encoded)
    data = TrainingData(dense_if_narrow(model.transform(rows)), encoded.target, weights)

    n_before = last.plan.size.n_rows if is_after_fit else last.state.n_seen
    n_seen = n_before + data.n_rows
    if last.state.is_new:
        plan = _with_first_rows(plan, model, estimator, n_before, n_seen)
        plan = plan.for_target(encoded)
    else:
        plan = of_seen_rows(plan, estimator, n_seen)

    state = dataclasses.replace(last.state, n_seen=n_seen)
    observers = Observers(estimator, columns)
    return run_stream(plan, model, data, state, observers, last), columns


def _warn_of_absent(given, encoded):
    """Warn of classes of a fitted model that the first call of its stream lacks, if it is long."""
    if encoded.classes is not None and len(encoded.y) >= _ROWS_PER_CLASS * len(encoded.classes):
        warn_of_absent(given.absent(encoded))


def _present_plan(estimator, last):
    """Return the plan of the last call; another one after a fit, or if parameters have changed."""
    is_same = last.plan.has_parameters_of(estimator)
    if is_same and last.plan.is_stream:
        return last.plan
    if not is_same:
        # scikit-learn validates the parameters before the first call only.
        estimator._validate_params()
    return going_on(last.plan, last.model, estimator)


def _with_first_rows(plan, model, estimator, n_waiting, n_rows):
    """Return the plan of a stream for its first rows, some of which have waited for this call."""
    if not n_waiting:
        plan = of_first_rows(plan, n_rows)
    # The number of rows divides the penalty of a model inside.
    plan = dataclasses.replace(plan, size=plan.size.of_stream(n_rows))
    return going_on(plan, model, estimator)
