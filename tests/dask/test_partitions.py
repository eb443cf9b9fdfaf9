"""Collections as aligned partitions, and what is known of them before rows are prepared."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd

from skort.dask import OrtSGDClassifier
from skort.dask.partitions import (
    Part,
    Split,
    blocks_of,
    delayed_parts,
    held_out,
    merged_surveys,
    sizes_of,
    survey,
)

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10)


def computed(*collections):
    return dask.compute(*delayed_parts(*collections), scheduler="synchronous")


def test_sizes_of_X_hold():
    parts = computed(da.from_array(X, chunks=((3, 7), (1, 1))), da.from_array(Y, chunks=5))
    assert [part.number for part in parts] == [0, 1]
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), X)
    assert [part.y.tolist() for part in parts] == [[0, 1, 2], [3, 4, 5, 6, 7, 8, 9]]
    assert parts[0].sample_weight is None


def test_frames():
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]).assign(y=Y), npartitions=3)
    parts = computed(frame[["a", "b"]], frame["y"], frame["a"])
    assert [part.X.columns.tolist() for part in parts] == [["a", "b"]] * 3
    assert all(part.sample_weight.tolist() == part.X["a"].tolist() for part in parts)


def test_columns_of_a_file(tmp_path):
    """Dask reads several files in one partition where few of their columns are wanted."""
    columns = [f"x{i}" for i in range(40)]
    values = np.arange(240.0).reshape(6, 40)
    for i, rows in enumerate(np.split(values, 3)):
        pd.DataFrame(rows, columns=columns).to_parquet(tmp_path / f"{i}.parquet")
    frame = dd.read_parquet(tmp_path)
    parts = computed(frame.drop(columns="x0"), frame["x0"])
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts]), values[:, 1:])
    np.testing.assert_array_equal(np.concatenate([part.y for part in parts]), values[:, 0])
    X = frame[["x0"]]
    assert [len(block) for block in dask.compute(*blocks_of("X", X))] == [2] * len(sizes_of(X))


def test_frame_and_array_of_other_partitions():
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(
        ValueError, match=r"X has 3, y has 2, and not all sizes are known.*compute_chunk_sizes"
    ):
        delayed_parts(frame, da.from_array(Y, chunks=5))


def test_three_dimensions():
    with pytest.raises(ValueError, match="X has 3 dimensions"):
        delayed_parts(da.zeros((2, 2, 2)), da.zeros(2))


def test_sample_weight_in_memory():
    with pytest.raises(TypeError, match="sample_weight is of type ndarray"):
        delayed_parts(da.from_array(X), da.from_array(Y), np.ones(10))


def test_no_client(monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr("skort.dask.base.default_client", none)
    with pytest.raises(
        ValueError, match=r"There is no Dask client: make one with distributed.Client\(\)"
    ):
        OrtSGDClassifier().fit(da.from_array(X), da.from_array(Y))


def test_classes_and_totals():
    parts = [
        Part(0, np.zeros((3, 1)), np.array(["b", "a", "b"]), np.array([1.0, 0.0, 2.0])),
        Part(1, np.zeros((0, 1)), np.array([]), np.array([])),
        Part(2, np.ones((2, 1)), np.array(["long", "b"]), np.array([3.0, 4.0])),
    ]
    found = merged_surveys([survey(part, True) for part in parts])
    assert found.classes.tolist() == ["a", "b", "long"]
    assert found.totals.tolist() == [0, 7, 3]
    assert found.counts.tolist() == [0, 3, 1]
    assert found.all_counts.tolist() == [1, 3, 1]
    X, y = found.some_rows()
    assert X.ravel().tolist() == [0, 0, 0, 1, 1]
    assert y.tolist() == ["b", "a", "b", "long", "b"]


def test_a_regression_has_one_total():
    found = survey(Part(0, np.zeros((3, 1)), np.arange(3.0), None), False)
    assert found.classes is None
    assert (found.totals.tolist(), found.counts.tolist()) == ([3], [3])


def test_nothing():
    with pytest.raises(ValueError, match="X has no rows"):
        merged_surveys([survey(Part(0, np.zeros((0, 1)), np.zeros(0), None), False)]).some_rows()


@pytest.mark.parametrize(
    ("weights", "message"), [([1.0, -1.0], "Negative values"), ([1.0, np.nan], "NaN")]
)
def test_bad_sample_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        survey(Part(0, np.zeros((2, 1)), np.zeros(2), np.array(weights)), False)


def test_held_out_rows_are_a_partition():
    part = Part(3, pd.DataFrame({"a": np.arange(100)}), np.arange(100), None)
    train, held = (held_out(part, Split(0.25, 7, False), kind) for kind in (False, True))
    assert (len(train.X), len(held.X)) == (75, 25)
    assert sorted([*train.y, *held.y]) == list(range(100))
    assert held.X["a"].tolist() == held.y.tolist()
    again, other = (held_out(part, Split(0.25, seed, False), True) for seed in (7, 8))
    assert again.y.tolist() == held.y.tolist() != other.y.tolist()


def test_each_class_has_its_part_held_out():
    """10 of 40 rows and 5 of 20, whatever the order; 3 rows leave 0.75 of one, which is drawn."""
    y = np.random.default_rng(0).permutation(np.repeat(["a", "b", "rare"], [40, 20, 3]))
    part, n_rare = Part(0, np.zeros((63, 1)), y, None), []
    for seed in range(40):
        held = held_out(part, Split(0.25, seed, True), True).y.tolist()
        assert (held.count("a"), held.count("b")) == (10, 5)
        n_rare.append(held.count("rare"))
    assert set(n_rare) == {0, 1}
    assert 0.5 < np.mean(n_rare) < 1
