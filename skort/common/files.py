"""Writing of files that are either complete or not there."""

import contextlib
import os
import pathlib
import secrets
from collections.abc import Mapping


def write_file(path: str | os.PathLike, content: bytes) -> None:
    """
    Write a file.

    An existing file, also behind a link, is replaced when the new one is complete and on the disk.
    """
    write_files({path: content})


def write_files(contents: Mapping[str | os.PathLike, bytes]) -> None:
    """Write files as `write_file` does. No file is replaced before all new ones are complete."""
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
    """Return the absolute path of a file; raise an error if the file cannot be written."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"The name of a file must be a str or path-like, got {path!r}.")

    path = pathlib.Path(path).resolve()
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{str(path)!r} cannot be written: the folder {str(path.parent)!r} does not exist."
        )
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(
            f"{str(path)!r} cannot be written: the folder {str(path.parent)!r} is "
            "read-only for you."
        )

    return path


def _write(unfinished, content, path):
    """Write a file that will become the file at `path`. Errors name `path`."""
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        error.filename = str(path)
        raise


def _sync_folder(folder):
    """Write the new names of files to the disk, too, if the system can."""
    if os.name != "posix":
        return

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
