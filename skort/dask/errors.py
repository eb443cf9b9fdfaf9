"""The error of a cluster that cannot go on."""


class ClusterError(RuntimeError):
    """
    A cluster that cannot go on: no workers, workers that die, or a scheduler that has gone.

    A `Checkpoint` among the callbacks lets the next fit go on after the last whole epoch.

    Examples
    --------
    >>> from skort.dask.errors import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """
