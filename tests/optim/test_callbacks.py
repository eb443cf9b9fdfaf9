"""The callbacks that skort brings, on scripted trainings."""

import math

import numpy as np
import pytest
from sklearn.base import clone

from skort import OrtSGDRegressor
from skort.callbacks import EarlyStopping
from skort.optim.callbacks import EpochScoring, LossStopping, check_callbacks, in_order
from skort.optim.checkpoint import Checkpoint
from skort.optim.display import EpochLines, ProgressBar
from skort.optim.state import History, best_epoch


class Scripted:
    """A training whose column `name` has the given values."""

    def __init__(self, name, values):
        self.name, self.values = name, values
        self.max_iter, self.history = len(values), History()
        self.stopped, self.bests = False, []

    @property
    def best(self):
        return self.bests[-1] if self.bests else None

    @property
    def n_epochs(self):
        return self.history.n_epochs

    def no_improvement(self, reason):
        self.stopped, self.stopping_reason = True, reason

    no_fall = no_improvement

    def keep_best(self):
        self.bests.append(self.n_epochs)

    def run(self, callback):
        getattr(callback, "on_train_begin", lambda training: None)(self)
        for value in self.values:
            self.history.next_epoch(**{self.name: value})
            callback.on_epoch_end(self)
            if self.stopped:
                break
        getattr(callback, "on_train_end", lambda training: None)(self)
        return self


@pytest.mark.parametrize(
    "objectives, tol, n_epochs",
    [
        # Falls by 1 > tol, then stays: two bad epochs in a row end it.
        ([5, 4, 4, 4, 4, 4], 0.1, 4),
        # One good epoch between the bad ones starts the count anew.
        ([5, 5, 3, 3, 3, 3], 0.1, 5),
        # Falling by less than tol is bad, against the best value so far.
        ([5, 4.95, 4.9, 1, 0], 0.1, 3),
        # Falling by exactly tol is not bad.
        ([5, 4.5, 4, 3.5], 0.5, 4),
        # The same value again is bad, too: a validation loss of zero cannot fall.
        ([5, 0, 0, 0, 0], 0.0, 4),
        # Without tol nothing is bad.
        ([1, 2, 3, 4], None, 4),
        # What is no number is bad.
        ([math.nan, math.nan, 1], 0.0, 2),
    ],
)
@pytest.mark.parametrize("sign, name", [(1, "objective"), (-1, "validation_score")])
def test_early_stopping_after_bad_epochs_in_a_row(objectives, tol, n_epochs, sign, name):
    values = [sign * value for value in objectives]
    training = Scripted(name, values).run(EarlyStopping(name, patience=2, tol=tol))
    assert training.n_epochs == n_epochs
    assert training.stopped == (n_epochs < len(values))
    if not np.isnan(values[0]):
        # Of equal values, the last one is the best.
        assert training.best == n_epochs - int(np.argmin(objectives[:n_epochs][::-1]))


@pytest.mark.parametrize(
    "stopping, reason",
    [
        (EarlyStopping("objective", 3), "The objective did not improve for 3 epochs in a row."),
        (
            EarlyStopping("objective", 1, tol=0.1),
            "The objective did not improve by 0.1 for 1 epoch.",
        ),
        (
            EarlyStopping(patience=2, tol=1e-4),
            "The validation score did not improve by 0.0001 for 2 epochs in a row.",
        ),
    ],
)
def test_early_stopping_says_why_it_ends(stopping, reason):
    sign = -1 if stopping.monitor == "validation_score" else 1
    assert (
        Scripted(stopping.monitor, [sign * value for value in range(9)])
        .run(stopping)
        .stopping_reason
        == reason
    )


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize(
    "values, n_epochs",
    [
        # A fall by a tenth of the best value is enough, by less is not.
        ([100, 89, 79, 70, 66, 60, 1], 6),
        ([100, 89, 79, 70, 62, 55, 49], 7),
        # Below 3 % of the first value, a tenth of these counts.
        ([100, 3, 2.75, 2.5, 0], 4),
        ([100, 3, 2.65, 2.3, 0], 5),
    ],
)
def test_a_loss_has_to_fall_by_a_part_of_itself(values, n_epochs, unit):
    training = Scripted("objective", [unit * value for value in values]).run(
        LossStopping("objective", 2, tol=0.1)
    )
    assert training.n_epochs == n_epochs
    if n_epochs < len(values):
        assert (
            training.stopping_reason
            == "The objective did not improve by 0.1 of itself for 2 epochs in a row."
        )


@pytest.mark.parametrize(
    "n_good, n_bad",
    # At least the patience; else more than a fifth of all epochs, 20 at most.
    [(3, 5), (20, 5), (21, 6), (40, 10), (79, 20), (300, 20)],
)
def test_the_patience_for_a_loss_grows_with_the_epochs(n_good, n_bad):
    values = [*(0.5**k for k in range(n_good)), *50 * [1.0]]
    for grows, expected in ((True, n_bad), (False, 5)):
        stopping = LossStopping("objective", 5, tol=0.0, grows=grows)
        assert Scripted("objective", values).run(stopping).n_epochs == n_good + expected


