"""Workers get rows at any address; a fit does not end them, whatever BLAS they have."""

import subprocess
import sys

import pytest

pytest.importorskip("distributed")

SCRIPT = """
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from skort.dask import OrtSGDRegressor


def odd(array):
    buffer = bytearray(array.nbytes + 1)
    copied = np.frombuffer(buffer, array.dtype, offset=1).reshape(array.shape)
    copied[...] = array
    return copied


if __name__ == "__main__":
    X = np.random.RandomState(0).normal(size=(301, 3))
    y = X @ [1.0, 2.0, 3.0]
    X, y = da.from_array(X, chunks=(100, 3)), da.from_array(y, chunks=100)
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        coefs = [
            OrtSGDRegressor(random_state=0, max_iter=3, tol=None).fit(X.map_blocks(put), y.map_blocks(put)).coef_
            for put in (np.array, odd)
        ]
    np.testing.assert_array_equal(*coefs)
    print("equal")
"""


def test_unaligned_partitions_give_the_bits_of_aligned_ones(tmp_path, only_aligned_blas):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, script], env=only_aligned_blas, capture_output=True, text=True, timeout=600
    )
    assert (ran.returncode, ran.stdout) == (0, "equal\n"), ran.stderr
