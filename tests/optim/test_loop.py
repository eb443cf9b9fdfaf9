"""The loop with a step of numpy alone: steps, history, interruption, divergence."""

import dataclasses
import math

import numpy as np
import pytest

from skort.exceptions import DivergedError
from skort.optim.batches import Batches, HostBatch
from skort.optim.callbacks import HOOKS, EarlyStopping
from skort.optim.loop import minimise
from skort.optim.schedules import Adaptive, Constant, InvScaling
from skort.optim.state import TrainState
from skort.optim.training import Course, Training, Watchers


class MeanStep:
    """
    Fits one number w to the target: J = sum_i v_i (w - y_i)^2 / 2 + 1,
    of which 1 is the penalty.
    """

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

    def is_finite(self):
        return bool(np.isfinite(self.w))

    def state(self):
        return self.weights()

    def restore(self, state):
        self.w, self.sums = float(state["w"]), np.zeros(2)


class ScriptedStep(MeanStep):
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
    return Batches(
        y,
        y,
        None,
        batch_size=batch_size or len(y),
        shuffle=shuffle,
        random_state=np.random.RandomState(0),
    )


def fresh():
    return TrainState.start(np.random.RandomState(0))


class SameUnits:
    """The variables of a training that are those of the model."""

    def model_weights(self, weights):
        return weights

    def objective(self, value):
        return value


class Units:
    """
    The variables of a training: w of the model is ten times that of the training,
    J is twice that plus three.
    """

    def model_weights(self, weights):
        return {name: 10 * w for name, w in weights.items()}

    def objective(self, value):
        return 2 * value + 3


def training(step, data, schedule=None, *, state=None, variables=None, callbacks=(), **options):
    course = Course(schedule or Constant(0.5), **{"max_iter": 100, **options})
    return Training(
        step, data, state or fresh(), variables or SameUnits(), course, Watchers(callbacks)
    )


def run(*args, **options):
    return minimise(training(*args, **options))


class Recorder:
    """Calls `act` at every hook, with its name; keeps what it returns."""

    def __init__(self, act):
        self.seen = []
        for hook in HOOKS:
            setattr(self, hook, lambda training, hook=hook: self.seen.append(act(hook, training)))


def test_full_batches_follow_the_closed_form():
    descent = run(MeanStep(4), batches([1.0, 2.0, 3.0, 6.0]), max_iter=7)
    # w_t = mean (1 - (1 - eta)^t), loss_t = (w_t - mean)^2 / 2 + var / 2
    assert descent.weights["w"] == pytest.approx(3 * (1 - 0.5**7))
    loss = [0.5 * (3 * 0.5**t) ** 2 + 0.5 * 3.5 for t in range(7)]
    assert descent.state.rows()["loss"] == pytest.approx(loss)
    assert descent.state.rows()["objective"] == pytest.approx([value + 1 for value in loss])
    assert descent.state.rows()["gradient_norm"] == pytest.approx([3 * 0.5**t for t in range(7)])
    assert descent.state.rows()["eta"] == [0.5] * 7
    assert descent.state.n_updates == 7
    assert not descent.state.stopped


def test_loss_of_an_epoch_is_the_mean_over_its_rows():
    # eta is so small that w stays 0: the loss is the mean of y^2 / 2, whatever the batches.
    descent = run(MeanStep(2), batches([1.0, 2.0, 5.0], batch_size=2), Constant(1e-12), max_iter=1)
    assert descent.state.rows()["loss"] == pytest.approx([0.5 * 30 / 3])
    assert descent.state.n_updates == 2


def test_schedule_counts_updates_from_one_and_on_from_before():
    data, schedule = batches([1.0, 2.0, 3.0], batch_size=2), InvScaling(eta0=1.0, power_t=1.0)
    step = MeanStep(2)
    descent = run(step, data, schedule, max_iter=2)
    # The second batch of each epoch has one row of two.
    assert step.etas == pytest.approx([1, 1 / 2 / 2, 1 / 3, 1 / 4 / 2])
    assert descent.state.rows()["eta"] == pytest.approx([1 / 2, 1 / 4])
    after = run(step, data, schedule, max_iter=None, state=descent.state)
    assert step.etas[4:] == pytest.approx([1 / 5, 1 / 6 / 2])
    assert after.state.rows().n_epochs == 3
    assert descent.state.rows().n_epochs == 2