@pytest.mark.parametrize("restore_best", [True, False])
def test_the_same_early_stopping_serves_several_trainings(restore_best):
    stopping = EarlyStopping("accuracy", patience=1, restore_best=restore_best)
    for values, best in (([0.1, 0.9, 0.5], 2), ([0.3, 0.2], 1)):
        training = Scripted("accuracy", values).run(stopping)
        assert training.best == (best if restore_best else None)
        assert training.stopped


def test_of_equal_scores_the_last_one_is_the_best():
    stopping = EarlyStopping("accuracy", patience=3, tol=0.1)
    training = Scripted("accuracy", [0.5, 0.9, 0.8, 0.9, 0.7, 0.6]).run(stopping)
    # The same again is the best, but no improvement.
    assert training.bests == [1, 2, 4]
    assert training.n_epochs == 5
    assert best_epoch([0.5, 0.9, math.nan, 0.9, 0.7]) == (4, 0.9)


def test_early_stopping_counts_what_came_before_a_checkpoint():
    stopping = EarlyStopping("objective", patience=3)
    training = Scripted("objective", [3.0])
    for value in (1.0, 2.0):
        training.history.next_epoch(objective=value)
    training.run(stopping)
    assert not training.stopped
    assert training.best is None
    training.history.next_epoch(objective=4.0)
    stopping.on_epoch_end(training)
    assert training.stopped


def epochs(stopping, objectives):
    """Run a training whose history has no objective for the epochs of None."""
    training = Scripted("objective", objectives)
    stopping.on_train_begin(training)
    for value in objectives:
        training.history.next_epoch(seconds=1.0, **({} if value is None else {"objective": value}))
        stopping.on_epoch_end(training)
        if training.stopped:
            break
    return training


def test_epochs_without_a_new_value_do_not_count():
    stopping = EarlyStopping("objective", patience=2)
    training = epochs(stopping, [3.0, None, None, None, 2.0, None, 2.5, None, None, 1.5])
    assert not training.stopped
    # The weights of the epochs with 3, 2 and 1.5.
    assert training.bests == [1, 5, 10]
    training = epochs(stopping, [3.0, None, 3.5, None, None, 3.2, 1.0])
    assert training.stopped
    assert training.n_epochs == 6
    assert training.bests == [1]


def test_an_epoch_without_a_value_does_not_keep_its_weights_for_the_best_value_before_a_checkpoint():
    training = Scripted("objective", [])
    training.history.next_epoch(seconds=1.0, objective=3.0)
    training.history.next_epoch(seconds=1.0)
    stopping = EarlyStopping("objective", patience=1)
    stopping.on_train_begin(training)
    stopping.on_epoch_end(training)
    assert training.best is None
    assert not training.stopped


def test_greater_is_better_may_be_said():
    training = Scripted("error", [3.0, 2.0, 4.0]).run(
        EarlyStopping("error", greater_is_better=False)
    )
    assert training.best == 2


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(
        ValueError, match=r"monitor='accuracy' is not in the history, which has \['objective'\]"
    ):
        Scripted("objective", [1.0]).run(EarlyStopping("accuracy"))


@pytest.mark.parametrize(
    "wrap", [lambda scoring: scoring, lambda scoring: OrtSGDRegressor(callbacks=[scoring])]
)
def test_clones_of_a_scoring_share_its_data(wrap):
    X, y, sample_weight = np.ones((4, 2)), np.arange(4.0), np.ones(4)
    scoring = EpochScoring(X, y, "r2", sample_weight=sample_weight, name="r2")
    cloned = clone(wrap(scoring))
    copy = cloned.callbacks[0] if isinstance(cloned, OrtSGDRegressor) else cloned
    assert copy is not scoring
    assert (copy.scoring, copy.name) == ("r2", "r2")
    assert np.shares_memory(copy.X, X)
    assert np.shares_memory(copy.y, y)
    assert np.shares_memory(copy.sample_weight, sample_weight)


@pytest.mark.parametrize(
    "callback, message",
    [
        (EarlyStopping(patience=0), "'patience' parameter of EarlyStopping"),
        (EarlyStopping(tol=-1.0), "'tol' parameter of EarlyStopping"),
        (EarlyStopping(monitor=None), "'monitor' parameter of EarlyStopping"),
        (EpochScoring([[1.0]], [1.0], scoring=3), "'scoring' parameter of EpochScoring"),
        (Checkpoint("path", every=0), "'every' parameter of Checkpoint"),
        (Checkpoint(3), "'path' parameter of Checkpoint"),
    ],
)
def test_parameters_have_constraints(callback, message):
    with pytest.raises(ValueError, match=message):
        check_callbacks([callback])


