"""The package as a whole."""

import importlib.metadata
import subprocess
import sys

import skort


def test_version_is_the_installed_one():
    assert importlib.metadata.version("skort") == skort.__version__


def test_import_loads_neither_onnx_nor_onnxruntime():
    code = "import sys, skort; print(sorted({'onnx', 'onnxruntime', 'skl2onnx', 'tqdm'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_fit_leaves_the_users_logging_as_it_was():
    code = (
        "import logging, numpy as np, skort; X = np.eye(4);"
        "skort.OrtSGDRegressor(max_iter=9, tol=None).fit(X, X[:, 0]);"
        "print(logging.getLogger().level, logging.getLogger().handlers)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == f"{30} []"
    assert run.stderr == ""
