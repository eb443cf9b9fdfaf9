"""The history: columns of one length, whatever is missing."""

import math

import numpy as np
import pytest

from skort.optim.history import History


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
    with pytest.raises(ValueError, match=f"one '{name}' an epoch"):
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
