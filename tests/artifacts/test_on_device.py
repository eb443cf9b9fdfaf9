"""Training from the files, and what is wrong with files and arrays."""

import numpy as np
import onnx
import pytest
from sklearn.linear_model import LinearRegression

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.artifacts import OnDeviceTraining, save_training_artifacts
from skort.runtime.checkpoint_file import (
    VERSIONS,
    CheckpointFile,
    read_checkpoint,
    release_here,
    write_checkpoint,
)
from skort.runtime.installed import load, training_api

pytestmark = pytest.mark.skipif(
    "Module" not in training_api(), reason="this runtime is no build for training"
)
RELEASE = release_here()
X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
y = (X @ [1.0, -2.0, 0.5] + 0.5).astype(np.float32)[:, None]


@pytest.mark.parametrize("batch_size", [10, None])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_the_runtime_logs_no_warning_of_the_files(
    optimizer, batch_size, tmp_path, monkeypatch, capfd
):
    model = OrtSGDRegressor(LinearRegression(), max_iter=1, tol=None).fit(X, y.ravel())
    save_training_artifacts(
        model, tmp_path, optimizer=optimizer, batch_size=batch_size, ort_version=RELEASE
    )
    # A session on a device has the options that ONNX Runtime begins with: it logs warnings.
    monkeypatch.setattr(
        "skort.runtime.module.session_options", lambda device: load().SessionOptions()
    )
    training = OnDeviceTraining(tmp_path)
    losses(training, 3)
    training.eval_step(X, y)
    training.export_model_for_inferencing(tmp_path / "model.onnx")
    assert capfd.readouterr().err == ""


@pytest.fixture
def folder(tmp_path):
    options = {
        "standardize": False,
        "learning_rate": "constant",
        "eta0": 0.1,
        "max_iter": 1,
        "tol": None,
    }
    model = OrtSGDRegressor(LinearRegression(), **options).fit(X, y.ravel())
    save_training_artifacts(model, tmp_path, optimizer="AdamW", batch_size=10, ort_version=RELEASE)
    return tmp_path


def losses(training, n_steps):
    return [
        training.train_step(X[i * 10 : i * 10 + 10], y[i * 10 : i * 10 + 10])["loss"]
        for i in range(n_steps)
    ]


def test_a_training_goes_on_from_a_checkpoint_with_the_moments(folder):
    whole = OnDeviceTraining(folder)
    assert whole.learning_rate == pytest.approx(0.001)
    whole.learning_rate = 0.05
    expected = losses(whole, 4)
    first = OnDeviceTraining(folder)
    first.learning_rate = 0.05
    losses(first, 2)
    first.save_checkpoint(folder / "with", include_optimizer_state=True)
    first.save_checkpoint(folder / "without")
    rows = [(X[i * 10 : i * 10 + 10], y[i * 10 : i * 10 + 10]) for i in (2, 3)]
    for name, same in (("with", True), ("without", False)):
        rest = OnDeviceTraining(folder, checkpoint=folder / name)
        rest.learning_rate = 0.05
        got = [rest.train_step(*row)["loss"] for row in rows]
        assert np.allclose(got, expected[2:], rtol=1e-6) == same
    assert read_checkpoint((folder / "with").read_bytes()).n_steps == 2


def test_evaluation_takes_any_number_of_rows_and_changes_nothing(folder):
    training = OnDeviceTraining(folder)
    before = training.weights()
    loss = training.eval_step(X[:7], y[:7])["loss"]
    residual = X[:7] @ before["coef"] + before["intercept"] - y[:7]
    assert loss == pytest.approx(np.mean(residual**2) / 2, rel=1e-5)
    for name, weights in training.weights().items():
        np.testing.assert_array_equal(weights, before[name])


@pytest.mark.parametrize(
    "arrays, message",
    [
        ((X[:5], y[:5]), r"X has the shape \(5, 3\), but the model was written for \(10, 3\)"),
        ((X[:10, :2], y[:10]), r"X has the shape \(10, 2\)"),
        (
            (X[:10], y[:10, 0]),
            r"target has the shape \(10,\), but the model was written for \(10, 1\)",
        ),
        ((X[:10], y[:10, 0]), r"Give one column as array\[:, None\]"),
        (
            (X[:5], y[:5]),
            "For other batches, save the artifacts with another batch_size, or with None",
        ),
        (
            ([["a"] * 3] * 10, y[:10]),
            "X cannot be read as an array of float32: could not convert string",
        ),
        ((X[:10],), r"A step takes the arrays \['X', 'target'\], got 1"),
    ],
)
def test_a_batch_that_was_not_exported_is_refused(folder, arrays, message):
    with pytest.raises(ValueError, match=message):
        OnDeviceTraining(folder).train_step(*arrays)


@pytest.mark.parametrize("shape", [(10,), (10, 1)])
def test_class_numbers_are_advised_to_be_columns_of_one_and_zero(shape, tmp_path):
    model = OrtSGDClassifier(max_iter=1, tol=None, random_state=0).fit(X, np.arange(40) % 3)
    save_training_artifacts(model, tmp_path, batch_size=10, ort_version=RELEASE)
    training, numbers = OnDeviceTraining(tmp_path), np.arange(10) % 3
    with pytest.raises(
        ValueError, match=r"Give 3 columns; of class numbers np.eye\(3\)\[numbers\], one column"
    ):
        training.train_step(X[:10], numbers.reshape(shape))
    assert training.train_step(X[:10], np.eye(3)[numbers])["loss"] > 0


