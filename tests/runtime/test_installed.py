"""The messages about missing and mixed runtimes."""

import importlib.util
import logging
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier
from skort.exceptions import RuntimeNotAvailableError
from skort.runtime import installed


@pytest.fixture
def pretend(monkeypatch):
    """Pretend that other distributions, with another training API, are installed."""

    def set_installed(distributions, api=()):
        monkeypatch.setattr(installed, "installed_distributions", lambda: distributions)
        monkeypatch.setattr(installed, "training_api", lambda: dict.fromkeys(api, object))

    return set_installed


def test_a_missing_class_names_what_is_installed_and_which_packages_have_it(pretend):
    pretend({"onnxruntime-training-cpu": "1.19.2"}, ["TrainingAgent"])
    assert installed.require("TrainingAgent") is object
    with pytest.raises(RuntimeNotAvailableError) as error:
        installed.require("TrainingSession")
    message = str(error.value)
    assert "onnxruntime-training-cpu 1.19.2" in message
    assert "onnxruntime-training 1.16.2 and 1.16.3 (Linux x86-64, Python 3.10 and 3.11)" in message
    assert "uninstall" not in message


MEND = (
    "Fix it with: pip uninstall -y onnxruntime onnxruntime-training && pip install "
    "onnxruntime-training==1.16.3"
)
MIX = (
    "onnxruntime and onnxruntime-training are installed over each other and share the import name "
    f"onnxruntime. {MEND}"
)


def test_a_mix_that_broke_the_training_api_is_named_with_its_cure(pretend):
    pretend({"onnxruntime": "1.31.1", "onnxruntime-training": "1.16.3"})
    with pytest.raises(RuntimeNotAvailableError) as error:
        installed.require("TrainingAgent")
    assert str(error.value).startswith(
        "The installed runtime (onnxruntime 1.31.1, onnxruntime-training 1.16.3, Python "
    )
    assert str(error.value).endswith(
        f" has no TrainingAgent, which is in {installed._PACKAGES['TrainingAgent']}. {MIX}"
    )


def test_a_mix_that_still_works_is_one_warning(pretend):
    pretend({"onnxruntime": "1.31.1", "onnxruntime-training": "1.16.3"}, ["TrainingAgent"])
    installed.load.cache_clear()
    with pytest.warns(RuntimeWarning, match="installed over each other") as record:
        installed.load()
        installed.load()
    assert [str(warning.message) for warning in record] == [MIX]


# The installed ones, the one whose files are there, the one that the cure keeps
MIXES = [
    (["onnxruntime", "onnxruntime-gpu"], "onnxruntime", "onnxruntime-gpu"),
    (["onnxruntime", "onnxruntime-gpu"], "onnxruntime-gpu", "onnxruntime-gpu"),
    (["onnxruntime", "onnxruntime-directml"], "onnxruntime", "onnxruntime-directml"),
    (["onnxruntime", "onnxruntime-openvino"], "onnxruntime", "onnxruntime-openvino"),
    (["onnxruntime", "onnxruntime-training"], "onnxruntime", "onnxruntime-training"),
    (["onnxruntime", "onnxruntime-training-cpu"], None, "onnxruntime-training-cpu"),
    (["onnxruntime-gpu", "onnxruntime-training"], None, "onnxruntime-gpu"),
    (["onnxruntime-gpu", "onnxruntime-training"], "onnxruntime-training", "onnxruntime-training"),
    (
        ["onnxruntime", "onnxruntime-directml", "onnxruntime-openvino"],
        "onnxruntime",
        "onnxruntime-directml",
    ),
    (
        ["onnxruntime", "onnxruntime-directml", "onnxruntime-openvino"],
        "onnxruntime-openvino",
        "onnxruntime-openvino",
    ),
    (["onnxruntime", "onnxruntime-qnn"], "onnxruntime-qnn", "onnxruntime"),
]


@pytest.mark.parametrize("names, owner, kept", MIXES)
def test_the_cure_of_a_mix_keeps_the_accelerated_build(names, owner, kept, pretend, monkeypatch):
    pretend({name: f"1.{number}" for number, name in enumerate(names)})
    monkeypatch.setattr(installed, "_owner_of_the_files", lambda: owner)
    assert installed.mix_advice() == (
        f"{' and '.join(names)} are installed over each other and share the import name "
        f"onnxruntime. Fix it with: pip uninstall -y {' '.join(names)} && pip install "
        f"{kept}==1.{names.index(kept)}"
    )


def test_the_files_say_which_distribution_they_are_of(tmp_path, monkeypatch):
    (here,) = installed.installed_distributions()
    # onnxruntime 1.16.0 lacks the file that says it.
    has_name = importlib.util.find_spec("onnxruntime.capi.build_and_package_info") is not None
    assert installed._owner_of_the_files() == (here if has_name else None)
    monkeypatch.setattr(installed.importlib.util, "find_spec", lambda name: None)
    assert installed._owner_of_the_files() is None
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(installed.importlib.util, "find_spec", lambda name: spec)
    assert installed._owner_of_the_files() is None
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "build_and_package_info.py").write_text(
        "package_name = 'onnxruntime-gpu'\n__version__ = '1'\n"
    )
    assert installed._owner_of_the_files() == "onnxruntime-gpu"


NO_RUNTIME = (
    "No ONNX Runtime is installed: install exactly one of skort's extras, "
    'pip install "skort[cpu]" (onnxruntime: every system, all but the solvers "session", "agent" '
    'and "module"), pip install "skort[gpu]" (onnxruntime-gpu with CUDA: device="cuda" as well) or '
    'pip install "skort[training]" (the package for training of this system and Python, if there '
    "is one: these solvers as well)."
)
BROKEN = "onnxruntime cannot be imported (no DLL). "


