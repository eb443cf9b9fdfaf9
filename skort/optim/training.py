"""A training while it runs: the loop changes it, and callbacks see it."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from skort.common.component import missing_attribute, own_copy
from skort.common.random_state import generator_of
from skort.optim.batches import Batch, Batches
from skort.optim.schedules import lower_rate, rate
from skort.optim.state import History, TrainState

_MOST_RESTARTS = 3
# In float32, two objectives of the same weights, over rows in another order, differ by a smaller
# part.
_ROUNDING = 1e-5
# A network that learned no more than a constant has a loss as near as this part to the constant's.
_CONSTANT = 1e-3
# Asking a generator for its state takes as long as two steps. So it is asked once in so many
# epochs.
_MANY_DRAWS = 32
# Why the scales of a checkpoint may differ.
_OF_FITS = (
    "With early_stopping, which a fitted network has by default, give random_state, so that the "
    "same rows are held out."
)
_OF_STREAMS = (
    "To go on with a stream, keep the estimator itself after each partial_fit, by pickle or joblib: "
    "a checkpoint only resumes a training on the same rows."
)


class _Epoch(NamedTuple):
    """The end of an epoch, to which a training can go back."""

    solver: dict[str, np.ndarray]
    n_updates: int
    n_epochs: int
    n_in_rate: int | None


class TrainStep(Protocol):
    """A step of a training as the loop sees it: a batch in, an update of the weights made."""

    #: The rows that the next step reads.
    batch: Batch

    def step(self, eta: float, share: float) -> None:
        """
        Make one update on the batch. It has this share of the epoch's rows, which is its weight in
        `means`.
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
        Return a copy of all arrays from which this step, or that of another solver of the same
        problem, continues to the last bit.
        """

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Continue from a state that `state` returned."""


