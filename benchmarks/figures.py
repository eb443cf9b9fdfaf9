"""Measurements of skort alone: fixed costs, memory and growth, with their limits."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.contenders import SOLVERS
from skort import OrtSGDClassifier, OrtSGDRegressor

__all__ = ["Figure", "Growth", "all_figures", "growth"]

_MEGABYTES = 1e-6


@dataclass(frozen=True)
class Figure:
    """
    A measured number.

    Parameters
    ----------
    name : str
    solver : str
        Empty if the number is the same for all solvers.
    unit : str
    values : list of float
        The results of repeated measurements.
    limit : float or None, default=None
        The goal, if there is one: the median is not larger.
    """

    name: str
    solver: str
    unit: str
    values: list[float]
    limit: float | None = None


@dataclass(frozen=True)
class Growth:
    """
    The time per row and epoch for growing numbers of rows.

    Parameters
    ----------
    n_rows : list of int
    nanoseconds : dict of str to list of float
        Solver -> medians over epochs, one for each number of rows.
    limit : float
        The goal: the longest time is at most so many times as long as the shortest.
    """

    n_rows: list[int]
    nanoseconds: dict[str, list[float]]
    limit: float = 1.25


def all_figures(*, quick=False, n_processes=5):
    """Return the figures, each measured by some processes; memory on Linux only."""
    figures = [*_first_fit(n_processes), *_import_times(n_processes)]
    return figures + (
        _memory(10**5 if quick else 10**6, n_processes) if sys.platform == "linux" else []
    )


def _first_fit(n_processes):
    code = (
        "import time, numpy, skort; X = numpy.random.default_rng(0).normal(size=(100, 5));"
        "model = skort.OrtSGDRegressor(optimizer='sgd', solver='{}', max_iter=1, tol=None);"
        "start = time.perf_counter();"
        "model.fit(X, X[:, 0]); print(time.perf_counter() - start)"
    )
    name = "the first fit of a process: 100 x 5, linear, one epoch"
    values = {
        s: [1e3 * float(_process("-c", code.format(s))) for _ in range(n_processes)]
        for s in SOLVERS
    }
    return [Figure(name, solver, "ms", of) for solver, of in values.items()]


def _import_times(n_processes):
    code = (
        "import time, {}; start = time.perf_counter(); import skort; "
        "print(time.perf_counter() - start)"
    )
    figures = []
    for before in ("sklearn", "sklearn.neural_network"):
        values = [1e3 * float(_process("-c", code.format(before))) for _ in range(n_processes)]
        figures.append(Figure(f"import skort after import {before}", "", "ms", values, 50))
    return figures


def _memory(n_rows, n_processes):
    X = n_rows * 100 * 4 * _MEGABYTES
    limit = 0.05 * X + 50
    name = f"peak memory of fit on {n_rows:,} x 100 float32, beyond X and y"
    cases = [
        *((name, solver, "plain", limit) for solver in SOLVERS),
        ("the same with sample_weight", "", "sample_weight", limit),
        ("the same with labels that are text", "", "text", limit),
        (
            "the same with early_stopping, which copies a tenth of X",
            "",
            "early_stopping",
            limit + X / 10,
        ),
        ("the same with X in float64, which is copied to float32", "", "float64", limit + X),
    ]
    figures = []
    for name, solver, case, most in cases:
        arguments = "-m", __name__, solver or "auto", str(n_rows), case
        figures.append(
            Figure(
                name, solver, "MB", [float(_process(*arguments)) for _ in range(n_processes)], most
            )
        )
    return figures


def _process(*arguments):
    """Return what a fresh Python process prints."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True
    ).stdout


def _peak_megabytes():
    # A process inherits ru_maxrss from the process that started it, but not VmHWM.
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024 * _MEGABYTES


def _print_memory(solver, n_rows, case):
    """
    Print by how much a fit raises the peak memory of a process
    that has made a small fit before.
    """
    dtype = np.float64 if case == "float64" else np.float32
    X = np.empty((n_rows, 100), dtype)
    np.random.default_rng(0).standard_normal(dtype=dtype, out=X)
    y = np.where(X[:, 0] > 0, "yes", "no") if case == "text" else X[:, 0].copy()
    sample_weight = np.linspace(1, 2, n_rows) if case == "sample_weight" else None
    estimator_class = OrtSGDClassifier if case == "text" else OrtSGDRegressor
    model = estimator_class(
        solver=solver, max_iter=1, tol=None, early_stopping=case == "early_stopping"
    )
    model.fit(X[:1000], y[:1000], None if sample_weight is None else sample_weight[:1000])
    # Reset the peak to the memory in use now.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_megabytes()
    model.fit(X, y, sample_weight)
    print(_peak_megabytes() - before)


def growth(*, quick=False):
    """
    Return the growth up to 10,000,000 rows of 20 features;
    more than 1,000,000 rows are in a memory map.
    """
    n_rows = [10**k for k in range(3, 6 if quick else 8)]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
        data = {n: _rows(n, Path(folder)) for n in n_rows}
        seconds = {solver: {n: [] for n in n_rows} for solver in SOLVERS}
        # All sizes take turns, so that other work of the machine slows all of them.
        for _ in range(3):
            for n, (X, y) in data.items():
                for solver, values in seconds.items():
                    model = OrtSGDRegressor(
                        optimizer="sgd",
                        solver=solver,
                        max_iter=max(2, 10**6 // n),
                        tol=None,
                        random_state=0,
                    )
                    values[n] += model.fit(X, y).history_["seconds"]
    medians = {
        s: [1e9 * statistics.median(values[n]) / n for n in n_rows] for s, values in seconds.items()
    }
    return Growth(n_rows, medians)


def _rows(n, folder):
    shape = n, 20
    X = (
        np.empty(shape, np.float32)
        if n <= 10**6
        else np.memmap(folder / "X", np.float32, "w+", shape=shape)
    )
    np.random.default_rng(0).standard_normal(dtype=np.float32, out=X)
    return X, X[:, 0] + X[:, 1] ** 2


if __name__ == "__main__":
    _print_memory(sys.argv[1], int(sys.argv[2]), sys.argv[3])
