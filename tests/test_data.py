"""
What released versions wrote, by `tests/data/make.py`:
pickles, files of skops and ONNX files predict the same.
"""

import json
import pathlib
import pickle

import numpy as np
import pytest

from skort.runtime.installed import load as load_runtime

VERSIONS = sorted(
    path
    for path in pathlib.Path(__file__).with_name("data").iterdir()
    if (path / "predictions.json").exists()
)
NAMES = ["linear", "classifier", "pipeline", "components"]


def expected(folder, name):
    values = json.loads((folder / "predictions.json").read_text())
    return np.array(values["X"]), np.array(values[name])


def from_pickle(file):
    return pickle.loads(file.with_suffix(".pickle").read_bytes())


def from_skops(file):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    file = file.with_suffix(".skops")
    return io.load(file, trusted=io.get_untrusted_types(file=file))


@pytest.mark.parametrize("load", [from_pickle, from_skops])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
# scikit-learn warns of other versions of its own; what skort needs of its estimators, it has
# in all of them.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
def test_estimators(folder, name, load):
    X, prediction = expected(folder, name)
    model = load(folder / name)
    score = model.predict_proba if name == "classifier" else model.predict
    np.testing.assert_allclose(score(X), prediction, rtol=1e-5, atol=1e-6)
    y = np.where(X[:, 0] > 0, "yes", "no") if name == "classifier" else X[:, 0]
    assert np.isfinite(model.fit(X, y).loss_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_onnx_files(folder, name):
    X, prediction = expected(folder, name)
    session = load_runtime().InferenceSession(
        str(folder / f"{name}.onnx"), providers=["CPUExecutionProvider"]
    )
    # The last output: the probabilities of a classifier come after its labels.
    result = session.run(None, {"X": X.astype(np.float32)})[-1]
    np.testing.assert_allclose(result.reshape(prediction.shape), prediction, rtol=1e-5, atol=1e-6)


def test_there_are_files():
    assert VERSIONS
