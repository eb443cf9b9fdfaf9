"""
Fuzzing of what skort reads from others.

``python tests/fuzz/fuzz.py KIND [-max_total_time=60]`` needs atheris. KIND is one of

- models: bytes as an ONNX model;
- graphs: ONNX models with other nodes, attributes, names, types and shapes;
- checkpoints: bytes as a checkpoint of a training;
- crafted: checkpoints with other values and a right checksum;
- device: bytes as a checkpoint of a device.

It goes on until it finds an error that is no `ValueError`, a trace of C++ in a message, or the end
of the process.
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
import onnx.defs
import onnx.parser

with atheris.instrument_imports(include=["skort"]):
    from skort import OrtSGDRegressor
    from skort.callbacks import Checkpoint
    from skort.optim.checkpoint import _checksum, load_state
    from skort.runtime.checkpoint_file import (
        VERSIONS,
        CheckpointFile,
        read_checkpoint,
        write_checkpoint,
    )

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
    (
        "float[2, 1] W = {1, -2}, int64[2] s = {-1, 1}",
        "a = MatMul (X, W) t = Tanh (a) y = Reshape (t, s)",
    ),
    (
        "float[2, 1] W = {1, -2}, int64[1] i = {1}",
        "s = Sigmoid (X) g = Gather <axis = 1> (s, i) a = MatMul (X, W) y = Add (a, g)",
    ),
]
# Names of results, and of operators that are no random numbers.
NAMES = ["", "X", "W", "b", "a", "y", "h", "s", "alpha", "axis", "ai.onnx.ml", "com.microsoft"]
NAMES += sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="skort-fuzz-"))
WHOLE = FOLDER / "whole.npz"
OrtSGDRegressor(callbacks=[Checkpoint(WHOLE)], **OPTIONS).fit(X, Y)


def refused(error):
    """Check that an error is one of words."""
    assert not any(
        trace in str(error) for trace in ("onnxruntime_src", ".cc:", "[ONNXRuntimeError]")
    ), error


def models(data):
    try:
        model = onnx.load_from_string(data)
    except Exception:  # of protobuf
        return
    fitted(model)


def graphs(data):
    given = atheris.FuzzedDataProvider(data)
    model = onnx.parser.parse_model(MODEL % given.PickValueInList(MODELS))
    for _ in range(given.ConsumeIntInRange(1, 4)):
        change(given, model if given.ConsumeIntInRange(0, 9) == 0 else model.graph)
    fitted(model)


def change(given, message):
    """Change one value somewhere inside a message of protobuf."""
    is_new = given.ConsumeIntInRange(0, 9) == 0 or not message.ListFields()
    field = given.PickValueInList(
        list(message.DESCRIPTOR.fields) if is_new else [f for f, _ in message.ListFields()]
    )
    value, is_list = getattr(message, field.name), field.is_repeated
    if field.message_type is None:
        _change_value(given, message, field, value, is_list)
    elif not is_list:
        message.ClearField(field.name) if given.ConsumeIntInRange(0, 9) == 0 else change(
            given, value
        )
    elif not value or given.ConsumeIntInRange(0, 9) == 0:
        value.add()
    else:
        item = value[given.ConsumeIntInRange(0, len(value) - 1)]
        kind = given.ConsumeIntInRange(0, 9)
        if kind == 0:
            value.remove(item)
        elif kind == 1:
            value.append(item)
        else:
            change(given, item)


def _change_value(given, message, field, value, is_list):
    kind = type(field.default_value) if not is_list else {9: str, 12: bytes}.get(field.type, int)
    numbers = [0, 1, -1, 2, 3, 7, 11, 17, 100]
    values = {
        str: NAMES,
        bytes: [b"", b"axis", bytes(8), bytes(800)],
        float: [0.0, 1.0, -1.0, 1e30, float("nan")],
    }
    chosen = given.PickValueInList(values.get(kind, numbers))
    try:
        if not is_list:
            setattr(message, field.name, chosen)
        elif not value or given.ConsumeIntInRange(0, 4) == 0:
            value.append(chosen)
        else:
            value[given.ConsumeIntInRange(0, len(value) - 1)] = chosen
    except (TypeError, ValueError):  # a value that protobuf does not take
        message.ClearField(field.name)


def fitted(model):
    try:
        OrtSGDRegressor(model, **OPTIONS).fit(X, Y)
    except ValueError as error:
        refused(error)


def checkpoints(data):
    path = FOLDER / "fuzzed.npz"
    path.write_bytes(data)
    try:
        load_state(path)
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
        OrtSGDRegressor(callbacks=[Checkpoint(resume_from=path)], **OPTIONS | {"max_iter": 3}).fit(
            X, Y
        )
    except ValueError as error:
        refused(error)


def device(data):
    try:
        read_checkpoint(data)
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
    contents = (
        [WHOLE.read_bytes()] if kind == "checkpoints" else [os.urandom(400) for _ in range(40)]
    )
    if kind == "device":
        contents = [write_checkpoint(CheckpointFile(VERSIONS["1.19"], {"W": X}, {"b": Y}))]
    if kind == "models":
        contents = [onnx.parser.parse_model(MODEL % model).SerializeToString() for model in MODELS]
    for number, content in enumerate(contents):
        (folder / str(number)).write_bytes(content)
    return str(folder)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run = {
        "models": models,
        "graphs": graphs,
        "checkpoints": checkpoints,
        "crafted": crafted,
        "device": device,
    }[sys.argv[1]]
    atheris.Setup(
        [sys.argv[0], "-timeout=60", "-len_control=0", *sys.argv[2:], seeds(sys.argv[1])], run
    )
    atheris.Fuzz()
