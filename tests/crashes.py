"""
Trainings that are killed, and trainings in other processes:
`python tests/crashes.py kills 50` or `processes`.

`tests/test_crashes.py` runs it. It is a script, so that a process with a new interpreter finds
its functions.
"""

import hashlib
import multiprocessing
import pathlib
import random
import sys
import tempfile

import joblib
import numpy as np
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skort import OrtSGDClassifier, OrtSGDRegressor
from skort.callbacks import Checkpoint

X = np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32)
Y = np.sin(X[:, 0]) + X[:, 1]
# What a fit imports when it needs it, so that a process that is forked has it.
IMPORTED = [
    "joblib",
    "onnxruntime",
    "skl2onnx",
    "skort.estimators.regressor",
    "skort.graphs.sklearn.registration",
]
KILLED = [
    OrtSGDRegressor(
        MLPRegressor(hidden_layer_sizes=(10,)), optimizer="nesterov", average=50, eta0=0.01
    ),
    OrtSGDClassifier(
        MLPClassifier(hidden_layer_sizes=(10,)), optimizer="adam", early_stopping=True, eta0=0.001
    ),
    OrtSGDRegressor(learning_rate="invscaling", penalty="l1", eta0=0.01),
]
IN_PROCESSES = [
    OrtSGDRegressor(),
    OrtSGDRegressor(MLPRegressor(hidden_layer_sizes=(10,)), optimizer="adam", dtype="float64"),
    OrtSGDClassifier(
        make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(10,))),
        early_stopping=True,
    ),
]


def target(model):
    """Return y for a regressor, and whether it is positive for a classifier."""
    return Y if isinstance(model, OrtSGDRegressor) else (Y > 0).astype(int)


def fit_with_checkpoint(number, path):
    """
    Fit model `number` of `KILLED`, from its last checkpoint on;
    write what came out beside the checkpoint.
    """
    checkpoint = Checkpoint(path, resume_from=path if path.exists() else None)
    model = KILLED[number].set_params(
        random_state=0, batch_size=20, max_iter=300, tol=None, callbacks=[checkpoint]
    )
    path.with_suffix(".sha").write_text(digest(model.fit(X, target(model))))


def digest(model):
    """
    Return a checksum of a fitted model:
    of its ONNX file, its history but for the times, and its updates.
    """
    history = {name: column for name, column in sorted(model.history_.items()) if name != "seconds"}
    return hashlib.sha256(
        model.onnx_.SerializeToString() + repr((history, model.t_)).encode()
    ).hexdigest()


def killed(number, path, seconds):
    """Kill a training after some seconds, unless it has ended; return whether it was killed."""
    process = multiprocessing.get_context("forkserver").Process(
        target=fit_with_checkpoint, args=(number, path)
    )
    process.start()
    process.join(seconds)
    was_running = process.is_alive()
    process.kill()
    process.join()
    return was_running


def kills(n_kills):
    """
    Kill trainings at random moments, as SIGKILL does, and resume them;
    check that the bytes do not tell.
    """
    multiprocessing.set_forkserver_preload(IMPORTED)
    draw, n_killed, n_ended = random.Random(0), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in range(len(KILLED)):
            undisturbed, path = folder / f"whole{number}.npz", folder / "killed.npz"
            assert not killed(number, undisturbed, None)
            enough = n_kills * (number + 1) // len(KILLED)
            while n_killed < enough:
                path.unlink(missing_ok=True)
                while killed(number, path, draw.uniform(0.1, 0.7) if n_killed < enough else None):
                    n_killed += 1
                n_ended += 1
                assert (
                    path.with_suffix(".sha").read_text()
                    == undisturbed.with_suffix(".sha").read_text()
                ), KILLED[number]
    print(f"{n_killed} kills, {n_ended} trainings that ended with the bytes of undisturbed ones")


def fitted_digest(number):
    """Return the checksum of model `number` of `IN_PROCESSES`."""
    model = IN_PROCESSES[number].set_params(random_state=0, max_iter=20, tol=None, eta0=0.01)
    return digest(model.fit(X, target(model)))


def processes():
    """Check that other processes and workers fit the same bytes."""
    numbers = range(len(IN_PROCESSES))
    # The first time in processes that were never there before, and once more where sessions were
    # open when they forked.
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        spawned = pool.map(fitted_digest, numbers)
    here = [fitted_digest(number) for number in numbers]
    found = {"spawn": spawned}
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found["fork"] = pool.map(fitted_digest, numbers)
    for n_jobs in (1, 2):
        parallel = joblib.Parallel(n_jobs=n_jobs, backend="loky")
        found[f"loky, n_jobs={n_jobs}"] = parallel(
            joblib.delayed(fitted_digest)(number) for number in numbers
        )
    for name, digests in found.items():
        assert digests == here, name
    print(f"{len(here)} models, the same bytes with {', '.join(found)}")


if __name__ == "__main__":
    kills(int(sys.argv[2])) if sys.argv[1] == "kills" else processes()
