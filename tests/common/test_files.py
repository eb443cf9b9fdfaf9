import os
import pathlib
import subprocess
import sys

import pytest

import skort.common.files
from skort.common.files import write_file, write_files

resource = pytest.importorskip("resource", reason="POSIX limits the size of files")


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "model.onnx"
    write_file(path, b"old")
    write_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_a_symbolic_link_stays_one(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    write_file(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_file(tmp_path, b"new")


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_file(tmp_path / "missing" / "file", b"new")


def test_the_permissions_are_those_of_any_new_file(tmp_path):
    write_file(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def _run(code, *arguments, preexec):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    # A measurement of coverage would write its own file, under the limits of the test.
    environment = {name: each for name, each in os.environ.items() if "COVERAGE" not in name}
    return subprocess.run(
        command,
        preexec_fn=preexec,
        capture_output=True,
        text=True,
        cwd=pathlib.Path.cwd(),
        env=environment,
    )


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from skort.common.files import write_file; write_file(sys.argv[1], bytes(100_000))"
    )
    run = _run(
        code, path, preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
    )
    assert "OSError: [Errno 27] File too large" in run.stderr
    assert "Exception ignored" not in run.stderr
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_folder_that_the_user_may_not_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    tmp_path.chmod(0o555)
    code = (
        "import sys, skort.common.files, os; os.setuid(65534); "
        "skort.common.files.write_file(sys.argv[1], b'new')"
    )
    # The folders above belong to root alone.
    parents = [p for p in tmp_path.parents if p.stat().st_mode & 0o005 != 0o005]
    modes = [p.stat().st_mode for p in parents]
    for parent in parents:
        parent.chmod(0o755)
    try:
        run = _run(code, path, preexec=None)
    finally:
        for parent, mode in zip(parents, modes, strict=True):
            parent.chmod(mode)
    assert "PermissionError" in run.stderr and "is read-only for you" in run.stderr
    assert path.read_bytes() == b"old"


def test_several_files_are_replaced_or_none(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    write_files({first: b"1", second: b"2"})
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    with pytest.raises(OSError, match="below"):
        write_files({first: b"3", first / "below a file": b"4"})
    assert first.read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


@pytest.mark.parametrize("has_locks", [True, False])
def test_what_killed_writers_left_is_removed(tmp_path, monkeypatch, has_locks):
    if not has_locks:
        monkeypatch.setattr(skort.common.files, "fcntl", None)
    path = tmp_path / "c.npz"
    others = ["c.npz.backup.tmp", "d.npz.01234567.tmp", "c.npz.01234567", "c.npz.0123456.tmp"]
    for name in [*others, "c.npz.01234567.tmp", "c.npz.89abcdef.tmp"]:
        (tmp_path / name).write_bytes(b"half")
    write_file(path, b"new")
    assert {each.name for each in tmp_path.iterdir()} == {"c.npz", *others}
    assert path.read_bytes() == b"new"


def test_a_killed_process_leaves_a_file_until_the_next_writer(tmp_path):
    path = tmp_path / "file"
    code = (
        "import os, signal, sys, skort.common.files as files\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_file(sys.argv[1], b'half')"
    )
    _run(code, path, preexec=None)
    (left,) = tmp_path.iterdir()
    assert left.suffix == ".tmp"
    write_file(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_of_a_writer_at_work_stays(tmp_path, monkeypatch):
    path = tmp_path / "file"
    sync = os.fsync
    inner = []

    def other_writer(descriptor):
        if not inner:
            inner.append(None)
            write_file(path, b"other")
            assert path.read_bytes() == b"other"
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", other_writer)
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_removes_what_others_left(tmp_path, monkeypatch):
    path = tmp_path / "file"
    (tmp_path / "file.01234567.tmp").write_bytes(b"half")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_file(path, b"new")
    assert not list(tmp_path.iterdir())
