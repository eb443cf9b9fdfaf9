"""
Fuzzing of what skort reads from others: ONNX models as `estimator`, checkpoints, and checkpoints with a right checksum.

``python tests/fuzz/fuzz.py models|checkpoints|crafted [-max_total_time=60]`` needs atheris and goes on until it finds
an error that is no `ValueError`, a trace of C++ in a message, or the end of the process.
"""

import json
import os
import pathlib
import sys
import tempfile
import warnings

import atheris
import numpy as np
import onnx
import onnx.parser

with atheris.instrument_imports(include=["skort"]):
    from skort import OrtSGDRegressor
    from skort.callbacks import Checkpoint
    from skort.descent.checkpoint import _checksum, load_progress

X = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
Y = X[:, 0]
OPTIONS = {"max_iter": 2, "tol": None, "eta0": 0.1, "random_state": 0, "learning_rate": "constant"}
MODEL = """
<ir_version: 8, opset_import: ["" : 17]> m (float[N, 2] X) => (float[N, 1] y) <%s> { %s }"""
MODELS = [
    ("float[2, 1] W = {1, -2}, float[1] b = {1}", "a = MatMul (X, W) y = Add (a, b)"),
    ("float[2, 1] W = {1, -2}", "y = Gemm <alpha = 0.5> (X, W)"),
    (
        "float[2, 3] W = {1, -2, 3, 4, 5, 6}, float[3, 1] V = {1, 2, 3}",
        "a = MatMul (X, W) h = Relu (a) y = MatMul (h, V)",
    ),
    ("float[2, 1] W = {1, -2}, int64[2] s = {-1, 1}", "a = MatMul (X, W) t = Tanh (a) y = Reshape (t, s)"),
    (
        "float[2, 1] W = {1, -2}, int64[1] i = {1}",
        "s = Sigmoid (X) g = Gather <axis = 1> (s, i) a = MatMul (X, W) y = Add (a, g)",
    ),
]
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="skort-fuzz-"))
WHOLE = FOLDER / "whole.npz"
OrtSGDRegressor(callbacks=[Checkpoint(WHOLE)], **OPTIONS).fit(X, Y)


def refused(error):
    """Check that an error is one of words."""
    assert not any(trace in str(error) for trace in ("onnxruntime_src", ".cc:", "[ONNXRuntimeError]")), error


def models(data):
    try:
        model = onnx.load_from_string(data)
    except Exception:  # of protobuf
        return
    try:
        OrtSGDRegressor(model, **OPTIONS).fit(X, Y)
    except ValueError as error:
        refused(error)


def checkpoints(data):
    path = FOLDER / "fuzzed.npz"
    path.write_bytes(data)
    try:
        load_progress(path)
    except ValueError as error:
        refused(error)


def crafted(data):
    """Resume from a checkpoint with other values and a right checksum."""
    given = atheris.FuzzedDataProvider(data)
    with np.load(WHOLE) as file:
        arrays = {name: file[name] for name in file.files if name != "checksum"}
    others = json.loads(str(arrays["json"]))
    for _ in range(given.ConsumeIntInRange(1, 3)):
        part = others
        while isinstance(part, dict) and part:
            name = given.PickValueInList(sorted(part))
            if not isinstance(part[name], dict) or given.ConsumeBool():
                part[name] = _value(given)
                break
            part = part[name]
    if given.ConsumeBool():
        name = given.PickValueInList(sorted(set(arrays) - {"json"}))
        shape = [given.ConsumeIntInRange(0, 4) for _ in range(given.ConsumeIntInRange(0, 2))]
        kind = given.PickValueInList(["f4", "f8", "i8", "U3", "?"])
        arrays[name] = np.full(shape, given.PickValueInList([0, 1, -1, 1e30])).astype(kind)
    arrays["json"] = np.array(json.dumps(others))
    path = FOLDER / "crafted.npz"
    with path.open("wb") as file:
        np.savez(file, checksum=_checksum(arrays), **arrays)
    try:
        OrtSGDRegressor(callbacks=[Checkpoint(resume_from=path)], **OPTIONS | {"max_iter": 3}).fit(X, Y)
    except ValueError as error:
        refused(error)


def _value(given):
    """Return any value of JSON."""
    simple = [None, True, 0, 1, -1, 2**70, 0.5, float("nan"), float("inf"), "", "text"]
    kind = given.ConsumeIntInRange(0, 3)
    if kind < 2:
        return given.PickValueInList(simple)
    values = [given.PickValueInList(simple) for _ in range(given.ConsumeIntInRange(0, 3))]
    return values if kind == 2 else {str(i): value for i, value in enumerate(values)}


def seeds(kind):
    """Write what to begin with into a folder; return its path."""
    folder = FOLDER / kind
    folder.mkdir()
    contents = [WHOLE.read_bytes()] if kind == "checkpoints" else [os.urandom(64)]
    if kind == "models":
        contents = [onnx.parser.parse_model(MODEL % model).SerializeToString() for model in MODELS]
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content)
    return str(folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run = {"models": models, "checkpoints": checkpoints, "crafted": crafted}[sys.argv[1]]
    atheris.Setup([sys.argv[0], "-timeout=60", *sys.argv[2:], seeds(sys.argv[1])], run)
    atheris.Fuzz()
