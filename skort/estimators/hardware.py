"""What trainings and predictions run on: the parameters `device` and `n_jobs`."""

import functools
import warnings

from joblib import cpu_count
from joblib.parallel import get_active_backend

from skort.exceptions import RuntimeNotAvailableError

__all__ = ["n_threads", "predicting_device", "training_device"]

# Below this, waking threads costs more than predicting.
_MANY_ROWS = 1000
# Counting the cores takes as long as a prediction.
_n_cores = functools.cache(cpu_count)


def training_device(estimator):
    """
    Return the device that an estimator trains on.

    Raises
    ------
    ValueError
        Where `device` is no name of one.
    """
    from skort.runtime.device import device_named

    return device_named(estimator.device, n_threads(estimator.n_jobs))


def predicting_device(estimator, n_rows):
    """
    Return the device that an estimator predicts on. A few rows are predicted in one thread.

    Warns
    -----
    RuntimeWarning
        Once, where its own device is not there: then it is the CPU.
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


def n_threads(n_jobs):
    """
    Return the number of threads that `n_jobs` stands for here.

    Parameters
    ----------
    n_jobs : int or None
        Negative: of all cores, -1 all, -2 all but one. None: 1, or what `joblib.parallel_config` says around the call.
        Both are 1 in a worker of joblib, whose workers share the cores already.

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
    # joblib's own `effective_n_jobs` is all cores in the first level of workers.
    return 1 if backend.nesting_level else max(_n_cores() + 1 + n_jobs, 1)
