"""A small file is replaced as a whole, or in place where there is no room for a second one."""

from pathlib import Path

import pytest

from cluster.protocol.shared_files import new_folder, replace_file, reserve_file


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


def test_a_new_folder_has_its_name_when_it_is_filled_and_is_gone_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "served"
    with new_folder(path) as made:
        (made / "a").write_text("b")
        assert not path.exists()
    assert (path / "a").read_text() == "b" and [each.name for each in path.parent.iterdir()] == ["served"]
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "other"):
        raise ZeroDivisionError
    with pytest.raises(OSError), new_folder(path):
        pass
    assert [each.name for each in tmp_path.rglob("*")] == ["deep", "served", "a"]