def test_a_rate_that_falls_after_bad_epochs_prolongs_the_training():
    # Two bad epochs in a row end a rate; after one fall, the training.
    step, stopping, schedule = (
        MeanStep(1),
        EarlyStopping("objective", patience=2, tol=0.1),
        Adaptive(4e-6, 1),
    )
    descent = run(step, batches([0.0]), schedule, callbacks=[stopping])
    assert step.etas == pytest.approx([4e-6] * 3 + [8e-7] * 2)
    assert descent.state.stopped
    assert descent.state.n_falls == 1
    after = run(
        step,
        batches([0.0]),
        schedule,
        max_iter=None,
        state=dataclasses.replace(fresh(), n_falls=1),
    )
    assert after.state.rows()["eta"] == pytest.approx([8e-7])


def test_hooks_are_called_in_order_with_what_they_are_told():
    recorder = Recorder(lambda hook, training: (hook, training.n_updates, training.n_epochs))
    run(MeanStep(2), batches([1.0, 2.0, 3.0], batch_size=2), max_iter=2, callbacks=[recorder])
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

    run(
        ScriptedStep([3.0, 2.0]),
        batches([0.0]),
        InvScaling(1.0, 1.0),
        max_iter=2,
        callbacks=[Batchwise()],
    )
    assert Batchwise.seen == [(3.0, 1.0), (2.0, 0.5)]


@pytest.mark.parametrize("hook", ["on_batch_end", "on_epoch_end"])
def test_stop_ends_it_after_the_epoch(hook):
    recorder = Recorder(
        lambda name, training: training.stop() if name == hook and training.n_updates == 3 else None
    )
    descent = run(
        MeanStep(2), batches([1.0, 2.0, 3.0, 4.0], batch_size=2), max_iter=9, callbacks=[recorder]
    )
    assert descent.state.stopped == (hook == "on_batch_end")
    assert descent.state.n_updates == (4 if hook == "on_batch_end" else 18)


class Ended:
    """
    Keeps the reason that callbacks see at the end of a training;
    `act` is called with each epoch.
    """

    def __init__(self, act=lambda training: None):
        self.on_epoch_end = act

    def on_train_end(self, training):
        self.reason = training.stopping_reason


def _fail(training):
    if training.n_epochs == 2:
        raise OSError("disk")


def _interrupt(training):
    if training.n_epochs == 2:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "act, max_iter, reason",
    [
        (lambda training: None, 2, "The training reached max_iter=2 epochs."),
        (lambda training: None, None, None),
        (lambda training: training.stop(), 9, "A callback stopped the training."),
        (lambda training: training.stop("The time is up."), 9, "The time is up."),
        (lambda training: training.no_improvement(), 9, "The training did not improve."),
        (_fail, 9, "A callback raised OSError."),
        (_interrupt, 9, "The user interrupted the training."),
    ],
)
def test_why_a_training_ended_is_known_at_its_end(act, max_iter, reason):
    ended = Ended(act)
    descent = run(MeanStep(1), batches([1.0]), max_iter=max_iter, callbacks=[ended])
    assert ended.reason == descent.state.stopping_reason == reason


@pytest.mark.parametrize("reason", [None, 5, OSError("disk")])
def test_the_reason_of_a_callback_is_a_string(reason):
    ended = Ended(lambda training: training.stop(reason))
    descent = run(MeanStep(1), batches([1.0]), max_iter=3, callbacks=[ended])
    assert repr(descent.error) == repr(
        ValueError(f"stop: the reason must be a string, got {reason!r}.")
    )
    assert descent.state.stopping_reason == "A callback raised ValueError."


def test_a_training_that_goes_on_forgets_why_the_one_before_ended():
    before = run(MeanStep(1), batches([1.0]), max_iter=2).state
    assert (
        run(MeanStep(1), batches([1.0]), max_iter=None, state=before).state.stopping_reason is None
    )


def test_a_training_that_begins_again_forgets_that_it_stopped():
    class StopsFirst:
        def on_epoch_end(self, training):
            if training.n_epochs == 2 and not training.n_restarts:
                training.stop()

    # The first learning rate moves away from the mean, so that the training ends no better
    # than it began.
    descent = run(
        MeanStep(1),
        batches([1.0]),
        Constant(3.0),
        max_iter=2,
        can_restart=True,
        callbacks=[StopsFirst()],
    )
    assert descent.state.rows()["restarts"] == [1, 1]
    assert descent.state.stopping_reason == "The training reached max_iter=2 epochs."


