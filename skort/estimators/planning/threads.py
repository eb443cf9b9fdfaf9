"""Devices and threads of trainings and predictions: the parameters `device` and `n_jobs`."""

import dataclasses
import functools
import multiprocessing
import os
import re
import sys
from numbers import Integral
from typing import TYPE_CHECKING, Any

from joblib import cpu_count
from joblib.parallel import get_active_backend

from skort.common.blas import thread_limits
from skort.common.user_warning import warn_user
from skort.estimators.planning.decision import rule
from skort.exceptions import RuntimeNotAvailableError

if TYPE_CHECKING:
    from skort.runtime.device import Device

# Below this, waking threads costs more than predicting.
_MANY_ROWS = 1000
# So many floating-point operations of a step are worth one more thread, even if others use a core
# now and then: `python -m benchmarks.threads`.
_WORK_OF_THREAD = 1e8
# Counting the cores takes as long as a prediction.
_n_cores = functools.cache(cpu_count)
_warn_once = functools.cache(functools.partial(warn_user, category=RuntimeWarning))


def training_device(estimator: Any) -> "Device":
    """
    Return the device that an estimator trains on. With n_jobs="auto" it has one thread at first:
    see `threads_for`.
    """
    from skort.runtime.device import device_named

    return device_named(estimator.device, _n_threads_of(estimator))


def predicting_device(estimator: Any, n_rows: int) -> "Device":
    """
    Return the device that an estimator predicts on. Few rows take one thread. If the device is not
    available, it is the CPU.
    """
    from skort.runtime.device import device_named

    device = device_named(estimator.device, 1 if n_rows < _MANY_ROWS else _n_threads_of(estimator))
    # The device may have become available since the last prediction.
    try:
        device.check()
    except RuntimeNotAvailableError as error:
        _warn_once(f"Predictions run on the CPU. {error}")
        return dataclasses.replace(device, kind="cpu", index=0, is_remote=False)

    return device


def _n_threads_of(estimator):
    # The number for "auto" depends on the work of a step, which is known later. Sessions of
    # predictions outlive forks, but their threads do not.
    return 1 if estimator.n_jobs == "auto" else n_threads(estimator.n_jobs)


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` means here."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be an int other than 0, or None, got {n_jobs!r}.")

    backend, of_context = get_active_backend()
    if n_jobs is None:
        n_jobs = of_context or 1
    if n_jobs > _n_cores():
        # Threads beyond the cores make everything slower, and a great number of them
        # ends the process.
        _warn_once(
            f"n_jobs={n_jobs} is more than this machine has: {_n_cores()} threads are used, one "
            "for each core that this process may run on."
        )

    if n_jobs > 0:
        return min(n_jobs, _n_cores())

    # joblib's own `effective_n_jobs` gives all cores in the first level of workers.
    return 1 if backend.nesting_level else max(_n_cores() + 1 + n_jobs, 1)


@rule("threads")
def threads_for(work: float, n_cores: int | None = None) -> int:
    """
    With `n_jobs="auto"`, a step has one thread, and one more for every 1e8 floating-point
    operations, up to the free cores.
    """
    worth = 1 + int(work // _WORK_OF_THREAD)
    return 1 if worth == 1 else min(worth, free_cores() if n_cores is None else n_cores)


def free_cores() -> int:
    """
    Return how many threads this process may use: its cores, within the limits of libraries and of
    the workers around it.
    """
    backend, of_context = get_active_backend()
    named = re.match(r"\s*([1-9]\d*)", os.environ.get("OMP_NUM_THREADS", ""))
    n_cores = _n_cores()
    share = min(n_cores, int(named[1])) if named else n_cores
    if backend.nesting_level or _is_in_dask_worker():
        # loky tells each of its processes how many threads it may use. All cores are no share.
        is_told = (
            backend.nesting_level == 1
            and multiprocessing.parent_process() is not None
            and share < n_cores
        )
        return share if is_told else 1

    limits = [limit or n_cores for limit in thread_limits()]
    return max(1, min([share, *limits, of_context if of_context and of_context > 0 else n_cores]))


def _is_in_dask_worker():
    # Code in a worker has imported it.
    distributed = sys.modules.get("distributed")
    try:
        return distributed is not None and distributed.get_worker() is not None
    except ValueError:
        return False
