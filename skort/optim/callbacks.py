"""Callbacks: they watch a training, and may stop it."""

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from skort.common.component import Component, check_parameters
from skort.common.named_errors import errors_of
from skort.common.sklearn_private import Interval, Options
from skort.optim.scorers import nan_advice, scorer_of, scoring_advice
from skort.optim.training import Training

# A loss that is a smaller part of its first value counts as this part.
_SMALL = 0.03
# A growing patience has one epoch for so many epochs so far, and at most this length.
_PART = 5
_MOST = 20
# The columns of the history that are better when smaller.
_LOSSES = ("loss", "objective", "gradient_norm")
HOOKS = ("on_train_begin", "on_train_restart", "on_batch_end", "on_epoch_end", "on_train_end")
Hook: TypeAlias = Callable[[Training], None]


class Callback(Protocol):
    """
    An item of the parameter `callbacks`. It has at least one of these methods, and each gets a
    `skort.callbacks.Training`.

    A callback without `on_batch_end` costs no time per batch. One with a true attribute
    `comes_last` is called after all others, as `Checkpoint` is.

    Examples
    --------
    >>> from skort import OrtSGDRegressor
    >>> class StopBelow:
    ...     def on_epoch_end(self, training):
    ...         if training.history["objective"][-1] < 0.1:
    ...             training.stop()
    >>> X, y = [[-1.0], [0.0], [1.0]], [1.0, 3.0, 5.0]
    >>> model = OrtSGDRegressor(optimizer="sgd", callbacks=[StopBelow()]).fit(X, y)
    >>> model.loss_ < 0.1 < model.loss_curve_[-2]
    True
    """

    def on_train_begin(self, training: Training) -> None:
        """Run before the first epoch of `fit`, and before each `partial_fit`."""

    def on_train_restart(self, training: Training) -> None:
        """
        Run when the training begins again at a tenth of the learning rate. Its epochs so far are
        forgotten.
        """

    def on_batch_end(self, training: Training) -> None:
        """Run after every update."""

    def on_epoch_end(self, training: Training) -> None:
        """Run after every epoch."""

    def on_train_end(self, training: Training) -> None:
        """Run at the end, also after an error or a `KeyboardInterrupt`."""


class _OnTrainBegin(Protocol):
    def on_train_begin(self, training: Training) -> Any: ...


class _OnTrainRestart(Protocol):
    def on_train_restart(self, training: Training) -> Any: ...


class _OnBatchEnd(Protocol):
    def on_batch_end(self, training: Training) -> Any: ...


class _OnEpochEnd(Protocol):
    def on_epoch_end(self, training: Training) -> Any: ...


class _OnTrainEnd(Protocol):
    def on_train_end(self, training: Training) -> Any: ...


#: An object with at least one of the methods of `Callback`.
AnyCallback: TypeAlias = _OnTrainBegin | _OnTrainRestart | _OnBatchEnd | _OnEpochEnd | _OnTrainEnd


def check_callbacks(callbacks: Sequence[Any] | None) -> None:
    """
    Raise a ValueError for a callback that is a class, has no method of a callback, or has an
    invalid parameter.
    """
    for callback in callbacks or ():
        if isinstance(callback, type):
            raise ValueError(
                f"callbacks: {callback.__name__} is a class: pass an instance, "
                f"{callback.__name__}()."
            )
        if not any(callable(getattr(callback, hook, None)) for hook in HOOKS):
            advice = " Pass it to `set_callbacks`." if hasattr(callback, "on_fit_task_end") else ""
            raise ValueError(
                f"callbacks: {callback!r} is not a callback: it has none of the methods "
                f"{', '.join(HOOKS)}.{advice}"
            )

        for name in HOOKS:
            _check_arguments(callback, name)
        check_parameters(callback)


def _check_arguments(callback, name):
    """Raise a ValueError for a method of a callback that does not take the training alone."""
    method: Any = getattr(callback, name, None)
    try:
        arguments = inspect.signature(method)
    except (TypeError, ValueError):
        # It is no function, or one of C that does not show its arguments.
        return

    try:
        arguments.bind("training")
        takes_training = "logs" not in arguments.parameters
    except TypeError:
        takes_training = False
    if not takes_training:
        raise ValueError(
            f"callbacks: {type(callback).__name__}.{name}{arguments} has other arguments than skort "
            f"gives: write def {name}(self, training). training.n_epochs is the number of epochs, "
            "training.history has the values that Keras calls logs."
        )


