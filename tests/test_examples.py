"""The examples as a user runs them."""

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skort.objective.loss import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.runtime.installed import training_api
from skort.solvers import available_solvers

EXAMPLES = Path(__file__).parent.parent / "examples"
# The solvers that examples name and that run here.
SOLVERS = [name for name in ("graph", "agent", "session") if name in available_solvers()]
SETTINGS = runpy.run_path(str(EXAMPLES.parent / "docs" / "gallery_settings.py"))


def run(path):
    """Run an example without a screen; return its names."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    names = runpy.run_path(str(EXAMPLES / path))
    matplotlib.pyplot.close("all")
    return names


def test_linear_regression_reaches_the_least_squares_solution():
    names = run("basics/linear_regression.py")
    assert list(names["models"]) == SOLVERS
    for model in names["models"].values():
        np.testing.assert_allclose(model.coef_, names["reference"].coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, [names["reference"].intercept_], atol=1e-3)
        assert model.loss_curve_[-1] < 1e-5 * model.loss_curve_[0]


def test_embeddings_find_the_ratings_that_nobody_gave():
    """Up to the noise of those that are known, 0.1."""
    names = run("data/embeddings.py")
    assert names["error"] < 0.12
    assert names["session"].get_inputs()[0].type == "tensor(int64)"


def test_a_transformer_block_looks_at_the_pair_that_is_asked_for():
    names = run("data/transformer_block.py")
    assert names["score"] > 0.99
    assert names["right"] > 0.99
    np.testing.assert_allclose(names["attention"].sum(axis=-1), 1, rtol=1e-5)


def test_adapters_learn_from_few_rows():
    """
    The matrices beside them are those of the network,
    and the sums make a network that gives the same labels.
    """
    names = run("training/lora.py")
    before, adapted, tuned = names["scores"].values()
    assert adapted > tuned + 0.02 > before + 0.3
    learned = names["learned"]
    for i, (W, b) in enumerate(
        zip(names["network"].coefs_, names["network"].intercepts_, strict=True)
    ):
        np.testing.assert_array_equal(learned[f"W{i}"], W.astype(np.float32))
        np.testing.assert_array_equal(learned[f"b{i}"], b.astype(np.float32))
    assert names["same"].all()


def test_own_loop_reaches_the_least_squares_solution_on_each_solver():
    names = run("pieces/own_loop.py")
    assert {*SOLVERS, "graph, largest errors"} <= set(names["losses"])
    for losses in names["losses"].values():
        assert losses[-1] < 1e-5 * losses[0]
    for step in names["steps"].values():
        np.testing.assert_allclose(
            step.weights()["coef"].ravel(), names["reference"].coef_, atol=0.01
        )


def test_pieces_of_a_step_compute_the_same_in_each_way():
    names = run("comparisons/pieces_of_a_step.py")
    assert {len(times) for times in names["times"].values()} == {len(names["sizes"])}
    for (piece, n, _), result in names["results"].items():
        assert result.shape == (n,)
        np.testing.assert_allclose(
            result, names["results"][piece, n, "numpy, in place"], rtol=1e-5, atol=1e-6
        )


def test_schedule_clock_explains_the_difference():
    names = run("training/schedule_clock.py")
    updates, epochs, constant = (np.array(curves)[:, -1] for curves in names["losses"].values())
    # On each of the ten data sets.
    assert (constant < epochs).all() and (epochs < 1e-2 * updates).all()
    assert np.median(updates) > 1e-4
    assert np.median(epochs) < 1e-6
    rates = [clock(100) / 0.2 for clock in names["clocks"].values()]
    assert rates == pytest.approx([100**-0.25, 10**-0.25, 1])
    assert names["model"].loss_curve_[-1] < 1e-6


@pytest.mark.slow
def test_quickstart_serves_the_same_predictions():
    run = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    lines = run.stdout.splitlines()
    assert run.stdout.count("same predictions") == 4
    others = SOLVERS[1:]
    # They end at the same optimum, but for a row or two of the digits.
    differences = {line.split('"')[1]: float(line.split()[-1]) for line in lines[9:]}
    # Solver "module" is of other runtimes, too.
    assert [solver for solver in differences if solver != "module"] == others
    assert all(difference < 0.006 for difference in differences.values())
    scores = {tuple(line[:39].split()): float(line[39:47]) for line in lines[1:9]}
    for (*data, solver), score in scores.items():
        assert score >= scores[(*data, "scikit-learn")] - 0.02, (data, solver)


def test_losses_fit_what_they_are_for():
    names = run("objectives/losses.py")
    for kind, losses in (
        ("regression", REGRESSION_LOSSES),
        ("classification", CLASSIFICATION_LOSSES),
    ):
        shown = {
            name: type(loss)
            for group, of_group in names["groups"].items()
            for name, loss in of_group.items()
            if group.startswith(kind)
        }
        assert shown == losses
    at_two = {
        name: np.interp(2.0, names["score"], value) for name, value in names["values"].items()
    }
    assert at_two["regression, with a square", "squared_error"] == pytest.approx(0.5, abs=1e-3)
    assert at_two["regression, with a kink", "quantile"] == pytest.approx(0.25, abs=1e-3)
    assert at_two["classification, with a kink", "hinge"] == 0
    X, y, models = names["X"], names["y"], names["models"]
    assert models["squared_error"].intercept_[0] == pytest.approx(y.mean() - 2 * X.mean(), abs=0.2)
    for loss in ("absolute_error", "huber"):
        np.testing.assert_allclose(
            [models[loss].intercept_[0], models[loss].coef_[0]], [1, 2], atol=0.15
        )
    assert (y < models["quantile"].predict(X)).mean() == pytest.approx(0.75, abs=0.02)


def test_learning_rates_comes_closest_where_the_rate_falls():
    names = run("training/learning_rates.py")
    for name, eta in names["display"].rates.items():
        schedule = names["schedules"][name]
        assert eta.tolist() == pytest.approx(
            [schedule(t) for t in range(1, names["n_updates"] + 1)]
        )
    excess = names["excess"]
    assert excess.pop("Constant") > 0.01
    assert max(excess.values()) < 0.005


def test_fine_tune_beats_both_the_old_model_and_a_new_one():
    names = run("training/fine_tuning.py")
    before, new, tuned, last = names["scores"].values()
    assert min(tuned, last) > max(before, new) + 0.1
    assert names["plain"].score(names["test"], names["test_labels"]) == pytest.approx(tuned)
    first_layer = names["models"]["last layer tuned"].weights_["coefficient"]
    np.testing.assert_array_equal(first_layer, names["fitted"][-1].coefs_[0].astype(np.float32))


def test_a_pull_is_better_than_both_models_and_a_group_lasso_finds_the_features():
    names = run("objectives/own_penalties.py")
    errors = names["errors"]
    assert min(errors) < 0.7 * min(names["old"], names["new"])
    assert min(errors) < errors[0] and min(errors) < errors[-1]
    # At one strength, the four features that matter are left, in the order of their size.
    norms = names["norms"][5]
    assert norms[4:].max() < 0.05 < norms[:4].min()
    assert all(np.diff(names["norms"][:, 0]) < 0)


def test_columns_serves_what_the_estimator_predicts():
    pandas = pytest.importorskip("pandas")
    names = run("data/columns.py")
    assert names["accuracy"] > 0.8
    rows = pandas.DataFrame(
        {
            "days": [2, np.nan, 25],
            "channel": ["shop", None, "phone"],
            "text": ["thank you", "it burns", "it never came"],
        }
    )
    assert (
        names["answers"].tolist()
        == names["model"].predict(rows).tolist()
        == ["later", "urgent", "urgent"]
    )
    np.testing.assert_allclose(
        names["probabilities"], names["model"].predict_proba(rows), atol=1e-6
    )


def test_streaming_goes_on_after_a_pickle(capsys):
    names = run("data/streaming.py")
    output = capsys.readouterr().out
    assert "the same model: True" in output
    accuracies = [
        float(line.split("accuracy ")[1][:5]) for line in output.splitlines() if "accuracy" in line
    ]
    assert len(accuracies) == 4
    assert min(accuracies) > 0.95
    assert names["model"].n_iter_ == 100


@pytest.mark.slow
def test_text_is_as_good_as_scikit_learn_and_serves_texts():
    names = run("data/text.py")
    accuracies, model, texts = names["accuracies"], names["model"], names["test"]
    assert len(names["train"]) > 3000
    best = max(accuracy for name, accuracy in accuracies.items() if "Ort" not in name)
    for name in ("LogisticRegression", "MLPClassifier"):
        assert accuracies[f"OrtSGDClassifier, {name}"] > best - 0.02
    assert names["answers"].tolist() == model.predict(names["questions"]).tolist()
    assert model.score(texts, names["y_test"]) > best - 0.02
    (probabilities,) = names["session"].run(["probabilities"], {"X": texts[:, None]})
    np.testing.assert_allclose(probabilities, model.predict_proba(texts), atol=1e-5)


@pytest.mark.dask
def test_dask_groups_give_the_same_bits():
    pytest.importorskip("distributed")
    run = subprocess.run(
        [sys.executable, EXAMPLES / "scale_and_files" / "dask_groups.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    assert "the same bits without a cluster: True" in run.stdout
    one, two = (line.split() for line in run.stdout.splitlines() if "accuracy" in line)
    assert int(two[1]) == int(one[1]) / 2
    assert min(float(one[-1]), float(two[-1])) > 0.9


def test_train_without_skort_reaches_the_same_weights():
    names = run("scale_and_files/train_without_skort.py")
    np.testing.assert_array_equal(names["outside"], names["weights"])
    np.testing.assert_allclose(
        names["losses"], names["inside"].loss_curve_[: len(names["losses"])], rtol=0.1
    )
    assert names["losses"][-1] < 0.2 * names["losses"][0]


def test_train_in_javascript_reaches_the_same_weights():
    has_runtime = (
        shutil.which("node")
        and subprocess.run(
            ["node", "-e", 'require("onnxruntime-web")'], capture_output=True
        ).returncode
        == 0
    )
    if not has_runtime:
        pytest.skip("needs node, and onnxruntime-web in NODE_PATH")
    names = run("scale_and_files/train_in_javascript.py")
    np.testing.assert_allclose(names["outside"]["weights"], names["weights"], atol=1e-5)


def test_numpy_loop_finds_where_y_is_uncertain():
    names = run("pieces/numpy_loop.py")
    np.testing.assert_allclose(names["score"][:, 0], np.sin([-1.5, 1.5]), atol=0.1)
    np.testing.assert_allclose(names["predicted"], [0.05, 0.45], rtol=0.3)


def test_torch_embedding_explains_the_prices():
    pytest.importorskip("torch", reason="needs torch")
    names = run("pieces/torch_embedding.py")
    assert names["score"] > 0.97
    assert names["losses"][-1] < 0.05 * names["losses"][0]


def test_torch_pipeline_learns_the_gain_and_comes_back():
    pytest.importorskip("torch", reason="needs torch")
    names = run("pieces/torch_pipeline.py")
    before = names["fitted"].score(names["darker"][names["test"]], names["labels"][names["test"]])
    assert min(names["accuracies"].values()) > before + 0.2
    assert names["accuracies"]["plain"] == pytest.approx(names["accuracies"]["all"])
    assert 2 < names["gain"] < 5


def test_torch_to_skort_has_the_same_gradients():
    pytest.importorskip("torch", reason="needs torch")
    names = run("pieces/torch_to_skort.py")
    assert max(names["differences"].values()) < 1e-6
    assert min(names["scores"].values()) > 0.85
    assert names["back"] == pytest.approx(names["scores"][list(names["scores"])[-1]])


def test_jax_layer_adapts_the_model():
    pytest.importorskip("jax", reason="needs jax")
    names = run("pieces/jax_layer.py")
    assert names["losses"][-1] < 0.2 < names["first"]
    assert names["shifts"][9] == pytest.approx(-0.5, abs=0.05)
    assert names["accuracy"] > 0.88


def test_on_device_learns_the_users_digits():
    if "Module" not in training_api():
        pytest.skip("this runtime is no build for training")
    names = run("scale_and_files/on_device.py")
    assert names["losses"][-1] < 0.1 * names["losses"][0]
    assert names["after"] > 0.8 > names["before"] + 0.1
    np.testing.assert_array_equal(names["labels"], names["trained"].predict(names["unseen"]))
    np.testing.assert_allclose(
        names["probabilities"], names["trained"].predict_proba(names["unseen"]), atol=1e-5
    )


def test_classification_ends_at_the_optimum_of_scikit_learn():
    names = run("basics/classification.py")
    linear, reference = names["models"]["LogisticRegression"], names["reference"]
    np.testing.assert_allclose(linear.coef_, reference.coef_, rtol=0.005)
    np.testing.assert_allclose(linear.intercept_, reference.intercept_, rtol=0.01)
    assert names["scores"]["MLPClassifier"] > 0.95 > 0.9 > names["scores"]["LogisticRegression"]
    network = names["models"]["MLPClassifier"]
    np.testing.assert_allclose(
        names["probabilities"], network.predict_proba(names["X_test"]), atol=1e-6
    )


def test_a_neural_network_finds_the_curve_below_the_noise():
    names = run("basics/neural_network.py")
    model, truth, curves = names["model"], names["truth"], names["snapshots"].curves
    assert model.score(names["line"], truth) > 0.98
    errors = [np.mean((curve - truth) ** 2) for curve in curves.values()]
    assert list(curves) == [1, 10, 200]
    assert errors[0] > 2 * errors[1] > 20 * errors[2]
    assert model.loss_curve_[-1] == pytest.approx(0.2**2 / 2, rel=0.2)


def test_nesterov_and_a_penalty_find_the_lasso():
    names = run("basics/nesterov_and_penalty.py")
    curves, model, lasso = names["curves"], names["sparse"], names["lasso"]
    assert curves["sgd"][-1] > 2 * curves["momentum"][-1]
    assert curves["nesterov"][-1] == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(model.coef_, lasso.coef_, atol=0.01)
    np.testing.assert_array_equal(model.coef_ == 0, lasso.coef_ == 0)


@pytest.mark.slow
def test_sklearn_regression_makes_the_same_steps():
    names = run("comparisons/sklearn_regression.py")
    assert list(names["curves"]) == list(names["ratios"]) == [20, 50, 200]
    for theirs, ours in names["curves"].values():
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert min(names["ratios"].values()) > 0


def test_sklearn_classification_ends_at_the_same_coefficients():
    names = run("comparisons/sklearn_classification.py")
    theirs, ours = names["theirs"], names["ours"]
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.06)
    assert np.corrcoef(ours.coef_.ravel(), theirs.coef_.ravel())[0, 1] > 0.999
    np.testing.assert_allclose(
        names["our_network"].loss_curve_, names["their_network"].loss_curve_, rtol=1e-8
    )
    assert names["scores"]["skort"] == names["scores"]["MLPClassifier"] > 0.95


def test_numpy_network_reaches_the_same_weights():
    names = run("comparisons/numpy_network.py")
    assert max(names["differences"].values()) < 1e-3
    for in_numpy, in_skort in names["losses"].values():
        np.testing.assert_allclose(in_skort, in_numpy, rtol=1e-4)
        assert in_skort[-1] < 0.5 * in_skort[0]


@pytest.mark.slow
def test_torch_network_has_the_same_losses():
    pytest.importorskip("torch", reason="needs torch")
    names = run("comparisons/torch_network.py")
    for in_torch, in_skort in names["losses"].values():
        np.testing.assert_allclose(in_skort, in_torch, rtol=1e-3)


def test_penalties_find_the_weights_of_scikit_learn():
    names = run("objectives/penalties.py")
    for name, weights in names["weights"].items():
        np.testing.assert_allclose(weights, names["references"][name], atol=0.5)
    assert not (names["weights"]["l2"] == 0).any()
    n_zeros = (names["weights"]["l1"] == 0).sum(axis=1)
    assert n_zeros[-1] == 10 > n_zeros[-4] > n_zeros[1]


def test_quantile_bands_cover_what_they_promise():
    names = run("objectives/quantile_bands.py")
    assert names["coverage"] == pytest.approx(0.9, abs=0.03)
    for quantile, share in names["below"].items():
        assert share == pytest.approx(quantile, abs=0.02)
    assert (
        min(names["shares"]["band of quantiles"])
        > 0.85
        > min(names["shares"]["band of constant width"])
    )


def test_a_network_predicts_quantiles_in_order_or_a_normal_distribution():
    names = run("objectives/quantiles_and_variance.py")
    assert names["n_crossings"] == 0
    assert names["coverage"] == pytest.approx(0.9, abs=0.03)
    assert names["normal_coverage"] == pytest.approx(0.9, abs=0.03)
    np.testing.assert_allclose(names["below"], names["levels"], atol=0.03)

    # Where the noise is: a constant deviation of 0.35 would be off by 0.3.
    for curves in (names["curves"], names["normal_curves"]):
        assert np.abs(curves - names["true"]).mean() < 0.05
    np.testing.assert_array_equal(names["median"], names["quantiles"][:, 2])


def test_custom_loss_costs_least():
    from scipy.optimize import minimize

    names = run("objectives/custom_loss.py")
    cost, X, demand, model = names["cost"], names["X"], names["demand"], names["models"]["custom"]
    best = minimize(
        lambda w: cost(w[0] + w[1] * X[:, 0], demand).mean(), [100, -1], method="Nelder-Mead"
    )
    np.testing.assert_allclose([model.intercept_[0], model.coef_[0]], best.x, atol=0.2)
    assert names["costs"]["custom"] == pytest.approx(best.fun, rel=1e-3)
    assert names["costs"]["custom"] < names["shift"].fun < names["costs"]["squared_error"]


def test_early_stopping_keeps_the_best_epoch():
    names = run("training/early_stopping.py")
    stopped, best = names["stopped"], names["best"]
    assert stopped.n_iter_ == best + 20 < 400
    assert stopped.score(names["X_val"], names["y_val"]) == pytest.approx(
        max(stopped.validation_scores_)
    )
    assert names["scores"]["early stopping"] > names["scores"]["400 epochs"] + 0.05
    assert names["long"].loss_curve_[-1] < 0.1


@pytest.mark.slow
def test_class_weights_trade_precision_for_recall():
    names = run("training/class_weights.py")
    precision, recall = list(names["precision"].values()), list(names["recall"].values())
    assert precision == sorted(precision, reverse=True) and recall == sorted(recall)
    assert precision[0] > 0.6 and recall[0] < 0.5
    assert precision[-1] < 0.2 and recall[-1] > 0.85
    np.testing.assert_allclose(names["model"].coef_, names["reference"].coef_, atol=0.03)


@pytest.mark.slow
def test_mixed_search_finds_the_loss_and_the_text():
    pytest.importorskip("pandas")
    names = run("data/mixed_search.py")
    assert names["best"]["loss"] == "huber"
    assert names["best"]["estimator__columntransformer__tfidfvectorizer"] != "drop"
    assert len(names["search"].cv_results_["params"]) == 12
    # The median of |noise|, of which the standard deviation is 20, is 13.5.
    assert 12 < np.median(names["errors"]) < 20
    assert names["inputs"] == [("size", 1), ("year", 1), ("district", 8), ("description", 8)]


def test_sparse_rows_find_the_effects():
    names = run("data/sparse.py")
    assert names["explained"] - 0.03 < names["score"] < names["explained"]
    assert names["correlations"]["users"] > 0.97
    assert names["correlations"]["items"] > 0.99
    np.testing.assert_allclose(*names["weights"], atol=1e-6)


def test_export_and_serve_gives_the_same_answers():
    names = run("scale_and_files/export_and_serve.py")
    np.testing.assert_array_equal(names["labels"], names["model"].predict(names["X_test"]))
    np.testing.assert_array_equal(names["labels"], names["plain"].predict(names["X_test"]))
    assert names["difference"] < 1e-6
    assert names["model"].score(names["X_test"], names["y_test"]) > 0.95
    assert len(names["ratios"]) == 4 and names["ratios"][0] > 1


def test_train_in_browser_makes_the_steps_of_skort():
    names = run("scale_and_files/train_in_browser.py")
    np.testing.assert_allclose(names["state"]["skort_weights"], names["weights"], atol=1e-6)
    np.testing.assert_allclose(names["losses"], names["inside"].loss_curve_, rtol=1e-5)
    assert names["inside"].score(names["X"], names["y"]) > 0.98


def test_training_session_makes_the_steps_of_the_formula():
    names = run("pieces/training_session.py")
    np.testing.assert_allclose(names["after_one_step"], names["by_hand"], rtol=1e-5)
    assert names["step"].solver == names["solver"]
    reference = names["reference"]
    np.testing.assert_allclose(
        names["path"][-1], np.append(reference.coef_, reference.intercept_), atol=1e-3
    )
    np.testing.assert_allclose(names["predicted"].ravel(), reference.predict(names["X"]), atol=1e-3)
    assert names["losses"][-1] < 1e-8 * names["losses"][0]


def test_a_training_graph_written_by_hand_is_trained():
    names = run("pieces/training_graph.py")
    by_hand = names["coefs"] - 0.01 * 2 * names["X_train"][:10].T @ names["error"] / 10
    np.testing.assert_allclose(names["step"].weights()["coefs"], by_hand, rtol=1e-4)
    reference = names["reference"]
    weights = names["trained"].weights_
    np.testing.assert_allclose(weights["coefs"].ravel(), reference.coef_, rtol=1e-3)
    np.testing.assert_allclose(weights["intercept"], reference.intercept_, rtol=1e-2)
    assert [result.shape for result in names["results"]] == [(1, 1), (25, 1)]


def test_forward_backward_has_the_gradient_of_the_formula():
    names = run("pieces/forward_backward.py")
    np.testing.assert_allclose(names["gradient"], names["formula"], rtol=1e-5)
    distances = {
        eta: np.linalg.norm(path[-1] - names["expected"]) for eta, path in names["paths"].items()
    }
    assert distances[0.1] < 0.2 < distances[0.5] < 2 < 20 < distances[0.01]


def test_network_in_pieces_reaches_the_weights_of_one_graph():
    names = run("pieces/network_in_pieces.py")
    for name, part in names["weights"].items():
        np.testing.assert_allclose(part, names["model"].weights_[name], atol=1e-5)
    np.testing.assert_allclose(names["objectives"], names["model"].loss_curve_, rtol=1e-4)
    norms = [
        np.linalg.norm(weights["coefficient"]) for weights in (names["free"], names["weights"])
    ]
    assert norms[0] > 1.3 * norms[1]


def test_classification_in_pieces_ends_at_logistic_regression():
    names = run("pieces/classification_in_pieces.py")
    for label, derivative in names["derivative"].items():
        np.testing.assert_allclose(derivative, names["differences"][label], atol=1e-8)
    np.testing.assert_allclose(names["coef"].ravel(), names["reference"].coef_[0], atol=1e-3)
    assert names["losses"][-1] == pytest.approx(names["their_loss"], abs=1e-7)
    assert names["accuracy"] == names["reference"].score(names["X_test"], names["y_test"])


PATHS = sorted(path for path in EXAMPLES.rglob("*.py") if "__pycache__" not in path.parts)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_every_example_is_tested_here(path):
    assert path.name in Path(__file__).read_text()


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_examples_import_public_names_only(path):
    public, module = set(), None
    for line in (EXAMPLES.parent / "docs" / "api.rst").read_text().splitlines():
        if match := re.match(r".. currentmodule:: (\S+)", line):
            module = match[1]
        elif match := re.fullmatch(r"    (\w+)", line):
            public.add((module, match[1]))
    assert ("skort", "OrtSGDRegressor") in public
    imported = {
        (node.module, name.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "skort"
        for name in node.names
    }
    assert imported <= public


def test_the_gallery_orders_every_example():
    ordered = {
        Path(section, f"{name}.py")
        for section, names in SETTINGS["SECTIONS"].items()
        for name in names
    }
    assert ordered | {Path("quickstart.py")} == {path.relative_to(EXAMPLES) for path in PATHS}


@pytest.mark.parametrize("name", SETTINGS["SHOWN"])
def test_what_the_gallery_does_not_run_has_a_figure(name):
    assert (SETTINGS["KEPT"] / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (SETTINGS["KEPT"] / f"{name}.txt").read_text()
