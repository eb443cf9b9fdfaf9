"""README.md says what is true."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parent.parent / "README.md"


def _blocks(language):
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    return [text for of, text in blocks if of == language]


def test_the_code_block_prints_what_stands_below_it(tmp_path, monkeypatch, capsys):
    (code,) = _blocks("python")
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, str(README), "exec"), names)
    assert capsys.readouterr().out == _blocks("text")[0]
    np.testing.assert_allclose(
        names["proba"], names["model"].predict_proba(names["X_test"]), atol=1e-5
    )
    assert (tmp_path / "digits.onnx").stat().st_size > 0


def test_the_landing_page_shows_the_same_code():
    landing = (README.parent / "docs" / "index.rst").read_text()
    shown = re.findall(r"code-block:: (?:bash|python|text)\n\n((?:(?: {4}|\t).*\n|\n)+)", landing)
    assert [textwrap.dedent(block).strip() for block in shown] == [
        block.strip() for block in (_blocks("")[0], *_blocks("python"), _blocks("text")[0])
    ]


def test_the_commands_stand_alone_in_their_blocks():
    assert _blocks("") == [
        'pip install "skort[cpu]"\n',
        'pip install ".[training]" && python examples/quickstart.py\n',
        'pip install ".[test]" && pytest\n',
    ]


def test_pictures_are_there():
    pictures = re.findall(r'(?:src|srcset)="([^"]*)"', README.read_text())
    assert len(pictures) == 2
    assert [name for name in pictures if not (README.parent / name).is_file()] == []


def _scores(table):
    """Return the score of each line by its data and solver."""
    return {(line[:24].strip(), line[25:39].strip()): float(line[39:47]) for line in table}


def _differences(lines):
    """Return the number at the end of each line by the words before it."""
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


@pytest.mark.slow
def test_the_quickstart_prints_its_table():
    quickstart = [sys.executable, README.parent / "examples" / "quickstart.py"]
    run = subprocess.run(quickstart, capture_output=True, text=True, check=True, timeout=300)
    expected = _blocks("text")[1].splitlines()
    printed = run.stdout.splitlines()
    assert printed[0] == expected[0]
    assert _scores(printed[1:9]) == pytest.approx(_scores(expected[1:9]), abs=0.01)
    # A line for each other solver that is installed.
    shown = _differences(expected[9:])
    differences = _differences(printed[9:])
    assert differences == pytest.approx({name: shown[name] for name in differences}, abs=0.006)
