"""
The programs of docs/serving, each in its language, next to the estimator whose file they serve.

Those in Node.js and in a browser take ONNX Runtime from the npm registry. The one in C++ needs the
environment variable ONNXRUNTIME_HOME, the folder of an unpacked release of ONNX Runtime; the one in
Java needs ONNXRUNTIME_JAR, the path of `onnxruntime-VERSION.jar`. The one in C# is not run here.
"""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skort.runtime.installed import load

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PROGRAMS = DOCS / "serving"
BROWSER = runpy.run_path(str(HERE / "browser.py"))
ORT_WEB = runpy.run_path(str(DOCS / "browser_files.py"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of complaints.onnx, and the lines that a program has to print."""
    pandas = pytest.importorskip("pandas")
    folder = tmp_path_factory.mktemp("serving")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        model = runpy.run_path(str(PROGRAMS / "train.py"))["model"]
    rows = pandas.DataFrame(
        {
            "days": [2, np.nan, 25],
            "channel": ["shop", None, "phone"],
            "text": ["thank you", "it burns", "it never came"],
        }
    )
    return folder, model.predict(rows).tolist(), model.predict_proba(rows)


@pytest.fixture
def folder(trained, tmp_path):
    """Return a folder with complaints.onnx and the programs."""
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    shutil.copy(trained[0] / "complaints.onnx", tmp_path)
    return tmp_path


def output(folder, *command, **environment):
    run = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    return run.stdout


def check(printed, trained, atol=1e-6):
    """Each line is a label and its probabilities; they are the estimator's."""
    _, labels, probabilities = trained
    lines = [line.split() for line in printed.strip().splitlines()]
    assert [line[0] for line in lines] == labels == ["later", "urgent", "urgent"]
    np.testing.assert_allclose(
        [[float(number) for number in line[1:]] for line in lines], probabilities, atol=atol
    )


def test_the_page_shows_what_the_programs_print(trained):
    page = (DOCS / "serving.rst").read_text()
    (shown,) = re.findall(r"\.\. code-block:: text\n\n((?:    (?:later|urgent) .*\n)+)", page)
    check(shown, trained, atol=1e-4)


def test_the_page_shows_the_inputs_and_outputs(folder):
    lines = output(folder, sys.executable, "inputs.py").splitlines()
    assert len(lines) == 5
    assert "\n".join(f"    {line}" for line in lines) in (DOCS / "serving.rst").read_text()


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (
            {"days": [[2.0]]},
            "Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))",
        ),
        ({"days": np.array([2], np.float32)}, "Invalid rank for input: days Got: 1 Expected: 2"),
        ({"text": None}, "Required inputs (['text']) are missing from input feed"),
    ],
)
def test_the_page_explains_the_errors(trained, feed, message):
    session = load().InferenceSession(
        str(trained[0] / "complaints.onnx"), providers=["CPUExecutionProvider"]
    )
    right = {"days": np.array([[2]], np.float32), "channel": [["shop"]], "text": [["it burns"]]}
    feeds = {name: np.array(value) for name, value in (right | feed).items() if value is not None}
    with pytest.raises(Exception, match=re.escape(message)):
        session.run(None, feeds)
    assert f"`{message}`" in (DOCS / "serving.rst").read_text()


def test_python(trained, folder):
    check(output(folder, sys.executable, "serve.py"), trained)


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm"
)
def test_node(trained, folder):
    # Its install script only fetches libraries for CUDA.
    package = f"onnxruntime-node@{ORT_WEB['VERSION']}"
    output(
        folder,
        "npm",
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
        package,
    )
    check(output(folder, "node", "serve.mjs"), trained)


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("npm")), reason="needs Chromium and npm"
)
def test_browser(trained, folder):
    ORT_WEB["fetch_runtime"](folder)
    page = BROWSER["page_when"](
        'document.getElementById("output").textContent', folder, "serve.html"
    )
    (printed,) = re.findall(r'<pre id="output">(.*?)</pre>', page, re.DOTALL)
    check(printed, trained)


@pytest.mark.skipif(
    not (shutil.which("g++") and "ONNXRUNTIME_HOME" in os.environ),
    reason="needs g++ and ONNXRUNTIME_HOME",
)
def test_cpp(trained, folder):
    home = Path(os.environ["ONNXRUNTIME_HOME"])
    flags = [
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{home / 'include'}",
        f"-L{home / 'lib'}",
    ]
    output(folder, "g++", *flags, "serve.cpp", "-lonnxruntime", "-o", "serve")
    check(output(folder, "./serve", LD_LIBRARY_PATH=str(home / "lib")), trained)


@pytest.mark.skipif(
    not (shutil.which("java") and "ONNXRUNTIME_JAR" in os.environ),
    reason="needs Java and ONNXRUNTIME_JAR",
)
def test_java(trained, folder):
    check(output(folder, "java", "-cp", os.environ["ONNXRUNTIME_JAR"], "Serve.java"), trained)
