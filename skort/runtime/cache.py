"""What was made lately, and is used again by whatever needs the same; a box for what copies leave behind."""

import collections
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")
_EVERY: list[collections.OrderedDict | collections.deque] = []


class LRUCache(Generic[Made]):
    """The things used last, at most so many, by key. Threads share it, and them. Only a module makes one."""

    def __init__(self, size: int):
        self._size = size
        self._made: collections.OrderedDict[Hashable, Made] = collections.OrderedDict()
        self._lock = threading.Lock()
        _EVERY.append(self._made)

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what is kept for a key; otherwise make and keep it."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        # Threads may make the same at the same time: this takes long, and others should not wait for it.
        made = make()
        with self._lock:
            self._made[key] = made
            self._made.move_to_end(key)
            while len(self._made) > self._size:
                self._made.popitem(last=False)
        return made


class SessionPool(Generic[Made]):
    """Things that one borrower at a time may use: they come back when it is gone, and so many free ones are kept."""

    def __init__(self, size: int):
        self._free: collections.deque[tuple[Hashable, Made]] = collections.deque(maxlen=size)
        # Garbage may be collected, and things come back, while the lock is held.
        self._lock = threading.RLock()
        _EVERY.append(self._free)

    def borrow(self, key: Hashable, borrower: Any, make: Callable[[], Made]) -> Made:
        """Return a thing for a key that nobody else uses; make it where there is none."""
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
    """A box for a value that must not be copied, such as a session: pickle, deepcopy and joblib see an empty box."""

    def __init__(self):
        self._value: Any = None

    def __reduce__(self):
        return NoPickle, ()

    def put(self, value: Any) -> None:
        """Put a value into the box, in place of any other."""
        self._value = value

    def look(self) -> Any:
        """Return the value, or None, and leave it in the box."""
        return self._value

    def take(self) -> Any:
        """Return the value, or None, and leave the box empty."""
        value, self._value = self._value, None
        return value


#: What is made for a structure and shared by all that have it: sessions, gradients of losses, checks. The first part of
#: a key says what it is, the others all that it depends on. A session of a small model keeps about a MB.
COMPILED: LRUCache = LRUCache(128)
#: Sessions that hold the weights of a training: one fit at a time has it.
POOL: SessionPool = SessionPool(8)


def forget() -> None:
    """Forget all that these caches keep, while no thread uses them."""
    for kept in _EVERY:
        kept.clear()
