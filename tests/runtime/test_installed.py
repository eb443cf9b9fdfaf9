"""The messages about missing and mixed runtimes."""

import logging
from types import SimpleNamespace

import pytest

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


MEND = "Mend it with: pip uninstall -y onnxruntime onnxruntime-training && pip install onnxruntime-training==1.16.3"


def test_a_mix_that_broke_the_training_api_is_named_with_its_cure(pretend):
    pretend({"onnxruntime": "1.31.1", "onnxruntime-training": "1.16.3"})
    with pytest.raises(RuntimeNotAvailableError, match="and onnxruntime-training are installed over") as error:
        installed.require("TrainingAgent")
    assert str(error.value).endswith(MEND)


def test_a_mix_that_still_works_is_one_warning(pretend):
    pretend({"onnxruntime": "1.31.1", "onnxruntime-training": "1.16.3"}, ["TrainingAgent"])
    installed.load.cache_clear()
    with pytest.warns(RuntimeWarning, match="installed over each other") as record:
        installed.load()
        installed.load()
    assert [str(warning.message).endswith(MEND) for warning in record] == [True]


@pytest.mark.parametrize(
    "distributions, advice",
    [({}, "pip install onnxruntime"), ({"onnxruntime": "1", "onnxruntime-gpu": "2"}, "pip uninstall -y onnxruntime ")],
)
def test_a_runtime_that_cannot_be_imported(distributions, advice, pretend, monkeypatch):
    def broken(name):
        raise ImportError(f"no {name}")

    pretend(distributions)
    monkeypatch.setattr(installed.importlib, "import_module", broken)
    installed.load.cache_clear()
    try:
        with pytest.raises(RuntimeNotAvailableError, match=advice):
            installed.load()
    finally:
        installed.load.cache_clear()


def test_a_numpy_too_new_for_the_runtime_is_named_with_its_cure(pretend, monkeypatch):
    pretend({"onnxruntime-training": "1.16.3"})
    monkeypatch.setattr(installed.np, "__version__", "2.4.6")
    needs = {
        "pandas": ["numpy>=2.0", "pytz"],
        "narwhals": ["x", 'numpy (>=2.1.0) ; python_version > "3"'],
        "scipy": ["numpy<2.7,>=1.26", 'numpy>=2; extra == "test"'],
        "old": None,
    }
    found = [SimpleNamespace(metadata={"Name": name}, requires=requires) for name, requires in needs.items()]
    monkeypatch.setattr(installed.importlib.metadata, "distributions", lambda: found)
    installed.load.cache_clear()
    try:
        with pytest.raises(RuntimeNotAvailableError, match="was built for numpy 1, and numpy 2") as error:
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
    assert str(error.value).endswith("pip install --force-reinstall --no-deps onnxruntime-training==1.16.3")


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
