"""What every test of the launcher's side gets."""

import gc
import io
import os
import signal
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Iterator, List, Set, Tuple

import pytest

from launch.agent.linux.processes import Process, command_line, signal_process
from tests.support.launch.launcher import Launcher
from tests.support.launch.machine import living_under, pids
from tests.support.training.forks import end_servers
from tests.support.waiting import eventually


@pytest.fixture(autouse=True, scope="module")
def no_process_of_training_tests() -> None:
    """Here tests look at the children of this process, and end them."""
    end_servers()


DYING_S = 20.0  # a process that was killed is still there for a moment, on a busy machine for longer


def dying(folder: Path, before: Set[int]) -> List[Process]:
    """Return what still lives under ``folder``, but for ``before``, after killed processes have had time to go.

    To look at all processes takes 10 ms, for each of thousands of tests.
    """
    with suppress(AssertionError):
        eventually("no process of the test", lambda: not living_under(folder, pids() - before), DYING_S)
    return living_under(folder, pids() - before)


@pytest.fixture(autouse=True)
def nothing_lives_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a process of its folder behind, and end the process."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    folder: Path = request.getfixturevalue("tmp_path")
    before = pids()
    yield
    left = dying(folder, before)
    names = [f"{process.pid} ({command_line(process.pid)})" for process in left]
    for process in left:
        signal_process(process.pid, process.start, signal.SIGKILL)
    assert not names, f"left behind: {', '.join(names)}"


def open_files() -> Set[Tuple[str, str]]:
    """Each open file of this process: its number, and its path or the number of its socket."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the folder itself, which is closed again
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_open() -> Iterator[None]:
    """Fail a module that leaves a socket or a file open: Python would report it later, in the output of another test.

    To search the whole heap takes a third of a second: only a module that has more files open than before gets it.
    """
    before = open_files()
    yield
    if open_files() <= before:
        return
    printed = io.StringIO()
    with redirect_stderr(printed):
        gc.collect()
    assert "ResourceWarning" not in printed.getvalue(), printed.getvalue()


@pytest.fixture
def launch(tmp_path: Path) -> Launcher:
    """``launch("up", "-d")``: the launcher on a hosts file of the test's own."""
    return Launcher(tmp_path)