def in_order(callbacks: Iterable[Any]) -> list[Any]:
    """
    Return callbacks in the order of their calls: the given order, but those with `comes_last =
    True` at the end.
    """
    return sorted(callbacks, key=lambda callback: bool(getattr(callback, "comes_last", False)))


class CallbackError(Exception):
    """Carries the error of a callback out of the loop, as its cause."""


class Hooks:
    """Calls the methods of a training's callbacks in their order."""

    def __init__(self, training: Training):
        self._training = training
        self._begun: list[Any] = []

    def begin(self) -> None:
        """Call `on_train_begin` of all callbacks."""
        for callback in self._training.callbacks:
            self._begun.append(callback)
            self.call(self.each("on_train_begin", [callback]))

    def each(self, name: str, callbacks: Sequence[Any] | None = None) -> list[Hook]:
        """
        Return the method `name` of each callback that has it. The default are the callbacks of the
        training.
        """
        callbacks = self._training.callbacks if callbacks is None else callbacks
        return [getattr(callback, name) for callback in callbacks if hasattr(callback, name)]

    def call(self, methods: Sequence[Hook]) -> None:
        """Call the methods that `each` returned."""
        training = self._training
        attributes = vars(training)
        for method in methods:
            eta, max_iter, n_before = training.eta, training.max_iter, len(attributes)
            try:
                method(training)
                if training.eta is not eta:
                    raise _set_in_vain(method, "eta")
                if training.max_iter is not max_iter:
                    raise _set_in_vain(method, "max_iter")
                if len(attributes) > n_before:
                    # A dict keeps the order in which its names came.
                    raise _set_in_vain(method, [*attributes][n_before])
            except Exception as error:
                raise CallbackError from error

    def end(self) -> BaseException | None:
        """
        Call `on_train_end` of all callbacks that have begun, even if one fails. Return the first
        error.
        """
        errors = []
        for method in self.each("on_train_end", self._begun):
            try:
                self.call([method])
            except CallbackError as error:
                errors.append(error.__cause__)

        return errors[0] if errors else None


def _set_in_vain(method, name):
    """Return the error for a callback that has set an attribute which no training reads."""
    return AttributeError(
        f"{getattr(method, '__qualname__', repr(method))} sets training.{name}, which has no effect. "
        "A callback changes a training by its methods stop, no_improvement and keep_best, and by "
        "history.record. For another learning rate, give a schedule as learning_rate."
    )


