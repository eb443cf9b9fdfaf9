"""The pages of the API: every public object has one, and its docstring is complete."""

import ast
import importlib
import importlib.util
import inspect
import re
import typing
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from skort.estimators import literals

ROOT = Path(__file__).parent.parent
API = (ROOT / "docs" / "api.rst").read_text()
TEMPLATE = (ROOT / "docs" / "templates" / "autosummary" / "class.rst").read_text()
MODULES = [
    "skort",
    "skort.artifacts",
    "skort.callbacks",
    "skort.dask",
    "skort.exceptions",
    "skort.gradients",
    "skort.model_selection",
    "skort.networks",
    "skort.objective",
    "skort.onnx_models",
    "skort.optimizers",
    "skort.plotting",
    "skort.schedules",
    "skort.torch",
]


def names_of(module):
    """
    Return the names in the `__all__` of a module that are objects, by its source:
    it may need other packages.
    """
    path = ROOT.joinpath(*module.split("."))
    path = next((p for p in (path / "__init__.py", path.with_suffix(".py")) if p.exists()), None)
    if path is None:
        return []
    nodes = ast.parse(path.read_text()).body
    for node in nodes:
        # All that another module has.
        if isinstance(node, ast.ImportFrom) and any(
            alias.name == "__all__" for alias in node.names
        ):
            return names_of(node.module)
    found = [node for node in nodes if isinstance(node, ast.Assign)]
    (names,) = (
        ast.literal_eval(n.value) for n in found if getattr(n.targets[0], "id", "") == "__all__"
    )
    for node in nodes:
        # All that a module of the package has, too.
        if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Attribute):
            names += names_of(f"{module}.{node.value.value.id}")
    return [n for n in names if f"{module}.{n}" not in MODULES and not n.startswith("__")]


def listed():
    """Return the full names in the tables of the page."""
    found, module = [], ""
    for line in API.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = line.split()[-1]
        elif re.fullmatch(r"    \w+", line):
            found.append(f"{module}.{line.strip()}")
    return found


def test_every_public_object_has_a_page():
    public = [f"{module}.{name}" for module in MODULES for name in names_of(module)]
    others = {"skort.objective.penalties.soft_threshold", "skort.dask.errors.ClusterError"}
    assert len(public) > 60
    assert sorted(listed()) == sorted({*public, *others})


def methods_of(name):
    """Return the methods that the page of a class shows."""
    shown = re.search(rf'"{re.escape(name)}":\s+(.*?),\n', TEMPLATE)
    strings = dict(re.findall(r'set (fitted|classifier|on_dask) = ((?:"[^"]*"\s*)+)', TEMPLATE))
    text = shown[1] if shown else ""
    for variable, value in strings.items():
        text = text.replace(variable, value)
    return re.findall(r"\w+", text)


def shown_objects():
    for name in listed():
        yield name
        yield from (f"{name}.{method}" for method in methods_of(name))


# Parameters that are missing, too many or in another order, or have no text; no section of
# results; no example.
CHECKED = {"PR01", "PR02", "PR03", "PR07", "PR10", "RT01", "SS01", "SS02", "EX01"}
NEEDS = {"skort.torch": "torch", "skort.dask": "distributed", "skort.plotting": "matplotlib"}
# What these names say is enough.
OBVIOUS = ("X", "y", "sample_weight", "path", "folder")
# Their parameters are those of another class, which the docstring names.
AS_OTHERS = {
    "skort.dask.OrtSGDClassifier",
    "skort.dask.OrtSGDRegressor",
    "skort.model_selection.OrtGridSearchCV",
}
# The examples of others show them: those of what makes them, and of what has such methods.
SHOWN_ELSEWHERE = {
    "skort.callbacks.Training",
    "skort.gradients.Gradients",
    "skort.gradients.Saved",
    "skort.optimizers.OnnxOptimizer",
}


