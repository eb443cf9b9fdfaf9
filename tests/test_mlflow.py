"""The recipe of `docs/interpretation.rst` that saves an estimator with MLflow: `nox -s tests_mlflow`."""

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from skort import OrtSGDRegressor

PAGE = Path(__file__).parent.parent / "docs" / "interpretation.rst"


@pytest.mark.filterwarnings("default")
def test_a_saved_estimator_comes_back_with_its_runtime(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow.sklearn", reason="needs mlflow")
    X, y = load_diabetes(return_X_y=True)
    model = OrtSGDRegressor(max_iter=5, tol=None, random_state=0).fit(X, y)
    blocks = re.findall(r"code-block:: python\n\n((?: {4}.*\n|\n)+)", PAGE.read_text())
    (recipe,) = (block for block in blocks if "save_model" in block)
    monkeypatch.chdir(tmp_path)
    exec(textwrap.dedent(recipe), {"model": model})
    np.testing.assert_array_equal(mlflow.load_model("model").predict(X), model.predict(X))
    # MLflow adds the version where it finds skort among the imports of the model.
    required = tmp_path.joinpath("model", "requirements.txt").read_text()
    assert re.search(r"^skort\[cpu\](==.*)?$", required, re.MULTILINE), required