@dataclass(eq=False, repr=False)
class EarlyStopping(Component):
    """
    Stop when a column of the history has not improved for some epochs in a row,
    and restore the best weights.

    Epochs without a value in the column do not count. A schedule that can lower the learning rate
    ("adaptive") does so first; the training stops when the schedule can no longer.

    Parameters
    ----------
    monitor : str, default="validation_score"
        A column of the history: "validation_score" (with `early_stopping`, or `X_val` and
        `y_val` in `fit`), "loss", "objective", or the name of an `EpochScoring` that comes
        earlier in the list.
    patience : int, default=5
        Training stops after this number of epochs in a row without improvement.
    tol : float or None, default=0.0
        The smallest change of the best value that is an improvement. None: never stop.
    restore_best : bool, default=True
        Whether the training ends with the weights of the epoch with the best value,
        whatever ends it.
    greater_is_better : bool or None, default=None
        Whether larger values are better. None: not those of "loss", "objective" and
        "gradient_norm".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skort import OrtSGDRegressor
    >>> from skort.callbacks import EarlyStopping
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OrtSGDRegressor(scoring="r2", callbacks=[EarlyStopping(patience=3)])
    >>> model = model.fit(scale(X[:300]), y[:300], X_val=scale(X[300:]), y_val=y[300:])
    >>> round(model.score(scale(X[300:]), y[300:]), 6) == round(model.best_validation_score_, 6)
    True
    """

    __module__ = "skort.callbacks"
    _parameter_constraints = {
        "monitor": [str],
        "patience": [Interval(Integral, 1, None, closed="left"), Options(Real, {math.inf})],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "restore_best": ["boolean"],
        "greater_is_better": ["boolean", None],
    }
    _other_names = {
        "patience": ("n_iter_no_change",),
        "tol": ("min_delta", "threshold"),
        "restore_best": ("restore_best_weights", "load_best"),
        "greater_is_better": ("mode", "maximize"),
    }
    monitor: str = "validation_score"
    patience: int | float = 5
    tol: float | None = 0.0
    restore_best: bool = True
    greater_is_better: bool | None = None

    def on_train_begin(self, training: Training) -> None:
        """Forget the last training, or the epochs so far."""
        self._best = math.inf
        self._n_bad = 0
        self._n_seen = 0

    def on_train_restart(self, training: Training) -> None:
        """Forget the epochs so far."""
        self.on_train_begin(training)

    def on_epoch_end(self, training: Training) -> None:
        """Count the epochs without improvement."""
        if self.monitor not in training.history:
            raise ValueError(
                f"monitor={self.monitor!r} is not in the history, which has "
                f"{sorted(training.history)}. validation_score is there if fit has X_val and "
                "y_val, or with early_stopping=True; the name of an EpochScoring, if it comes before."
            )

        column = training.history[self.monitor]

        # A training that was resumed from a checkpoint has several new values.
        new_values = column[self._n_seen :]
        self._n_seen = training.n_epochs

        improved = False
        n_bad = 0
        for value in new_values:
            improved, n_bad = self._count(-value if self._is_greater_better() else value)

        # This epoch has no value.
        if len(column) < training.n_epochs:
            return

        if improved and self.restore_best:
            training.keep_best()
        if n_bad:
            self._runs_out(training, self._reason(n_bad))

    def _runs_out(self, training, reason):
        """Let the learning rate fall, or let the training end."""
        training.no_improvement(reason)

    def _is_greater_better(self):
        """Return whether larger values of the column are better."""
        return (
            self.monitor not in _LOSSES
            if self.greater_is_better is None
            else self.greater_is_better
        )

    def _count(self, value):
        """
        Count one more epoch, with a value that is better when smaller.

        Returns
        -------
        is_best : bool
            Whether no value so far is better.
        n_bad : int
            The number of epochs without improvement after which patience runs out; 0
            where it does not.
        """
        # An accuracy is often the same for many epochs, and the later ones know more.
        is_best = value <= self._best
        if self._is_improvement(value):
            self._n_bad = 0
        else:
            self._n_bad += 1

        if is_best:
            self._best = value

        n_bad = self._n_bad
        if n_bad < self._patience():
            return is_best, 0

        # The training may go on at a smaller rate, with new patience.
        self._n_bad = 0
        return is_best, n_bad

    def _is_improvement(self, value):
        """
        Return whether a value is better than the best one by enough. Without a `tol`, every value
        is.
        """
        if self.tol is None:
            return True
        return value < self._best and value <= self._best - self._least_change()

    def _reason(self, n_bad):
        """Return a sentence on why the training ends."""
        name = self.monitor.replace("_", " ")
        by = f" by {self.tol:.3g}{self._unit_of_tol}" if self.tol else ""
        epochs = "1 epoch" if n_bad == 1 else f"{n_bad} epochs in a row"
        return f"The {name} did not improve{by} for {epochs}."

    _unit_of_tol = ""

    def _least_change(self):
        """Return the least improvement on the best value."""
        return self.tol

    def _patience(self):
        """Return the epochs without improvement that end the training."""
        return self.patience


@dataclass(eq=False, repr=False)
class LossStopping(EarlyStopping):
    """
    Stop by a loss. `tol` is a part of its best value, and a `patience` that `grows` is longer after
    many epochs.
    """

    grows: bool = False

    _unit_of_tol = " of itself"

    def on_train_begin(self, training: Training) -> None:
        """Forget the last training, or the epochs so far."""
        super().on_train_begin(training)
        self._first = math.nan
        self._n_values = 0

    def _runs_out(self, training, reason):
        if self.monitor == "objective":
            training.no_fall(reason)
        else:
            training.no_improvement(reason)

    def _count(self, value):
        if self._n_values == 0:
            self._first = value
        self._n_values += 1
        return super()._count(value)

    def _least_change(self):
        if not math.isfinite(self._best):
            return 0.0
        # A loss that goes to zero would fall by a part of itself for ever, until its digits end.
        size = max(abs(self._best), _SMALL * abs(self._first))
        return (self.tol or 0.0) * size

    def _patience(self):
        if not self.grows:
            return self.patience
        # The noise of a few epochs hides a slow descent.
        part_of_epochs = math.ceil(self._n_values / _PART)
        return max(self.patience, min(part_of_epochs, _MOST))


