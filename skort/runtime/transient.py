"""What copies of an object do not take along."""

__all__ = ["Transient"]


class Transient:
    """
    A box for what must not be copied, such as a session: pickle, deepcopy and joblib see an empty one.

    Examples
    --------
    >>> import copy
    >>> from skort.runtime.transient import Transient
    >>> box = Transient()
    >>> box.put("session")
    >>> copy.deepcopy(box).take() is None
    True
    >>> box.take(), box.take()
    ('session', None)
    """

    def __init__(self):
        self._value = None

    def __reduce__(self):
        return Transient, ()

    def put(self, value):
        """Put a value in place of what is there."""
        self._value = value

    def look(self):
        """Return what is there, or None, and leave it there."""
        return self._value

    def take(self):
        """Return what is there, or None, and leave the box empty."""
        value, self._value = self._value, None
        return value
