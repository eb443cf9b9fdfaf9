"""
Mutants of the numerical core, each against the tests of its module.

``python tests/mutation/mutation.py [N]`` needs cosmic-ray and the extra `test`. It changes one
operator, number or condition of `skort/objective`, `skort/optim` or `skort/graphs/gradient` at
a time, in a clone of the last commit, and runs the tests of that module, then those of its
folder. N mutants are drawn, 500 unless given. It prints the changes that no test finds, and how
many the tests find.

Unions of types are left alone, where `|` is no arithmetic, and so is ONNX text.
"""

import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import cosmic_ray.plugins
import pytest
from cosmic_ray.mutating import use_mutation
from cosmic_ray.work_db import WorkDB, use_db

FOLDERS = ["skort/objective", "skort/optim", "skort/graphs/gradient"]
LEFT_OUT = "core/ReplaceBinaryOperator_BitOr"
SECONDS = 300
CONFIG = f"""
[cosmic-ray]
module-path = {FOLDERS}
timeout = {SECONDS}
excluded-modules = []
test-command = ""

[cosmic-ray.distributor]
name = "local"
"""
# What the tests of each mutant need: imported once. Each mutant has a process of its own, a
# fork of this one.
IMPORTED = [
    "onnx.checker",
    "onnx.parser",
    "onnxruntime",
    "pandas",
    "scipy.optimize",
    "scipy.stats",
    "skl2onnx",
]
IMPORTED += ["sklearn.linear_model", "sklearn.neural_network", "sklearn.pipeline"]


def sampled(n):
    """
    Return mutations of the modules of this folder, the same ones each time,
    and how many there are.
    """
    Path("mutation.toml").write_text(CONFIG)
    command = Path(sys.executable).with_name("cosmic-ray")
    subprocess.run([command, "init", "mutation.toml", "mutation.sqlite"], check=True)
    with use_db("mutation.sqlite", WorkDB.Mode.open) as database:
        mutations = [item.mutations[0] for item in database.work_items]
    mutations = [each for each in mutations if not each.operator_name.startswith(LEFT_OUT)]
    mutations.sort(
        key=lambda each: (
            str(each.module_path),
            each.start_pos,
            each.operator_name,
            each.occurrence,
        )
    )
    return random.Random(0).sample(mutations, min(n, len(mutations))), len(mutations)


def is_found(module, folder):
    """Return whether a test fails: of the module, or else of its folder."""
    tests = Path("tests", Path(folder).relative_to("skort"))
    own = tests / module.relative_to(folder).with_name(f"test_{module.name}")
    files = [str(path) for path in (module, own, tests) if path.exists()]
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files]))
    return os.waitpid(child, 0)[1] != 0


def main(n):
    sys.dont_write_bytecode = True
    for name in IMPORTED:
        importlib.import_module(name)
    found = {folder: [0, 0] for folder in FOLDERS}
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["git", "clone", "--quiet", "--shared", ".", place], check=True)
        os.chdir(place)
        sys.path.insert(0, place)
        for folder in FOLDERS:
            if is_found(Path(folder, "__init__.py"), folder):
                sys.exit(f"The tests of {folder} fail as they are.")
        mutations, n_mutants = sampled(n)
        for each in mutations:
            module = each.module_path
            (folder,) = (folder for folder in FOLDERS if module.is_relative_to(folder))
            operator = cosmic_ray.plugins.get_operator(each.operator_name)(**each.operator_args)
            with use_mutation(module, operator, each.occurrence):
                result = is_found(module, folder)
                if not result:
                    print(
                        subprocess.run(
                            ["git", "diff", "-U1", "skort"], capture_output=True, text=True
                        ).stdout,
                        flush=True,
                    )
            found[folder][0] += result
            found[folder][1] += 1
            print(
                sum(column[0] for column in found.values()),
                sum(column[1] for column in found.values()),
                file=sys.stderr,
            )
        os.chdir("/")
    total = [sum(column) for column in zip(*found.values(), strict=True)]
    for name, (n_found, n_tried) in {**found, f"of {n_mutants} mutants": total}.items():
        print(
            f"{name:24} {n_found:4} of {n_tried:4} found ({100 * n_found / max(n_tried, 1):.0f} %)"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 500)
