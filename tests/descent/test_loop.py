"""The loop with a solver of numpy alone: steps, history, interruption, divergence."""

import dataclasses
import math

import numpy as np
import pytest

from skort.descent.batches import Batches, HostBatch
from skort.descent.callbacks import EarlyStopping
from skort.descent.loop import minimise
from skort.descent.progress import Progress
from skort.descent.schedules import Adaptive, Constant, InvScaling
from skort.descent.training import Training


class MeanSolver:
    """Fits one number w to the target: J = sum_i v_i (w - y_i)^2 / 2 + 1, of which 1 is the penalty."""

    def __init__(self, batch_size, start=0.0):
        self.batch = HostBatch.empty(batch_size, 1, 1, np.float64)
        self.w = start
        self.etas, self.sums = [], np.zeros(2)
        self.last_gradient = 0.0

    def step(self, eta, share):
        self.etas.append(eta)
        residual = self.w - self.batch.target
        loss = 0.5 * float((self.batch.sample_weight * residual**2).sum())
        self.last_gradient = float((self.batch.sample_weight * residual).sum())
        self.w -= eta * self.last_gradient
        self.report(share, loss + 1, loss)

    def report(self, share, objective, loss):
        self.last_objective = objective
        self.sums += share * np.array([objective, loss])

    def objective(self):
        return self.last_objective

    def means(self):
        means, self.sums = tuple(self.sums.tolist()), np.zeros(2)
        return means

    def gradient_norm(self):
        return abs(self.last_gradient)

    def weights(self):
        return {"w": np.array(self.w)}

    def state(self):
        return self.weights()

    def restore(self, state):
        self.w, self.sums = float(state["w"]), np.zeros(2)


class ScriptedSolver(MeanSolver):
    """Reports the objectives that it is given, one a step; its weight is the number of steps."""

    def __init__(self, objectives, w=0.0):
        super().__init__(batch_size=1, start=w)
        self.objectives = iter(objectives)

    def step(self, eta, share):
        self.w += 1
        objective = next(self.objectives)
        self.report(share, objective, objective)


def batches(y, batch_size=None, shuffle=False):
    y = np.asarray(y, dtype=float)[:, None]
    return Batches(y, y, None, batch_size=batch_size or len(y), shuffle=shuffle, random_state=np.random.RandomState(0))


def fresh():
    return Progress.start(np.random.RandomState(0))


def training(solver, data, schedule=None, *, progress=None, max_iter=100, callbacks=()):
    return Training(
        solver, data, schedule or Constant(0.5), progress or fresh(), max_iter=max_iter, callbacks=callbacks
    )


def run(*args, **options):
    return minimise(training(*args, **options))


class Recorder:
    """Calls `act` at every hook, with its name; keeps what it returns."""

    def __init__(self, act):
        self.seen = []
        for hook in ("on_train_begin", "on_batch_end", "on_epoch_end", "on_train_end"):
            setattr(self, hook, lambda training, hook=hook: self.seen.append(act(hook, training)))


def test_full_batches_follow_the_closed_form():
    descent = run(MeanSolver(4), batches([1.0, 2.0, 3.0, 6.0]), max_iter=7)
    # w_t = mean (1 - (1 - eta)^t), loss_t = (w_t - mean)^2 / 2 + var / 2
    assert descent.weights["w"] == pytest.approx(3 * (1 - 0.5**7))
    loss = [0.5 * (3 * 0.5**t) ** 2 + 0.5 * 3.5 for t in range(7)]
    assert descent.progress.rows()["loss"] == pytest.approx(loss)
    assert descent.progress.rows()["objective"] == pytest.approx([value + 1 for value in loss])
    assert descent.progress.rows()["gradient_norm"] == pytest.approx([3 * 0.5**t for t in range(7)])
    assert descent.progress.rows()["eta"] == [0.5] * 7
    assert descent.progress.n_updates == 7
    assert not descent.progress.stopped


def test_loss_of_an_epoch_is_the_mean_over_its_rows():
    # eta is so small that w stays 0: the loss is the mean of y^2 / 2, whatever the batches.
    descent = run(MeanSolver(2), batches([1.0, 2.0, 5.0], batch_size=2), Constant(1e-12), max_iter=1)
    assert descent.progress.rows()["loss"] == pytest.approx([0.5 * 30 / 3])
    assert descent.progress.n_updates == 2


