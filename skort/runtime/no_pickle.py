"""A box for values that copies of an object leave behind."""

from typing import Any


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
