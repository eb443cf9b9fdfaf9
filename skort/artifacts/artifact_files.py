"""The four files of a training on a device."""

import os
import pathlib

import onnx

from skort.runtime.checkpoint_file import CheckpointFile, read_checkpoint

TRAINING, EVAL, OPTIMIZER = "training_model.onnx", "eval_model.onnx", "optimizer_model.onnx"
CHECKPOINT = "checkpoint"


def check_folder(folder: str | os.PathLike, prefix: str) -> None:
    """Raise an error where there cannot be such files."""
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"folder must be a str or path-like, got {folder!r}.")
    if not isinstance(prefix, str):
        raise ValueError(f"prefix must be a str, got {prefix!r}.")


def artifact(folder: str | os.PathLike, prefix: str, name: str) -> pathlib.Path:
    """Return the path of one of the files."""
    check_folder(folder, prefix)
    path = pathlib.Path(folder, f"{prefix}{name}")
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist: give the folder that save_training_artifacts wrote to, and the same "
            f"prefix (here {prefix!r})."
        )
    return path


def checkpoint_at(path: pathlib.Path) -> CheckpointFile:
    """Read a checkpoint."""
    try:
        return read_checkpoint(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def model_at(path: pathlib.Path) -> onnx.ModelProto:
    """Read an ONNX model."""
    try:
        return onnx.load(path)
    except Exception as error:  # of protobuf, which is no ValueError
        raise ValueError(f"{str(path)!r} is not an ONNX model, or it is damaged.") from error
