"""Write what the page of training in the browser needs: onnxruntime-web, graphs, rows, and the weights of skort."""

import base64
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier

from skort import OrtSGDClassifier

STATIC = Path(__file__).parent / "static" / "browser"
VERSION = "1.30.0"
RUNTIME = ("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
N_EPOCHS, BATCH_SIZE, LEARNING_RATE = 60, 20, 0.02


def write_runtime(folder):
    """Put onnxruntime-web from the npm registry into a folder, unless it is there."""
    npm = shutil.which("npm")
    if npm is None or all((folder / name).exists() for name in RUNTIME):
        return
    with tempfile.TemporaryDirectory() as temporary:
        command = [npm, "pack", f"onnxruntime-web@{VERSION}", "--pack-destination", temporary]
        subprocess.run(command, check=True, capture_output=True)
        (archive,) = Path(temporary).glob("*.tgz")
        with tarfile.open(archive) as tar:
            for name in RUNTIME:
                (folder / name).write_bytes(tar.extractfile(f"package/dist/{name}").read())


def write_training(folder):
    """Put a training and the weights that skort reaches into a folder."""
    X, y = make_moons(400, noise=0.15, random_state=0)
    X = X.astype(np.float32)
    options = {"optimizer": "adam", "learning_rate": "constant", "eta0": LEARNING_RATE, "tol": None}
    # The weights of the graph are those of X as it is.
    options |= {"batch_size": BATCH_SIZE, "shuffle": False, "standardize": False, "random_state": 0}
    first = OrtSGDClassifier(MLPClassifier((32,)), **options, max_iter=1).fit(X, y)
    inside = OrtSGDClassifier(FrozenEstimator(first.to_sklearn()), **options, max_iter=N_EPOCHS).fit(X, y)
    batches = [slice(begin, begin + BATCH_SIZE) for begin in range(0, len(X), BATCH_SIZE)]
    graphs = first.training_graphs().items()
    training = {
        **{name: base64.b64encode(graph.SerializeToString()).decode() for name, graph in graphs},
        "n_epochs": N_EPOCHS,
        "learning_rate": LEARNING_RATE,
        "batches": [{"X": X[batch].tolist(), "target": y[batch, None].tolist()} for batch in batches],
        "weights": np.concatenate([w.ravel() for w in inside.weights_.values()]).tolist(),
    }
    (folder / "training.js").write_text(f"window.skortTraining = {json.dumps(training)};\n")


if __name__ == "__main__":
    write_runtime(STATIC)
    write_training(STATIC)
