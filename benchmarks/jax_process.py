"""
The process in which JAX trains: with one thread where all have one,
and with another Python where JAX needs it.
"""

import functools
import importlib.util
import os
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

import numpy as np

from benchmarks.numpy_loop import raw_score

__all__ = ["COMPILED", "COUNTED", "JaxProcess", "jax_contenders", "jax_version"]

#: The contenders: the compilation is made before, or in each fit.
COMPILED, COUNTED = "JAX", "JAX, compiling"


def _python():
    """Return the Python that has JAX: the environment variable JAX_PYTHON, or this one."""
    return os.environ.get("JAX_PYTHON", sys.executable)


@functools.cache
def _version(python):
    if python == sys.executable and importlib.util.find_spec("jax") is None:
        return None
    run = subprocess.run(
        [python, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True
    )
    return run.stdout.strip() or None


def jax_version():
    """Return the version of JAX; None where there is none."""
    return _version(_python())


def _end(process, folder):
    # Closes its input, at which it ends, and waits.
    process.communicate()
    folder.cleanup()


class JaxProcess:
    """
    A process that trains a problem with JAX as often as it is told; it ends with this object.

    Parameters
    ----------
    problem : Problem
    one_core : bool, default=True
    """

    def __init__(self, problem, *, one_core=True):
        folder = tempfile.TemporaryDirectory()
        problem_path, self._weights_path = (
            Path(folder.name, name) for name in ("problem.npz", "weights.npz")
        )
        _write(problem, problem_path)
        script = Path(__file__).with_name("jax_loop.py")
        command = [_python(), script, problem_path, self._weights_path, str(int(one_core))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        weakref.finalize(self, _end, self._process, folder)

    def run(self, command):
        """
        Make the process obey; return the function X -> raw score
        of the weights that it has trained.
        """
        self._tell(command)
        return self._score

    def _tell(self, command):
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != "done\n":
            raise RuntimeError(
                "the process in which JAX trains has failed; its own message is above"
            )

    def _score(self, X):
        self._tell("weights")
        with np.load(self._weights_path) as file:
            arrays = list(file.values())
        return raw_score(list(zip(arrays[::2], arrays[1::2], strict=True)), X)


def _write(problem, path):
    layers, orders = problem.start()
    arrays = {"X": problem.X, "target": problem.target, "orders": np.array(list(orders), np.int32)}
    for i, (coef, intercept) in enumerate(layers):
        arrays |= {f"coef{i}": coef, f"intercept{i}": intercept}
    loss = "squared_error"
    if problem.is_classifier:
        loss = "binary" if problem.n_outputs == 1 else "multiclass"
    np.savez(
        path,
        **arrays,
        loss=loss,
        batch_size=problem.batch_size,
        eta=problem.eta,
        momentum=problem.momentum,
    )


def jax_contenders(problem, n_jobs=None):
    """Return JAX's contenders by name, which share a process; none where JAX is not installed."""
    if jax_version() is None:
        return {}

    @functools.cache
    def process():
        return JaxProcess(problem, one_core=n_jobs is None)

    commands = {COMPILED: "train", COUNTED: "compile"}
    return {
        name: lambda command=command: process().run(command) for name, command in commands.items()
    }
