"""Tasks on the workers of a cluster. Tasks are pure, and every wait for a task has a time limit."""

import pickle
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import cloudpickle
import dask
import dask.config
from distributed import Client, Future, KilledWorker
from distributed.client import FutureCancelledError

from skort.dask.errors import ClusterError
from skort.runtime.cache import LRUCache

Value = TypeVar("Value")

# Seconds between two checks for workers.
_TICK = 2.0
# A wait ends after so many seconds without any worker or without a scheduler. It is the default of
# the option `skort.no-worker-timeout`.
_NO_WORKER = 300.0
# A wait ends after so many seconds in which no task of the client finishes. It is the default of
# the option `skort.no-result-timeout`.
_NO_RESULT = 3600.0
# The largest number of results that one task merges.
_FAN_IN = 8
_UNPACKED: LRUCache = LRUCache(8)


class Borrower:
    """Borrows an object from a pool of a worker, for as long as the borrower lives."""


@dataclass(frozen=True, eq=False)
class Broadcast(Generic[Value]):
    """A pickled value that travels with every task, under a unique key."""

    key: str
    packed: bytes

    def value(self) -> Value:
        """Return the value. A worker unpacks it once."""
        return _UNPACKED.get(self.key, lambda: pickle.loads(self.packed))


class Cluster:
    """
    The tasks of one fit or score.

    No task is tied to a worker. If a worker is lost, Dask computes its results on another one.
    """

    def __init__(self, client: Client):
        self.client = client
        self._name = uuid.uuid4().hex[:12]
        self._n_tasks = 0

    def key(self, name: str) -> str:
        """Return a unique key."""
        self._n_tasks += 1
        return f"skort-{name}-{self._name}-{self._n_tasks}"

    def broadcast(self, name: str, value: Value) -> Broadcast[Value]:
        """Return a value in the form that tasks get."""
        return Broadcast(self.key(name), cloudpickle.dumps(value))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Return the future of a call. Its arguments may be futures and lists of futures."""
        self._check_open()
        # A partial has no name, but its function has.
        key = self.key(getattr(function, "func", function).__name__.strip("_"))

        # Later tasks run first, so that a task runs while its partitions are in memory. The
        # priority is below 0, so that other work does not wait.
        return self.client.submit(
            function, *arguments, key=key, pure=False, priority=-1 / self._n_tasks
        )

    def _check_open(self):
        if self.client.status in ("closing", "closed"):
            raise ClusterError("The client or its cluster is closed. Make new ones, and fit again.")

    def computed(self, delayed: Sequence[Any]) -> list["Future[Any]"]:
        """Return the futures of delayed values."""
        self._check_open()
        return self.client.compute(list(delayed))

    def each(
        self, function: Callable[..., Any], futures: Sequence["Future[Any]"], *arguments: Any
    ) -> list["Future[Any]"]:
        """Return the futures of `function(future, *arguments)`."""
        return [self.submit(function, future, *arguments) for future in futures]

    def merged(
        self, merge: Callable[[list[Any]], Any], futures: Sequence["Future[Any]"]
    ) -> "Future[Any]":
        """
        Return the future of the merged results.

        `merge` is a function of a list. The tree of merges depends only on the number of results.
        """
        level = list(futures)
        while len(level) > 1:
            level = [
                self.submit(merge, level[start : start + _FAN_IN])
                for start in range(0, len(level), _FAN_IN)
            ]

        return level[0]

    def few(
        self, merge: Callable[[list[Any]], Any], futures: Sequence["Future[Any]"]
    ) -> list["Future[Any]"]:
        """Return few enough futures for one task to merge, by merging more of them in a tree."""
        return list(futures) if len(futures) <= _FAN_IN else [self.merged(merge, futures)]

    def value(self, future: "Future[Any]") -> Any:
        """
        Return a result.

        Raise a `ClusterError` if no worker can compute it, or if no task finishes for a long time.
        """
        watch = _Watch(self.client)
        while True:
            try:
                return future.result(timeout=_TICK)
            except KilledWorker as error:
                raise ClusterError(
                    f"Workers died, one after the other, while they ran a task of skort: {error}. "
                    "The most frequent cause is too little memory: use smaller partitions, or give "
                    "each worker more memory."
                ) from error
            except FutureCancelledError as error:
                raise ClusterError(
                    "The scheduler lost the tasks of this fit: it was closed, or started "
                    "again. Fit again."
                ) from error
            except (TimeoutError, UnboundLocalError):
                # A task may have raised the error. Otherwise the wait has ended. The
                # UnboundLocalError is a race in `distributed.utils.sync`: a wait that is cancelled
                # at its end has neither a result nor an error.
                if future.status == "error":
                    raise

            watch.look()

    def values(self, futures: Sequence["Future[Any]"]) -> list[Any]:
        """Return the results of several futures, in their order, see `value`."""
        return [self.value(future) for future in futures]


class _Watch:
    """Raises an error if there was no worker, or if no task has finished, for a long time."""

    def __init__(self, client):
        self._client = client
        self._pending = self._still_pending()
        self._last_worker = self._last_result = time.monotonic()

    def look(self):
        """Check whether there are workers, and whether a task has finished."""
        now = time.monotonic()
        is_running = self._client.status == "running"
        pending = self._still_pending()
        if is_running and self._has_workers():
            self._last_worker = now
        if pending != self._pending:
            self._pending = pending
            self._last_result = now

        option, most = _option("skort.no-worker-timeout", _NO_WORKER)
        if now - self._last_worker > most:
            missing = "cluster has had no worker" if is_running else "client has had no scheduler"
            raise ClusterError(
                f"The {missing} for {most:.0f} seconds. Start one and fit again; the option "
                f'"{option}" of dask.config says how long to wait.'
            )

        option, most = _option("skort.no-result-timeout", _NO_RESULT)
        if now - self._last_result > most:
            raise ClusterError(
                f"No task has finished for {most:.0f} seconds: one may hang on a worker. Restart "
                "the workers, for instance with client.restart(), and fit again; the option "
                f'"{option}" of dask.config says how long to wait.'
            )

    def _still_pending(self):
        return {
            key for key, state in list(self._client.futures.items()) if state.status == "pending"
        }

    def _has_workers(self):
        try:
            return bool(self._client.scheduler_info(n_workers=1)["workers"])
        except OSError:
            # The scheduler does not answer.
            return False


def _option(name, seconds):
    """Return an option of dask.config and its value."""
    return name, float(dask.config.get(name, seconds))