@pytest.mark.parametrize(
    "max_iter, before, n_epochs", [(5, 0, 1), (5, 2, 2), (None, 0, 1), (None, 2, 3)]
)
def test_the_first_epoch_and_that_of_partial_fit_are_made_whatever_stops_it(
    max_iter, before, n_epochs
):
    class AtOnce:
        def on_train_begin(self, training):
            training.stop()

    state = run(MeanStep(1), batches([1.0]), max_iter=before).state if before else fresh()
    descent = run(MeanStep(1), batches([1.0]), max_iter=max_iter, callbacks=[AtOnce()], state=state)
    assert descent.state.rows().n_epochs == n_epochs
    assert descent.state.stopped


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("mine")])
@pytest.mark.parametrize("hook, n_updates", [("on_batch_end", 5), ("on_epoch_end", 4)])
def test_an_interruption_leaves_the_last_whole_epoch(error, hook, n_updates):
    def act(name, training):
        if name == hook and training.n_updates == n_updates:
            raise error

    data = [1.0, 2.0, 3.0]
    recorder = Recorder(act)
    descent = run(MeanStep(2), batches(data, 2, shuffle=True), max_iter=9, callbacks=[recorder])
    two_epochs = run(MeanStep(2), batches(data, 2, shuffle=True), max_iter=2)
    assert descent.error is error
    assert descent.weights == two_epochs.weights
    assert descent.state.n_updates == two_epochs.state.n_updates == 4
    assert descent.state.rows()["loss"] == two_epochs.state.rows()["loss"]
    generators = (outcome.state.generator() for outcome in (descent, two_epochs))
    np.testing.assert_array_equal(*(generator.permutation(99) for generator in generators))
    assert len(recorder.seen) - recorder.seen.count(None) == 0


def test_an_interruption_between_windows_goes_back_to_the_order_of_the_last_whole_epoch(
    small_windows,
):
    def act(name, training):
        if name == "on_batch_end" and training.n_updates == n_updates:
            raise KeyboardInterrupt

    data = np.arange(100.0)
    two_epochs = run(MeanStep(7), batches(data, 7, shuffle=True), max_iter=2)
    n_updates = two_epochs.state.n_updates + 8
    interrupted = run(
        MeanStep(7), batches(data, 7, shuffle=True), max_iter=9, callbacks=[Recorder(act)]
    )
    assert interrupted.weights == two_epochs.weights
    assert interrupted.state.generator().randint(10**9) == two_epochs.state.generator().randint(
        10**9
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("mine")])
@pytest.mark.parametrize("hook", ["on_train_begin", "on_batch_end"])
def test_an_interruption_of_the_first_epoch_is_passed_on(error, hook):
    def act(name, training):
        if name == hook:
            raise error

    with pytest.raises(type(error)) as raised:
        run(MeanStep(2), batches([1.0, 2.0, 3.0], 2), max_iter=9, callbacks=[Recorder(act)])
    assert raised.value is error


def test_an_error_at_the_end_is_kept_after_all_callbacks_have_ended():
    def fail(name, training):
        if name == "on_train_end":
            raise RuntimeError("mine")

    last = Recorder(lambda name, training: name)
    descent = run(MeanStep(1), batches([1.0]), max_iter=2, callbacks=[Recorder(fail), last])
    assert str(descent.error) == "mine"
    assert descent.state.rows().n_epochs == 2
    assert last.seen[-1] == "on_train_end"


def test_a_state_put_back_goes_on_to_the_same_numbers():
    data = [1.0, 2.0, 3.0, 7.0, 9.0]
    states = []

    class Saved:
        def on_epoch_end(self, training):
            states.append(training.state())

    class Restored:
        def on_train_begin(self, training):
            training.restore(states[2])

    options = {"schedule": InvScaling(0.5, 0.5), "max_iter": 6}
    whole = run(MeanStep(2), batches(data, 2, shuffle=True), callbacks=[Saved()], **options)
    resumed = run(
        MeanStep(2, start=5.0), batches(data, 2, shuffle=True), callbacks=[Restored()], **options
    )
    assert resumed.weights == whole.weights
    assert resumed.state.n_updates == whole.state.n_updates
    assert resumed.state.rows()["objective"] == whole.state.rows()["objective"]


