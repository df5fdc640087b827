"""An SSH configuration as it is read: included files in their place, and nothing that was not named."""

from pathlib import Path
from typing import Dict

import pytest

from launch.remote import openssh


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def lookup(home: Path, host: str, **files: str) -> Dict[str, str]:
    """What ``config`` says of a host; the other files lie beside it."""
    for name, text in files.items():
        (home / ".ssh" / name).write_text(text)
    found = openssh.read_config("~/.ssh/config").lookup(host)
    return {key: value for key, value in found.items() if key != "hostname"}


def test_a_file_that_is_included_counts_where_it_stands(home: Path) -> None:
    said = {"config": "Include on?\nHost *\n  User later\n", "one": "Host gpu*\n  User first\n  Port 2200\n"}
    assert lookup(home, "gpu01", **said) == {"user": "first", "port": "2200"}
    assert lookup(home, "cpu01", **said) == {"user": "later"}


def test_what_follows_an_include_belongs_to_the_section_before_it(home: Path) -> None:
    said = {"config": "Include one\nUser everybody\nHost b\n  Include two\n  Port 9\n", "one": "Host a\n", "two": ""}
    assert lookup(home, "c", **said) == {"user": "everybody"}
    assert lookup(home, "b", **said) == {"user": "everybody", "port": "9"}


def test_files_that_include_each_other_come_to_an_end(home: Path) -> None:
    assert lookup(home, "a", config="Include config\nUser me\n") == {"user": "me"}


@pytest.mark.parametrize("path", [None, "~/.ssh/none"])
def test_where_there_is_no_file_nothing_is_said(home: Path, path: str) -> None:
    (home / ".ssh" / "config").write_text("Host *\n  User me\n")
    assert openssh.read_config(path).lookup("a") == {"hostname": "a"}