def test_schedule_counts_updates_from_one_and_on_from_before():
    data, schedule = batches([1.0, 2.0, 3.0], batch_size=2), InvScaling(eta0=1.0, power_t=1.0)
    solver = MeanSolver(2)
    descent = run(solver, data, schedule, max_iter=2)
    assert solver.etas == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])
    assert descent.progress.rows()["eta"] == pytest.approx([1 / 2, 1 / 4])
    after = run(solver, data, schedule, max_iter=None, progress=descent.progress)
    assert solver.etas[4:] == pytest.approx([1 / 5, 1 / 6])
    assert after.progress.rows().n_epochs == 3
    assert descent.progress.rows().n_epochs == 2


def test_a_rate_that_falls_after_bad_epochs_prolongs_the_training():
    # Two bad epochs in a row end a rate; 4e-6 / 5 is the first rate at most 1e-6, and the last.
    solver, stopping = MeanSolver(1), EarlyStopping("objective", patience=2, tol=0.1)
    descent = run(solver, batches([0.0]), Adaptive(4e-6), callbacks=[stopping])
    assert solver.etas == pytest.approx([4e-6] * 3 + [8e-7] * 2)
    assert descent.progress.stopped
    assert descent.progress.n_falls == 1
    after = run(solver, batches([0.0]), Adaptive(4e-6), max_iter=None, progress=dataclasses.replace(fresh(), n_falls=1))
    assert after.progress.rows()["eta"] == pytest.approx([8e-7])


def test_hooks_are_called_in_order_with_what_they_are_told():
    recorder = Recorder(lambda hook, training: (hook, training.n_updates, training.n_epochs))
    run(MeanSolver(2), batches([1.0, 2.0, 3.0], batch_size=2), max_iter=2, callbacks=[recorder])
    assert recorder.seen == [
        ("on_train_begin", 0, 0),
        ("on_batch_end", 1, 0),
        ("on_batch_end", 2, 0),
        ("on_epoch_end", 2, 1),
        ("on_batch_end", 3, 1),
        ("on_batch_end", 4, 1),
        ("on_epoch_end", 4, 2),
        ("on_train_end", 4, 2),
    ]


def test_on_batch_end_sees_each_objective_and_learning_rate():
    class Batchwise:
        seen = []

        def on_batch_end(self, training):
            self.seen.append((training.objective, training.eta))

    run(ScriptedSolver([3.0, 2.0]), batches([0.0]), InvScaling(1.0, 1.0), max_iter=2, callbacks=[Batchwise()])
    assert Batchwise.seen == [(3.0, 1.0), (2.0, 0.5)]


@pytest.mark.parametrize("hook", ["on_batch_end", "on_epoch_end"])
def test_stop_ends_it_after_the_epoch(hook):
    recorder = Recorder(lambda name, training: training.stop() if name == hook and training.n_updates == 3 else None)
    descent = run(MeanSolver(2), batches([1.0, 2.0, 3.0, 4.0], batch_size=2), max_iter=9, callbacks=[recorder])
    assert descent.progress.stopped == (hook == "on_batch_end")
    assert descent.progress.n_updates == (4 if hook == "on_batch_end" else 18)


@pytest.mark.parametrize("max_iter, before, n_epochs", [(5, 0, 1), (5, 2, 2), (None, 0, 1), (None, 2, 3)])
def test_the_first_epoch_and_that_of_partial_fit_are_made_whatever_stops_it(max_iter, before, n_epochs):
    class AtOnce:
        def on_train_begin(self, training):
            training.stop()

    progress = run(MeanSolver(1), batches([1.0]), max_iter=before).progress if before else fresh()
    descent = run(MeanSolver(1), batches([1.0]), max_iter=max_iter, callbacks=[AtOnce()], progress=progress)
    assert descent.progress.rows().n_epochs == n_epochs
    assert descent.progress.stopped


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("mine")])
@pytest.mark.parametrize("hook, n_updates", [("on_batch_end", 5), ("on_epoch_end", 4)])
def test_an_interruption_leaves_the_last_whole_epoch(error, hook, n_updates):
    def act(name, training):
        if name == hook and training.n_updates == n_updates:
            raise error

    data = [1.0, 2.0, 3.0]
    recorder = Recorder(act)
    descent = run(MeanSolver(2), batches(data, 2, shuffle=True), max_iter=9, callbacks=[recorder])
    two_epochs = run(MeanSolver(2), batches(data, 2, shuffle=True), max_iter=2)
    assert descent.error is error
    assert descent.weights == two_epochs.weights
    assert descent.progress.n_updates == two_epochs.progress.n_updates == 4
    assert descent.progress.rows()["loss"] == two_epochs.progress.rows()["loss"]
    generators = (outcome.progress.generator() for outcome in (descent, two_epochs))
    np.testing.assert_array_equal(*(generator.permutation(99) for generator in generators))
    assert len(recorder.seen) - recorder.seen.count(None) == 0