def test_rows_that_do_not_belong_together_are_refused(tmp_path):
    model = OrtSGDRegressor(LinearRegression(), max_iter=1, tol=None, eta0=0.1).fit(X, y.ravel())
    save_training_artifacts(model, tmp_path, ort_version=RELEASE)
    training = OnDeviceTraining(tmp_path)
    before = training.weights()
    for step in (training.train_step, training.eval_step):
        with pytest.raises(
            ValueError, match=r"the same number of rows, got \{'X': 10, 'target': 1\}"
        ):
            step(X[:10], y[:1])
        with pytest.raises(ValueError, match="X has no rows"):
            step(X[:0], y[:0])
    for name, weights in training.weights().items():
        np.testing.assert_array_equal(weights, before[name])


def test_a_step_that_fails_leaves_no_gradient(tmp_path):
    model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
rows (float[N, 3] X, int64[N] i) => (float[N, 1] score)
<float[3, 1] coef = {0, 0, 0}, float[3, 2] table = {1,1,1,1,1,1}>
{ a = MatMul (X, coef)  b = Gather <axis = 0> (table, i)  c = ReduceSum <keepdims = 1> (b)
score = Add (a, c) }""")
    save_training_artifacts(
        model, tmp_path, loss="squared_error", trainable="coef", batch_size=4, ort_version=RELEASE
    )
    training = OnDeviceTraining(tmp_path)
    training.learning_rate = 0.1
    rows, target = X[:4], y[:4] + 8
    with pytest.raises(
        ValueError, match=r"does not make the training step: .*indices element out of data bounds"
    ) as info:
        training.train_step(rows, [0, 0, 0, 7], target)
    assert ".cc:" not in str(info.value)
    training.train_step(rows, [0, 1, 2, 0], target)
    np.testing.assert_allclose(
        training.weights()["coef"], 0.1 * rows.T @ (target - 8) / 4, rtol=1e-5
    )


@pytest.mark.parametrize("name", ["training_model.onnx", "eval_model.onnx", "checkpoint"])
def test_a_missing_or_damaged_file_is_named(folder, name):
    (folder / name).write_bytes(b"damaged")
    with pytest.raises(
        ValueError, match=f"{name}' (is not an ONNX model|cannot be read: it is no checkpoint)"
    ):
        OnDeviceTraining(folder)
    (folder / name).unlink()
    with pytest.raises(
        FileNotFoundError, match=f"{name}' does not exist: give the folder that save_t"
    ):
        OnDeviceTraining(folder)


def test_a_file_that_cannot_be_written_is_named(folder):
    training = OnDeviceTraining(folder)
    (folder / "eval_model.onnx").unlink()
    with pytest.raises(
        OSError, match=r"does not write '.*': Load model .*eval_model\.onnx failed"
    ) as info:
        training.export_model_for_inferencing(folder / "model.onnx")
    assert ".cc:" not in str(info.value)
    assert not (folder / "model.onnx").exists()


def test_another_prefix_is_named(folder):
    with pytest.raises(
        FileNotFoundError, match=r"new_training_model.onnx' does not exist.*here 'new_'"
    ):
        OnDeviceTraining(folder, "new_")


def test_without_an_optimizer_model_nothing_is_trained(folder):
    (folder / "optimizer_model.onnx").unlink()
    training = OnDeviceTraining(folder)
    assert training.eval_step(X[:10], y[:10])["loss"] > 0
    with pytest.raises(ValueError, match=r"has no optimizer_model\.onnx"):
        training.train_step(X[:10], y[:10])
    with pytest.raises(ValueError, match=r"has no optimizer_model\.onnx"):
        training.learning_rate = 0.1
    with pytest.raises(ValueError, match=r"has no optimizer_model\.onnx"):
        _ = training.learning_rate


@pytest.mark.parametrize(
    "trainable, message",
    [
        (
            {"coef": np.ones((4, 1), np.float32), "intercept": np.ones(1, np.float32)},
            "'coef' of shape",
        ),
        ({"coef": np.ones((3, 1), np.float32)}, r"lacks the parameters \['intercept'\]"),
        ({"weight": np.ones((3, 1), np.float32)}, "'weight' of shape .*has no such parameter"),
    ],
)
def test_the_checkpoint_of_another_model_is_refused(folder, trainable, message):
    checkpoint = CheckpointFile(VERSIONS[RELEASE], trainable, {})
    (folder / "checkpoint").write_bytes(write_checkpoint(checkpoint))
    with pytest.raises(ValueError, match=f"is the checkpoint of another model: .*{message}"):
        OnDeviceTraining(folder)


def test_the_checkpoint_of_another_release_is_refused(folder):
    mine = read_checkpoint((folder / "checkpoint").read_bytes())
    other = 3 - VERSIONS[RELEASE]
    (folder / "checkpoint").write_bytes(
        write_checkpoint(CheckpointFile(other, mine.trainable, mine.frozen))
    )
    with pytest.raises(
        ValueError, match=rf"is for ONNX Runtime 1\.1\d and 1\.1\d, .*ort_version=\"{RELEASE}\""
    ):
        OnDeviceTraining(folder)


def test_results_to_export_that_do_not_exist_are_named(folder):
    training = OnDeviceTraining(folder)
    with pytest.raises(
        ValueError, match=r"graph_output_names: the eval model has no results \['scores'\]"
    ):
        training.export_model_for_inferencing(folder / "model.onnx", ["scores"])
    assert not (folder / "model.onnx").exists()


def test_a_model_that_the_runtime_does_not_load_is_named(folder):
    model = onnx.load(folder / "optimizer_model.onnx")
    model.graph.node[0].op_type = "NoOptimizer"
    onnx.save(model, folder / "optimizer_model.onnx")
    with pytest.raises(
        ValueError, match=r"ONNX Runtime 1\.1\d\.\d does not load '.*optimizer_model.onnx': "
    ):
        OnDeviceTraining(folder)
