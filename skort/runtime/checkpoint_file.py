"""Reading and writing of the checkpoint files of ONNX Runtime's on-device training."""

import hashlib
import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skort.exceptions import RuntimeNotAvailableError
from skort.runtime.installed import load, training_api

#: The version of the checkpoint files that each release of ONNX Runtime reads.
VERSIONS = {"1.16": 1, "1.17": 1, "1.18": 2, "1.19": 2}

_IDENTIFIER = b"ODTC"
# The format has no room for a checksum. ONNX Runtime ignores bytes after the content, and does not
# write them again: a file that it wrote itself has none.
_MARK = b"skort-sha256"
_CHECKSUM_SIZE = hashlib.sha256().digest_size
# The only group of parameters of an optimizer model, and the moments of each parameter in it.
_GROUP = "group0"
_MOMENTS = ("momentum0", "momentum1")
_FLOAT32 = 1
# The tables of ONNX Runtime's schemas ort.fbs and ort_training_checkpoint.fbs: field -> its number
# and its type. A type is a number, text, another table, or a list of tables or numbers.
_INT32 = "Int32"
_INT64 = "Int64"
_TENSOR = {"name": (0, str), "dims": (2, ["<i8"]), "type": (3, _INT32), "raw": (4, ["u1"])}
_STATE = {"parameter": (0, str), "moments": (1, [_TENSOR])}
_OPTIMIZER = {"name": (0, str), "step": (1, _INT64), "states": (3, [_STATE])}
_MODULE = {"trainable": (0, [_TENSOR]), "frozen": (1, [_TENSOR])}
_CHECKPOINT = {"version": (0, _INT32), "module": (1, _MODULE), "groups": (2, [_OPTIMIZER])}
# At least as many fields as any table has. Fields at the end that a table lacks take no place.
_N_FIELDS = 6


@dataclass(frozen=True, eq=False)
class CheckpointFile:
    """The content of a checkpoint."""

    #: The version of the file's format, one of the values of `VERSIONS`.
    version: int
    #: The parameters by name, in float32.
    trainable: dict[str, np.ndarray]
    frozen: dict[str, np.ndarray]
    #: The first and the second moment of each trainable parameter; empty before the first step of
    #: an optimizer.
    moments: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)
    #: The number of steps that the optimizer has made.
    n_steps: int = 0


def release_here() -> str:
    """Return the key of `VERSIONS` that the installed ONNX Runtime reads."""
    installed = _numbers(load().__version__)
    return max(
        (release for release in VERSIONS if _numbers(release) <= installed),
        key=_numbers,
        default="1.16",
    )


def release_of_devices() -> str:
    """Return the key of `VERSIONS` of the installed build for training, or the newest key."""
    try:
        trains = "Module" in training_api()
    except RuntimeNotAvailableError:
        trains = False
    return release_here() if trains else max(VERSIONS, key=_numbers)


def version_here() -> int:
    """Return the version of checkpoints that the installed ONNX Runtime reads."""
    return VERSIONS[release_here()]


def releases(version: int) -> str:
    """Return the releases that read a version of checkpoints, as text."""
    return " and ".join(release for release, known in VERSIONS.items() if known == version)


def _numbers(release):
    return [int(part) for part in release.split(".")[:2]]


def write_checkpoint(checkpoint: CheckpointFile) -> bytes:
    """Return a checkpoint as the bytes of a file, with a checksum."""
    import flatbuffers

    parts = {"trainable": checkpoint.trainable, "frozen": checkpoint.frozen}
    module = {
        name: [_tensor(*item) for item in sorted(arrays.items())] for name, arrays in parts.items()
    }
    fields: dict[str, Any] = {"version": checkpoint.version, "module": module}

    if checkpoint.moments:
        states = [
            {"parameter": name, "moments": list(map(_tensor, _MOMENTS, moments))}
            for name, moments in sorted(checkpoint.moments.items())
        ]
        fields["groups"] = [{"name": _GROUP, "step": checkpoint.n_steps, "states": states}]

    builder = flatbuffers.Builder(1024)
    builder.Finish(_write(builder, _CHECKPOINT, fields), _IDENTIFIER)
    return with_checksum(bytes(builder.Output()))


def with_checksum(content: bytes) -> bytes:
    """Return the bytes of a file that ONNX Runtime wrote, with a checksum after them."""
    return content + _MARK + hashlib.sha256(content).digest()


def _content(data):
    """Return the bytes of a file without its checksum; raise a ValueError if it is wrong."""
    end = len(data) - _CHECKSUM_SIZE
    content, mark = data[: end - len(_MARK)], data[end - len(_MARK) : end]
    if mark != _MARK:
        return data
    if hashlib.sha256(content).digest() != data[end:]:
        raise ValueError("it is damaged: its checksum is that of other bytes.")

    return content


