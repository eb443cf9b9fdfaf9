"""What keeps the house in order: one direction of imports, one place for one thing."""

import ast
import collections
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "skort"
TREES = {
    path.relative_to(PACKAGE): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))
}
# Private names of every estimator of scikit-learn
SKLEARN = {
    "_parameter_constraints",
    "_validate_params",
    "_get_param_names",
    "_sklearn_auto_wrap_output_keys",
}

GROUND = {"common", "exceptions", "version"}
INNER = {"graphs", "objective", "optim", "runtime"} | GROUND
ROOMS = INNER | {"solvers", "estimators"}
# Room -> the rooms that it may import. All others stand beside the house: they may
# import every room.
MAY_IMPORT = {
    **dict.fromkeys(GROUND, GROUND),
    "runtime": GROUND | {"runtime"},
    **dict.fromkeys(["graphs", "objective", "optim"], INNER),
    # The public names of `optim`
    **dict.fromkeys(["callbacks", "optimizers", "schedules"], INNER),
    "solvers": INNER | {"solvers"},
    "estimators": ROOMS,
}


def room(path):
    """Return the name of the room that a module is in, or that it is."""
    return path.parts[0].removesuffix(".py")


def imports(tree):
    """
    Yield the module and the name of each import of skort, also of those in functions,
    but not of those for types.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "skort":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                (alias.name, "") for alias in node.names if alias.name.split(".")[0] == "skort"
            )
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imports(node)


def module_path(name):
    """Return the file of a module of skort; None if there is none."""
    parts = name.split(".")[1:]
    found = [
        Path(*parts).with_suffix(".py") if parts else Path("__init__.py"),
        Path(*parts, "__init__.py"),
    ]
    return next((path for path in found if path in TREES), None)


def test_imports_go_one_way():
    wrong = set()
    for path, tree in TREES.items():
        may = MAY_IMPORT.get(room(path))
        for module, name in imports(tree) if may else ():
            other = (module + "." + name).split(".")[1]
            # The package's own file has the version, and finds public names when they
            # are asked for.
            if other not in may and other != "__version__":
                wrong.add(f"{path} imports {module}")
    assert wrong == set()


def test_folders_of_estimators_import_one_way():
    """What a fit reads, its model, the variables of its training, its plan, its way."""
    order = ["data", "model", "variables", "planning", "training"]
    level = {folder: i for i, folder in enumerate(order)}
    folders = {path.parts[1] for path in TREES if path.parts[0] == "estimators" and path.parts[2:]}
    assert folders == level.keys()
    wrong = set()
    for path, tree in TREES.items():
        if path.parts[0] != "estimators" or not path.parts[2:]:
            continue
        for module, _ in imports(tree):
            other = module.removeprefix("skort.estimators.").split(".")[0]
            if level.get(other, -1) > level[path.parts[1]]:
                wrong.add(f"{path} imports {module}")
    assert wrong == set()


def test_no_modules_import_each_other():
    needs = collections.defaultdict(set)
    for path, tree in TREES.items():
        for module, name in imports(tree):
            needs[path].add(module_path(f"{module}.{name}") or module_path(module))
    # Take away what needs nothing that is left, and what nothing that is left needs:
    # circles remain.
    left = set(TREES)
    while free := {
        p for p in left if not needs[p] & left - {p} or not any(p in needs[q] for q in left - {p})
    }:
        left -= free
    assert sorted(map(str, left)) == []


def test_a_name_leads_to_one_file_of_the_house():
    # Solvers have the same parts, and public names are beside the rooms.
    same = {"__init__.py", "base.py", "backend.py"}
    names = collections.Counter(path.name for path in TREES if path.parts[0] in ROOMS)
    assert {name for name, count in names.items() if count > 1} == same


def test_one_module_makes_models():
    makers = {
        str(path)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "make_model"
    }
    assert len(makers) == 1, makers


def test_one_room_uses_the_inside_of_onnxruntime():
    users = {
        room(path)
        for path in TREES
        if re.search(r"onnxruntime\.capi|_pybind_state", (PACKAGE / path).read_text())
    }
    assert users <= {"runtime"}


def private_names(trees):
    """
    Return the private names that objects of these modules have:
    methods, and attributes that are set.
    """
    names = set()
    for tree in trees:
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and ast.unparse(node.value) == "self"
            ):
                names.add(node.attr)
            for part in node.body if isinstance(node, ast.ClassDef) else ():
                targets = (
                    part.targets
                    if isinstance(part, ast.Assign)
                    else [getattr(part, "target", None)]
                )
                names |= {getattr(part, "name", "")} | {
                    target.id for target in targets if isinstance(target, ast.Name)
                }
    return {n for n in names if n.startswith("_") and not n.startswith("__")} - SKLEARN


def test_private_attributes_are_used_in_their_own_modules():
    """A method may use those of another object of its class."""
    everywhere = private_names(TREES.values())
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in TREES.items()
        for foreign in [everywhere - private_names([tree])]
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id not in ("self", "cls")
        if node.attr in foreign
    ]
    assert found == []


def test_tests_import_what_is_there():
    """Those too that need a package which is missing here."""
    wrong = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        for module, name in imports(ast.parse(path.read_text())):
            # The packages of these two rooms may be missing.
            if module.split(".")[1:2] in (["dask"], ["torch"]):
                continue
            found = importlib.import_module(module)
            if not (not name or hasattr(found, name) or module_path(f"{module}.{name}")):
                wrong.append(f"{path.name}: {module}.{name}")
    assert wrong == []


@pytest.mark.parametrize("line", ["import skort.no_such_module", "from own_helper import name"])
def test_a_file_that_cannot_be_imported_is_an_error(tmp_path, line):
    (tmp_path / "own_helper.py").write_text("name = (")
    broken = tmp_path / "test_broken.py"
    broken.write_text(f"{line}\n\n\ndef test_nothing():\n    pass\n")
    settings = PACKAGE.parent / "pyproject.toml"
    command = [sys.executable, "-m", "pytest", "-c", settings, "--rootdir", tmp_path]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-p", "no:xdist", broken],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": f"{PACKAGE.parent}{os.pathsep}{tmp_path}"},
    )
    assert run.returncode == pytest.ExitCode.INTERRUPTED, run.stdout
    assert "ModuleNotFoundError" in run.stdout or "SyntaxError" in run.stdout
