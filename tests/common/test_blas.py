"""The threads of numpy's products."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skort.common.blas import one_blas_thread, thread_limits


def n_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_one_thread_and_then_as_many_as_before():
    with threadpool_limits(2, "blas"):
        before = n_threads()
        with pytest.raises(KeyError), one_blas_thread(10**6):
            assert set(n_threads()) == {1}
            assert 1 in thread_limits()
            raise KeyError
        assert n_threads() == before
        with one_blas_thread(100):  # They take one thread anyway.
            assert n_threads() == before
        with one_blas_thread():
            assert set(n_threads()) == {1}
        assert set(before) == {2}
