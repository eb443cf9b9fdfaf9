"""The progress of a training: a value that a training goes on from, or goes back to."""

import copy
import pickle

import numpy as np
import pytest

from skort.optim.history import History
from skort.optim.progress import TrainState


def progress(history, n_epochs, columns=("loss",)):
    state = np.random.RandomState(0).get_state(legacy=False)
    return TrainState({"w": np.ones(2)}, 3, 0, False, state, history, n_epochs, columns)


def test_more_rows_are_added_to_the_same_history():
    history = History(loss=[2.0, 1.0])
    assert progress(history, 2).open_history() is history


@pytest.mark.parametrize(
    "rows, columns", [({"loss": [2.0, 1.0, 9.0]}, ("loss",)), ({"loss": [2.0, 1.0], "score": [5.0, 6.0]}, ("loss",))]
)
def test_rows_and_columns_that_another_training_added_are_not_part_of_it(rows, columns):
    history = History(rows)
    before = progress(history, 2, columns)
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
