"""The error of a cluster that cannot continue."""


class ClusterError(RuntimeError):
    """
    The cluster cannot continue: it has no workers, its workers die, or its scheduler is gone.

    With a `Checkpoint` among the callbacks, the next fit can continue after the last whole epoch.

    Examples
    --------
    >>> from skort.dask.errors import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """
