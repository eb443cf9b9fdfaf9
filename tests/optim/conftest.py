"""Fixtures of the tests of `skort.optim`."""

import pytest

from skort.optim.batches import WindowShape


@pytest.fixture
def small_windows(monkeypatch):
    """Let all rows be many, in windows of up to 8 blocks of 3 rows."""
    monkeypatch.setattr("skort.optim.batches.MANY_ROWS", 0)
    monkeypatch.setattr(
        WindowShape, "of", classmethod(lambda cls, n_features, batch_size: cls(8, 3))
    )
