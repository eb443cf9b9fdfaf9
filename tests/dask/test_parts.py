"""Collections as aligned partitions."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd

from skort.dask import OrtSGDClassifier
from skort.dask.parts import delayed_parts

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


def test_frame_and_array_of_other_partitions():
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    with pytest.raises(ValueError, match=r"X has 3, y has 2, and not all sizes are known.*compute_chunk_sizes"):
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
    with pytest.raises(ValueError, match=r"There is no Dask client: make one with distributed.Client\(\)"):
        OrtSGDClassifier().fit(da.from_array(X), da.from_array(Y))
