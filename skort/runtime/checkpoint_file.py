"""The checkpoint file of ONNX Runtime's on-device training: read and written as the flatbuffer that it is."""

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skort.exceptions import RuntimeNotAvailableError
from skort.runtime.installed import load, training_api

#: The version of the file that each release of ONNX Runtime reads.
VERSIONS = {"1.16": 1, "1.17": 1, "1.18": 2, "1.19": 2}

_IDENTIFIER = b"ODTC"
# The one group of parameters that an optimizer model has, and what it remembers of each of them.
_GROUP, _MOMENTS = "group0", ("momentum0", "momentum1")
_FLOAT32 = 1
# The numbers of the fields in ONNX Runtime's schemas ort.fbs and ort_training_checkpoint.fbs.
_CHECKPOINT = {"version": 0, "module": 1, "groups": 2}
_MODULE = {"trainable": 0, "frozen": 1}
_TENSOR = {"name": 0, "dims": 2, "type": 3, "raw": 4}
_OPTIMIZER = {"name": 0, "step": 1, "rate": 2, "states": 3}
_STATE = {"parameter": 0, "moments": 1}
# At least as many as any table has; those at the end that it does not have take no place.
_N_FIELDS = 6


@dataclass(frozen=True, eq=False)
class CheckpointFile:
    """What a checkpoint holds."""

    #: Of the file's format, one of the values of `VERSIONS`.
    version: int
    #: The parameters by name, in float32.
    trainable: dict[str, np.ndarray]
    frozen: dict[str, np.ndarray]
    #: The first and the second moment of each trainable parameter. Empty: no optimizer has made a step.
    moments: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)
    #: Of the optimizer.
    n_steps: int = 0


def release_here() -> str:
    """Return the key of `VERSIONS` that the installed ONNX Runtime reads."""
    installed = _numbers(load().__version__)
    return max((release for release in VERSIONS if _numbers(release) <= installed), key=_numbers, default="1.16")


def release_of_devices() -> str:
    """Return the key of `VERSIONS` of the installed runtime if it is a build for training, else the newest."""
    try:
        trains = "Module" in training_api()
    except RuntimeNotAvailableError:
        trains = False
    return release_here() if trains else max(VERSIONS, key=_numbers)


def version_here() -> int:
    """Return the version of checkpoints that the installed ONNX Runtime reads."""
    return VERSIONS[release_here()]


def releases(version: int) -> str:
    """Return the keys of `VERSIONS` that have a version, as text."""
    return " and ".join(release for release, known in VERSIONS.items() if known == version)


def _numbers(release):
    return [int(part) for part in release.split(".")[:2]]


def write_checkpoint(checkpoint: CheckpointFile) -> bytes:
    """Return a checkpoint as the bytes of a file."""
    import flatbuffers

    builder = flatbuffers.Builder(1024)
    parts = {"trainable": checkpoint.trainable, "frozen": checkpoint.frozen}
    offsets = {
        name: _vector(builder, [_write_tensor(builder, key, array) for key, array in sorted(arrays.items())])
        for name, arrays in parts.items()
    }
    fields = {"module": _write_table(builder, _MODULE, offsets)}
    if checkpoint.moments:
        fields["groups"] = _vector(builder, [_write_group(builder, checkpoint)])
    version = builder.PrependInt32Slot, "version", checkpoint.version
    builder.Finish(_write_table(builder, _CHECKPOINT, fields, version), _IDENTIFIER)
    return bytes(builder.Output())


def read_checkpoint(data: bytes) -> CheckpointFile:
    """Return what a file holds."""
    if data[4:8] != _IDENTIFIER:
        raise ValueError("it is no checkpoint of ONNX Runtime's on-device training.")
    try:
        return _read(data)
    except (IndexError, OverflowError, UnicodeDecodeError, TypeError, struct.error) as error:
        raise ValueError("it is damaged.") from error