def test_an_interruption_between_windows_goes_back_to_the_order_of_the_last_whole_epoch(small_windows):
    def act(name, training):
        if name == "on_batch_end" and training.n_updates == n_updates:
            raise KeyboardInterrupt

    data = np.arange(100.0)
    two_epochs = run(MeanSolver(7), batches(data, 7, shuffle=True), max_iter=2)
    n_updates = two_epochs.progress.n_updates + 8
    interrupted = run(MeanSolver(7), batches(data, 7, shuffle=True), max_iter=9, callbacks=[Recorder(act)])
    assert interrupted.weights == two_epochs.weights
    assert interrupted.progress.generator().randint(10**9) == two_epochs.progress.generator().randint(10**9)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("mine")])
@pytest.mark.parametrize("hook", ["on_train_begin", "on_batch_end"])
def test_an_interruption_of_the_first_epoch_is_passed_on(error, hook):
    def act(name, training):
        if name == hook:
            raise error

    with pytest.raises(type(error)) as raised:
        run(MeanSolver(2), batches([1.0, 2.0, 3.0], 2), max_iter=9, callbacks=[Recorder(act)])
    assert raised.value is error


def test_an_error_at_the_end_is_kept_after_all_callbacks_have_ended():
    def fail(name, training):
        if name == "on_train_end":
            raise RuntimeError("mine")

    last = Recorder(lambda name, training: name)
    descent = run(MeanSolver(1), batches([1.0]), max_iter=2, callbacks=[Recorder(fail), last])
    assert str(descent.error) == "mine"
    assert descent.progress.rows().n_epochs == 2
    assert last.seen[-1] == "on_train_end"


def test_a_state_put_back_goes_on_to_the_same_numbers():
    data = [1.0, 2.0, 3.0, 7.0, 9.0]
    states = []

    class Saved:
        def on_epoch_end(self, training):
            states.append(training.progress())

    class Restored:
        def on_train_begin(self, training):
            training.restore(states[2])

    options = {"schedule": InvScaling(0.5, 0.5), "max_iter": 6}
    whole = run(MeanSolver(2), batches(data, 2, shuffle=True), callbacks=[Saved()], **options)
    resumed = run(MeanSolver(2, start=5.0), batches(data, 2, shuffle=True), callbacks=[Restored()], **options)
    assert resumed.weights == whole.weights
    assert resumed.progress.n_updates == whole.progress.n_updates
    assert resumed.progress.rows()["objective"] == whole.progress.rows()["objective"]


def test_the_columns_of_the_history_have_one_length():
    class First:
        def on_epoch_end(self, training):
            if training.n_epochs == 1:
                training.history.record("score", 0.5)

    descent = run(MeanSolver(1), batches([1.0]), max_iter=3, callbacks=[First()])
    np.testing.assert_array_equal(descent.progress.rows()["score"], [0.5, math.nan, math.nan])


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, None, np.array([0.1])])
def test_a_rate_that_is_none_is_named_with_its_update(bad):
    with pytest.raises(ValueError, match=r"learning_rate=.*finite number >= 0, gave .* for update 3"):
        run(MeanSolver(1), batches([1.0, 2.0], 1), lambda t: bad if t == 3 else 0.1, max_iter=5)


def test_the_kept_epoch_is_the_one_it_ends_with():
    class Third:
        def on_epoch_end(self, training):
            if training.n_epochs == 3:
                training.keep_best()

    descent = run(ScriptedSolver([5.0, 4, 3, 2, 1]), batches([0.0]), max_iter=5, callbacks=[Third()])
    assert descent.weights == descent.progress.solver == {"w": 3}
    assert descent.progress.n_updates == 5


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("callbacks", [[], [EarlyStopping("objective")]])
def test_a_loss_that_is_not_finite_ends_it_at_once(bad, callbacks):
    solver = ScriptedSolver([1.0, bad, 1.0])
    with pytest.raises(
        ValueError, match=r"loss became infinite or NaN in epoch 2.*learning rate of 0\.5.*StandardScaler"
    ):
        run(solver, batches([0.0]), max_iter=3, callbacks=callbacks)
    assert next(solver.objectives) == 1.0


@pytest.mark.parametrize("max_iter", [1, 3])
def test_weights_that_are_not_finite_end_it_with_their_epoch(max_iter):
    solver = ScriptedSolver([1.0, 2.0, 3.0], w=np.inf)
    with pytest.raises(ValueError, match="weights became infinite or NaN in epoch 1"):
        run(solver, batches([0.0]), max_iter=max_iter)
    assert next(solver.objectives) == 2.0