def test_what_is_no_callback_is_refused():
    check_callbacks(None)
    check_callbacks([ProgressBar(), EpochLines()])
    with pytest.raises(
        ValueError,
        match="callbacks: 'bar' is not a callback: it has none of the methods on_train_begin",
    ):
        check_callbacks(["bar"])
    with pytest.raises(
        ValueError, match=r"callbacks: ProgressBar is a class: pass an instance, ProgressBar\(\)"
    ):
        check_callbacks([ProgressBar])


class Keras:
    def on_epoch_end(self, epoch, logs=None):
        pass


class TwoArguments:
    def on_train_begin(self, training, logs):
        pass


class NoArguments:
    def on_batch_end(self):
        pass


@pytest.mark.parametrize(
    "callback, method",
    [
        (Keras(), "Keras.on_epoch_end(epoch, logs=None)"),
        (TwoArguments(), "TwoArguments.on_train_begin(training, logs)"),
        (NoArguments(), "NoArguments.on_batch_end()"),
    ],
)
def test_a_method_with_other_arguments_is_refused_before_the_fit(callback, method):
    name = method.split(".")[1].split("(")[0]
    message = f"callbacks: {method} has other arguments .* write def {name}(self, training)."
    escaped = message.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=escaped):
        OrtSGDRegressor(callbacks=[callback]).fit([[0.0], [1.0]], [0.0, 1.0])


class Further:
    """Takes the training alone, and has arguments of its own."""

    def on_epoch_end(self, training, limit=3, *others, **more):
        if training.n_epochs == limit:
            training.stop()


def test_a_method_may_have_further_arguments_with_defaults():
    model = OrtSGDRegressor(optimizer="sgd", callbacks=[Further()])
    assert model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0]).n_iter_ == 3


class Sets:
    """Sets an attribute of the training."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def on_epoch_end(self, training):
        setattr(training, self.name, self.value)


class Reads(Sets):
    """Reads an attribute of the training."""

    def on_epoch_end(self, training):
        getattr(training, self.name)


@pytest.mark.parametrize(
    "name, instead",
    [
        ("epoch", ": it is training.n_epochs."),
        ("loss", ': it is training.history["loss"][-1].'),
        ("lr", ": it is training.eta."),
        ("other", ""),
    ],
)
def test_attributes_of_other_libraries_are_named(name, instead):
    model = OrtSGDRegressor(callbacks=[Reads(name, None)])
    with pytest.raises(AttributeError) as raised:
        model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
    assert str(raised.value) == f"'Training' object has no attribute {name!r}{instead}"


@pytest.mark.parametrize("optimizer", ["sgd", "lbfgs"])
@pytest.mark.parametrize(
    "name, value", [("eta", 0.5), ("max_iter", 2), ("stop", True), ("learning_rate", 0.5)]
)
def test_what_a_callback_sets_in_vain_is_an_error(optimizer, name, value):
    model = OrtSGDRegressor(optimizer=optimizer, callbacks=[Sets(name, value)])
    message = (
        f"Sets.on_epoch_end sets training.{name}, which has no effect. .* stop, no_improvement"
    )
    with pytest.raises(AttributeError, match=message):
        model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0])
    assert model.n_iter_ == 1


@pytest.mark.parametrize("n_rows", [5, 500])
def test_rows_in_the_place_of_a_scorer_are_not_printed(n_rows):
    X, y = np.zeros((n_rows, 2)), np.linspace(0, 1, n_rows)
    with pytest.raises(ValueError, match="The 'scoring' parameter of EpochScoring must") as raised:
        check_callbacks([EpochScoring("r2", X, y)])
    if n_rows == 500:
        assert str(raised.value).endswith(
            "Got ndarray of shape (500,) instead. "
            "The order is EpochScoring(X, y, scoring, sample_weight, name)."
        )
    with pytest.raises(ValueError, match=r"Got list of 500 items instead\. The order is"):
        check_callbacks([EpochScoring("r2", X, [0.5] * 500)])
    with pytest.raises(ValueError, match=r"Got ndarray of shape \(500,\) instead\.$"):
        OrtSGDRegressor(alpha=np.linspace(0, 1, 500)).fit([[0.0], [1.0]], [0.0, 1.0])


@pytest.mark.parametrize(
    "name, meant",
    [
        ("min_delta", "tol"),
        ("mode", "greater_is_better"),
        ("restore_best_weights", "restore_best"),
        ("patiance", "patience"),
    ],
)
def test_parameters_of_other_libraries_are_named(name, meant):
    with pytest.raises(TypeError, match=rf"'{name}'\. Did you mean {meant}\? Its parameters are"):
        EarlyStopping(**{name: 1})


class Last:
    comes_last = True


def test_callbacks_stay_in_their_order_but_for_the_last_ones():
    first, second, last, checkpoint = EarlyStopping(), object(), Last(), Checkpoint()
    assert in_order((last, first, checkpoint, second)) == [first, second, last, checkpoint]
    assert in_order(()) == []
