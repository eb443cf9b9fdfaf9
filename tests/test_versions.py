"""What `show_versions` prints: on a machine that is made up, on broken ones, and on this one."""

import importlib.metadata
import platform
import re
import subprocess
import sys
from types import SimpleNamespace

import joblib
import numpy as np
import pytest

import skort
from skort import versions
from skort.exceptions import RuntimeNotAvailableError
from skort.runtime import installed
from skort.solvers import ON_REQUEST, SOLVERS, available_solvers

VERSIONS = {
    "scikit-learn": "1.9.1",
    "numpy": "1.26.4",
    "scipy": "1.17.1",
    "onnx": "1.23.2",
    "skl2onnx": "1.20.0",
    "onnxruntime": "1.31.1",
    "onnxruntime-training": "1.16.3",
}


@pytest.fixture
def machine(monkeypatch):
    """Pretend to be another machine; return what sets its distributions of ONNX Runtime."""
    monkeypatch.setattr(sys, "version", "3.11.7 (main, Dec  4 2023, 18:10:11) \n[GCC 12.2.0]")
    monkeypatch.setattr(sys, "executable", "/usr/bin/python")
    monkeypatch.setattr(platform, "platform", lambda: "Linux-6.1-x86_64-with-glibc2.36")
    monkeypatch.setattr(versions.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 4)
    for name in versions._ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(versions, "__version__", "0.1.0")
    monkeypatch.setattr(versions, "_version", VERSIONS.get)

    def set_runtime(distributions, load):
        monkeypatch.setattr(
            installed,
            "installed_distributions",
            lambda: {name: VERSIONS[name] for name in distributions},
        )
        monkeypatch.setattr(
            importlib.metadata, "packages_distributions", lambda: {"onnxruntime": distributions}
        )
        monkeypatch.setattr(installed, "load", load)

    return set_runtime


def runtime():
    return SimpleNamespace(__version__="1.16.3", get_available_providers=lambda: ["CUDA", "CPU"])


def test_all_of_it(machine, monkeypatch, capsys):
    machine(["onnxruntime-training"], runtime)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    reasons = {"agent": "there is no TrainingAgent."}
    monkeypatch.setattr(
        skort.solvers, "SOLVERS", {name: SOLVERS[name] for name in ("graph", "agent", "session")}
    )
    monkeypatch.setattr(skort.solvers, "ON_REQUEST", {"module": ON_REQUEST["module"]})
    monkeypatch.setattr(skort.solvers, "why_not", lambda solver: reasons.get(NAMES[solver]))
    skort.show_versions()
    assert capsys.readouterr().out == (
        """\
System:
     python: 3.11.7 (main, Dec 4 2023, 18:10:11) [GCC 12.2.0]
 executable: /usr/bin/python
    machine: Linux-6.1-x86_64-with-glibc2.36
      cores: 8, of which this process may use 4
environment: OMP_NUM_THREADS=1

Python dependencies:
       skort: 0.1.0
scikit-learn: 1.9.1
       numpy: 1.26.4
       scipy: 1.17.1
      joblib: None
        onnx: 1.23.2
    skl2onnx: 1.20.0
 flatbuffers: None
        tqdm: None
         pip: None
        dask: None
 distributed: None
  matplotlib: None
      pandas: None
       torch: None

ONNX Runtime:
onnxruntime-training: 1.16.3
            imported: 1.16.3
           providers: CUDA, CPU

Solvers:
  graph: available
  agent: not available: there is no TrainingAgent.
session: available
 module: available
"""
    )


NAMES = {solver: name for name, solver in {**SOLVERS, **ON_REQUEST}.items()}


def test_several_distributions_of_onnxruntime_are_all_listed_with_the_advice(machine):
    machine(["onnxruntime", "onnxruntime-training"], runtime)
    assert versions._text("ONNX Runtime", versions._onnx_runtime()) == (
        """\
ONNX Runtime:
         onnxruntime: 1.31.1
onnxruntime-training: 1.16.3
             problem: onnxruntime and onnxruntime-training are installed over each other and share the import name \
onnxruntime. Fix it with: pip uninstall -y onnxruntime onnxruntime-training && pip install onnxruntime-training==1.16.3
            imported: 1.16.3
           providers: CUDA, CPU"""
    )


def test_a_runtime_that_is_missing_is_no_error(machine, monkeypatch):
    def load():
        raise RuntimeNotAvailableError("onnxruntime cannot be imported\n(no file).")

    machine([], load)
    message = "onnxruntime cannot be imported (no file)."
    assert versions._onnx_runtime() == {"imported": f"no: RuntimeNotAvailableError: {message}"}
    monkeypatch.setattr(skort.solvers, "load", load)
    assert versions._solvers() == dict.fromkeys(
        [*SOLVERS, *ON_REQUEST], f"not available: {message}"
    )


def test_solvers_that_cannot_be_imported_are_no_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "skort.solvers", None)
    assert versions._solvers() == {
        "none": "ModuleNotFoundError: import of skort.solvers halted; None in sys.modules",
    }


@pytest.mark.parametrize("missing", ["joblib", "numpy", "onnx", "sklearn", "skl2onnx", "scipy"])
def test_a_package_that_is_missing_is_no_error(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import skort; skort.show_versions()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    headings = re.findall(r"^(\w.*):$", run.stdout, re.MULTILINE)
    assert headings == ["System", "Python dependencies", "ONNX Runtime", "Solvers"]


def test_this_machine():
    rows = versions._solvers()
    assert list(rows) == [*SOLVERS, *ON_REQUEST]
    assert [name for name in SOLVERS if rows[name] == "available"] == available_solvers()
    assert versions._version("numpy") == np.__version__
    assert versions._version("no-such-package") is None
    assert set(versions._onnx_runtime()) == {
        *installed.installed_distributions(),
        "imported",
        "providers",
    }
    assert versions._onnx_runtime()["imported"] == installed.load().__version__
