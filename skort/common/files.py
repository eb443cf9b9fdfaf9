"""Writing of files that are either complete or not there."""

import contextlib
import os
import pathlib
import re
import secrets
from collections.abc import Mapping

try:
    import fcntl
except ImportError:
    # Windows: an open file cannot be removed there.
    fcntl = None  # type: ignore[assignment]


def write_file(path: str | os.PathLike[str], content: bytes) -> None:
    """
    Write a file.

    An existing file, also behind a link, is replaced when the new one is complete and on the disk.
    """
    write_files({path: content})


def write_files(contents: Mapping[str | os.PathLike[str], bytes]) -> None:
    """
    Write files as `write_file` does. No file is replaced before all new ones are complete.

    What writers of these files left beside them, because their process was killed, is removed.
    """
    files = {file_at(path): content for path, content in contents.items()}
    left = [each for path in files for each in _unfinished_files(path)]
    unfinished = {path: path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp") for path in files}

    with contextlib.ExitStack() as opened:
        try:
            for path, content in files.items():
                opened.enter_context(_written(unfinished[path], content, path))
            for path, new in unfinished.items():
                new.replace(path)
        except BaseException:
            for new in unfinished.values():
                with contextlib.suppress(OSError):
                    new.unlink(missing_ok=True)
            raise
        finally:
            # After an error, too: it may have been a full disk.
            for each in left:
                _remove_abandoned(each)

    for folder in {path.parent for path in files}:
        _sync_folder(folder)


def file_at(path: str | os.PathLike[str]) -> pathlib.Path:
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


def _written(unfinished, content, path):
    """
    Write a file that will become the file at `path`; return what closes it. Errors name `path`.

    While it is open, it has a lock: nobody else removes it.
    """
    try:
        with contextlib.ExitStack() as opened:
            file = opened.enter_context(unfinished.open("xb"))
            if fcntl is not None:
                # Some network drives have no locks.
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            # Windows renames closed files only.
            return contextlib.ExitStack() if fcntl is None else opened.pop_all()
    except OSError as error:
        error.filename = str(path)
        raise


def _unfinished_files(path):
    """Return the unfinished files that `write_files` has beside a file."""
    name = re.compile(re.escape(path.name) + r"\.[0-9a-f]{8}\.tmp")
    if not os.access(path.parent, os.R_OK):
        # A folder may be written and not listed.
        return []

    return [
        each
        for each in path.parent.iterdir()
        if name.fullmatch(each.name) and each.is_file() and not each.is_symlink()
    ]


def _remove_abandoned(unfinished):
    """Remove an unfinished file if no process is writing it."""
    with contextlib.suppress(OSError):
        if fcntl is None:
            unfinished.unlink()
            return
        with unfinished.open("rb") as file:
            # An error if the writer is alive.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unfinished.unlink()


def _sync_folder(folder):
    """Write the new names of files to the disk, too, if the system can."""
    if os.name != "posix":
        return

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
