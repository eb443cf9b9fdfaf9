"""
Limits of the threads of numpy's BLAS.

Its threads spin for a while after each product, and the bits of a sum depend on their number.
"""

import contextlib
import functools
import math
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

# Finding the libraries takes much longer than asking them.
_libraries = functools.cache(ThreadpoolController)
# Two threads that set limits at the same time would restore each other's limit.
_LOCK = threading.RLock()
# OpenBLAS uses one thread for smaller products.
_FEW = 9000
_NO_LIMIT = contextlib.nullcontext()


def thread_limits() -> list[int | None]:
    """Return the number of threads that each library may use; None if a library does not say."""
    with _LOCK:
        return [library["num_threads"] for library in _libraries().info()]


def one_blas_thread(n_values: float = math.inf) -> contextlib.AbstractContextManager[None]:
    """
    Return a context in which products use one thread of BLAS.

    `n_values` is the size of a product: its number of values or, for matrices, of summands. By
    default, it is any computation, such as the solution of equations.
    """
    return _NO_LIMIT if n_values < _FEW else _limited()


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    with _LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield
