"""The examples in the pages of the documentation."""

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(
    "page",
    [
        "on_device.rst",
        "own_loops.rst",
        "pipelines_and_fine_tuning.rst",
        "scales_and_learning_rate.rst",
        "sparse.rst",
        "stopping_and_streaming.rst",
        "text.rst",
    ],
)
def test_examples_run(page):
    pytest.importorskip("pandas")
    failures, attempts = doctest.testfile(str(PAGES / page), module_relative=False)
    assert attempts > 0
    assert failures == 0
