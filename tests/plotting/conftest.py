"""Figures without a window, closed after each test."""

import sys

import pytest


@pytest.fixture(autouse=True)
def no_window():
    """Draw without a window, where matplotlib is installed, and close all figures."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        yield
        return
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.fixture
def no_matplotlib(monkeypatch):
    """Let every import of matplotlib fail."""
    for name in [
        *(name for name in sys.modules if name.partition(".")[0] == "matplotlib"),
        "matplotlib.pyplot",
    ]:
        monkeypatch.setitem(sys.modules, name, None)
