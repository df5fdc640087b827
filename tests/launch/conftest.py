"""What every test of the launcher's side gets."""

import gc
import io
import signal
import time
from contextlib import redirect_stderr
from pathlib import Path
from typing import Iterator, List

import pytest

from launch.agent.linux.processes import Process, command_line, signal_process
from tests.support.launch.launcher import Launcher
from tests.support.launch.machine import living_under

DYING_S = 5.0  # a process that was killed is still there for a moment


def dying(folder: Path) -> List[Process]:
    """What still lives under ``folder`` after processes that were killed have had time to go."""
    until = time.monotonic() + DYING_S
    while living_under(folder) and time.monotonic() < until:
        time.sleep(0.02)
    return living_under(folder)


@pytest.fixture(autouse=True)
def nothing_lives_on(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that leaves a process of its folder behind has failed; the process is ended."""
    folder: Path = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else Path("/nowhere")
    yield
    left = dying(folder)
    names = [f"{process.pid} ({command_line(process.pid)})" for process in left]
    for process in left:
        signal_process(process.pid, process.start, signal.SIGKILL)
    assert not names, f"left behind: {', '.join(names)}"


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_open() -> Iterator[None]:
    """A module that leaves a socket or a file open has failed: Python tells of it later, in what another test reads."""
    yield
    told = io.StringIO()
    with redirect_stderr(told):
        gc.collect()
    assert "ResourceWarning" not in told.getvalue(), told.getvalue()


@pytest.fixture
def launch(tmp_path: Path) -> Launcher:
    """``launch("up", "-d")``: the launcher on a hosts file of the test's own."""
    return Launcher(tmp_path)