def are_enough(name, code, message, docstring):
    """Return whether a docstring says what the check misses."""
    is_method = name not in listed()
    says_what_it_returns = re.match(r"\s*Return ", docstring) is not None
    return (
        (code == "EX01" and (is_method or name in SHOWN_ELSEWHERE))
        or (code == "RT01" and is_method and says_what_it_returns)
        or (code == "PR07" and message.split('"')[1] in OBVIOUS)
        or (code in ("PR01", "PR07") and name in AS_OTHERS)
        or (code in ("PR01", "PR02", "PR07") and name == "skort.gradients.ForwardBackward")
        # The one parameter of a hook, and those that a Protocol does not have.
        or "{'training'}" in message
        or "**kwargs" in message
        or "{'state'}" in message
        or "{'reason'}" in message
    )


@pytest.mark.parametrize("name", [*shown_objects()])
def test_docstrings_are_complete(name, monkeypatch):
    validation = pytest.importorskip("numpydoc.validate")
    # No check needs the line: numpydoc looks for it in the module that users import, where a class
    # is not written.
    monkeypatch.setattr(validation.Validator, "source_file_def_line", None)
    for package, needed in NEEDS.items():
        if name.startswith(package) and not importlib.util.find_spec(needed):
            pytest.skip(f"needs {needed}")
    found = validation.validate(name)
    errors = [(code, message) for code, message in found["errors"] if code in CHECKED]
    assert [
        message
        for code, message in errors
        if not are_enough(name, code, message, found["docstring"])
    ] == []


ESTIMATORS = ["skort.OrtSGDRegressor", "skort.OrtSGDClassifier"]


def estimator_class(name):
    return getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_help_of_an_estimator_describes_its_parameters_in_their_order(name):
    cls = estimator_class(name)
    documentation = inspect.getdoc(cls)
    section = re.search(
        r"^Parameters\n-+\n(.*?)\n\nAttributes\n-+\n", documentation, re.DOTALL | re.MULTILINE
    )[1]
    described = re.findall(r"^(\w+) : .*\n {4}", section, re.MULTILINE)
    first, _ = section.split("\n\nOther Parameters\n----------------\n")
    assert len(re.findall(r"^\w+ : ", first, re.MULTILINE)) == 10
    assert described == list(inspect.signature(cls).parameters)
    for page in re.findall(r":doc:`/(\w+)`", documentation):
        # `parameters_page.py` writes the page of parameters.
        assert page == "parameters" or (ROOT / "docs" / f"{page}.rst").is_file()


NAMES = {
    "solver": literals.SolverName,
    "learning_rate": literals.ScheduleName,
    "penalty": literals.PenaltyName,
    "optimizer": literals.OptimizerName,
    "dtype": literals.DtypeName,
}


@pytest.mark.parametrize("parameter", NAMES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_help_of_an_estimator_has_all_names_that_a_parameter_takes(name, parameter):
    documentation = inspect.getdoc(estimator_class(name))
    described = re.search(rf"^{parameter} : .*\n(?:    .*\n)+", documentation, re.MULTILINE)[0]
    assert {*typing.get_args(NAMES[parameter])} <= {*re.findall(r'"(\w+)"', described)}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_signatures_show_types_as_they_are_written(name):
    cls = estimator_class(name)
    methods = {method for method in methods_of(name) if callable(getattr(cls, method, None))}
    for method in {"fit", "partial_fit", "predict"} | methods:
        signature = inspect.signature(getattr(cls, method))
        evaluated = inspect.signature(getattr(cls, method), eval_str=True)
        assert list(evaluated.parameters) == list(signature.parameters)
    assert str(inspect.signature(cls).parameters["estimator"]).endswith(
        "'BaseEstimator | ModelProto | None' = None"
    )
    assert BaseEstimator in typing.get_args(
        inspect.signature(cls, eval_str=True).parameters["estimator"].annotation
    )
    hints = typing.get_type_hints(cls.fit)
    assert hints["return"] is hints["self"]
