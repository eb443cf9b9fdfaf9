"""The examples as a user runs them."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skort.solvers import available_solvers

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_linear_regression_reaches_the_least_squares_solution():
    names = runpy.run_path(str(EXAMPLES / "linear_regression.py"))
    assert list(names["models"]) == available_solvers()
    for model in names["models"].values():
        np.testing.assert_allclose(model.coef_, names["reference"].coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, [names["reference"].intercept_], atol=1e-3)
        assert model.loss_curve_[-1] < 1e-5 * model.loss_curve_[0]


def test_quickstart_serves_the_same_predictions():
    run = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.count("same predictions") == 4 * len(available_solvers())
    assert "OTHER" not in run.stdout
    scores = {
        tuple(line[:39].split()): float(line[39:47]) for line in run.stdout.splitlines()[1:-1] if "needs" not in line
    }
    for (*data, solver), score in scores.items():
        assert score >= scores[(*data, "scikit-learn")] - 0.02, (data, solver)


def test_plot_learning_rates_comes_closest_where_the_rate_falls():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_learning_rates.py"))
    for name, eta in names["rates"].items():
        schedule = names["schedules"][name]
        assert eta.tolist() == pytest.approx([schedule(t) for t in range(1, names["n_updates"] + 1)])
    excess = names["excess"]
    assert excess.pop("Constant") > 0.01
    assert max(excess.values()) < 0.005


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_tested_here(path):
    assert path.name in Path(__file__).read_text()
