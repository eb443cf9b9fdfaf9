"""The four files of a training on a device."""

import contextlib
import os
import pathlib

import onnx

from skort.runtime.checkpoint_file import CheckpointFile, read_checkpoint

__all__ = ["CHECKPOINT", "EVAL", "OPTIMIZER", "TRAINING", "artifact", "checkpoint_at", "model_at", "replace_files"]

TRAINING, EVAL, OPTIMIZER = "training_model.onnx", "eval_model.onnx", "optimizer_model.onnx"
CHECKPOINT = "checkpoint"


def artifact(folder: str | os.PathLike, prefix: str, name: str) -> pathlib.Path:
    """
    Return the path of one of the files.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    """
    path = pathlib.Path(folder, f"{prefix}{name}")
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(path)!r} does not exist: the folder is to have the files that save_training_artifacts writes, "
            f"with the same prefix (here {prefix!r})."
        )
    return path


def checkpoint_at(path: pathlib.Path) -> CheckpointFile:
    """
    Read a checkpoint.

    Raises
    ------
    ValueError
        As `read_checkpoint` does, with the name of the file.
    """
    try:
        return read_checkpoint(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{str(path)!r} cannot be read: {error}") from error


def model_at(path: pathlib.Path) -> onnx.ModelProto:
    """
    Read an ONNX model.

    Raises
    ------
    ValueError
        Where the file is none.
    """
    try:
        return onnx.load(path)
    except Exception as error:  # of protobuf, which is no ValueError
        raise ValueError(f"{str(path)!r} is no ONNX model, or is damaged.") from error


def replace_files(contents: dict[pathlib.Path, bytes]) -> None:
    """
    Write files beside those that are there, and rename all of them at the end: none is half written.

    Parameters
    ----------
    contents : dict of Path to bytes

    Raises
    ------
    OSError
        Where a file cannot be written: those that were there are as before.
    """
    unfinished = {path: path.with_name(f"{path.name}.tmp") for path in contents}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished[path].write_bytes(content)
        for path, temporary in unfinished.items():
            temporary.replace(path)
    except OSError as error:
        raise type(error)(f"{str(next(iter(contents)).parent)!r} cannot be written: {error}") from error
    finally:
        for temporary in unfinished.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