def test_the_columns_of_the_history_have_one_length():
    class First:
        def on_epoch_end(self, training):
            if training.n_epochs == 1:
                training.history.record("score", 0.5)

    descent = run(MeanStep(1), batches([1.0]), max_iter=3, callbacks=[First()])
    np.testing.assert_array_equal(descent.state.rows()["score"], [0.5, math.nan, math.nan])


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, None, np.array([0.1])])
def test_a_rate_that_is_none_is_named_with_its_update(bad):
    with pytest.raises(
        ValueError, match=r"learning_rate=.*finite number >= 0, got .* for update 3"
    ):
        run(MeanStep(1), batches([1.0, 2.0], 1), lambda t: bad if t == 3 else 0.1, max_iter=5)


def test_the_kept_epoch_is_the_one_it_ends_with():
    class Third:
        def on_epoch_end(self, training):
            if training.n_epochs == 3:
                training.keep_best()

        def on_train_end(self, training):
            self.end = training.weights()

    third = Third()
    descent = run(ScriptedStep([5.0, 4, 3, 2, 1]), batches([0.0]), max_iter=5, callbacks=[third])
    assert descent.weights == descent.state.solver == third.end == {"w": 3}
    assert descent.state.n_updates == 5


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("callbacks", [[], [EarlyStopping("objective")]])
def test_a_loss_that_is_not_finite_ends_it_at_once(bad, callbacks):
    step = ScriptedStep([1.0, bad, 1.0])
    with pytest.raises(
        DivergedError, match=r"loss became infinite or NaN in epoch 2.*learning rate of 0\.5\."
    ):
        run(step, batches([0.0]), max_iter=3, callbacks=callbacks)
    assert next(step.objectives) == 1.0


@pytest.mark.parametrize("max_iter", [1, 3])
def test_weights_that_are_not_finite_end_it_with_their_epoch(max_iter):
    step = ScriptedStep([1.0, 2.0, 3.0], w=np.inf)
    with pytest.raises(ValueError, match="weights became infinite or NaN in epoch 1"):
        run(step, batches([0.0]), max_iter=max_iter)
    assert next(step.objectives) == 2.0


def test_weights_and_objectives_are_those_of_the_model():
    seen = Recorder(lambda hook, training: training.objective if hook == "on_batch_end" else None)
    plain, descent = (
        run(MeanStep(1), batches([1.0]), max_iter=3, variables=variables, callbacks=callbacks)
        for variables, callbacks in [(None, []), (Units(), [seen])]
    )
    assert descent.weights["w"] == pytest.approx(10 * plain.weights["w"])
    assert descent.state.solver == plain.state.solver
    for name in ("objective", "loss"):
        expected = [2 * value + 3 for value in plain.state.rows()[name]]
        assert descent.state.rows()[name] == pytest.approx(expected)
    assert [value for value in seen.seen if value is not None] == descent.state.rows()["objective"]


def test_the_rates_of_a_schedule_are_those_of_its_state():
    descent = run(
        MeanStep(1),
        batches([1.0]),
        state=dataclasses.replace(fresh(), rate_scale=0.2),
        max_iter=2,
    )
    assert descent.state.rows()["eta"] == pytest.approx([0.1, 0.1])
    assert descent.first_eta == pytest.approx(0.1)
    assert descent.state.rate_scale == 0.2


def test_a_training_that_diverges_begins_again_at_a_tenth_of_the_rate():
    # w_t = (1 - eta)^t, which overflows at 500, 50 and 5, and converges at 0.5.
    step, recorder = (
        MeanStep(1, start=1.0),
        Recorder(lambda hook, training: (hook, training.n_epochs)),
    )
    descent = run(
        step, batches([0.0]), Constant(500.0), max_iter=99, can_restart=True, callbacks=[recorder]
    )
    rates = [
        eta for eta, before in zip(step.etas, [None, *step.etas], strict=False) if eta != before
    ]
    assert rates == pytest.approx([500, 50, 5, 0.5])
    assert descent.weights["w"] == pytest.approx(0.5**99)
    history = descent.state.rows()
    assert history["objective"] == pytest.approx([1 + 0.5 ** (2 * t + 1) for t in range(99)])
    assert history["eta"] == pytest.approx([0.5] * 99)
    assert history["restarts"] == [3] * 99
    assert descent.state.n_updates == descent.state.n_epochs == 99
    assert descent.state.rate_scale == pytest.approx(1e-3)
    assert (descent.first_eta, descent.no_better, descent.error) == (
        pytest.approx(0.5),
        False,
        None,
    )
    between = [
        event
        for event in recorder.seen
        if event[0] in ("on_train_begin", "on_train_restart", "on_train_end")
    ]
    assert between == [("on_train_begin", 0), *[("on_train_restart", 0)] * 3, ("on_train_end", 99)]
    last = len(recorder.seen) - recorder.seen[::-1].index(("on_train_restart", 0))
    assert recorder.seen[last : last + 3] == [
        ("on_batch_end", 0),
        ("on_epoch_end", 1),
        ("on_batch_end", 1),
    ]


