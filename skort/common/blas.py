"""Arrays and threads as BLAS needs them: aligned addresses, and one thread for a small product."""

import contextlib
import functools
import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import ThreadpoolController

# Finding the libraries takes much longer than asking them.
_libraries = functools.cache(ThreadpoolController)
# Two threads that set limits at the same time would restore each other's limit.
_LOCK = threading.RLock()
# OpenBLAS uses one thread for smaller products.
_FEW = 9000
_NO_LIMIT = contextlib.nullcontext()


def aligned(values: Any) -> Any:
    """
    Return an array or sparse matrix with aligned addresses: itself, or a copy.

    An aligned address is a multiple of the size of a value.
    """
    # At other addresses, BLAS and ONNX Runtime may crash.
    if scipy.sparse.issparse(values):
        return _aligned_matrix(values)
    if type(values) is not np.ndarray or values.flags.aligned:
        return values

    return values.copy()


def _aligned_matrix(matrix):
    parts = [*vars(matrix).values(), *getattr(matrix, "coords", ())]
    if all(part.flags.aligned for part in parts if isinstance(part, np.ndarray)):
        return matrix
    # A copy of a matrix has arrays of its own.
    return matrix.copy()


def thread_limits() -> list[int | None]:
    """Return the number of threads that each library may use; None if a library does not say."""
    with _LOCK:
        return [library["num_threads"] for library in _libraries().info()]


def one_blas_thread(n_values: float = math.inf) -> contextlib.AbstractContextManager[None]:
    """
    Return a context in which products use one thread of BLAS.

    More threads spin for a while after each product, and the bits of a sum depend on their number.
    `n_values` is the size of a product: its number of values or, for matrices, of summands. By
    default, it is any computation, such as the solution of equations.
    """
    return _NO_LIMIT if n_values < _FEW else _limited()


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    with _LOCK:
        controller = _libraries()
        # Setting a limit takes longer than a small product.
        are_limited = all(
            library.num_threads == 1
            for library in controller.lib_controllers
            if library.user_api == "blas"
        )
        with _NO_LIMIT if are_limited else controller.limit(limits=1, user_api="blas"):
            yield
