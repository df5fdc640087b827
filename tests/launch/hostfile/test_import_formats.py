"""Hosts as MPI, Horovod and DeepSpeed write them are read, and what cannot be is all listed."""

from pathlib import Path
from typing import Any, List, Tuple

import pytest

from cluster.errors import SpecError
from launch.hostfile.import_formats import Listed, from_file, from_text


def pairs(listed: List[Listed]) -> List[Tuple[str, Any]]:
    return [each[:2] for each in listed]


def read(folder: Path, *lines: str) -> List[Listed]:
    (folder / "hf").write_text("\n".join(lines) + "\n")
    return from_file(folder / "hf")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpu01 slots=4", [("gpu01", 4)]),
        ("gpu01   slots = 4  # two boards", [("gpu01", 4)]),
        ("gpu01 slots=4 max_slots=8", [("gpu01", 4)]),
        ("gpu01 max-slots=8 slots=4", [("gpu01", 4)]),
        ("gpu01:4", [("gpu01", 4)]),
        ("gpu01", [("gpu01", None)]),
        ("10.0.0.1 slots=1", [("10.0.0.1", 1)]),
        ("fd00::1 slots=2", [("fd00::1", 2)]),
        ("[fd00::1]:2", [("fd00::1", 2)]),
        ("gpu[01-02] slots=4", [("gpu01", 4), ("gpu02", 4)]),
    ],
)
def test_a_line_of_a_host_file_is_a_host_and_its_slots(tmp_path: Path, line: str, expected: List[Any]) -> None:
    assert pairs(read(tmp_path, "# the head", "", line)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a slots=4", "b slots=2", "a slots=2"], [("a", 6), ("b", 2)]),
        (["a", "a", "b"], [("a", 2), ("b", 1)]),  # a line is a slot, as in a machine file of MPICH
        (["a slots=2", "a", "b"], [("a", 3), ("b", 1)]),
        (["n[1-2] slots=2", "n1:1"], [("n1", 3), ("n2", 2)]),
        (["a slots=4", "b"], [("a", 4), ("b", None)]),
    ],
)
def test_the_slots_of_a_repeated_host_add_up(tmp_path: Path, lines: List[str], expected: List[Any]) -> None:
    assert pairs(read(tmp_path, *lines)) == expected


@pytest.mark.parametrize(
    ("line", "user"),
    [
        ("me@gpu01 slots=4", "me"),
        ("me@gpu01:4", "me"),
        ("gpu01 slots=4 user=me", "me"),
        ("gpu01 slots=4 username=me", "me"),
        ("a.b@corp@gpu01:4", "a.b@corp"),  # ssh, too, takes the last @
        ("CORP\\me@gpu01:4", "CORP\\me"),
    ],
)
def test_a_line_may_name_a_user(tmp_path: Path, line: str, user: str) -> None:
    assert read(tmp_path, line, line) == [Listed("gpu01", 8, user)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("gpu01 slots=four", "expected a number of slots from 1 to 1024, found 'four'"),
        ("gpu01 slots=0", "expected a number of slots from 1 to 1024, found '0'"),
        ("gpu01 slots", "expected a number of slots from 1 to 1024, found ''"),
        ("gpu01:", "expected a number of slots from 1 to 1024, found ''"),
        ("gpu01:²", "expected a number of slots from 1 to 1024, found '²'"),
        ("gpu01 4", "expected HOST slots=N, found '4'"),
        ("gpu01 user=-me", "expected HOST slots=N, found 'user=-me'"),
        ("gpu01 user=", "expected HOST slots=N, found 'user='"),
        ("-me@gpu01", "expected a host without a user, found '-me@gpu01'"),
        ("@gpu01", "expected a host without a user, found '@gpu01'"),
        ("me@gpu00", "expected one user for gpu00, found none and me"),
        ("gpu00 slots=1023", "expected a number of slots from 1 to 1024, found 1025 for gpu00 in all lines"),
        ("gpu01,gpu02 slots=4", "expected one host or one range, found 'gpu01,gpu02'"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_its_number(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        read(tmp_path, "gpu00 slots=2", "# a comment", line)
    assert str(refused.value).startswith(f"{tmp_path}/hf:3:1: {problem}")


def test_every_bad_line_is_listed(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        read(tmp_path, "a slots=x", "b slots=1", "c slots=y")
    assert [problem.line for problem in refused.value.problems] == [1, 3]


def test_a_file_that_cannot_be_read_or_names_no_host_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="expected a text file that can be read, found no such file or directory"):
        from_file(tmp_path / "none")
    (tmp_path / "latin").write_bytes("höst\n".encode("latin-1"))
    with pytest.raises(SpecError, match="expected a text file that can be read, found bytes that are not utf-8"):
        from_file(tmp_path / "latin")
    with pytest.raises(SpecError, match="hf: expected at least one host, found none"):
        read(tmp_path, "# nothing")


def test_horovods_list_is_read_and_refused_alike() -> None:
    found = pairs(from_text("gpu01:4,gpu[02,04]:2,gpu05"))
    assert found == [("gpu01", 4), ("gpu02", 2), ("gpu04", 2), ("gpu05", None)]
    assert from_text("me@a:1,b:1,me@a:2") == [Listed("a", 3, "me"), Listed("b", 1)]
    with pytest.raises(SpecError, match=r"^--hosts: expected one user for a, found me and you$"):
        from_text("me@a:1,you@a:2")
    with pytest.raises(SpecError, match=r"^--hosts: expected at least one host, found none$"):
        from_text(" , ")


def test_a_blank_piece_of_a_list_is_no_host() -> None:
    assert pairs(from_text("gpu01:4, ,gpu02:4, ")) == [("gpu01", 4), ("gpu02", 4)]


def test_a_file_of_windows_is_read(tmp_path: Path) -> None:
    (tmp_path / "hf").write_bytes(b"\xef\xbb\xbfgpu01 slots=2\r\ngpu02 slots=2\r\n")
    assert pairs(from_file(tmp_path / "hf")) == [("gpu01", 2), ("gpu02", 2)]
