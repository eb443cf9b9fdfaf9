"""
Arrays at addresses that are no multiple of their values' size:
the bits of aligned ones, on any processor.
"""

import pathlib
import re
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("unaligned.py")
WAYS = re.findall(r"\b\w+\b", re.search(r"for each in \((.*)\)", SCRIPT.read_text())[1])


@pytest.mark.parametrize("way", WAYS)
def test_unaligned_arrays_give_the_bits_of_aligned_ones(way, only_aligned_blas):
    ran = subprocess.run(
        [sys.executable, "-W", "error", SCRIPT, way],
        env=only_aligned_blas,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (ran.returncode, ran.stdout) == (0, "equal\n"), ran.stderr
