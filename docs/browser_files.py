"""
Write what the page of training in the browser needs:
graphs, rows, the weights of skort, and where onnxruntime-web is.

`python docs/browser_files.py npm` fetches onnxruntime-web from the npm registry, and the page loads
these files. Else it loads the same ones from a network that serves the packages of npm. Building
the pages fetches nothing.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
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
# Hashes of the files in the package, which a browser checks
RUNTIME = {
    "ort.wasm.min.js": "sha384-Bw6URI+Gvoadw0do7/QrSHUC9D1vCYYK5OSqChFyhyV5mzPL4oe2rOAFljAnS8Sq",
    "ort-wasm-simd-threaded.mjs": (
        "sha384-XcXA/MtAf0WpB8e023xQH9CM7RIjiugakT7x99DIwpFf7k56BIFFcAPerIF7FDad"
    ),
    "ort-wasm-simd-threaded.wasm": (
        "sha384-vjBJ1z7qrhkTyYsNqKeF6c7N+nOJSU94czEo+tvZcu8G75JparGq9kB+kTnEUNVM"
    ),
}
ELSEWHERE = f"https://cdn.jsdelivr.net/npm/onnxruntime-web@{VERSION}/dist/"
N_EPOCHS, BATCH_SIZE, LEARNING_RATE = 60, 20, 0.02


def is_here(folder):
    """
    Return whether a folder has the files of the runtime;
    raise an error where one is another than that of npm.
    """
    here = [name for name in RUNTIME if (folder / name).exists()]
    for name in here:
        digest = base64.b64encode(hashlib.sha384((folder / name).read_bytes()).digest()).decode()
        if RUNTIME[name] != f"sha384-{digest}":
            raise ValueError(
                f"{folder / name} is not that of onnxruntime-web {VERSION}: remove it."
            )
    return len(here) == len(RUNTIME)


def fetch_runtime(folder):
    """Put onnxruntime-web from the npm registry into a folder, unless it is there."""
    if is_here(folder):
        return
    with tempfile.TemporaryDirectory() as temporary:
        command = [
            shutil.which("npm"),
            "pack",
            f"onnxruntime-web@{VERSION}",
            "--pack-destination",
            temporary,
        ]
        subprocess.run(command, check=True, capture_output=True)
        (archive,) = Path(temporary).glob("*.tgz")
        with tarfile.open(archive) as tar:
            for name in RUNTIME:
                (folder / name).write_bytes(tar.extractfile(f"package/dist/{name}").read())
    is_here(folder)


def write_training(folder):
    """Put a training and the weights that skort reaches into a folder."""
    X, y = make_moons(400, noise=0.15, random_state=0)
    X = X.astype(np.float32)
    options = {"optimizer": "adam", "learning_rate": "constant", "eta0": LEARNING_RATE, "tol": None}
    # The weights of the graph are those of X as it is.
    options |= {"batch_size": BATCH_SIZE, "shuffle": False, "standardize": False, "random_state": 0}
    first = OrtSGDClassifier(MLPClassifier(hidden_layer_sizes=(32,)), **options, max_iter=1).fit(
        X, y
    )
    inside = OrtSGDClassifier(
        FrozenEstimator(first.to_sklearn()),
        **options,
        max_iter=N_EPOCHS,
        early_stopping=False,
    ).fit(X, y)
    batches = [slice(begin, begin + BATCH_SIZE) for begin in range(0, len(X), BATCH_SIZE)]
    graphs = first.training_graphs().items()
    training = {
        # An empty address is the folder of the page's own files.
        "runtime": {"address": "" if is_here(folder) else ELSEWHERE, "integrity": RUNTIME},
        **{name: base64.b64encode(graph.SerializeToString()).decode() for name, graph in graphs},
        "n_epochs": N_EPOCHS,
        "learning_rate": LEARNING_RATE,
        "batches": [
            {"X": X[batch].tolist(), "target": y[batch, None].tolist()} for batch in batches
        ],
        "weights": np.concatenate([w.ravel() for w in inside.weights_.values()]).tolist(),
    }
    (folder / "training.js").write_text(f"window.skortTraining = {json.dumps(training)};\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["npm"]:
        fetch_runtime(STATIC)
    else:
        write_training(STATIC)