@pytest.mark.parametrize("can_restart, eta", [(True, "5"), (False, r"5e\+03")])
def test_a_training_without_a_restart_left_diverges(can_restart, eta):
    with pytest.raises(
        DivergedError, match=f"loss grew from 1.5 to .* at a learning rate of {eta}\\."
    ):
        run(MeanStep(1, start=1.0), batches([0.0]), Constant(5000.0), can_restart=can_restart)


def test_growth_is_relative_to_the_first_objective():
    descent = run(
        ScriptedStep([1e30, 1e35, math.inf]), batches([0.0], 1), Constant(0.1), max_iter=2
    )
    assert descent.state.rows()["objective"] == [1e30, 1e35]


def test_a_partial_fit_has_no_restart():
    step = ScriptedStep([1.0, math.inf])
    with pytest.raises(DivergedError, match="in epoch 1"):
        run(step, batches([0.0, 0.0], 1), max_iter=None, can_restart=True)
    assert next(step.objectives, None) is None


def test_a_restart_forgets_falls_callbacks_and_the_best_epoch():
    # Objectives grow at 40 and at 4: the rate falls after two epochs, and the kept epochs
    # are forgotten.
    class Keeper:
        kept = []

        def on_epoch_end(self, training):
            if training.n_epochs == 1 and training.n_restarts < 2:
                training.keep_best()
                self.kept.append(training.weights()["w"])

    step = MeanStep(1, start=1.0)
    stopping = EarlyStopping("objective", patience=2, tol=1e-9, restore_best=False)
    callbacks = [stopping, Keeper()]
    descent = run(
        step,
        batches([0.0]),
        Adaptive(40.0, max_falls=1),
        max_iter=6,
        can_restart=True,
        callbacks=callbacks,
    )
    assert step.etas[:4] == pytest.approx([40, 40, 40, 8])
    begin = step.etas.index(4.0)
    assert step.etas[begin : begin + 4] == pytest.approx([4, 4, 4, 0.8])
    assert Keeper.kept == pytest.approx([-39, -3])
    assert descent.state.best is None
    assert descent.weights["w"] == pytest.approx(0.6**6)
    assert descent.state.n_falls == 0


@pytest.mark.parametrize("can_restart", [True, False])
def test_a_training_that_ends_no_better_than_it_began_says_so(can_restart):
    # w_t = (-1.1)^t; at a tenth of the rate, 0.79^t.
    descent = run(
        MeanStep(1, start=1.0), batches([0.0]), Constant(2.1), max_iter=5, can_restart=can_restart
    )
    assert descent.no_better != can_restart
    assert descent.weights["w"] == pytest.approx(0.79**5 if can_restart else -(1.1**5))
    assert descent.state.rows()["eta"] == pytest.approx([0.21 if can_restart else 2.1] * 5)
    assert descent.state.n_epochs == descent.state.n_updates == 5
    assert descent.first_eta == pytest.approx(0.21 if can_restart else 2.1)


def test_a_training_that_is_no_better_after_three_restarts_is_kept():
    # It grows by a constant whatever the rate is.
    step = ScriptedStep(np.tile([1.0, 2.0, 0.5], 4))
    descent = run(step, batches([0.0]), Constant(1.0), max_iter=2, can_restart=True)
    assert descent.no_better
    assert descent.state.rows() == descent.state.rows() | {
        "objective": [1.0, 2.0],
        "restarts": [3, 3],
    }
    assert descent.state.rows()["eta"] == pytest.approx([1e-3, 1e-3])
    assert descent.weights == {"w": 2}


@pytest.mark.parametrize("last, no_better", [(2 + 1e-6, False), (2 + 1e-4, True)])
def test_a_training_that_begins_at_its_optimum_is_no_worse_by_rounding(last, no_better):
    assert run(ScriptedStep([2.0, last, 2.0]), batches([0.0]), max_iter=2).no_better == no_better


