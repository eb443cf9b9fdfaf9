"""Devices and threads of trainings and predictions: the parameters `device` and `n_jobs`."""

import dataclasses
import functools
from numbers import Integral
from typing import TYPE_CHECKING, Any

from joblib import cpu_count
from joblib.parallel import get_active_backend

from skort.common.user_warning import warn_user
from skort.exceptions import RuntimeNotAvailableError

if TYPE_CHECKING:
    from skort.runtime.device import Device

# Below this, waking threads costs more than predicting.
_MANY_ROWS = 1000
# Counting the cores takes as long as a prediction.
_n_cores = functools.cache(cpu_count)


def training_device(estimator: Any) -> "Device":
    """Return the device that an estimator trains on."""
    from skort.runtime.device import device_named

    return device_named(estimator.device, n_threads(estimator.n_jobs))


def predicting_device(estimator: Any, n_rows: int) -> "Device":
    """Return the device that an estimator predicts on, with one thread for a few rows."""
    from skort.runtime.device import device_named

    return _available(device_named(estimator.device, 1 if n_rows < _MANY_ROWS else n_threads(estimator.n_jobs)))


def _available(device):
    """Return a device, or the CPU where it is not available; asked anew, as it may become so."""
    try:
        device.check()
    except RuntimeNotAvailableError as error:
        _warn_once(f"Predictions run on the CPU. {error}")
        return dataclasses.replace(device, kind="cpu", index=0, is_remote=False)
    return device


@functools.cache
def _warn_once(message):
    warn_user(message, RuntimeWarning)


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` means here."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be an int other than 0, or None, got {n_jobs!r}.")
    backend, of_context = get_active_backend()
    if n_jobs is None:
        n_jobs = of_context or 1
    if n_jobs > 0:
        return n_jobs if n_jobs <= _n_cores() else _bounded(n_jobs, _n_cores())
    # joblib's own `effective_n_jobs` gives all cores in the first level of workers.
    return 1 if backend.nesting_level else max(_n_cores() + 1 + n_jobs, 1)


@functools.cache
def _bounded(n_jobs, n_cores):
    # Threads beyond the cores make everything slower, and a great number of them ends the process.
    warn_user(
        f"n_jobs={n_jobs} is more than this machine has: {n_cores} threads are used, one for each core that this "
        "process may run on.",
        RuntimeWarning,
    )
    return n_cores
