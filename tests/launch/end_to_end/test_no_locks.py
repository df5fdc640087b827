"""On a file system without locks nothing starts, and every verb says so or works; real processes without flock."""

import sys

import pytest

from tests.support.launch.launcher import Launcher, finish

LOCKLESS = [
    sys.executable, "-c",
    "from tests.launch.end_to_end import no_locks; no_locks.forbid(); from launch import cli; cli.main()",
]  # fmt: skip


@pytest.mark.parametrize(("verb", "code"), [("up", 3), ("check", 4)])
def test_what_would_start_a_run_names_the_host_the_folder_and_what_to_do(
    launch: Launcher, verb: str, code: int
) -> None:
    launch.write()
    ran = finish(launch.begin(verb, program=LOCKLESS))
    said = ran.stdout + ran.stderr
    assert ran.returncode == code and "Traceback" not in said
    assert "localhost: " in said and "expected a file system with locks, found one without (flock: " in said
    assert "set the key workdir to a folder on a local disk" in " ".join(said.split())
    assert launch.left() == []


@pytest.mark.parametrize(("verb", "code"), [("status", 2), ("down", 0), ("sweep", 0)])
def test_what_looks_or_ends_works_without_locks(launch: Launcher, verb: str, code: int) -> None:
    launch.write()
    ran = finish(launch.begin(verb, program=LOCKLESS))
    assert ran.returncode == code and "Traceback" not in ran.stderr