def test_the_initial_objective_is_that_of_all_rows_and_leaves_no_trace():
    # The first row has the objective 1 at w = 0, all rows 1 + 25: an end above 1 may be better.
    seen = []

    class Last:
        def on_epoch_end(self, training):
            seen.append(training.state())

    descent = run(
        MeanStep(1),
        batches([0.0, 10.0], 1, shuffle=True),
        Constant(0.1),
        max_iter=2,
        callbacks=[Last()],
    )
    rows = descent.state.rows()["objective"]
    assert 1 < rows[-1] < 26
    assert not descent.no_better
    assert descent.weights == {"w": seen[-1].solver["w"]}
    generators = (state.generator() for state in (descent.state, seen[-1]))
    np.testing.assert_array_equal(*(generator.permutation(99) for generator in generators))


def test_a_fine_tuning_that_ends_above_its_beginning_goes_back_to_it():
    # w_t = (-1.1)^t.
    options = {"max_iter": 5, "constant_loss": 100.0}
    descent = run(MeanStep(1, start=1.0), batches([0.0]), Constant(2.1), **options)
    assert (descent.no_better, descent.went_back) == (True, True)
    assert descent.weights["w"] == 1.0
    again = run(MeanStep(1, start=1.0), batches([0.0]), Constant(2.1), can_restart=True, **options)
    assert (again.no_better, again.went_back) == (False, False)
    assert again.weights["w"] == pytest.approx(0.79**5)


@pytest.mark.parametrize("constant_loss", [None, 99.0])
def test_a_fine_tuning_is_compared_with_all_rows_before_its_first_update(constant_loss):
    # Two batches an epoch: the first has the objective 50, both have 26, and the last epoch 30.
    step = ScriptedStep([50.0, 2.0, 20.0, 40.0, *[50.0, 2.0] * 2])
    descent = run(
        step, batches([0.0, 0.0], 1), Constant(1.0), max_iter=2, constant_loss=constant_loss
    )
    assert descent.no_better == descent.went_back == (constant_loss is not None)


@pytest.mark.parametrize("last, no_better", [(1.99, False), (2.0, True)])
def test_a_fine_tuning_that_ends_as_a_constant_prediction_says_so(last, no_better):
    step = ScriptedStep([3.0, last, 3.0])
    options = {"max_iter": 2, "constant_loss": 2.0, "can_restart": True}
    descent = run(step, batches([0.0]), Constant(1.0), **options)
    # It is better than it was: a smaller rate would lower its loss less.
    assert "restarts" not in descent.state.rows()
    assert (descent.no_better, descent.went_back, descent.weights) == (no_better, False, {"w": 2})


@pytest.mark.parametrize("options", [{"max_iter": None}, {"max_iter": 1, "is_compared": False}])
def test_a_partial_fit_and_some_losses_are_not_compared_with_their_beginning(options):
    step = MeanStep(1, start=1.0)
    descent = run(step, batches([0.0, 0.0], 1), Constant(2.1), can_restart=True, **options)
    assert not descent.no_better
    assert step.etas == [2.1, 2.1]
    assert "restarts" not in descent.state.rows()


def test_a_training_that_goes_on_from_a_checkpoint_restarts_from_its_initial_weights():
    states = []

    class Saved:
        def on_epoch_end(self, training):
            states.append(training.state())

    class Resumed:
        def on_train_begin(self, training):
            training.restore(states[1])

    options = {"schedule": Constant(500.0), "max_iter": 99, "can_restart": True}
    whole = run(MeanStep(1, start=1.0), batches([0.0]), callbacks=[Saved()], **options)
    resumed = run(MeanStep(1, start=1.0), batches([0.0]), callbacks=[Resumed()], **options)
    assert resumed.weights == whole.weights
    assert resumed.state.rows()["objective"] == whole.state.rows()["objective"]
    assert resumed.state.rows()["restarts"] == [3] * 99


@pytest.mark.parametrize("rise, kept", [(0.9, 3), (1.0, 3), (1.1, 1)])
def test_the_last_weights_are_kept_where_a_judge_finds_them_worse_by_chance_alone(rise, kept):
    class Judge:
        judges = True

        def on_epoch_end(self, training):
            if training.n_epochs == 1:
                training.keep_best()

        def rise(self, weights, others):
            self.compared = weights["w"].item(), others["w"].item()
            # The standard error is one.
            return rise, 1.0

    judge = Judge()
    descent = run(
        ScriptedStep([1.0] * 3), batches([0.0]), max_iter=3, callbacks=[judge], is_compared=False
    )
    assert judge.compared == (3, 1)
    assert descent.weights == {"w": kept}
