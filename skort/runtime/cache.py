"""Caches of sessions and other things that take long to make, and a box that copies leave empty."""

import collections
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")
_EVERY: list[collections.OrderedDict | collections.deque] = []


class LRUCache(Generic[Made]):
    """
    A cache of the things that were used last, at most `size` of them.

    Threads share the cache and the things. Caches live in modules only, because none is ever freed.
    """

    def __init__(self, size: int):
        self._size = size
        self._made: collections.OrderedDict[Hashable, Made] = collections.OrderedDict()
        self._lock = threading.Lock()
        _EVERY.append(self._made)

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the thing that is kept for a key; if there is none, make and keep it."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]

        # A thing takes long to make, so other threads do not wait for it. Two of them may make the
        # same thing.
        made = make()
        with self._lock:
            self._made[key] = made
            self._made.move_to_end(key)
            while len(self._made) > self._size:
                self._made.popitem(last=False)

        return made


class SessionPool(Generic[Made]):
    """
    Things that one borrower at a time may use.

    A thing comes back when its borrower is gone. At most `size` free things are kept.
    """

    def __init__(self, size: int):
        self._free: collections.deque[tuple[Hashable, Made]] = collections.deque(maxlen=size)
        # While a thread holds the lock, it may collect garbage, and a thing may come back.
        self._lock = threading.RLock()
        _EVERY.append(self._free)

    def borrow(self, key: Hashable, borrower: Any, make: Callable[[], Made]) -> Made:
        """Return a thing for a key that nobody else uses; make one if none is free."""
        with self._lock:
            found = next((pair for pair in self._free if pair[0] == key), None)
            if found is not None:
                self._free.remove(found)

        thing = make() if found is None else found[1]
        weakref.finalize(borrower, self._take_back, key, thing).atexit = False
        return thing

    def _take_back(self, key, thing):
        with self._lock:
            self._free.append((key, thing))


class NoPickle:
    """
    A box for a value that must not be copied, such as a session:
    pickle, deepcopy and joblib see an empty box.
    """

    def __init__(self, value: Any = None):
        self._value = value

    def __reduce__(self) -> tuple[type["NoPickle"], tuple[()]]:
        return NoPickle, ()

    def put(self, value: Any) -> None:
        """Put a value into the box, in place of any other."""
        self._value = value

    def look(self) -> Any:
        """Return the value, or None, and leave it in the box."""
        return self._value

    def take(self) -> Any:
        """Return the value, or None, and leave the box empty."""
        value = self._value
        self._value = None
        return value


#: Sessions, gradients of losses and checks that all users of the same structure share. The first
#: part of a key says what the thing is; the other parts are all that the thing depends on. A
#: session of a small model keeps about a MB.
COMPILED: LRUCache[Any] = LRUCache(128)
#: Sessions that hold the weights of a training, so that one fit at a time may use each.
POOL: SessionPool[Any] = SessionPool(8)


def forget() -> None:
    """Empty all caches and pools. No thread may use them meanwhile."""
    for kept in _EVERY:
        kept.clear()
