"""Tasks on the workers of a cluster: each is pure, and every wait for one has an end."""

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

# Seconds between two looks at whether there are workers.
_TICK = 2.0
# Seconds without any worker, or without a scheduler, after which a wait ends: the option `skort.no-worker-timeout`.
_NO_WORKER = 300.0
# Seconds in which no task of the client finishes, after which a wait ends: the option `skort.no-result-timeout`.
_NO_RESULT = 3600.0
# So many results are merged by one task.
_FAN_IN = 8
_UNPACKED: LRUCache = LRUCache(8)


class Borrower:
    """Has something of a worker's for as long as it lives."""


@dataclass(frozen=True, eq=False)
class Broadcast(Generic[Value]):
    """A value that travels with every task, pickled; the key is that of this value and no other."""

    key: str
    packed: bytes

    def value(self) -> Value:
        """Return the value; a worker unpacks it once."""
        return _UNPACKED.get(self.key, lambda: pickle.loads(self.packed))


class Cluster:
    """The tasks of one fit or score, none tied to a worker: where one goes, Dask computes its results on another."""

    def __init__(self, client: Client):
        self.client = client
        self._name = uuid.uuid4().hex[:12]
        self._n_tasks = 0

    def key(self, name: str) -> str:
        """Return a key that nothing else has."""
        self._n_tasks += 1
        return f"skort-{name}-{self._name}-{self._n_tasks}"

    def broadcast(self, name: str, value: Value) -> Broadcast[Value]:
        """Return a value as tasks get it."""
        return Broadcast(self.key(name), cloudpickle.dumps(value))

    def submit(self, function: Callable, *arguments: Any) -> Future:
        """Return the future of a call; arguments may be futures, and lists of them."""
        self._check_open()
        # Of a partial its function.
        key = self.key(getattr(function, "func", function).__name__.strip("_"))
        # Later tasks first: what uses a partition runs while it is in memory. Below 0: other work is not put off.
        return self.client.submit(function, *arguments, key=key, pure=False, priority=-1 / self._n_tasks)

    def _check_open(self):
        if self.client.status in ("closing", "closed"):
            raise ClusterError("The client is closed, or its cluster: make new ones and fit again.")

    def computed(self, delayed: Sequence[Any]) -> list[Future]:
        """Return the futures of delayed values."""
        self._check_open()
        return self.client.compute(list(delayed))

    def each(self, function: Callable, futures: Sequence[Future], *arguments: Any) -> list[Future]:
        """Return the futures of `function(future, *arguments)`."""
        return [self.submit(function, future, *arguments) for future in futures]

    def merged(self, merge: Callable[[list], Any], futures: Sequence[Future]) -> Future:
        """Return the future of what a function of a list makes of results, in a tree by their number alone."""
        level = list(futures)
        while len(level) > 1:
            level = [self.submit(merge, level[start : start + _FAN_IN]) for start in range(0, len(level), _FAN_IN)]
        return level[0]

    def few(self, merge: Callable[[list], Any], futures: Sequence[Future]) -> list[Future]:
        """Return so few futures that one task can merge them; more are merged before, in a tree."""
        return list(futures) if len(futures) <= _FAN_IN else [self.merged(merge, futures)]

    def value(self, future: Future) -> Any:
        """Return a result; a `ClusterError` where no worker can compute it, or no task finishes for a long time."""
        watch = _Watch(self.client)
        while True:
            try:
                return future.result(timeout=_TICK)
            except KilledWorker as error:
                raise ClusterError(
                    f"Workers died, one after the other, while they ran a task of skort: {error}. The most frequent "
                    "cause is too little memory: use smaller partitions, or give each worker more memory."
                ) from error
            except FutureCancelledError as error:
                raise ClusterError(
                    "The scheduler lost the tasks of this fit: it was closed, or started again. Fit again."
                ) from error
            except (TimeoutError, UnboundLocalError):
                # A task may have raised it. The second one is a race of `distributed.utils.sync`: where the end of the
                # wait cancels it, there is neither a result nor an error.
                if future.status == "error":
                    raise
            watch.look()

    def values(self, futures: Sequence[Future]) -> list[Any]:
        """Return results, in their order, as `value` does."""
        return [self.value(future) for future in futures]


class _Watch:
    """Raises an error where nobody has been there to compute anything, or nothing was computed, for some time."""

    def __init__(self, client):
        self._client = client
        self._pending = self._still_pending()
        self._last_worker = self._last_result = time.monotonic()

    def look(self):
        """Look whether somebody is there, and whether something was computed."""
        now, is_running, pending = time.monotonic(), self._client.status == "running", self._still_pending()
        if is_running and self._has_workers():
            self._last_worker = now
        if pending != self._pending:
            self._pending, self._last_result = pending, now
        option, most = _option("skort.no-worker-timeout", _NO_WORKER)
        if now - self._last_worker > most:
            missing = "cluster has had no worker" if is_running else "client has had no scheduler"
            raise ClusterError(
                f'The {missing} for {most:.0f} seconds. Start one and fit again; the option "{option}" of dask.config '
                "says how long to wait."
            )
        option, most = _option("skort.no-result-timeout", _NO_RESULT)
        if now - self._last_result > most:
            raise ClusterError(
                f"No task has finished for {most:.0f} seconds: one may hang on a worker. Restart the workers, for "
                f'instance with client.restart(), and fit again; the option "{option}" of dask.config says how long to '
                "wait."
            )

    def _still_pending(self):
        return {key for key, state in list(self._client.futures.items()) if state.status == "pending"}

    def _has_workers(self):
        try:
            return bool(self._client.scheduler_info(n_workers=1)["workers"])
        except OSError:
            # The scheduler does not answer.
            return False


def _option(name, seconds):
    """Return an option of dask.config and its value."""
    return name, float(dask.config.get(name, seconds))
