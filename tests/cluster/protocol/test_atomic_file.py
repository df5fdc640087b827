"""A small file is replaced as a whole, or in place where there is no room for a second one."""

from pathlib import Path

import pytest

from cluster.protocol.shared_files import replace_file, reserve_file


def test_a_file_is_replaced_as_a_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    for text in ("first", "second, and longer", "3"):
        replace_file(tmp_path / "note", text)
        assert (tmp_path / "note").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_without_room_for_a_second_file_the_first_is_overwritten(tmp_path: Path) -> None:
    reserve_file(tmp_path / "note", 4096)
    (tmp_path / ".note.partial").mkdir()  # so that none can be written
    replace_file(tmp_path / "note", "short")
    assert (tmp_path / "note").read_text() == "short"


def test_where_neither_can_be_done_the_reason_is_raised(tmp_path: Path) -> None:
    (tmp_path / ".note.partial").mkdir()
    with pytest.raises(OSError):
        replace_file(tmp_path / "note", "short")
