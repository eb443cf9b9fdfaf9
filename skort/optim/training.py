"""A training while it runs: the loop changes it, and callbacks see it."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from skort.common.component import own_copy
from skort.common.random_state import generator_of
from skort.optim.batches import Batch, Batches
from skort.optim.schedules import lower_rate, rate
from skort.optim.state import History, TrainState
from skort.optim.watchers import Watchers

_MOST_RESTARTS = 3
# Objectives of the same weights in another order of the rows differ by less,
# relatively, in float32.
_ROUNDING = 1e-5
# The loss of a network that says no more than a constant prediction is so near that of the
# constant, relatively.
_CONSTANT = 1e-3
# To ask a generator for its state takes as long as two steps. It is known anew after
# so many epochs.
_MANY_DRAWS = 32
NOBODY = Watchers()


class TrainStep(Protocol):
    """A step of a training as the loop sees it: a batch in, an update of the weights made."""

    #: The place from which the next step reads its rows.
    batch: Batch

    def step(self, eta: float, share: float) -> None:
        """
        Make one update on the batch, which has this share of the epoch's rows,
        and counts so much in `means`.
        """

    def objective(self) -> float:
        """Return the objective on the last step's batch before its update."""

    def means(self) -> tuple[float, float]:
        """Return the objective and the loss, each the mean over all steps since the last call."""

    def gradient_norm(self) -> float:
        """
        Return the Euclidean norm of the last step's gradient before clipping;
        0 before the first step.
        """

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name."""

    def is_finite(self) -> bool:
        """Return whether all weights are finite."""

    def state(self) -> dict[str, np.ndarray]:
        """
        Return a copy of all arrays that it, or the step of another solver of the same problem,
        goes on from to the last bit.
        """

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned."""


