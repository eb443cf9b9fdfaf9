"""
Estimators carried to a device and back: written with one ONNX Runtime,
trained with another, read with the first again.

`python tests/carrying.py write FOLDER [RELEASE]` fits estimators and writes artifacts for a release
of ONNX Runtime; `python tests/carrying.py train FOLDER`, in an environment with a build for
training, trains from the files alone; `python tests/carrying.py read FOLDER`, in the first one,
compares with skort's own training.
"""

import copy
import pickle
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.linear_model import LinearRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.artifacts import OnDeviceTraining, load_checkpoint, save_training_artifacts

BATCH_SIZE, N_EPOCHS, ETA = 20, 6, 0.05
OPTIONS = {
    "batch_size": BATCH_SIZE,
    "max_iter": 1,
    "tol": None,
    "random_state": 0,
    "shuffle": False,
}
OPTIONS |= {"optimizer": "sgd", "learning_rate": "constant", "eta0": ETA}

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 10)).astype(np.float32)
score = X @ rng.normal(size=10)
MODELS = {
    "linear": (OrtSGDRegressor(LinearRegression(), **OPTIONS, standardize=False), score),
    "network": (OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(8,)), **OPTIONS), score),
    "classes": (OrtSGDClassifier(MLPClassifier((8,)), **OPTIONS), np.digitize(score, [-1, 1])),
}


def write(folder, release="1.19"):
    """Fit the models; write their artifacts, what a device trains on, and the estimators."""
    for name, (model, y) in MODELS.items():
        fitted = copy.deepcopy(model).fit(X, y)
        save_training_artifacts(fitted, folder / name, batch_size=BATCH_SIZE, ort_version=release)
        target = y[:, None] == fitted.classes_ if name == "classes" else y[:, None]
        np.savez(folder / name / "rows.npz", X=X, target=target.astype(np.float32))
        (folder / name / "estimator.pickle").write_bytes(pickle.dumps(fitted))
        print(f"{name}: written with onnxruntime {onnxruntime.__version__}")


def train(folder):
    """Train from the artifacts, and write checkpoints."""
    for name in MODELS:
        rows = np.load(folder / name / "rows.npz")
        training = OnDeviceTraining(folder / name)
        training.learning_rate = ETA
        for _ in range(N_EPOCHS):
            for begin in range(0, len(rows["X"]), BATCH_SIZE):
                batch = slice(begin, begin + BATCH_SIZE)
                outputs = training.train_step(rows["X"][batch], rows["target"][batch])
        training.save_checkpoint(folder / name / "trained")
        print(
            f"{name}: trained with onnxruntime {onnxruntime.__version__} to a loss of "
            f"{outputs['loss']:.4f}"
        )


def read(folder):
    """
    Bring the checkpoints back, and compare them with as many steps
    of the estimators themselves.
    """
    for name, (_, y) in MODELS.items():
        fitted = pickle.loads((folder / name / "estimator.pickle").read_bytes())
        back = load_checkpoint(folder / name / "trained", fitted)
        for _ in range(N_EPOCHS):
            fitted.partial_fit(X, y)
        difference = max(
            np.abs(back.weights_[key] - weights).max() for key, weights in fitted.weights_.items()
        )
        print(f"{name}: largest difference between the weights {difference:.1e}")
        assert difference < 2e-6


if __name__ == "__main__":
    what, folder, *release = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    {"write": write, "train": train, "read": read}[what](Path(folder), *release)
