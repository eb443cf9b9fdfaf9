"""Means of states, and exchanges."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from skort.dask.local_sgd import GlobalState, LocalResult, Means, averaged, exchanged


def of(weights, n_rows, start=None, **state):
    return LocalResult(
        start,
        {"weights": np.array(weights, np.float32), **state},
        Means(n_rows, 1.0 * n_rows, 2.0, 3.0, 4.0),
    )


def test_means_of_weights_are_over_groups_and_those_of_losses_over_rows():
    mean = averaged(
        [of([1.0, 0.0], 30, n_updates=np.array([3])), of([5.0, 0.0], 10, n_updates=np.array([1]))]
    )
    assert mean.state["weights"].tolist() == [3.0, 0.0]
    assert mean.state["n_updates"].tolist() == [3]
    assert mean.means == Means(40, (30 * 30 + 10 * 10) / 40, 2.0, 3.0, 4.0, 2)
    both = averaged([mean, of([9.0, 3.0], 10, n_updates=np.array([1]))])
    np.testing.assert_allclose(both.state["weights"], [(1 + 5 + 9) / 3, 1.0])


def test_averages_of_weights_are_over_groups():
    """Groups with averages over 4 and 2 updates count the same."""
    states = [
        {"average_mean": np.array([mean]), "average_n_updates": np.array([n])}
        for mean, n in ((8.0, 4), (3.0, 2))
    ]
    state = averaged([of([0.0], 10, **state) for state in states]).state
    assert state["average_mean"].tolist() == [0.5 * 8 + 0.5 * 3]
    assert state["average_n_updates"].tolist() == [4]


def test_one_group_has_no_momentum():
    start = GlobalState({"weights": np.array([1.0], np.float32)}, None)
    for _ in range(2):
        common = exchanged([of([4.0], 10, start)], 0.0)
        start = common
        assert common.state["weights"].tolist() == [4.0]
    assert common.so_far == Means(20, 10.0, 2.0, 3.0, 4.0)


def test_what_comes_later_counts_by_its_rows():
    before, later = Means(30, 1.0, 5.0, 0.0, 0.0), Means(10, 3.0, 1.0, 7.0, 8.0)
    assert before.then(later) == Means(40, 1.5, 4.0, 7.0, 8.0)


def test_momentum_and_zeros():
    start = GlobalState({"weights": np.array([1.0, 1.0], np.float32)}, np.array([2.0, 2.0]))
    common = exchanged([of([2.0, 0.0], 10, start)] * 2, 0.5)
    # It began at 1 + 0.5 * 2 and moved to the mean, 2; what is zero in all groups stays so.
    assert common.state["weights"].tolist() == [2.0, 0.0]
    assert common.velocity.tolist() == [0.5 * 2.0 + (2.0 - 2.0), 0.0]
    ahead = common.ahead(0.5)
    assert ahead.tolist() == [2.5, 0.0]
    assert ahead.dtype == np.float32
