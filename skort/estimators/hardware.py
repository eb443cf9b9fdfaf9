"""Devices and threads of trainings and predictions: the parameters `device` and `n_jobs`."""

import functools
import warnings
from typing import TYPE_CHECKING, Any

from joblib import cpu_count
from joblib.parallel import get_active_backend

from skort.exceptions import RuntimeNotAvailableError

if TYPE_CHECKING:
    from skort.runtime.device import Device

__all__ = ["n_threads", "predicting_device", "training_device"]

# Below this, waking threads costs more than predicting.
_MANY_ROWS = 1000
# Counting the cores takes as long as a prediction.
_n_cores = functools.cache(cpu_count)


def training_device(estimator: Any) -> "Device":
    """
    Return the device that an estimator trains on.

    Raises
    ------
    ValueError
        If the parameter `device` is not the name of a device.
    """
    from skort.runtime.device import device_named

    return device_named(estimator.device, n_threads(estimator.n_jobs))


def predicting_device(estimator: Any, n_rows: int) -> "Device":
    """
    Return the device that an estimator predicts on, with one thread for a few rows.

    Warns
    -----
    RuntimeWarning
        Once, if its own device is not available: then this is the CPU.
    """
    return _predicting_device(estimator.device, 1 if n_rows < _MANY_ROWS else n_threads(estimator.n_jobs))


@functools.cache
def _predicting_device(name, n_threads):
    from skort.runtime.device import device_named

    return device_named(_name_to_predict_on(name), n_threads)


@functools.cache
def _name_to_predict_on(name):
    from skort.runtime.device import device_named

    try:
        device_named(name).check()
    except RuntimeNotAvailableError as error:
        warnings.warn(f"Predictions run on the CPU. {error}", RuntimeWarning, stacklevel=6)
        return "cpu"
    return name


def n_threads(n_jobs: int | None) -> int:
    """
    Return the number of threads that `n_jobs` means here.

    Parameters
    ----------
    n_jobs : int or None
        Negative numbers count from all cores: -1 is all, -2 all but one. None is 1, or the number in a surrounding
        `joblib.parallel_config`. In a worker of joblib both give 1, as the workers share the cores already.

    Examples
    --------
    >>> import joblib
    >>> from skort.estimators.hardware import n_threads
    >>> n_threads(None), n_threads(3), n_threads(-1) == joblib.cpu_count()
    (1, 3, True)
    >>> with joblib.parallel_config(n_jobs=2):
    ...     n_threads(None)
    2
    >>> joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(n_threads)(n) for n in (None, -1, 3))
    [1, 1, 3]
    """
    backend, of_context = get_active_backend()
    if n_jobs is None:
        n_jobs = of_context or 1
    if n_jobs > 0:
        return n_jobs
    # joblib's own `effective_n_jobs` gives all cores in the first level of workers.
    return 1 if backend.nesting_level else max(_n_cores() + 1 + n_jobs, 1)
