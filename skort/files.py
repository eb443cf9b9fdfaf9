"""Files that are whole or not there."""

import os
import pathlib
import secrets

__all__ = ["write_file"]


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
    >>> from skort.files import write_file
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_file(folder / "numbers", b"123")
    >>> (folder / "numbers").read_bytes()
    b'123'
    """
    path = pathlib.Path(path).resolve()
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Give the name of a file.")
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with unfinished.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder):
    """Put the new name of a file on the disk, too, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
