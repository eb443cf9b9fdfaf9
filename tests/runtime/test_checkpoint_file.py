"""Checkpoints, compared with those that ONNX Runtime reads and writes itself."""

import numpy as np
import pytest

from skort.runtime.checkpoint_file import (
    VERSIONS,
    CheckpointFile,
    read_checkpoint,
    version_here,
    with_checksum,
    write_checkpoint,
)
from skort.runtime.installed import training_api

ARRAYS = {
    "coef": np.arange(6, dtype=np.float32).reshape(2, 3),
    "intercept": np.array([7], dtype=np.float32),
}
FROZEN = {"scale": np.array([[0.5]], dtype=np.float32)}
MOMENTS = {name: (array + 1, array + 2) for name, array in ARRAYS.items()}


def same(first, second):
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
        assert second[name].dtype == np.float32


@pytest.mark.parametrize("version", sorted({*VERSIONS.values()}))
def test_what_is_written_is_read(version):
    checkpoint = CheckpointFile(version, ARRAYS, FROZEN, MOMENTS, 12)
    read = read_checkpoint(write_checkpoint(checkpoint))
    assert (read.version, read.n_steps) == (version, 12)
    same(ARRAYS, read.trainable)
    same(FROZEN, read.frozen)
    assert read.moments.keys() == MOMENTS.keys()
    for name, pair in MOMENTS.items():
        np.testing.assert_array_equal(np.stack(read.moments[name]), np.stack(pair))


@pytest.mark.skipif("Module" not in training_api(), reason="this runtime is no build for training")
def test_onnx_runtime_reads_it_and_writes_the_same(tmp_path):
    from onnxruntime.capi import _pybind_state

    version = version_here()
    (tmp_path / "ours").write_bytes(write_checkpoint(CheckpointFile(version, ARRAYS, FROZEN)))
    state = _pybind_state.load_checkpoint(str(tmp_path / "ours"))
    assert sorted(state.parameter_names()) == ["coef", "intercept", "scale"]
    for name, array in {**ARRAYS, **FROZEN}.items():
        parameter = state.get_parameter(name)
        np.testing.assert_array_equal(parameter.data.numpy(), array)
        assert parameter.requires_grad == (name in ARRAYS)
    _pybind_state.save_checkpoint(state, str(tmp_path / "theirs"), False)
    theirs = read_checkpoint((tmp_path / "theirs").read_bytes())
    assert theirs.version == version
    same(ARRAYS, theirs.trainable)
    same(FROZEN, theirs.frozen)


def test_what_cannot_be_read_is_said():
    good = write_checkpoint(CheckpointFile(2, ARRAYS, FROZEN))
    with pytest.raises(ValueError, match="it is no checkpoint of ONNX Runtime's"):
        read_checkpoint(b"something else")
    with pytest.raises(ValueError, match=r"it is damaged|is not in float32, or its values"):
        read_checkpoint(good[: len(good) // 2])
    # The values of the last tensor, whose vector begins with the number of its bytes.
    values = np.arange(6, dtype=np.float32).tobytes()
    longer = good.replace(np.uint32(24).tobytes() + values, np.uint32(2**20).tobytes() + values)
    with pytest.raises(ValueError, match="it is damaged: its checksum is that of other bytes"):
        read_checkpoint(longer)
    # As a device writes it, without a checksum.
    longer = longer[: -len(with_checksum(b""))]
    with pytest.raises(ValueError, match=r"^it is damaged\.$"):
        read_checkpoint(longer)
    with pytest.raises(
        ValueError, match=r"it is of version 3; the versions 1 \(ONNX Runtime 1.16 and 1.17\), 2 "
    ):
        read_checkpoint(write_checkpoint(CheckpointFile(3, ARRAYS, FROZEN)))


def test_no_flipped_bit_gives_other_values():
    good = write_checkpoint(CheckpointFile(2, ARRAYS, FROZEN, MOMENTS, 12))
    n_refused = 0
    for place in range(len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 64
        try:
            read = read_checkpoint(bytes(damaged))
        except ValueError:
            n_refused += 1
            continue
        # In the mark of the checksum.
        same(ARRAYS, read.trainable)
        same(FROZEN, read.frozen)
        assert read.n_steps == 12
    assert n_refused >= len(good) - len(with_checksum(b""))


def test_a_checkpoint_of_a_device_has_no_checksum_and_is_read():
    content = write_checkpoint(CheckpointFile(2, ARRAYS, FROZEN))[: -len(with_checksum(b""))]
    same(ARRAYS, read_checkpoint(content).trainable)
    assert with_checksum(content) == write_checkpoint(CheckpointFile(2, ARRAYS, FROZEN))
