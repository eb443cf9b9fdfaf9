"""Names that are asked of the wrong module."""

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

import skort

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


@pytest.mark.parametrize("asked", ["skort", "skort.objective"])
def test_a_module_says_where_the_names_of_others_are(asked):
    module = importlib.import_module(asked)
    with pytest.raises(
        AttributeError, match=r"^LossCurveDisplay is in skort\.plotting: from skort"
    ):
        module.LossCurveDisplay  # noqa: B018
    with pytest.raises(AttributeError, match=f"^module '{asked}' has no attribute 'Nonsense'$"):
        module.Nonsense  # noqa: B018
    assert not hasattr(module, "__nonsense__")


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
