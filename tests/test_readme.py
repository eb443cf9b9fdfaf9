"""README.md says what is true."""

import re
from pathlib import Path

import numpy as np
import pytest

import skort

README = Path(__file__).parent.parent / "README.md"


def test_the_code_block_runs(tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, str(README), "exec"), names)
    assert names["model"].score(names["X_test"], names["y_test"]) > 0.95
    np.testing.assert_allclose(names["probabilities"], names["model"].predict_proba(names["X_test"]), atol=1e-5)
    assert (tmp_path / "digits.onnx").stat().st_size > 0


def test_the_two_commands_stand_alone_in_their_blocks():
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    commands = [text for language, text in blocks if not language]
    assert commands == ["pip install . && python examples/quickstart.py\n", 'pip install ".[test]" && pytest\n']


@pytest.mark.parametrize("estimator_class", [skort.OrtSGDRegressor, skort.OrtSGDClassifier])
def test_the_table_of_parameters_is_complete(estimator_class):
    table = README.read_text().split("| parameter | values |")[1].split("\n\n")[0]
    other = "(classifier)" if estimator_class is skort.OrtSGDRegressor else "(regressor)"
    columns = [row.split("|")[1] for row in table.splitlines() if row]
    listed = {name for column in columns if other not in column for name in re.findall(r"`(\w+)`", column)}
    assert listed == set(estimator_class().get_params())
