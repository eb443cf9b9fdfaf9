"""Errors about an argument that the check which raises them calls by another name."""

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Put the name of an argument before each ValueError that does not begin with it."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith(name):
            raise
        raise ValueError(f"{name}: {error}") from None