class Variables(Protocol):
    """The change of variables of a training: from the units of its step to those of the model."""

    def model_weights(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return weights of the step in the units of the model."""

    def objective(self, value: float) -> float:
        """Return an objective of the step in the units of the model."""


@dataclass(frozen=True, eq=False)
class Course:
    """The course of a training: its rates, its length, and when it is a failure."""

    #: Number of the update, from 1 -> learning rate. A method `on_bad_epochs`, if any, lowers the
    #: rate and returns True, or returns False where the training is to end.
    schedule: Callable[[int], float]
    #: None where nobody asks for it.
    optimizer: Any = None
    #: Total number of epochs to end with. None: one more epoch.
    max_iter: int | None = None
    #: The part of all rates that the batches of this course allow. It is no part of the state.
    rate_part: float = 1.0
    #: Whether a training that fails begins again at a tenth of the learning rate.
    can_restart: bool = False
    #: Whether a training fails that ends above the objective of its initial weights.
    is_compared: bool = True
    #: Where the initial weights are fitted ones, the loss of the best constant prediction, or
    #: infinity: a training that ends no better fails, too, and one that ends above its beginning
    #: goes back to it.
    constant_loss: float | None = None
    #: Looks for a lower objective over all rows where the rate can fall no more, from weights of
    #: the step in so many iterations. None: nothing does.
    finish: "Callable[[dict[str, np.ndarray], int], Finished | None] | None" = None


class Finished(NamedTuple):
    """A lower objective over all rows than that of a training, in the units of its step."""

    #: One vector, see `flat`.
    weights: np.ndarray
    #: The objective and the loss.
    means: tuple[float, float]
    gradient_norm: float
    #: Whether the objective still fell when the iterations were over.
    is_falling: bool


class Training:
    """
    A training while it runs.

    Parameters
    ----------
    step : TrainStep
        Makes the updates, from `state` on.
    batches : Batches
        Its random generator is the training's own.
    state : TrainState
        Everything that the training goes on from.
    variables : Variables
        Gives weights and objectives of the step in the units of the model.
    course : Course
        Rates, length, and when the training is a failure. The schedule is copied.
    watchers : Watchers, default=Watchers()
        Callbacks, and the model that they see.

    Attributes
    ----------
    history : History
        The values of every epoch, such as `training.history["objective"][-1]`.
    n_updates : int
        Number of updates made, earlier calls included.
    eta, first_eta : float or None
        Learning rates of the last and of the first update.
    objective, first_objective : float or None
        Objectives of the last and of the first batch, before their updates.
    n_restarts : int
        How often the training began again at a tenth of the learning rate.
    no_better : bool
        Whether the objective ended above that of the initial weights, or the loss no lower than
        that of a constant prediction.
    went_back : bool
        Whether the training ended with the fitted weights that it began with: none has a lower
        loss on a validation set, or, without one, a lower objective.
    max_iter : int or None
        Total number of epochs after which the training ends at the latest; None in `partial_fit`.
    stopped : bool
        Whether the training ends after this epoch.
    kept : {"last", "best", "fitted"} or None
        The weights that the training ended with. None if it kept none but the last.
    stopping_reason : str or None
        A sentence that says why the training ended. None while it goes on, and after a
        `partial_fit`.
    """

    def __init__(
        self,
        step: TrainStep,
        batches: Batches,
        state: TrainState,
        variables: Variables,
        course: Course,
        watchers: Watchers = NOBODY,
    ):
        self.step = step
        self.batches = batches
        self._variables = variables

        self._course = course
        self.schedule: Any = _copied(course.schedule)
        self.optimizer: Any = course.optimizer
        self.max_iter: int | None = course.max_iter

        self.callbacks: Sequence[Any] = watchers.callbacks
        self._preview: Any = watchers.preview
        self._judge = watchers.judge

        # The place that it goes on from
        self.history: History = state.open_history()
        self.n_updates: int = state.n_updates
        self.n_restarts: int = _last(self.history.get("restarts"))
        self._n_falls = 0
        #: Whether a lower objective over all rows is all that is left to look for.
        self.finishes: bool = False
        self._fall_to(state.n_falls)
        self._rate_scale = state.rate_scale
        self._is_rate_auto = state.is_rate_auto
        self._standardization = state.standardization
        self._penalty_start = state.penalty_start or {}
        self._knows(state.random_state)

        # The places that it can go back to. A `partial_fit` is never compared with its beginning.
        self.kept: str | None = None
        self._start = None if course.max_iter is None else step.state()
        self._last_epoch: TrainState | None = None
        self._best: dict[str, np.ndarray] | None = None

        self.eta: float = float("nan")
        self.objective: float = float("nan")
        self.first_eta: float | None = None
        self.first_objective: float | None = None
        self.stopped: bool = False
        self.stopping_reason: str | None = None
        self.no_better: bool = False
        self.went_back: bool = False

    @property
    def n_epochs(self) -> int:
        """Number of whole epochs made, earlier calls included."""
        return self.history.n_epochs

    @property
    def model(self) -> Any:
        """
        The fitted estimator as it would be if the training ended now,
        for data from `prepare`.
        """
        return self._preview.at(self.weights())

    def trained_model(self) -> Any:
        """
        Return the fitted estimator as it would be if the training ended now,
        as a copy that stays.
        """
        return self._preview.fitted(self.weights())

    def prepare(self, X: Any) -> Any:
        """
        Return X in the form that `model` takes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As `fit` takes it.

        Returns
        -------
        X : object
            What `model.predict` takes.

        Raises
        ------
        ValueError
            For an X that the model does not take.
        """
        return self._preview.prepare(X)

    def loss_of(self, rows: Any) -> Any:
        """
        Return the loss of rows, with X of `prepare`,
        as a function of the weights of the step: a `RowLoss`.
        """
        return self._preview.loss_of(rows)

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name, in the units of the model."""
        return self._variables.model_weights(self.step.weights())

    def rate(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        return self._rate_scale * self._course.rate_part * rate(self.schedule, t)

    def means(self) -> tuple[float, float]:
        """
        Return objective and loss, each the mean over all steps since the last call,
        in the units of the model.
        """
        objective, loss = self.step.means()
        return self._variables.objective(objective), self._variables.objective(loss)

    def means_of(self, found: Finished) -> tuple[float, float]:
        """Return objective and loss of a lower objective, in the units of the model."""
        objective, loss = found.means
        return self._variables.objective(objective), self._variables.objective(loss)

    def batch_objective(self) -> float:
        """Return the objective on the last batch before its update, in the units of the model."""
        return self._variables.objective(self.step.objective())

    def has_updated(self, n_updates: int, eta: float) -> None:
        """Take note of all updates up to a number, and of the rate of the last one."""
        self.n_updates = n_updates
        self.eta = eta
        self.objective = self.batch_objective()

    def has_begun(self, eta: float) -> None:
        """Take note of the first update, and of its rate."""
        self.first_eta = eta
        self.first_objective = self.batch_objective()

    def seems_no_better(self) -> bool:
        """
        Return whether the last epoch's objective is above that of the first batch:
        only then is it compared.
        """
        if not self._course.is_compared or self._start is None or self.first_objective is None:
            return False
        return self._is_fine_tuning or self.history["objective"][-1] > self.first_objective

    def is_no_better(self, step: TrainStep | None = None) -> bool:
        """
        Return whether the last epoch's objective is above that of the initial weights,
        or that of a constant.

        Parameters
        ----------
        step : TrainStep, default=None
            Makes the epoch that finds the first objective. None: that of the training.
        """
        if not self.seems_no_better():
            return False
        return self._is_as_a_constant() or self._is_above_start(step or self.step)

    @property
    def _is_fine_tuning(self):
        """Whether the initial weights are fitted ones."""
        return self._course.constant_loss is not None

    def _is_as_a_constant(self):
        """Return whether fitted weights end with a loss that a constant prediction has, too."""
        constant = self._course.constant_loss
        return constant is not None and self.history["loss"][-1] > (1 - _CONSTANT) * constant

    def _is_above_start(self, step):
        """
        Return whether the last epoch's objective is above that of the initial weights,
        which takes an epoch.
        """
        objective = self._objective_at(self._start, step)
        return self.history["objective"][-1] > objective + _ROUNDING * abs(objective)

    def go_back_to_fitted(self) -> None:
        """
        End with the initial weights where these were fitted ones,
        and the training has ended above them. Where there is a validation set, it decides.
        """
        self.went_back = (
            self.no_better
            and self._is_fine_tuning
            and self._judge is None
            and self._is_above_start(self.step)
        )
        if self.went_back:
            self._best = self._start

    def _objective_at(self, state, step):
        """Return an epoch's mean objective at a state of a step; nothing changes."""
        batches = self.batches
        state_before = step.state()
        generator_before = copy.deepcopy(batches.random_state)
        n_drawn_before = batches.n_drawn

        # Steps at a rate of zero
        step.restore(state)
        for portion in batches.epoch(step.batch):
            step.step(0.0, portion.share)
        objective, _ = step.means()

        step.restore(state_before)
        batches.random_state = generator_before
        batches.n_drawn = n_drawn_before
        return self._variables.objective(objective)

    def restart(self) -> bool:
        """
        Go back to the initial weights and a tenth of the learning rate,
        if the rate may change; return whether it may.
        """
        if not self._course.can_restart or self._start is None or self.n_restarts == _MOST_RESTARTS:
            return False

        self.n_restarts += 1
        self._rate_scale /= 10
        self.schedule = _copied(self._course.schedule)
        self._n_falls = 0
        self.finishes = False

        self.step.restore(self._start)
        # The means of the steps so far are forgotten, too.
        self.step.means()
        self.n_updates = 0
        self.history.truncate(0)
        self._best = None
        self._last_epoch = None

        self.stopped = False
        self.stopping_reason = None
        self.no_better = False
        return True

    def stop(self, reason: str = "A callback stopped the training.") -> None:
        """
        End the training after this epoch, for a reason: a sentence;
        raise a ValueError for another type.
        """
        if not isinstance(reason, str):
            raise ValueError(f"stop: the reason must be a string, got {reason!r}.")
        self.stopped = True
        self.stopping_reason = reason

    def no_improvement(self, reason: str = "The training did not improve.") -> None:
        """
        End the training after this epoch, for a reason,
        unless the learning rate can fall instead.
        """
        if not self._falls():
            self.stop(reason)

    def no_fall(self, reason: str) -> None:
        """
        Do as `no_improvement` when the objective no longer falls; at the end, look for a lower
        objective over all rows.
        """
        if self._falls():
            return

        has_time = self.n_epochs < (self.max_iter or 0)
        if self._course.finish is None or self.finishes or not has_time:
            self.stop(reason)
            return

        self._n_falls += 1
        self.finishes = True
        self.stopping_reason = reason

    def _falls(self):
        """Let the learning rate fall, if it can; return that."""
        is_lower = lower_rate(self.schedule)
        self._n_falls += is_lower
        return is_lower

    def finish(self) -> Finished | None:
        """
        Look for a lower objective over all rows, and go there;
        return it, or None if the training ends where it is.
        """
        assert self._course.finish is not None
        assert self.max_iter is not None
        reason = self.stopping_reason or ""
        found = self._course.finish(self.step.weights(), self.max_iter - self.n_epochs)
        if found is None:
            self.stop(reason)
            return None

        state = self.step.state()
        state["weights"] = found.weights.astype(state["weights"].dtype)
        self.step.restore(state)
        if found.is_falling:
            self.stopping_reason = None
        else:
            self.stop(f"{reason} L-BFGS found a lower one over all rows, until it no longer fell.")
        return found

    def keep_best(self) -> None:
        """Keep the present weights as those that the training ends with."""
        self._best = self.step.state()

    def state(self) -> TrainState:
        """Return everything that the training goes on from."""
        return self._state_from(self._random_state())

    def _state_from(self, random_state):
        return TrainState(
            solver=self.step.state(),
            n_updates=self.n_updates,
            n_falls=self._n_falls,
            stopped=self.stopped,
            random_state=random_state,
            history=self.history,
            n_epochs=self.n_epochs,
            columns=tuple(self.history),
            best=self._best,
            standardization=self._standardization,
            rate_scale=self._rate_scale,
            is_rate_auto=self._is_rate_auto,
            penalty_start=self._penalty_start or None,
            stopping_reason=self.stopping_reason,
            first_objective=self.first_objective,
        )

    def restore(self, state: TrainState) -> None:
        """
        Go on from another state of at least one epoch;
        raise a ValueError if it is of other data or of another start.
        """
        assert state.solver is not None  # It has an epoch.
        if state.standardization != self._standardization:
            raise ValueError(
                "The checkpoint is that of a training on other rows, or with another value of "
                "standardize: the means and scales of the columns differ. With early_stopping, "
                "which a fitted network has by default, give random_state, so that the same rows "
                "are held out."
            )

        theirs = state.penalty_start or {}
        if not all(
            name in theirs and np.array_equal(w, theirs[name])
            for name, w in self._penalty_start.items()
        ):
            raise ValueError(
                "The checkpoint is that of a training that began at other weights, and the penalty "
                "depends on them. Begin at the same weights: give random_state, the same coef_init, "
                "or the same fitted model."
            )

        self.step.restore(state.solver)
        self.n_updates = state.n_updates
        self._fall_to(state.n_falls)
        self.stopped = state.stopped
        self.stopping_reason = state.stopping_reason
        self.first_objective = state.first_objective
        self.batches.random_state = state.generator()
        self._knows(state.random_state)
        self.history = state.rows()
        if state.is_rate_auto == self._is_rate_auto:
            self._rate_scale = state.rate_scale
        self.n_restarts = _last(self.history.get("restarts"))
        self._best = state.best
        self._last_epoch = state

    def end_epoch(self) -> None:
        """Keep the present state, to which an interruption goes back."""
        self._n_ended = self.batches.n_drawn
        if self._n_ended - self._n_known >= _MANY_DRAWS:
            self._knows(self.batches.random_state.get_state(legacy=False))
        # The state of the generator is found where something goes back to this.
        self._last_epoch = self._state_from(self._known_state)

    def go_back(self) -> bool:
        """Go back to the end of the last whole epoch; return whether there was one."""
        if self._last_epoch is None:
            return False

        # The decisions and columns that callbacks added after that epoch stay.
        state = dataclasses.replace(
            self._last_epoch,
            n_falls=self._n_falls,
            stopped=self.stopped,
            stopping_reason=self.stopping_reason,
            best=self._best,
            history=self.history,
            columns=tuple(self.history),
            random_state=self._random_state(),
        )
        self.restore(state)
        return True

    def take_best(self) -> None:
        """
        Go back to the weights that `keep_best` kept, if any,
        unless the last weights are as good, apart from chance.
        """
        if self._best is not None:
            best = "fitted" if self.went_back else "best"
            self.kept = best if self._goes_back(self._best, self._is_worse) else "last"

        if self._start is not None and self._is_fine_tuning and not self.went_back:
            self._keep_better(self._start)

        # Nothing goes back any further, and a training that goes on from here has a best
        # epoch of its own.
        self._start = None
        self._last_epoch = None
        self._best = None

    def _keep_better(self, start):
        """Go back to the fitted weights where a validation set does not say that others are better."""
        if self._judge is None:
            return

        self.went_back = self._goes_back(start, self._is_no_better)
        if self.went_back:
            self.kept = "fitted"
        else:
            # The last epoch may be above the initial weights: the training ends with a better one.
            self.no_better = self.no_better and self._is_as_a_constant()

    def _goes_back(self, state, is_worse):
        """Go back to a state if the last weights are worse than its own; return whether they are."""
        last_state = self.step.state()
        last_weights = self.step.weights()
        self.step.restore(state)
        if is_worse(last_weights, self.step.weights()):
            return True

        self.step.restore(last_state)
        return False

    def _is_no_better(self, last, fitted):
        """Return whether the last weights are no better than fitted ones, on a validation set."""
        assert self._judge is not None
        rise, _ = self._judge.rise(fitted, last)
        return not rise > 0

    def _is_worse(self, last, best):
        """
        Return whether the last weights are worse than the best,
        by more than chance where that is known and the training did not begin at fitted weights.
        """
        if self._judge is None or self._is_fine_tuning:
            return True
        rise, squared_error = self._judge.rise(last, best)
        return not rise <= np.sqrt(squared_error)

    def _knows(self, random_state):
        """Remember the present state of the generator."""
        self._known_state = random_state
        self._n_known = self._n_ended = self.batches.n_drawn

    def _random_state(self):
        """Return the state of the generator after the last whole epoch."""
        if self.batches.n_drawn == self._n_ended:
            return self.batches.random_state.get_state(legacy=False)

        # Only the order of an epoch draws from it: draw again what was drawn since its
        # state was known.
        generator = generator_of(self._known_state)
        for _ in range(self._n_ended - self._n_known):
            self.batches.draw(generator)
        return generator.get_state(legacy=False)

    def _fall_to(self, n_falls):
        # A schedule that was given since then may have a rate that does not fall.
        for _ in range(n_falls - self._n_falls):
            if not lower_rate(self.schedule):
                self.finishes = self._course.finish is not None
                break
        self._n_falls = n_falls


def _copied(schedule):
    """Return a copy of a schedule whose rate may fall; a function as it is."""
    return own_copy(schedule, copy.deepcopy) if isinstance(schedule, BaseEstimator) else schedule


def _last(column):
    """Return the last number of a column, 0 where there is none."""
    return int(column[-1]) if column else 0
