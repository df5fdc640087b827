"""The stacks of a process, before it is killed or while it goes on: asked for only where it waits to be asked."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest

from cluster.protocol.heartbeat import STACKS
from launch.agent.linux.processes import inspect
from launch.agent.tasks.stacks import LONGEST, Stacks, Written, catches, request_stacks
from tests.support.waiting import eventually

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
    eventually("its stacks", lambda: "in waiting_here" in request_stacks(process.pid, tmp_path))
    assert process.poll() is None


def test_one_that_does_not_is_not_signalled(start: Start, tmp_path: Path) -> None:
    process = start("sleep", "1000")
    assert request_stacks(process.pid, tmp_path) == ""
    (tmp_path / STACKS).write_text("of another process")
    assert request_stacks(process.pid, tmp_path) == ""
    assert process.poll() is None and inspect(process.pid) is not None


def test_what_was_written_when_others_asked_does_not_count(tmp_path: Path) -> None:
    (tmp_path / STACKS).write_text("old ")
    written = Written(tmp_path)
    assert not written.is_at_rest() and written.text() == ""
    with open(str(tmp_path / STACKS), "a") as file:
        file.write("new")
    assert [written.is_at_rest(), written.is_at_rest(), written.text()] == [False, True, "new"]


def test_a_stopped_process_is_let_go_on_to_write_them_before_it_is_killed(start: Start, tmp_path: Path) -> None:
    process = start(sys.executable, "-c", WRITES, str(tmp_path / STACKS))
    eventually("its handler", lambda: catches(process.pid, 3))
    os.kill(process.pid, signal.SIGSTOP)
    eventually("it is stopped", lambda: inspect(process.pid).state == "T")  # type: ignore[union-attr]
    stacks = Stacks(process.pid, tmp_path)
    eventually("its stacks", stacks.are_written)
    assert stacks.text().startswith(f"pid {process.pid}, state T:\n")
    assert 'File "<string>", line ' in stacks.text()


def test_of_one_that_writes_none_there_is_what_the_kernel_says(start: Start, tmp_path: Path) -> None:
    process = start("sleep", "1000")
    stacks = Stacks(process.pid, tmp_path)
    assert not stacks.are_written() and process.poll() is None
    assert stacks.text().startswith(f"pid {process.pid}, state ")


def test_of_one_that_is_gone_there_is_nothing(start: Start, tmp_path: Path) -> None:
    gone = start("true")
    gone.wait()
    assert Stacks(gone.pid, tmp_path).text() == ""


def test_of_long_stacks_the_end_is_kept(tmp_path: Path) -> None:
    written = Written(tmp_path)
    (tmp_path / STACKS).write_text("x" * LONGEST + "end")
    assert len(written.text()) == LONGEST and written.text().endswith("end")
