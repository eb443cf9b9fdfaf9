"""The benchmarks: what is compared is the same training."""

import importlib
import warnings
from pathlib import Path

import pytest
from sklearn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parent.parent


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


PROBLEMS = [
    ("regression", {}, 0.0),
    ("regression", {"hidden": (5, 3)}, 0.0),
    ("classification", {"hidden": (5,)}, 0.9),
    ("blobs", {"hidden": (5,), "n_classes": 3}, 0.0),
]


@pytest.mark.parametrize("make, options, momentum", PROBLEMS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_all_contenders_make_the_same_updates(benchmarks, make, options, momentum):
    # The last batch is shorter; one epoch, as scikit-learn draws another order from the second one on.
    make = getattr(benchmarks("problems"), make)
    problem = make(25, 4, **options, batch_size=10, n_epochs=1, eta=0.1, momentum=momentum)
    losses = {}
    for name, train in benchmarks("contenders").contenders(problem).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            losses[name] = problem.loss(train()(problem.X))
    if problem.is_linear:
        # scikit-learn's trains in its own way.
        assert losses.pop("scikit-learn") > 0
    assert losses == pytest.approx(dict.fromkeys(losses, losses["numpy"]), rel=1e-5)


def test_a_time_at_a_worse_loss_does_not_count(benchmarks):
    race = benchmarks("cases").Race("case", "fit", 1, {}, None, {"peer": {"graph": 2.0, "agent": 4.0}})
    milliseconds = {"agent": [1.0, 1.0, 9.0], "graph": [1.0], "peer": [3.0]}
    report = benchmarks("report")
    lines = report.race_table(report.Outcome(race, milliseconds, {"agent": 0.5, "graph": 0.6, "peer": 0.5}))
    *_, agent, graph, _ = lines[-1].split("|")
    assert agent.strip() == "3.00 (>= 4: MISSED)"
    assert graph.strip() == "3.00, at a worse loss"


def test_the_products_of_a_step_are_those_of_its_gradient(benchmarks):
    problem = benchmarks("problems").regression(50, 4, (3,), batch_size=10, n_epochs=1, eta=0.1)
    step = benchmarks("contenders").estimator(problem, "graph").fit(problem.X, problem.y).training_graphs()["step"]
    alone, flops = benchmarks("step_profile").products(step)
    assert {node.op_type for node in alone.graph.node} <= {"Gemm", "MatMul"}
    # Forward X W and H V; backward X' dH, H' d and d V'.
    assert flops == 2 * 10 * (4 * 3 + 3 * 1) * 2 + 2 * 10 * 3
