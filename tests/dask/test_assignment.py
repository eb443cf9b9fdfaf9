"""Which group gets which rows."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from skort.dask.assignment import Assignments, Size


def rows_of(assignments, assignment, sizes):
    """Return (partition, row) of every task, group by group."""
    return [
        (number, row)
        for tasks in assignment.exchanges
        for task in tasks
        for number in task.partitions
        for row in range(sizes[number].n_rows)[task.start :: task.stride]
    ]


@pytest.mark.parametrize("n_groups", [1, 2, 3, 8])
@pytest.mark.parametrize("n_bytes", [8, 2**26, 2**29])
def test_every_row_is_in_one_task_of_a_round(n_groups, n_bytes):
    sizes = [Size(n, n_bytes) for n in (1, 50, 400, 3, 77, 1000)]
    assignments = Assignments(sizes, n_groups, 10, np.random.RandomState(0))
    assignment = assignments.draw(np.random.RandomState(1))
    found = rows_of(assignments, assignment, sizes)
    assert len(found) == len(set(found)) == sum(size.n_rows for size in sizes)
    assert all(1 <= len(tasks) <= n_groups for tasks in assignment.exchanges)


def test_exchanges():
    """As many as five, but 50 updates in between; as many updates as the largest group makes."""
    sizes = [Size(1000, 8)] * 8
    by_batch = {
        b: Assignments(sizes, 2, b, np.random.RandomState(0)).draw(np.random.RandomState(0))
        for b in (4, 20, 100)
    }
    assert {b: len(assignment.exchanges) for b, assignment in by_batch.items()} == {
        4: 5,
        20: 4,
        100: 1,
    }
    assert {b: sum(assignment.n_updates) for b, assignment in by_batch.items()} == {
        4: 1000,
        20: 200,
        100: 40,
    }
    assert (
        len(
            Assignments(sizes, 1, 4, np.random.RandomState(0))
            .draw(np.random.RandomState(0))
            .exchanges
        )
        == 1
    )


def test_many_partitions_are_whole():
    """Ten partitions of each of two groups: two of them before each of five exchanges."""
    assignment = Assignments([Size(1000, 8)] * 20, 2, 4, np.random.RandomState(0)).draw(
        np.random.RandomState(0)
    )
    tasks = [task for tasks in assignment.exchanges for task in tasks]
    assert [len(task.partitions) for task in tasks] == [2] * 10
    assert {(task.start, task.stride) for task in tasks} == {(0, 1)}


def test_much_memory_is_divided():
    """Two groups of four partitions of 2^26 bytes: tasks of two partitions, 2^27 bytes."""
    assignments = Assignments([Size(100, 2**26)] * 8, 2, 100, np.random.RandomState(0))
    assignment = assignments.draw(np.random.RandomState(0))
    assert [[len(task.partitions) for task in tasks] for tasks in assignment.exchanges] == [
        [2, 2],
        [2, 2],
    ]


def test_partitions_are_assigned_anew():
    assignments = Assignments([Size(100, 8)] * 8, 2, 10, np.random.RandomState(0))
    generator = np.random.RandomState(0)
    firsts = [sorted(assignments.draw(generator).exchanges[0][0].partitions) for _ in range(4)]
    assert len(set(map(tuple, firsts))) > 1


def test_neighbours_go_to_different_groups_and_parts_of_a_round():
    """Half of the partitions are of one kind: every task has as many of it."""
    assignments = Assignments([Size(1000, 8)] * 20, 2, 4, np.random.RandomState(0))
    generator = np.random.RandomState(0)
    for _ in range(20):
        exchanges = assignments.draw(generator).exchanges
        tasks = [task.partitions for tasks in exchanges for task in tasks]
        assert [sum(number < 10 for number in partitions) for partitions in tasks] == [1] * 10
        groups = [
            {number for tasks in exchanges for number in tasks[group].partitions}
            for group in (0, 1)
        ]
        assert all(
            len(group & {number, number + 1}) == 1 for group in groups for number in range(0, 20, 2)
        )


@pytest.mark.parametrize(
    "n_partitions, n_groups, share",
    [
        (8, 2, 0),
        (10, 2, 0),
        (12, 2, 0),
        (20, 2, 0),
        (22, 2, 0.1),
        (30, 2, 0),
        (40, 8, 0),
        (90, 8, 0.1),
        (96, 8, 0),
    ],
)
def test_sorted_data_are_mixed(n_partitions, n_groups, share):
    """Half of the partitions are of one kind: few tasks have rows of one kind only."""
    assignments = Assignments([Size(1000, 8)] * n_partitions, n_groups, 4, np.random.RandomState(0))
    drawn = [assignments.draw(np.random.RandomState(seed)).exchanges for seed in range(50)]
    partitions = [task.partitions for exchanges in drawn for tasks in exchanges for task in tasks]
    half = n_partitions / 2
    assert np.mean([max(numbers) < half or min(numbers) >= half for numbers in partitions]) <= share
    assert all(len(tasks) == n_groups for exchanges in drawn for tasks in exchanges)


def test_an_epoch_is_one_round():
    class Round:
        def open(self, assignment):
            self.assignment, self.closed = assignment, 0

        def close(self):
            self.closed += 1

    assignments, batch = Assignments([Size(100, 8)] * 3, 2, 10, np.random.RandomState(0)), Round()
    portions = list(assignments.epoch(batch))
    assert len(portions) == 20
    assert sum(portion.share for portion in portions) == pytest.approx(1)
    assert {portion.part for portion in portions} == {1.0}
    assert batch.closed == assignments.n_drawn == 1
