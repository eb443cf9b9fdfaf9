"""The loop of several trainings, each against `minimise` alone."""

import numpy as np
import pytest

from skort.optim.batches import Batches, HostBatch
from skort.optim.callbacks import EarlyStopping
from skort.optim.loop import minimise, minimise_together
from skort.optim.schedules import Adaptive, Constant, InvScaling
from skort.optim.state import TrainState
from skort.optim.training import Course, Training, Watchers

X = np.random.default_rng(0).normal(size=(25, 1))
Y = 2 * X + 0.1 * np.random.default_rng(1).normal(size=(25, 1))


class Line:
    """One weight: half the mean square of y - w x, by plain gradient steps."""

    def __init__(self, batch):
        self.batch, self.w, self.sums, self.gradient = batch, np.zeros(1), [0.0, 0.0], 0.0

    def step(self, eta, share):
        batch = self.batch
        residual = batch.X @ self.w - batch.target[:, 0]
        self.value = float(0.5 * np.sum(batch.sample_weight[:, 0] * residual**2))
        self.gradient = float(np.sum(batch.sample_weight[:, 0] * residual * batch.X[:, 0]))
        self.w = self.w - eta * self.gradient
        self.sums = [s + share * self.value for s in self.sums]

    def objective(self):
        return self.value

    def means(self):
        means, self.sums = tuple(self.sums), [0.0, 0.0]
        return means

    def gradient_norm(self):
        return abs(self.gradient)

    def weights(self):
        return {"w": self.w.copy()}

    def is_finite(self):
        return bool(np.isfinite(self.w).all())

    def state(self):
        return {"weights": self.w.copy()}

    def restore(self, state):
        self.w = state["weights"].copy()


class Lines:
    """Several of them."""

    def __init__(self, n):
        self.batch = HostBatch.empty(4, 1, 1, "float64")
        self.lanes = [Line(self.batch) for _ in range(n)]
        self.kept, self.n_alone = [], 0

    def rates(self, etas):
        self.etas = etas

    def step(self, share):
        for number, eta in self.etas.items():
            self.lanes[number].step(eta, share)

    def keep(self, numbers):
        self.kept.append(numbers)

    def alone(self, number):
        self.n_alone += 1
        return Line(self.batch)


class Unit:
    def model_weights(self, weights):
        return weights

    def objective(self, value):
        return value


def batches():
    return Batches(X, Y, None, batch_size=4, shuffle=True, random_state=np.random.RandomState(0))


def training(step, rows, schedule, max_iter=40, tol=1e-3):
    stopping = EarlyStopping("objective", patience=2, tol=tol, restore_best=False)
    state = TrainState.start(np.random.RandomState(0))
    return Training(
        step, rows, state, Unit(), Course(schedule, max_iter=max_iter), Watchers([stopping])
    )


SCHEDULES = [Constant(0.3), Adaptive(0.5), InvScaling(0.4), Constant(0.01), lambda t: 0.2 / t]


@pytest.mark.parametrize("schedules", [SCHEDULES, SCHEDULES[:2]], ids=["changing", "steady"])
def test_each_has_the_outcome_of_a_training_alone(schedules):
    step, rows = Lines(len(schedules)), batches()
    pairs = zip(step.lanes, schedules, strict=True)
    trainings = [
        training(lane, rows, schedule, max_iter=10 + k) for k, (lane, schedule) in enumerate(pairs)
    ]
    outcomes = minimise_together(trainings, step, rows)
    for k, (outcome, schedule) in enumerate(zip(outcomes, schedules, strict=True)):
        alone = minimise(
            training(
                Line(HostBatch.empty(4, 1, 1, "float64")), batches(), schedule, max_iter=10 + k
            )
        )
        np.testing.assert_array_equal(outcome.weights["w"], alone.weights["w"])
        theirs, ours = alone.state, outcome.state
        for name in ("n_updates", "n_falls", "stopped", "stopping_reason", "n_epochs", "columns"):
            assert getattr(ours, name) == getattr(theirs, name), name
        assert ours.history["objective"] == theirs.history["objective"]
        assert outcome.first_eta == alone.first_eta
        # The order of the next epoch would be the same.
        assert ours.generator().randint(1000) == theirs.generator().randint(1000)
    lengths = [outcome.state.n_epochs for outcome in outcomes]
    assert len(step.kept) == max(lengths)
    assert step.kept[-1] == []
    assert min(lengths) < max(lengths)


def test_what_diverges_or_ends_no_better_has_no_outcome():
    step, rows = Lines(3), batches()
    # The second moves past the least objective, and ends further from it than it began.
    etas = zip(step.lanes, [0.3, 6.0, 1e30], strict=True)
    trainings = [training(lane, rows, Constant(eta), max_iter=4, tol=None) for lane, eta in etas]
    done, no_better, diverged = minimise_together(trainings, step, rows)
    assert done is not None
    assert no_better is None and step.n_alone == 1
    assert diverged is None


def test_an_error_of_a_callback_is_raised():
    step, rows = Lines(1), batches()
    with pytest.raises(Exception) as error:
        one = training(step.lanes[0], rows, Constant(0.3))
        one.callbacks = [EarlyStopping("score")]
        minimise_together([one], step, rows)
    assert "monitor='score' is not in the history" in str(error.value.__cause__)
