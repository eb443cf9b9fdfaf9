"""Warnings that point at the user's own line."""

import contextlib
import contextvars
import re
import sys
import warnings
from collections.abc import Iterator
from types import TracebackType

# The frames between the user's line and the line that warns are of these packages only. joblib runs
# the fits of a grid search, and contextlib runs decorated functions.
_INSIDE = ("skort", "sklearn", "joblib", "contextlib")


# The warnings that a block collects.
_collected: contextvars.ContextVar[list[tuple[str, type[Warning]]] | None] = contextvars.ContextVar(
    "collected", default=None
)


class Counted:
    """
    A block that warns once, at its end, of the warnings that differ only in numbers.

    Such a warning begins with how many there are: "18 fits: ...". It has the text of the first.
    """

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> None:
        self._warnings: list[tuple[str, type[Warning]]] = []
        self._token = _collected.set(self._warnings)

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _collected.reset(self._token)
        if error is not None:
            return

        alike: dict[tuple[str, type[Warning]], list[str]] = {}
        for message, category in self._warnings:
            alike.setdefault((re.sub(r"\d[\d.,e+-]*", "0", message), category), []).append(message)
        for (_, category), messages in alike.items():
            n = len(messages)
            warn_user(messages[0] if n == 1 else f"{n} {self._what}: {messages[0]}", category)


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """Warn of nothing in a block: its trainings are not those of the user."""
    token = _collected.set([])
    try:
        yield
    finally:
        _collected.reset(token)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """
    Warn of what the user did, at the line of the innermost function outside skort,
    scikit-learn and joblib.
    """
    collected = _collected.get()
    if collected is not None:
        collected.append((message, category))
        return

    frame = sys._getframe(1)
    level = 2
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE
    ):
        frame = frame.f_back
        level = level + 1

    warnings.warn(message, category, stacklevel=level)
