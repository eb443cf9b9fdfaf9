"""Names that are asked of the wrong module."""

import importlib
import operator
import re
import subprocess
import sys
from types import ModuleType

import pytest

import skort
from skort.common import elsewhere

PUBLIC = [getattr(skort, name) for name in skort.__all__]
MODULES = [module for module in PUBLIC if isinstance(module, ModuleType)]


@pytest.mark.parametrize("home", MODULES, ids=lambda module: module.__name__)
def test_the_package_says_where_a_public_name_is(home):
    for name in home.__all__:
        where = home.__name__
        text = f"{name} is in {where}: from {where} import {name}"
        with pytest.raises(AttributeError, match=f"^{text}$"):
            getattr(skort, name)
        with pytest.raises(ImportError, match=f"^{text}$"):
            exec(f"from skort import {name}")
        # As tools ask.
        assert not hasattr(skort, name)


ASKED = ["skort"] + [
    f"skort.{name}"
    for name in ("callbacks", "model_selection", "networks", "objective", "optimizers", "schedules")
]


@pytest.mark.parametrize("asked", ASKED)
def test_a_module_says_where_the_names_of_others_are(asked):
    module = importlib.import_module(asked)
    with pytest.raises(
        AttributeError, match=r"^LossCurveDisplay is in skort\.plotting: from skort"
    ):
        module.LossCurveDisplay  # noqa: B018
    with pytest.raises(AttributeError, match=f"^module '{asked}' has no attribute 'Nonsense'$"):
        module.Nonsense  # noqa: B018
    assert not hasattr(module, "__nonsense__")


@pytest.mark.parametrize(
    "asked, name, instead",
    [
        ("skort", "load", "onnx.load"),
        ("skort", "save", "save_onnx"),
        ("skort", "from_onnx", "OrtSGDRegressor(onnx.load(path))"),
        ("skort", "MLPClassifier", "OrtSGDClassifier(MLPClassifier())"),
        ("skort", "FrozenEstimator", "from sklearn.frozen import FrozenEstimator"),
        ("skort.objective", "MSELoss", "from skort.objective import SquaredError"),
        ("skort.optimizers", "AdamW", "from skort.optimizers import Adam"),
        ("skort.schedules", "CosineAnnealingLR", "from skort.schedules import Cosine"),
        ("skort.callbacks", "ModelCheckpoint", "skort.callbacks.Checkpoint"),
        ("skort.networks", "Linear", "OrtSGDRegressor(onnx.load(path))"),
    ],
)
def test_a_name_of_another_library_leads_to_what_has_its_role(asked, name, instead):
    module = importlib.import_module(asked)
    text = rf"^module '{asked}' has no attribute '{name}': .*{re.escape(instead)}"
    with pytest.raises(AttributeError, match=text):
        getattr(module, name)
    with pytest.raises(ImportError, match=text):
        exec(f"from {asked} import {name}")
    assert not hasattr(module, name)


def test_what_leads_elsewhere_is_public():
    lines = re.findall(r"from (skort\S*) import (\w+)", " ".join(elsewhere._ROLES))
    assert len(lines) > 10
    for home, name in lines:
        assert name in importlib.import_module(home).__all__
    places = re.findall(r"skort\.\w+(?:\.\w+)?", " ".join(elsewhere._ROLES))
    for place in places:
        operator.attrgetter(place.removeprefix("skort."))(skort)


def test_the_estimators_are_in_the_package():
    with pytest.raises(AttributeError, match=r"^OrtSGDRegressor is in skort: from skort import"):
        skort.objective.OrtSGDRegressor  # noqa: B018


def test_an_import_in_a_new_process_ends_with_the_place():
    code = "from skort import Loss"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == (
        "ImportError: Loss is in skort.objective: from skort.objective import Loss"
    )


def test_modules_inside_of_a_package_are_imported():
    code = "from skort.objective import sklearn_objectives; from skort import solvers"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("statement", ["skort.optimizers.Adams", "skort.Stepp"])
def test_python_suggests_a_similar_name(statement):
    name = statement.rpartition(".")[2]
    code = f"import skort, skort.optimizers\n{statement}"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert f"Did you mean: '{name[:-1]}'?" in ended.stderr
