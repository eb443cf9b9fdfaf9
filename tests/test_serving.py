"""
Files of fitted models, read back where they were written;
the serving lanes do it in two environments.
"""

import runpy
from pathlib import Path

import pytest

SERVING = runpy.run_path(str(Path(__file__).with_name("serving.py")))


@pytest.mark.filterwarnings("ignore:Class PassiveAggressive:FutureWarning")
def test_pickles_and_onnx_files_predict_as_the_fitted_models(tmp_path):
    SERVING["train"](tmp_path)
    differences = SERVING["serve"](tmp_path)
    assert differences.keys() == SERVING["MODELS"].keys()
    assert max(differences.values()) < 1e-6, differences