def read_checkpoint(data: bytes) -> CheckpointFile:
    """
    Return the checkpoint in the bytes of a file.

    Raise a ValueError if it cannot be read, or if it has a checksum and this is wrong.
    """
    if data[4:8] != _IDENTIFIER:
        raise ValueError("it is no checkpoint of ONNX Runtime's on-device training.")

    try:
        return _checkpoint(_content(data))
    except (IndexError, OverflowError, UnicodeDecodeError, TypeError, struct.error) as error:
        raise ValueError("it is damaged.") from error


def _checkpoint(data):
    from flatbuffers.encode import Get
    from flatbuffers.packer import uoffset
    from flatbuffers.table import Table

    root = Table(bytearray(data), Get(uoffset, data, 0))
    version = _read(root, {"version": _CHECKPOINT["version"]}).get("version", 0)
    if version not in VERSIONS.values():
        known = ", ".join(f"{v} (ONNX Runtime {releases(v)})" for v in sorted({*VERSIONS.values()}))
        raise ValueError(f"it is of version {version}; the versions {known} are known.")

    fields = _read(root, _CHECKPOINT)
    if "module" not in fields:
        raise ValueError("it has no parameters.")

    trainable, frozen = (dict(map(_array, fields["module"].get(name, ()))) for name in _MODULE)
    moments = {}
    n_steps = 0
    for group in fields.get("groups", ()):
        n_steps = group.get("step", 0)
        for state in group.get("states", ()):
            tensors = dict(map(_array, state.get("moments", ())))
            moments[state.get("parameter", "")] = tuple(
                tensors[name] for name in _MOMENTS if name in tensors
            )

    return CheckpointFile(
        version, trainable, frozen, {name: m for name, m in moments.items() if m}, n_steps
    )


def _tensor(name, array):
    """Return an array as the fields of a tensor."""
    raw = np.frombuffer(np.ascontiguousarray(array, "<f4").tobytes(), np.uint8)
    return {"raw": raw, "dims": np.array(array.shape, "<i8"), "name": name, "type": _FLOAT32}


def _array(tensor):
    """Return the name and the array of a tensor."""
    name = tensor.get("name", "")
    shape = list(map(int, tensor.get("dims", ())))
    raw = bytes(tensor.get("raw", b""))
    if (
        tensor.get("type") != _FLOAT32
        or len(raw) != 4 * math.prod(shape)
        or min(shape, default=0) < 0
    ):
        raise ValueError(
            f"its parameter {name!r} is not in float32, or its values are in another file."
        )

    return name, np.frombuffer(raw, "<f4").astype(np.float32).reshape(shape)


def _read(table, schema):
    """Return the fields that a table has, by name."""
    offsets = {name: table.Offset(4 + 2 * number) for name, (number, _) in schema.items()}
    return {
        name: _field(table, offset, schema[name][1]) for name, offset in offsets.items() if offset
    }


def _field(table, offset, kind):
    from flatbuffers import number_types

    def inner(position, schema):
        return _read(type(table)(table.Bytes, table.Indirect(position)), schema)

    if isinstance(kind, dict):
        return inner(table.Pos + offset, kind)
    if kind is str:
        return table.String(table.Pos + offset).decode()
    if not isinstance(kind, list):
        return table.Get(getattr(number_types, f"{kind}Flags"), table.Pos + offset)

    (item,) = kind
    start = table.Vector(offset)
    length = table.VectorLen(offset)
    if isinstance(item, dict):
        return [inner(start + 4 * i, item) for i in range(length)]
    if start + length * np.dtype(item).itemsize > len(table.Bytes):
        raise IndexError("an array ends after the file")

    return np.frombuffer(table.Bytes, item, length, start)


def _write(builder, schema, fields):
    """Write a table with some fields; return its offset."""
    held = {name: _placed(builder, schema[name][1], value) for name, value in fields.items()}
    builder.StartObject(_N_FIELDS)

    for name, value in held.items():
        number, kind = schema[name]
        name = f"Prepend{kind}Slot" if kind in (_INT32, _INT64) else "PrependUOffsetTRelativeSlot"
        getattr(builder, name)(number, value, 0)

    return builder.EndObject()


def _placed(builder, kind, value):
    """Write the value of a field; return its offset, or the number itself."""
    if isinstance(kind, dict):
        return _write(builder, kind, value)
    if not isinstance(kind, list):
        return builder.CreateString(value) if kind is str else value
    if isinstance(value, np.ndarray):
        return builder.CreateNumpyVector(value)

    offsets = [_write(builder, kind[0], each) for each in value]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)

    return builder.EndVector()
