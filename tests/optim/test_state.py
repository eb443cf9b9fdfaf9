"""The state of a training: a value that a training goes on from, or goes back to."""

import copy
import math
import pickle

import numpy as np
import pytest

from skort.optim.state import History, TrainState


def state(history, n_epochs, columns=("loss",)):
    state = np.random.RandomState(0).get_state(legacy=False)
    return TrainState({"w": np.ones(2)}, 3, 0, False, state, history, n_epochs, columns)


def test_more_rows_are_added_to_the_same_history():
    history = History(loss=[2.0, 1.0])
    assert state(history, 2).open_history() is history


@pytest.mark.parametrize(
    "rows, columns",
    [
        ({"loss": [2.0, 1.0, 9.0]}, ("loss",)),
        ({"loss": [2.0, 1.0], "score": [5.0, 6.0]}, ("loss",)),
    ],
)
def test_rows_and_columns_that_another_training_added_are_not_part_of_it(rows, columns):
    history = History(rows)
    before = state(history, 2, columns)
    assert before.rows() == {"loss": [2.0, 1.0]}
    assert before.column("loss") == [2.0, 1.0]
    assert before.column("score") is None
    more = before.open_history()
    more.next_epoch(loss=0.5)
    assert more == {"loss": [2.0, 1.0, 0.5]}
    assert history == rows


@pytest.mark.parametrize("kind", ["MT19937", "PCG64", "Philox"])
def test_the_generator_goes_on_where_it_was(kind):
    theirs = np.random.RandomState(getattr(np.random, kind)(7))
    theirs.normal()
    start = TrainState.start(theirs)
    expected = theirs.normal(size=5)
    for again in (start, copy.deepcopy(start), pickle.loads(pickle.dumps(start))):
        np.testing.assert_array_equal(again.generator().normal(size=5), expected)


def history():
    """Return three epochs, of which the second has an accuracy."""
    columns = History()
    for loss in (3.0, 2.0, 1.0):
        columns.next_epoch(loss=loss, eta=0.1)
        if loss == 2.0:
            columns.record("accuracy", 0.5)
    return columns


def test_what_is_missing_is_nan():
    columns = history()
    assert columns.n_epochs == 3
    assert columns["loss"] == [3.0, 2.0, 1.0]
    columns.next_epoch(loss=0.5, eta=0.1, time=9.0)
    assert columns["accuracy"] == pytest.approx([math.nan, 0.5, math.nan], nan_ok=True)
    assert columns["time"] == pytest.approx([math.nan] * 3 + [9.0], nan_ok=True)


def test_a_column_may_miss_epochs_in_between():
    history = History()
    for epoch in range(3):
        history.next_epoch(loss=0.0)
        if epoch != 1:
            history.record("score", epoch)
    np.testing.assert_array_equal(history["score"], [0, math.nan, 2])


@pytest.mark.parametrize("n_epochs", [0, 1, 2, 3])
def test_truncated_columns_have_the_same_length(n_epochs):
    columns = history()
    columns.truncate(n_epochs)
    assert {len(column) for column in columns.values()} == {n_epochs}
    assert columns["loss"] == [3.0, 2.0, 1.0][:n_epochs]


@pytest.mark.parametrize("name", ["score", "objective"])
def test_a_name_is_recorded_once_an_epoch(name):
    history = History(objective=[2.0, 1.0], score=[0.1])
    history.record("score", 0.2)
    with pytest.raises(ValueError, match=f"one '{name}' for each epoch"):
        history.record(name, 0.3)
    assert history == {"objective": [2.0, 1.0], "score": [0.1, 0.2]}


def test_a_head_goes_its_own_way():
    columns = history()
    copied = columns.head(3, list(columns))
    assert copied["loss"] == columns["loss"]
    copied.next_epoch(loss=0.0, eta=0.1)
    assert columns.n_epochs == 3
    assert copied.n_epochs == 4


def test_a_head_has_the_columns_and_rows_that_were_there():
    columns = History(loss=[3.0, 2.0, 1.0], score=[0.1])
    assert columns.head(2, ["loss"]) == {"loss": [3.0, 2.0]}
    np.testing.assert_array_equal(columns.head(2, ["score"])["score"], [0.1, math.nan])
