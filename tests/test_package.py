"""The package as a whole."""

import importlib.metadata
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

import skort


def test_version_is_the_installed_one():
    assert importlib.metadata.version("skort") == skort.__version__


PLATFORMS = [
    ("3.10", "linux", "x86_64", "onnxruntime-training"),
    ("3.11", "linux", "x86_64", "onnxruntime-training"),
    ("3.12", "linux", "x86_64", "onnxruntime-training-cpu"),
    ("3.13", "linux", "x86_64", "onnxruntime"),
    ("3.11", "linux", "aarch64", "onnxruntime"),
    ("3.10", "darwin", "arm64", "onnxruntime-training-cpu"),
    ("3.12", "darwin", "x86_64", "onnxruntime-training-cpu"),
    ("3.13", "darwin", "arm64", "onnxruntime"),
    ("3.11", "win32", "AMD64", "onnxruntime-training-cpu"),
    ("3.11", "win32", "ARM64", "onnxruntime"),
    ("3.14", "win32", "AMD64", "onnxruntime"),
    ("3.11", "freebsd14", "amd64", "onnxruntime"),
]


@pytest.mark.parametrize("python, system, machine, runtime", PLATFORMS)
def test_every_platform_gets_one_onnxruntime(python, system, machine, runtime):
    platform = {"python_version": python, "sys_platform": system, "platform_machine": machine, "extra": ""}
    requirements = [Requirement(text) for text in importlib.metadata.requires("skort")]
    wanted = [r for r in requirements if r.marker is None or r.marker.evaluate(platform)]
    assert [r.name for r in wanted if r.name.startswith("onnxruntime")] == [runtime]
    # onnxruntime-training 1.16 is built for numpy 1.
    numpy = [r.specifier for r in wanted if r.name == "numpy"]
    assert any("2.0" not in specifier for specifier in numpy) == (runtime == "onnxruntime-training")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_import_loads_neither_onnx_nor_onnxruntime():
    loaded = run("import sys, skort; print(sorted({'onnx', 'onnxruntime', 'skl2onnx', 'tqdm'} & set(sys.modules)))")
    assert loaded.stdout.strip() == "[]"


def test_import_loads_none_of_scikit_learns_models():
    models = {"sklearn.linear_model", "sklearn.neural_network", "sklearn.metrics", "sklearn.model_selection"}
    loaded = run(f"import sys, skort; print(sorted({models} & set(sys.modules)))")
    assert loaded.stdout.strip() == "[]"


def test_fit_leaves_the_users_logging_as_it_was():
    fit = run(
        "import logging, numpy as np, skort; X = np.eye(4);"
        "skort.OrtSGDRegressor(max_iter=9, tol=None).fit(X, X[:, 0]);"
        "print(logging.getLogger().level, logging.getLogger().handlers)"
    )
    assert fit.stdout.strip() == f"{30} []"
    assert fit.stderr == ""
