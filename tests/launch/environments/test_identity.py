"""An environment is known by what it is made of, so that the launcher knows its place without asking a host."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.spec.model import Setup, Spec
from launch.environments.identity import Order, identities
from launch.errors import UsageError
from tests.support.launch.fakes import spec_of
from tests.support.launch.tiny_wheels import tiny_wheel


def spec(folder: Path, **setup: Any) -> Spec:
    """A spec whose hosts file and lock lie in ``folder``."""
    if not (folder / "my.lock").exists():
        (folder / "my.lock").write_text(tiny_wheel(folder / "wheels", "tiny"))
    return replace(spec_of("worker:0@a"), path=folder / "r.yaml", setup=Setup(**{"lock": "my.lock", **setup}))


def identity(of: Spec, python: str = "python3.7") -> str:
    return identities(of, {"a": python})["a"]


def test_without_the_key_setup_no_host_has_an_environment() -> None:
    assert identities(spec_of("worker:0@a"), {"a": "python3.7"}) == {}


def test_the_same_lock_and_python_are_the_same_environment_wherever_the_lock_lies(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    first = identity(spec(tmp_path))
    (tmp_path / "sub" / "copy.lock").write_text("# a copy\n" + (tmp_path / "my.lock").read_text())
    assert identity(spec(tmp_path, lock="sub/copy.lock")) == first
    assert identity(spec(tmp_path, wheels="wheels", index_url="https://example.org")) == first


def test_another_lock_or_python_is_another_environment(tmp_path: Path) -> None:
    before = identity(spec(tmp_path))
    assert identity(spec(tmp_path), python="python3.9") != before
    (tmp_path / "my.lock").write_text(tiny_wheel(tmp_path / "wheels", "tiny", "2.0"))
    assert identity(spec(tmp_path)) != before


def test_a_host_chooses_between_the_projects_own_locks_by_its_version_of_python(tmp_path: Path) -> None:
    request = Order(spec(tmp_path, lock=None), {"a": "/opt/bin/python"}).request("a")
    assert "tensorflow-gpu==1.15" in request.locks["3.7"].all
    assert "tensorflow==2." in request.locks["*"].all
    assert "pip==" in request.locks["*"].tools and "numpy" not in request.locks["*"].tools


@pytest.mark.parametrize(
    ("python", "package"), [("python3.7", "tensorflow-gpu==1.15"), ("/opt/python3.12", "tensorflow==2.")]
)
def test_where_the_pythons_name_tells_its_version_the_other_lock_does_not_count(
    tmp_path: Path, python: str, package: str
) -> None:
    locks = Order(spec(tmp_path, lock=None), {"a": python}).request("a").locks
    assert list(locks) == ["*"] and package in locks["*"].all


def test_with_wheels_alone_no_index_is_asked_and_with_both_the_index_has_the_rest(tmp_path: Path) -> None:
    python = {"a": "python3.7"}
    assert not Order(spec(tmp_path), python).request("a").offline
    offline = Order(spec(tmp_path, wheels="wheels"), python).request("a")
    assert offline.offline and [file.name for file in offline.files] == ["tiny-1.0-py3-none-any.whl"]
    assert offline.files[0].bytes == (tmp_path / "wheels" / "tiny-1.0-py3-none-any.whl").stat().st_size
    both = Order(spec(tmp_path, index_url="https://example.org/simple"), python, wheels=tmp_path / "wheels").request(
        "a"
    )
    assert not both.offline and both.files == offline.files


def test_a_file_without_the_key_setup_is_told_to_add_it() -> None:
    with pytest.raises(UsageError, match="expected the key setup, which names the lock file, found none; add `setup:"):
        Order(spec_of("worker:0@a"), {"a": "python3.7"})
