"""The progress bar: in a terminal or a notebook only."""

import io
import sys

import pytest

from skort.descent.callbacks import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(bar):
    with bar as progress:
        for objective in (3.0, 1.25):
            progress(objective)


def test_in_a_terminal_it_shows_epochs_and_the_loss(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(ProgressBar(2))
    assert "2/2" in sys.stderr.getvalue()
    assert "loss=1.25" in sys.stderr.getvalue()


@pytest.mark.parametrize("stream, enabled", [(io.StringIO, True), (Terminal, False)])
def test_elsewhere_it_shows_nothing(stream, enabled, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    run(ProgressBar(2, enabled=enabled))
    assert sys.stderr.getvalue() == ""