@dataclass(eq=False, repr=False)
class EpochScoring(Component):
    """
    Score the model after every epoch, as a column of the history.

    A search clones it for each candidate. The clones share the data.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        As `fit` takes it.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    scoring : str, callable or None, default=None
        As in `sklearn.model_selection.cross_val_score`. None: the estimator's `score`.
    sample_weight : array-like of shape (n_samples,), default=None
        Passed to the scorer unless it is None.
    name : str, default="score"
        The name of the column.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skort import OrtSGDClassifier
    >>> from skort.callbacks import EpochScoring
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> scoring = EpochScoring(scale(X), y, "balanced_accuracy", name="accuracy")
    >>> model = OrtSGDClassifier(callbacks=[scoring], max_iter=20, tol=None, random_state=0).fit(
    ...     scale(X), y
    ... )
    >>> len(model.history_["accuracy"]), round(model.history_["accuracy"][-1], 1)
    (20, 1.0)
    """

    __module__ = "skort.callbacks"
    _parameter_constraints = {
        "X": "no_validation",
        "y": "no_validation",
        "scoring": [str, callable, None],
        "sample_weight": ["array-like", None],
        "name": [str],
    }
    X: Any
    y: ArrayLike
    scoring: str | Callable[..., float] | None = None
    sample_weight: ArrayLike | None = None
    name: str = "score"

    # The name of X in errors.
    _rows = "X of EpochScoring"

    def __sklearn_clone__(self) -> "EpochScoring":
        """Return a copy that shares the data."""
        return type(self)(**self.get_params(deep=False))

    def on_train_begin(self, training: Training) -> None:
        """
        Prepare X, and score once, so that a scorer that cannot work fails
        before the training.
        """
        with errors_of(self._rows):
            self._X = training.prepare(self.X)
        self._scorer = scorer_of(training.model, self.scoring)

        try:
            # The score of the weights that the training began with.
            self.initial = self._score(training)
            self._has_value = not math.isnan(self.initial)
        except (AttributeError, TypeError, ValueError) as error:
            advice = scoring_advice(training.model, self.scoring, self.y)
            reason = f"{str(error).rstrip('.')}.{advice}"
            raise ValueError(
                f"scoring={self.scoring!r} cannot score this model: {reason}"
            ) from error

    def on_epoch_end(self, training: Training) -> None:
        """
        Add the score to the history. It is NaN if a diverging training predicts numbers that are
        not finite. Raise a ValueError if it is NaN for another reason, and was before.
        """
        try:
            score = self._score(training)
        except ValueError:
            if self._is_finite(training.model):
                raise
            score = math.nan

        training.history.record(self.name, score)
        self._has_value = self._has_value or not math.isnan(score)
        if not self._has_value and self._is_finite(training.model):
            raise ValueError(
                f"scoring={self.scoring!r} has no value for {self._rows}: it is nan before and after "
                f"the first epoch.{nan_advice(training.model, self.y)}"
            )

    def _is_finite(self, model):
        """Return whether all predictions are finite."""
        return np.isfinite(getattr(model, "decision_function", model.predict)(self._X)).all()

    def on_train_end(self, training: Training) -> None:
        """Release the data."""
        for name in ("_X", "_scorer"):
            self.__dict__.pop(name, None)

    def _score(self, training):
        weight = {} if self.sample_weight is None else {"sample_weight": self.sample_weight}
        score = self._scorer(training.model, self._X, self.y, **weight)

        try:
            return float(score)
        except ValueError as error:
            raise ValueError(
                f"scoring={self.scoring!r} must return a number, got {score!r}."
            ) from error
