"""The examples as a user runs them."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skort.objective.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from skort.runtime.installed import training_api
from skort.solvers import available_solvers

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_linear_regression_reaches_the_least_squares_solution():
    names = runpy.run_path(str(EXAMPLES / "linear_regression.py"))
    assert list(names["models"]) == available_solvers()
    for model in names["models"].values():
        np.testing.assert_allclose(model.coef_, names["reference"].coef_, atol=1e-3)
        np.testing.assert_allclose(model.intercept_, [names["reference"].intercept_], atol=1e-3)
        assert model.loss_curve_[-1] < 1e-5 * model.loss_curve_[0]


def test_own_loop_reaches_the_least_squares_solution_on_each_solver():
    names = runpy.run_path(str(EXAMPLES / "own_loop.py"))
    assert list(names["losses"]) == available_solvers()
    for losses in names["losses"].values():
        assert losses[-1] < 1e-5 * losses[0]
    for step in names["steps"].values():
        np.testing.assert_allclose(step.weights()["coef"].ravel(), names["reference"].coef_, atol=0.01)


def test_plot_updates_computes_the_same_in_each_way():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_updates.py"))
    assert {len(times) for times in names["times"].values()} == {len(names["sizes"])}
    for (piece, n, _), result in names["results"].items():
        assert result.shape == (n,)
        np.testing.assert_allclose(result, names["results"][piece, n, "numpy, in place"], rtol=1e-5, atol=1e-6)


def test_plot_schedule_clock_explains_the_difference():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_schedule_clock.py"))
    updates, epochs, constant = (np.array(curves)[:, -1] for curves in names["losses"].values())
    # On each of the ten data sets.
    assert (constant < epochs).all() and (epochs < 1e-2 * updates).all()
    assert np.median(updates) > 1e-3
    assert np.median(epochs) < 1e-6
    rates = [clock(100) / 0.2 for clock in names["clocks"].values()]
    assert rates == pytest.approx([100**-0.25, 9**-0.25, 1])
    assert names["model"].loss_curve_[-1] < 1e-6


@pytest.mark.slow
def test_quickstart_serves_the_same_predictions():
    run = subprocess.run(
        [sys.executable, EXAMPLES / "quickstart.py"], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.count("same predictions") == 4 * len(available_solvers())
    assert "OTHER" not in run.stdout
    scores = {tuple(line[:39].split()): float(line[39:47]) for line in run.stdout.splitlines()[1:-1]}
    for (*data, solver), score in scores.items():
        assert score >= scores[(*data, "scikit-learn")] - 0.02, (data, solver)


def test_losses_fit_what_they_are_for():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_losses.py"))
    regression, classification = names["kinds"]
    expected = [
        *((regression, name) for name in REGRESSION_LOSSES),
        *((classification, n) for n in CLASSIFICATION_LOSSES),
    ]
    assert list(names["values"]) == expected
    at_two = {name: np.interp(2.0, names["score"].ravel(), value) for name, value in names["values"].items()}
    assert at_two[regression, "squared_error"] == pytest.approx(0.5, abs=1e-3)
    assert at_two[classification, "hinge"] == 0
    X, y, models = names["X"], names["y"], names["models"]
    assert models["squared_error"].intercept_[0] == pytest.approx(y.mean() - 2 * X.mean(), abs=0.2)
    for loss in ("absolute_error", "huber"):
        np.testing.assert_allclose([models[loss].intercept_[0], models[loss].coef_[0]], [1, 2], atol=0.15)
    assert (y < models["quantile"].predict(X)).mean() == pytest.approx(0.75, abs=0.02)


def test_plot_learning_rates_comes_closest_where_the_rate_falls():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_learning_rates.py"))
    for name, eta in names["rates"].items():
        schedule = names["schedules"][name]
        assert eta.tolist() == pytest.approx([schedule(t) for t in range(1, names["n_updates"] + 1)])
    excess = names["excess"]
    assert excess.pop("Constant") > 0.01
    assert max(excess.values()) < 0.005


def test_fine_tune_beats_both_the_old_model_and_a_new_one():
    names = runpy.run_path(str(EXAMPLES / "fine_tune.py"))
    before, new, tuned, last = names["scores"].values()
    assert min(tuned, last) > max(before, new) + 0.1
    assert names["plain"].score(names["test"], names["test_labels"]) == pytest.approx(tuned)
    first_layer = names["models"]["last layer tuned"].weights_["coefficient"]
    np.testing.assert_array_equal(first_layer, names["fitted"][-1].coefs_[0].astype(np.float32))


def test_a_pull_is_better_than_both_models_and_a_group_lasso_finds_the_features():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_own_penalties.py"))
    errors = names["errors"]
    assert min(errors) < 0.7 * min(names["old"], names["new"])
    assert min(errors) < errors[0] and min(errors) < errors[-1]
    # At one strength, the four features that matter are left, in the order of their size.
    norms = names["norms"][5]
    assert norms[4:].max() < 0.05 < norms[:4].min()
    assert all(np.diff(names["norms"][:, 0]) < 0)


def test_columns_serves_what_the_estimator_predicts():
    pandas = pytest.importorskip("pandas")
    names = runpy.run_path(str(EXAMPLES / "columns.py"))
    assert names["accuracy"] > 0.8
    rows = pandas.DataFrame(
        {
            "days": [2, np.nan, 25],
            "channel": ["shop", None, "phone"],
            "text": ["thank you", "it burns", "it never came"],
        }
    )
    assert names["answers"].tolist() == names["model"].predict(rows).tolist() == ["later", "urgent", "urgent"]
    np.testing.assert_allclose(names["probabilities"], names["model"].predict_proba(rows), atol=1e-6)


def test_streaming_goes_on_after_a_pickle(capsys):
    names = runpy.run_path(str(EXAMPLES / "streaming.py"))
    output = capsys.readouterr().out
    assert "the same model: True" in output
    accuracies = [float(line.split("accuracy ")[1][:5]) for line in output.splitlines() if "accuracy" in line]
    assert len(accuracies) == 4
    assert min(accuracies) > 0.95
    assert names["model"].n_iter_ == 100


def test_plot_text_is_as_good_as_scikit_learn_and_serves_texts():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "plot_text.py"))
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
        [sys.executable, EXAMPLES / "dask_groups.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    assert "the same bits without a cluster: True" in run.stdout
    one, two = (line.split() for line in run.stdout.splitlines() if "accuracy" in line)
    assert int(two[2]) == int(one[2]) / 2
    assert min(float(one[-1]), float(two[-1])) > 0.9


def test_train_without_skort_reaches_the_same_weights():
    names = runpy.run_path(str(EXAMPLES / "train_without_skort.py"))
    np.testing.assert_array_equal(names["outside"], names["weights"])
    np.testing.assert_allclose(names["losses"], names["inside"].loss_curve_[: len(names["losses"])], rtol=0.1)
    assert names["losses"][-1] < 0.2 * names["losses"][0]


def test_train_in_javascript_reaches_the_same_weights():
    has_runtime = (
        shutil.which("node")
        and subprocess.run(["node", "-e", 'require("onnxruntime-web")'], capture_output=True).returncode == 0
    )
    if not has_runtime:
        pytest.skip("needs node, and onnxruntime-web in NODE_PATH")
    names = runpy.run_path(str(EXAMPLES / "train_in_javascript.py"))
    np.testing.assert_allclose(names["outside"]["weights"], names["weights"], atol=1e-5)


def test_numpy_loop_finds_where_y_is_uncertain():
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "numpy_loop.py"))
    np.testing.assert_allclose(names["score"][:, 0], np.sin([-1.5, 1.5]), atol=0.1)
    np.testing.assert_allclose(names["predicted"], [0.05, 0.45], rtol=0.3)


def test_torch_embedding_explains_the_prices():
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "torch_embedding.py"))
    assert names["score"] > 0.97
    assert names["losses"][-1] < 0.05 * names["losses"][0]


def test_torch_pipeline_learns_the_gain_and_comes_back():
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "torch_pipeline.py"))
    before = names["fitted"].score(names["darker"][names["test"]], names["labels"][names["test"]])
    assert min(names["accuracies"].values()) > before + 0.2
    assert names["accuracies"]["plain"] == pytest.approx(names["accuracies"]["all"])
    assert 2 < names["gain"] < 5


def test_torch_to_skort_has_the_same_gradients():
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "torch_to_skort.py"))
    assert max(names["differences"].values()) < 1e-6
    assert min(names["scores"].values()) > 0.85
    assert names["back"] == pytest.approx(names["scores"][list(names["scores"])[-1]])


def test_jax_layer_adapts_the_model():
    pytest.importorskip("jax", reason="needs jax")
    pytest.importorskip("matplotlib").use("agg")
    names = runpy.run_path(str(EXAMPLES / "jax_layer.py"))
    assert names["value"] < 0.2 < names["first"]
    assert names["accuracy"] > 0.85


def test_on_device_learns_the_users_digits():
    matplotlib = pytest.importorskip("matplotlib")
    if "Module" not in training_api():
        pytest.skip("this runtime is no build for training")
    matplotlib.use("Agg")
    names = runpy.run_path(str(EXAMPLES / "on_device.py"))
    assert names["losses"][-1] < 0.1 * names["losses"][0]
    assert names["after"] > 0.8 > names["before"] + 0.1
    np.testing.assert_array_equal(names["labels"], names["trained"].predict(names["unseen"]))
    np.testing.assert_allclose(names["probabilities"], names["trained"].predict_proba(names["unseen"]), atol=1e-5)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_tested_here(path):
    assert path.name in Path(__file__).read_text()
