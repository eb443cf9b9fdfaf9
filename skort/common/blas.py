"""The BLAS of numpy: its threads spin for a while after each product, and the bits of a sum depend on their number."""

import contextlib
import functools
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

# To look for the libraries takes much longer than to ask them.
_libraries = functools.cache(ThreadpoolController)
# Threads that limit them at the same time would put back each other's limit.
_LOCK = threading.RLock()
# OpenBLAS takes one thread for products with fewer values.
_FEW = 9000
_NO_LIMIT = contextlib.nullcontext()


def thread_limits() -> list[int | None]:
    """Return how many threads each of the libraries may use; None where one does not say."""
    with _LOCK:
        return [library["num_threads"] for library in _libraries().info()]


def one_blas_thread(n_values: int) -> contextlib.AbstractContextManager[None]:
    """Return a context in which products with so many values, or of matrices so many sums, use one thread."""
    return _NO_LIMIT if n_values < _FEW else _limited()


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    with _LOCK, _libraries().limit(limits=1, user_api="blas"):
        yield
