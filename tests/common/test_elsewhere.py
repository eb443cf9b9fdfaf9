"""Names that are asked of the wrong module."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import skort

PUBLIC = [getattr(skort, name) for name in skort.__all__]
MODULES = [module for module in PUBLIC if isinstance(module, ModuleType)]
ASKED = ["skort", "skort.callbacks", "skort.gradients", "skort.objective", "skort.onnx_models"]
ASKED += ["skort.optimizers", "skort.schedules"]


@pytest.mark.parametrize("home", MODULES, ids=lambda module: module.__name__)
def test_the_package_says_where_a_public_name_is(home):
    for name in home.__all__:
        with pytest.raises(ImportError) as raised:
            getattr(skort, name)
        where = home.__name__
        assert str(raised.value) == f"{name} is in {where}: from {where} import {name}"


@pytest.mark.parametrize("asked", ASKED)
def test_a_module_says_where_the_names_of_others_are(asked):
    module = importlib.import_module(asked)
    with pytest.raises(ImportError, match=r"^LossCurveDisplay is in skort\.plotting: from skort"):
        module.LossCurveDisplay  # noqa: B018
    with pytest.raises(AttributeError, match=f"^module '{asked}' has no attribute 'Nonsense'$"):
        module.Nonsense  # noqa: B018
    assert not hasattr(module, "__nonsense__")


def test_the_estimators_are_in_the_package():
    with pytest.raises(ImportError, match=r"^OrtSGDRegressor is in skort: from skort import"):
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