def _read(data):
    from flatbuffers.encode import Get
    from flatbuffers.packer import uoffset
    from flatbuffers.table import Table

    root = _Table(Table(bytearray(data), Get(uoffset, data, 0)), _CHECKPOINT)
    version = root.number("version", "Int32Flags")
    if version not in VERSIONS.values():
        known = ", ".join(f"{v} (ONNX Runtime {releases(v)})" for v in sorted({*VERSIONS.values()}))
        raise ValueError(f"it is of version {version}; the versions {known} are known.")
    module = root.table("module", _MODULE)
    if module is None:
        raise ValueError("it has no parameters.")
    groups = root.tables("groups", _OPTIMIZER)
    moments, n_steps = {}, 0
    for group in groups:
        n_steps = group.number("step", "Int64Flags")
        for state in group.tables("states", _STATE):
            tensors = dict(_read_tensor(tensor) for tensor in state.tables("moments", _TENSOR))
            moments[state.text("parameter")] = tuple(tensors[name] for name in _MOMENTS if name in tensors)
    trainable, frozen = (dict(_read_tensor(t) for t in module.tables(name, _TENSOR)) for name in _MODULE)
    return CheckpointFile(version, trainable, frozen, {name: m for name, m in moments.items() if m}, n_steps)


class _Table:
    """A table of a flatbuffer, whose fields are read by name."""

    def __init__(self, table: Any, slots: dict[str, int]):
        self._table, self._slots = table, slots

    def _field(self, name):
        return self._table.Offset(4 + 2 * self._slots[name])

    def number(self, name, kind):
        import flatbuffers.number_types

        flags = getattr(flatbuffers.number_types, kind)
        offset = self._field(name)
        return self._table.Get(flags, offset + self._table.Pos) if offset else 0

    def text(self, name):
        offset = self._field(name)
        return self._table.String(offset + self._table.Pos).decode() if offset else ""

    def _at(self, position, slots):
        return _Table(type(self._table)(self._table.Bytes, self._table.Indirect(position)), slots)

    def table(self, name, slots):
        offset = self._field(name)
        return self._at(offset + self._table.Pos, slots) if offset else None

    def tables(self, name, slots):
        offset = self._field(name)
        if not offset:
            return []
        start = self._table.Vector(offset)
        return [self._at(start + 4 * i, slots) for i in range(self._table.VectorLen(offset))]

    def array(self, name, dtype):
        offset = self._field(name)
        if not offset:
            return np.empty(0, dtype)
        start, length = self._table.Vector(offset), self._table.VectorLen(offset)
        if start + length * np.dtype(dtype).itemsize > len(self._table.Bytes):
            raise IndexError("an array ends after the file")
        return np.frombuffer(self._table.Bytes, dtype, length, start)


def _read_tensor(tensor):
    name, shape = tensor.text("name"), tensor.array("dims", "<i8").tolist()
    raw = tensor.array("raw", np.uint8).tobytes()
    if tensor.number("type", "Int32Flags") != _FLOAT32 or len(raw) != 4 * math.prod(shape) or min(shape, default=0) < 0:
        raise ValueError(f"its parameter {name!r} is not in float32, or its values are in another file.")
    return name, np.frombuffer(raw, "<f4").astype(np.float32).reshape(shape)


def _write_group(builder, checkpoint):
    states = []
    for name, moments in sorted(checkpoint.moments.items()):
        tensors = [_write_tensor(builder, key, m) for key, m in zip(_MOMENTS, moments, strict=False)]
        fields = {"parameter": builder.CreateString(name), "moments": _vector(builder, tensors)}
        states.append(_write_table(builder, _STATE, fields))
    fields = {"name": builder.CreateString(_GROUP), "states": _vector(builder, states)}
    return _write_table(builder, _OPTIMIZER, fields, (builder.PrependInt64Slot, "step", checkpoint.n_steps))


def _write_tensor(builder, name, array):
    fields = {"raw": builder.CreateNumpyVector(np.frombuffer(np.ascontiguousarray(array, "<f4").tobytes(), np.uint8))}
    builder.StartVector(8, array.ndim, 8)
    for size in reversed(array.shape):
        builder.PrependInt64(size)
    fields["dims"] = builder.EndVector()
    fields["name"] = builder.CreateString(name)
    return _write_table(builder, _TENSOR, fields, (builder.PrependInt32Slot, "type", _FLOAT32))


def _write_table(builder, slots, fields, number=None):
    """Write a table; `number` is the method that writes a number, its field and its value."""
    builder.StartObject(_N_FIELDS)
    if number is not None:
        write, name, value = number
        write(slots[name], value, 0)
    for name, offset in fields.items():
        builder.PrependUOffsetTRelativeSlot(slots[name], offset, 0)
    return builder.EndObject()


def _vector(builder, offsets):
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