class Variables(Protocol):
    """The change of variables of a training: from the units of its step to those of the model."""

    def model_weights(self, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return weights of the step in the units of the model."""

    def objective(self, value: float) -> float:
        """Return an objective of the step in the units of the model."""


class Preview(Protocol):
    """The fitted estimator, as callbacks see it at any weights of a training."""

    def prepare(self, X: Any) -> Any:
        """Return X, as `fit` takes it, in the form for the estimator of `at`."""

    def at(self, weights: dict[str, np.ndarray]) -> Any:
        """Return the estimator at some weights, for prepared data. The next call changes it."""

    def fitted(self, weights: dict[str, np.ndarray]) -> Any:
        """Return a copy of the estimator at some weights, for data as `fit` takes it. The copy stays."""

    def loss_of(self, rows: Any) -> Any:
        """Return the loss of prepared rows, as a function of the weights of the step."""


class Judge(Protocol):
    """
    A callback that compares the last weights of a training with the best ones. It declares `judges
    = True`.
    """

    def rise(self, weights: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> Any:
        """
        Return the difference between the losses at two sets of weights of the step, and its squared
        error.
        """


@dataclass(frozen=True, eq=False)
class Watchers:
    """The callbacks of a training, in their order, and the model that they see."""

    callbacks: Sequence[Any] = ()
    #: None: no callback looks at the model.
    preview: Preview | None = None

    @property
    def judge(self) -> Judge | None:
        """The callback that compares weights, or None."""
        return next((each for each in self.callbacks if getattr(each, "judges", False)), None)


NOBODY = Watchers()


@dataclass(frozen=True, eq=False)
class Course:
    """The rates and the length of a training, and what counts as its failure."""

    #: Number of the update, from 1 -> learning rate. If the schedule has a method `on_bad_epochs`,
    #: this lowers the rate and returns True, or returns False if the training is to end.
    schedule: Callable[[int], float]
    #: None: nobody asks for it.
    optimizer: Any = None
    #: The total number of epochs at the end. None: one more epoch.
    max_iter: int | None = None
    #: A factor of all rates, at which these batches are stable. It is no part of the state.
    rate_part: float = 1.0
    #: Number of the rows that count before a batch -> factor of its rate. None: rows do not lower it.
    fall: Callable[[int], float] | None = None
    #: Whether a training that fails begins again at a tenth of the rate.
    can_restart: bool = False
    #: Whether a training fails if it ends above the objective of its initial weights.
    is_compared: bool = True
    #: The loss of the best constant prediction, or infinity, if the initial weights are fitted
    #: ones. Then a training that ends above its beginning goes back to it.
    constant_loss: float | None = None
    #: (weights of the step, number of iterations) -> a lower objective over all rows, searched once
    #: the rate can fall no more. None: no search.
    finish: "Callable[[dict[str, np.ndarray], int], Finished | None] | None" = None


class Finished(NamedTuple):
    """A lower objective over all rows, in the units of the step."""

    #: The weights as one vector, see `flat`.
    weights: np.ndarray
    #: The objective and the loss.
    means: tuple[float, float]
    gradient_norm: float
    #: Whether the objective was still falling after the last iteration.
    is_falling: bool


# What other libraries call the attributes of a training.
_OTHER_NAMES = {
    **dict.fromkeys(("epoch", "current_epoch", "iteration", "n_iter_"), "n_epochs"),
    **dict.fromkeys(("lr", "learning_rate"), "eta"),
    **dict.fromkeys(("logs", "metrics", "history_"), "history"),
    "loss": 'history["loss"][-1]',
    "global_step": "n_updates",
    "estimator": "model",
}
_NAMES = {other: f"it is training.{own}" for other, own in _OTHER_NAMES.items()}


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

        # The state that it continues from
        self.history: History = state.open_history()
        self.n_updates: int = state.n_updates
        self.n_restarts: int = _last(self.history.get("restarts"))
        self._n_falls = 0
        #: Whether only the search for a lower objective over all rows is left.
        self.finishes: bool = False
        #: What this search has found.
        self.found: Finished | None = None
        self._fall_to(state.n_falls)
        self._rate_scale = state.rate_scale
        self._is_rate_found = state.is_rate_found
        self._n_in_rate = state.n_in_rate
        self._standardization = state.standardization
        self._penalty_start = state.penalty_start or {}
        self._remember(state.random_state)

        # The states that it can go back to. A `partial_fit` is never compared with its beginning.
        self.kept: str | None = None
        self._start = None if course.max_iter is None else step.state()
        self._last_epoch: _Epoch | None = None
        self._best: dict[str, np.ndarray] | None = None

        self.eta: float = float("nan")
        self.objective: float = float("nan")
        self.first_eta: float | None = None
        # A fit has a first batch of its own; all calls of a stream have one.
        is_stream = course.max_iter is None
        self.first_objective: float | None = state.first_objective if is_stream else None
        self.stopped: bool = False
        self.stopping_reason: str | None = None
        self.no_better: bool = False
        self.went_back: bool = False

    # To a type checker, a class with this method has every attribute.
    if not TYPE_CHECKING:
        __getattr__ = missing_attribute(_NAMES)

    @property
    def n_epochs(self) -> int:
        """Number of whole epochs made, earlier calls included."""
        return self.history.n_epochs

    @property
    def model(self) -> Any:
        """The estimator as it would be fitted now. It takes data from `prepare`."""
        return self._preview.at(self.weights())

    def trained_model(self) -> Any:
        """Return a copy of the estimator as it would be fitted now. The copy stays."""
        return self._preview.fitted(self.weights())

    def prepare(self, X: Any) -> Any:
        """
        Return X as `model` takes it.

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
        Return the loss of rows, with X from `prepare`, as a function of the weights of the step: a
        `RowLoss`.
        """
        return self._preview.loss_of(rows)

    def weights(self) -> dict[str, np.ndarray]:
        """Return a copy of the trained weights, by name, in the units of the model."""
        return self._variables.model_weights(self.step.weights())

    def rate(self, t: int) -> float:
        """Return the learning rate of update number `t`."""
        eta = self._rate_scale * self._course.rate_part * rate(self.schedule, t)
        fall: Any = self._course.fall
        return eta * fall(self._n_in_rate) if self.falls_by_rows else eta

    @property
    def falls_by_rows(self) -> bool:
        """Whether each batch has a lower rate than the one before."""
        return self._course.fall is not None and self._n_in_rate is not None

    def note_rows(self, share: float) -> None:
        """Count the rows of a batch, which has this share of the epoch's rows."""
        assert self._n_in_rate is not None  # The rate falls by rows.
        self._n_in_rate += round(share * self.batches.n_rows)

    def means(self) -> tuple[float, float]:
        """
        Return objective and loss, each the mean over all steps since the last call,
        in the units of the model.
        """
        objective, loss = self.step.means()
        return self._variables.objective(objective), self._variables.objective(loss)

    def means_of(self, found: Finished) -> tuple[float, float]:
        """Return the objective and the loss of a lower objective, in the units of the model."""
        objective, loss = found.means
        return self._variables.objective(objective), self._variables.objective(loss)

    def batch_objective(self) -> float:
        """Return the objective on the last batch before its update, in the units of the model."""
        return self._variables.objective(self.step.objective())

    def note_update(self, n_updates: int, eta: float) -> None:
        """Note the number of updates, and the rate of the last one."""
        self.n_updates = n_updates
        self.eta = eta
        self.objective = self.batch_objective()

    def note_first_update(self, eta: float) -> None:
        """Note the rate of the first update."""
        self.first_eta = eta
        self.first_objective = self.batch_objective()

    def seems_no_better(self) -> bool:
        """
        Return whether the last epoch's objective is above that of the first batch. If not, nothing
        is compared.
        """
        if not self._course.is_compared or self._start is None or self.first_objective is None:
            return False
        return self._is_fine_tuning or self.history["objective"][-1] > self.first_objective

    def ends_above_start(self, step: TrainStep | None = None) -> bool:
        """
        Return whether the last epoch ended above the objective of the initial weights.

        Parameters
        ----------
        step : TrainStep, default=None
            Makes the epoch that finds the first objective. None: that of the training.
        """
        if not self.seems_no_better():
            return False
        objective = self._objective_at(self._start, step or self.step)
        return self.history["objective"][-1] > objective + _ROUNDING * abs(objective)

    def ends_as_a_constant(self) -> bool:
        """Return whether fitted weights end with a loss no lower than that of a constant."""
        constant = self._course.constant_loss
        if constant is None or not self._course.is_compared:
            return False
        return self.history["loss"][-1] > (1 - _CONSTANT) * constant

    @property
    def _is_fine_tuning(self):
        """Whether the initial weights are fitted ones."""
        return self._course.constant_loss is not None

    def go_back_to_fitted(self) -> None:
        """
        End with the initial weights, if they are fitted ones: the training has ended above them.
        A validation set decides instead, if there is one.
        """
        self.went_back = self._is_fine_tuning and self._judge is None
        if self.went_back:
            self._best = self._start

    def _objective_at(self, state, step):
        """Return the mean objective of an epoch at a state of a step. Afterwards all is as before."""
        batches = self.batches
        state_before = step.state()
        generator_before = copy.deepcopy(batches.random_state)
        n_drawn_before = batches.n_drawn

        # Steps at a rate of zero compute it.
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
        Begin again at the initial weights and a tenth of the rate, if the rate may change. Return
        whether it may.
        """
        if not self._course.can_restart or self._start is None or self.n_restarts == _MOST_RESTARTS:
            return False

        self.n_restarts += 1
        self._rate_scale /= 10
        self.schedule = _copied(self._course.schedule)
        self._n_falls = 0
        self.finishes = False
        self.found = None

        self.step.restore(self._start)
        # This forgets the means of the steps so far.
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
        End the training after this epoch. The reason is a sentence; raise a ValueError for another
        type.
        """
        if not isinstance(reason, str):
            raise ValueError(f"stop: the reason must be a string, got {reason!r}.")
        self.stopped = True
        self.stopping_reason = reason

    def no_improvement(self, reason: str = "The training did not improve.") -> None:
        """Let the learning rate fall. If it cannot, end the training after this epoch, for a reason."""
        if not self._falls():
            self.stop(reason)

    def no_fall(self, reason: str) -> None:
        """
        Do as `no_improvement`, when the objective no longer falls. Before the end, look for a lower
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
        """Let the learning rate fall, if it can. Return whether it has."""
        is_lower = lower_rate(self.schedule)
        self._n_falls += is_lower
        return is_lower

    def finish(self) -> Finished | None:
        """
        Look for a lower objective over all rows. Go there and return it, or return None and end the
        training here.
        """
        assert self._course.finish is not None
        assert self.max_iter is not None
        reason = self.stopping_reason or ""
        found = self._course.finish(self.step.weights(), self.max_iter)
        if found is None:
            self.stop(reason)
            return None

        state = self.step.state()
        state["weights"] = found.weights.astype(state["weights"].dtype)
        self.step.restore(state)
        self.found = found
        if found.is_falling:
            self.stopping_reason = (
                f"{reason} L-BFGS made max_iter={self.max_iter} iterations over all rows, and it was "
                "still falling."
            )
        else:
            self.stop(f"{reason} L-BFGS found a lower one over all rows, until it no longer fell.")
        return found

    def keep_best(self) -> None:
        """Keep the present weights as those of the end."""
        self._best = self.step.state()

    def state(self) -> TrainState:
        """Return everything that the training can continue from."""
        return TrainState(
            solver=self.step.state(),
            n_updates=self.n_updates,
            n_falls=self._n_falls,
            stopped=self.stopped,
            random_state=self._random_state(),
            history=self.history,
            n_epochs=self.n_epochs,
            columns=tuple(self.history),
            best=self._best,
            standardization=self._standardization,
            rate_scale=self._rate_scale,
            is_rate_found=self._is_rate_found,
            n_in_rate=self._n_in_rate,
            penalty_start=self._penalty_start or None,
            stopping_reason=self.stopping_reason,
            first_objective=self.first_objective,
        )

    def restore(self, state: TrainState) -> None:
        """
        Continue from another state, of at least one epoch. Raise a ValueError if it is of other
        data or of another start.
        """
        assert state.solver is not None  # It has an epoch.
        mine, theirs = self._standardization, state.standardization
        # Steps are those of this training: only the units of the weights have to be the same.
        if _units(mine) != _units(theirs):
            raise ValueError(
                "The checkpoint is that of a training on other rows, or with another value of "
                "standardize: the means and scales of the columns differ. "
                f"{_OF_STREAMS if self.max_iter is None else _OF_FITS}"
            )

        began = state.penalty_start or {}
        if not all(
            name in began and np.array_equal(w, began[name])
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
        self._remember(state.random_state)
        self.history = state.rows()
        # A rate that falls by rows is too large where it does not fall. That of decorrelated columns
        # does not suit others.
        is_too_large = state.n_in_rate is not None and self._course.fall is None
        has_same_steps = _is_decorrelated(mine) == _is_decorrelated(theirs)
        is_same = state.is_rate_found == self._is_rate_found and has_same_steps
        if is_same and not is_too_large:
            self._rate_scale = state.rate_scale
            self._n_in_rate = state.n_in_rate
        self.n_restarts = _last(self.history.get("restarts"))
        self._best = state.best
        self._last_epoch = _Epoch(state.solver, state.n_updates, state.n_epochs, state.n_in_rate)

    def end_epoch(self) -> None:
        """Keep the present state for an interruption, which goes back to it."""
        self._n_ended = self.batches.n_drawn
        if self._n_ended - self._n_known >= _MANY_DRAWS:
            self._remember(self.batches.random_state.get_state(legacy=False))
        self._last_epoch = _Epoch(self.step.state(), self.n_updates, self.n_epochs, self._n_in_rate)

    def go_back(self) -> bool:
        """Go back to the end of the last whole epoch; return whether there was one."""
        if self._last_epoch is None:
            return False

        # Later decisions of callbacks, and their columns, stay.
        self.restore(dataclasses.replace(self.state(), **self._last_epoch._asdict()))
        return True

    def take_best(self) -> None:
        """
        Go back to the weights of `keep_best`, unless the last weights are as good, apart from
        chance.
        """
        if self._best is not None:
            best = "fitted" if self.went_back else "best"
            self.kept = best if self._goes_back(self._best, self._is_worse) else "last"

        if self._start is not None and self._is_fine_tuning and not self.went_back:
            self._keep_better(self._start)

        # The end is reached: nothing goes back further, and a later training has a best epoch of
        # its own.
        self._start = None
        self._last_epoch = None
        self._best = None

    def _keep_better(self, start):
        """
        Go back to the fitted weights, unless a validation set says that the last weights are
        better.
        """
        if self._judge is None:
            return

        self.went_back = self._goes_back(start, self._is_no_better)
        if self.went_back:
            self.kept = "fitted"
        else:
            # The last epoch may be above the initial weights, but the training ends with a better
            # one.
            self.no_better = self.ends_as_a_constant()

    def _goes_back(self, state, is_worse):
        """
        Go back to a state if the last weights are worse than those of the state. Return whether
        they are.
        """
        last_state = self.step.state()
        last_weights = self.step.weights()
        self.step.restore(state)
        if is_worse(last_weights, self.step.weights()):
            return True

        self.step.restore(last_state)
        return False

    def _is_no_better(self, last, fitted):
        """
        Return whether a validation set says that the last weights are no better than the fitted
        ones.
        """
        assert self._judge is not None
        rise, _ = self._judge.rise(fitted, last)
        return not rise > 0

    def _is_worse(self, last, best):
        """
        Return whether the last weights are worse than the best ones. If chance is known, and the
        training began at new weights, they must be so by more than chance.
        """
        if self._judge is None or self._is_fine_tuning:
            return True
        rise, squared_error = self._judge.rise(last, best)
        return not rise <= np.sqrt(squared_error)

    def _remember(self, random_state):
        """Remember a state of the generator as the present one."""
        self._known_state = random_state
        self._n_known = self._n_ended = self.batches.n_drawn

    def _random_state(self):
        """Return the state of the generator after the last whole epoch."""
        if self._n_ended == self._n_known:
            return self._known_state
        if self.batches.n_drawn == self._n_ended:
            return self.batches.random_state.get_state(legacy=False)

        # Only the order of an epoch draws from the generator. So all orders since the known state
        # are drawn again.
        generator = generator_of(self._known_state)
        for _ in range(self._n_ended - self._n_known):
            self.batches.draw(generator)
        return generator.get_state(legacy=False)

    def _fall_to(self, n_falls):
        # The schedule may be a new one, whose rate does not fall.
        for _ in range(n_falls - self._n_falls):
            if not lower_rate(self.schedule):
                self.finishes = self._course.finish is not None
                break
        self._n_falls = n_falls


def _copied(schedule):
    """Return a copy of a schedule whose rate may fall, or a function as it is."""
    return own_copy(schedule, copy.deepcopy) if isinstance(schedule, BaseEstimator) else schedule


def _units(standardization):
    """Return the means and scales of a training, or None."""
    return None if standardization is None else standardization.units


def _last(column):
    """Return the last number of a column, or 0 without one."""
    return int(column[-1]) if column else 0


def _is_decorrelated(used):
    """Return whether the steps of a training are those of decorrelated columns."""
    return used is not None and used.decorrelation is not None
