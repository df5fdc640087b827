"""A lock file is read as pip reads it, and one that pins less than every file is refused."""

import re
from pathlib import Path

import pytest

from launch.environments.identity import LockFile, read_lock
from launch.errors import UsageError
from launch.hosts.bundle import PROJECT

A, B = "a" * 64, "b" * 64


def lock(folder: Path, text: str) -> LockFile:
    (folder / "my.lock").write_text(text)
    return read_lock(folder / "my.lock")


def test_continued_lines_are_one_requirement_with_all_its_hashes(tmp_path: Path) -> None:
    read = lock(tmp_path, f"numpy==1.19.5 \\\n    --hash=sha256:{A} \\\n    --hash=sha256:{B}\n    # via tensorflow\n")
    assert read.requirements == (("numpy", f"numpy==1.19.5 --hash=sha256:{A} --hash=sha256:{B}"),)
    assert read.hashes == {A, B}


def test_comments_and_blank_lines_do_not_count(tmp_path: Path) -> None:
    plain = lock(tmp_path, f"a==1 --hash=sha256:{A}\n")
    assert lock(tmp_path, f"# by uv\n\na==1 --hash=sha256:{A}  # needed\n\n").text == plain.text


def test_pip_and_what_builds_packages_go_first(tmp_path: Path) -> None:
    read = lock(
        tmp_path, f"Setup_Tools==1 --hash=sha256:{A}\nPip==24.0 --hash=sha256:{A}\nnumpy==1 --hash=sha256:{B}\n"
    )
    assert read.tools == f"Pip==24.0 --hash=sha256:{A}\n"
    assert [name for name, _ in read.requirements] == ["setup-tools", "pip", "numpy"]


def test_extras_markers_and_addresses_are_kept(tmp_path: Path) -> None:
    text = f"a[b,c]==1 ; python_version < '3.8' --hash=sha256:{A}\nd @ https://example.org/d-1.whl --hash=sha256:{B}\n"
    assert lock(tmp_path, text).text == text


@pytest.mark.parametrize("runtime", ["tf1", "tf2"])
def test_the_projects_own_locks_are_read_whole(runtime: str) -> None:
    path = PROJECT / "requirements" / f"{runtime}.lock"
    read = read_lock(path)
    assert {"pip", "setuptools", "numpy"} <= {name for name, _ in read.requirements}
    assert len(read.hashes) == len(set(re.findall("sha256:([0-9a-f]+)", path.read_text())))


@pytest.mark.parametrize("line", ["numpy>=1.0", "numpy==1.0", "-r other.txt", "--extra-index-url https://x", "-e ."])
def test_a_line_that_pins_no_file_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError) as refused:
        lock(tmp_path, f"# head\na==1 \\\n  --hash=sha256:{A}\n{line}\n")
    assert f"my.lock:4: expected NAME==VERSION --hash=sha256:…, found {line!r}" in str(refused.value)
    assert ("setup.index_url" in str(refused.value)) == line.startswith("-")


def test_a_lock_that_is_not_there_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a lock file at .*/none\.lock, found: No such file"):
        read_lock(tmp_path / "none.lock")
