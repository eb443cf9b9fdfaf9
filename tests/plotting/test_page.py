"""The examples of the page on pictures."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "plotting.rst"


def test_examples_run():
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    failures, attempts = doctest.testfile(str(PAGE), module_relative=False)
    assert attempts > 0
    assert failures == 0
