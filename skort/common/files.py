"""Files that are whole or not there."""

import contextlib
import os
import pathlib
import secrets
from collections.abc import Mapping

__all__ = ["file_at", "write_file", "write_files"]


def write_file(path: str | os.PathLike, content: bytes) -> None:
    """
    Write a file; an existing one is replaced when the new one is whole and on the disk.

    Where this fails, the old file is as it was, and nothing is left beside it.

    Parameters
    ----------
    path : str or path-like
        A symbolic link stays one: the file that it points to is replaced.
    content : bytes

    Raises
    ------
    OSError
        Where the folder does not exist or cannot be written, the disk is full, or `path` is a folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skort.common.files import write_file
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_file(folder / "numbers", b"123")
    >>> (folder / "numbers").read_bytes()
    b'123'
    """
    write_files({path: content})


def write_files(contents: Mapping[str | os.PathLike, bytes]) -> None:
    """
    Write files as `write_file` does: none is replaced before all new ones are whole.

    Parameters
    ----------
    contents : dict of path to bytes

    Raises
    ------
    OSError
        As `write_file` does.
    """
    files = {file_at(path): content for path, content in contents.items()}
    unfinished = {path: path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp") for path in files}
    try:
        for path, content in files.items():
            _write(unfinished[path], content, path)
        for path, new in unfinished.items():
            new.replace(path)
    except BaseException:
        for new in unfinished.values():
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
        raise
    for folder in {path.parent for path in files}:
        _sync_folder(folder)


def file_at(path: str | os.PathLike) -> pathlib.Path:
    """
    Return the path of a file that can be there.

    Raises
    ------
    FileNotFoundError
        Where its folder does not exist.
    IsADirectoryError
        Where it is a folder.
    ValueError
        Where it is no path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"The name of a file must be a str or path-like, got {path!r}.")
    path = pathlib.Path(path).resolve()
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{str(path)!r} cannot be written: the folder {str(path.parent)!r} does not exist.")
    return path


def _write(unfinished, content, path):
    """Write a file that is to become the one at `path`, which errors name."""
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(path)
        raise


def _sync_folder(folder):
    """Put the new name of a file on the disk, too, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