@pytest.mark.parametrize(
    "distributions, error, message",
    [
        ({}, ModuleNotFoundError("No module named 'onnxruntime'", name="onnxruntime"), NO_RUNTIME),
        (
            {},
            ImportError("no DLL"),
            f"{BROKEN}Fix it with: pip install --force-reinstall --no-deps onnxruntime",
        ),
        (
            {"onnxruntime-gpu": "1.31.1"},
            ImportError("no DLL"),
            f"{BROKEN}Fix it with: pip install --force-reinstall --no-deps onnxruntime-gpu==1.31.1",
        ),
        (
            {"onnxruntime": "1.31.1", "onnxruntime-training": "1.16.3"},
            ImportError("no DLL"),
            f"{BROKEN}{MIX}",
        ),
    ],
)
def test_a_runtime_that_cannot_be_imported(distributions, error, message, pretend, monkeypatch):
    def broken(name):
        raise error

    pretend(distributions)
    monkeypatch.setattr(installed.importlib, "import_module", broken)
    installed.load.cache_clear()
    try:
        with pytest.raises(RuntimeNotAvailableError) as raised:
            installed.load()
    finally:
        installed.load.cache_clear()
    assert str(raised.value) == message
    assert isinstance(raised.value, ImportError)


# In a process of its own: nothing is imported yet.
WITHOUT = """
import pickle, sys
sys.modules["onnxruntime"] = None
from sklearn.base import clone
from sklearn.neural_network import MLPClassifier
import skort
from skort.runtime import installed
installed.installed_distributions = dict
plain = clone(skort.OrtSGDClassifier(MLPClassifier((4,)), random_state=0))
assert plain.get_params()["random_state"] == 0
fitted = pickle.loads(sys.stdin.buffer.read())
before = pickle.dumps(fitted)
X, y = [[0.0, 1.0], [1.0, 0.0]] * 4, [0, 1] * 4
calls = [lambda: plain.fit(X, y), lambda: fitted.fit(X, y), lambda: fitted.partial_fit(X, y)]
calls += [lambda: fitted.fit_batches([(X, y)]), lambda: fitted.predict(X)]
for call in calls:
    try:
        call()
    except ImportError as error:
        print(str(error)[:29])
assert vars(plain).keys() == vars(clone(plain)).keys()
assert pickle.dumps(fitted) == before
assert fitted.to_sklearn().n_outputs_ == 1 and len(fitted.weights_) == 4
print(fitted.to_onnx().graph.output[0].name)
"""


def test_without_a_runtime_only_fits_and_predictions_fail_and_nothing_is_lost():
    X, y = [[0.0, 1.0], [1.0, 0.0]] * 4, [0, 1] * 4
    fitted = OrtSGDClassifier(MLPClassifier((4,)), max_iter=2, tol=None, random_state=0).fit(X, y)
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], input=pickle.dumps(fitted), capture_output=True
    )
    assert run.stderr.decode() == ""
    assert run.stdout.decode().split("\n") == [*["No ONNX Runtime is installed:"] * 5, "label", ""]


def test_a_numpy_too_new_for_the_runtime_is_named_with_its_cure(pretend, monkeypatch):
    pretend({"onnxruntime-training": "1.16.3"})
    monkeypatch.setattr(installed.np, "__version__", "2.4.6")
    needs = {
        "pandas": ["numpy>=2.0", "pytz"],
        "narwhals": ["x", 'numpy (>=2.1.0) ; python_version > "3"'],
        "scipy": ["numpy<2.7,>=1.26", 'numpy>=2; extra == "test"'],
        "old": None,
    }
    found = [
        SimpleNamespace(metadata={"Name": name}, requires=requires)
        for name, requires in needs.items()
    ]
    monkeypatch.setattr(installed.importlib.metadata, "distributions", lambda: found)
    installed.load.cache_clear()
    try:
        with pytest.raises(
            RuntimeNotAvailableError, match="was built for numpy 1, and numpy 2"
        ) as error:
            installed.load()
    finally:
        installed.load.cache_clear()
    assert str(error.value).endswith(": pip install 'numpy<2' narwhals pandas")


def test_a_runtime_without_its_files_is_named_with_its_cure(pretend, monkeypatch):
    pretend({"onnxruntime-training": "1.16.3"})
    monkeypatch.setattr(installed.np, "__version__", "1.26.4")
    monkeypatch.setattr(installed.importlib, "import_module", lambda name: SimpleNamespace())
    installed.load.cache_clear()
    try:
        with pytest.raises(RuntimeNotAvailableError, match="has lost files of its own") as error:
            installed.load()
    finally:
        installed.load.cache_clear()
    assert str(error.value).endswith(
        "pip install --force-reinstall --no-deps onnxruntime-training==1.16.3"
    )


def test_import_leaves_the_root_logger_alone(monkeypatch):
    def noisy(name):
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger().addHandler(logging.StreamHandler())
        return SimpleNamespace(InferenceSession=name)

    root = logging.getLogger()
    before = root.level, root.handlers[:]
    monkeypatch.setattr(installed.importlib, "import_module", noisy)
    installed.load.cache_clear()
    try:
        assert installed.load().InferenceSession == "onnxruntime"
    finally:
        installed.load.cache_clear()
    assert (root.level, root.handlers) == before


def test_one_runtime_is_installed_here():
    assert len(installed.installed_distributions()) == 1
