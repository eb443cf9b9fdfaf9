"""Values that travel with every task, and are unpacked once a worker."""

import pickle
from dataclasses import dataclass
from typing import Generic, TypeVar

import cloudpickle

from skort.runtime.cache import LRUCache

__all__ = ["Packed"]

Value = TypeVar("Value")
_UNPACKED: LRUCache = LRUCache(8)


@dataclass(frozen=True, eq=False)
class Packed(Generic[Value]):
    """
    A value on its way to the workers.

    Parameters
    ----------
    key : str
        Of this value and no other.
    packed : bytes

    Examples
    --------
    >>> from skort.dask.packed import Packed
    >>> Packed.of("a key of its own", [1, 2]).value()
    [1, 2]
    """

    key: str
    packed: bytes

    @classmethod
    def of(cls, key: str, value: Value) -> "Packed[Value]":
        """Pack a value."""
        return cls(key, cloudpickle.dumps(value))

    def value(self) -> Value:
        """Return the value; a worker unpacks it once."""
        return _UNPACKED.get(self.key, lambda: pickle.loads(self.packed))
