"""The stacks of a process that goes on: asked for only where it waits to be asked."""

import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest

from cluster.pulse import STACKS
from launch.agent.processes import inspect
from launch.agent.stacks import Written, catches, of_living
from tests.launch.machine import eventually

WRITES = """
import faulthandler, signal, sys, time
faulthandler.register(signal.SIGQUIT, open(sys.argv[1], "w"), all_threads=True)
def waiting_here(): time.sleep(1000)
waiting_here()
"""
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Processes that end with the test."""
    began = []

    def start(*argv: str) -> "subprocess.Popen[bytes]":
        began.append(subprocess.Popen(argv))
        return began[-1]

    yield start
    for process in began:
        process.kill()
        process.wait()


def test_a_process_that_waits_for_it_writes_its_stacks_and_goes_on(start: Start, tmp_path: Path) -> None:
    process = start(sys.executable, "-c", WRITES, str(tmp_path / STACKS))
    eventually("its handler", lambda: catches(process.pid, 3))
    eventually("its stacks", lambda: "in waiting_here" in of_living(process.pid, tmp_path))
    assert process.poll() is None


def test_one_that_does_not_is_not_signalled(start: Start, tmp_path: Path) -> None:
    process = start("sleep", "1000")
    assert of_living(process.pid, tmp_path) == ""
    (tmp_path / STACKS).write_text("of another process")
    assert of_living(process.pid, tmp_path) == ""
    assert process.poll() is None and inspect(process.pid) is not None


def test_what_was_written_when_others_asked_does_not_count(tmp_path: Path) -> None:
    (tmp_path / STACKS).write_text("old ")
    written = Written(tmp_path)
    assert not written.rests() and written.text() == ""
    with open(str(tmp_path / STACKS), "a") as file:
        file.write("new")
    assert [written.rests(), written.rests(), written.text()] == [False, True, "new"]
