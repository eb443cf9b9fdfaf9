"""Files written beside and renamed."""

import pytest

from skort.artifacts.files import replace_files


def test_all_files_are_replaced_or_none(tmp_path):
    first, second = tmp_path / "first", tmp_path / "folder" / "second"
    replace_files({first: b"1", second: b"2"})
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    blocked = first / "below a file"
    with pytest.raises(OSError, match="cannot be written"):
        replace_files({first: b"3", blocked: b"4"})
    assert first.read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["first", "folder", "second"]
