"""A process that waits for its turn writes nothing else, begins once, and ends where it gets none."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from typing import Dict, Iterator, List

import pytest

from cluster.protocol import standby
from cluster.protocol.heartbeat import PULSE, Heartbeat
from cluster.protocol.outcome import Reporter
from cluster.protocol.standby import READY, STANDBY, Standby, clear, is_ready
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S, eventually


@pytest.fixture(autouse=True)
def _short_lived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats end with the process, and this test's own process goes on."""
    monkeypatch.setattr(Heartbeat, "begin", lambda heartbeat: (heartbeat._folder / PULSE).touch())


class Waiting:
    """A process that waits for a line, or for the end of its input."""

    def __init__(self, folder: Path):
        self._lines: Queue[bytes] = Queue()
        self.left = threading.Event()
        self.reporter = Reporter(folder)
        self.standby = Standby(True, folder, self.reporter, self._lines.get, self.left.set)

    def give_turn(self) -> None:
        """Write the line."""
        self._lines.put(b"\n")

    def close(self) -> None:
        """End the input."""
        self._lines.put(b"")


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    """A process that waits, and has a folder."""
    made = Waiting(tmp_path)
    yield made
    made.close()


def has_pulse(folder: Path) -> bool:
    return (folder / PULSE).exists()


def test_a_process_in_its_turn_begins_at_once_and_never_waits(tmp_path: Path) -> None:
    standby = Standby(False, tmp_path, Reporter(tmp_path))
    standby.wait()
    assert has_pulse(tmp_path) and not standby.waits and not is_ready(tmp_path)


def test_a_process_that_waits_begins_with_the_line_and_not_before(tmp_path: Path, waiting: Waiting) -> None:
    done: List[str] = []

    def wait() -> None:
        waiting.standby.wait()
        waiting.standby.wait()
        done.append("begun")

    main = threading.Thread(target=wait, daemon=True)
    main.start()
    eventually("its file", lambda: is_ready(tmp_path))
    assert waiting.standby.waits and not has_pulse(tmp_path) and not done
    waiting.give_turn()
    main.join(PATIENCE_S)
    assert done == ["begun"] and not waiting.standby.waits and has_pulse(tmp_path)
    clear(tmp_path)
    clear(tmp_path)
    assert not is_ready(tmp_path)


def test_a_turn_that_comes_before_the_process_is_ready_lets_it_report_at_once(tmp_path: Path, waiting: Waiting) -> None:
    waiting.give_turn()
    eventually("its turn", lambda: not waiting.standby.waits)
    assert has_pulse(tmp_path)
    waiting.standby.wait()
    assert not is_ready(tmp_path)


@pytest.mark.parametrize("is_early", [True, False], ids=["before-it-is-ready", "then"])
def test_the_time_before_its_turn_is_in_no_record(
    is_early: bool, tmp_path: Path, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: List[str] = []
    monkeypatch.setattr(waiting.reporter.recorder, "begin", begun.append)
    if is_early:
        waiting.give_turn()
        eventually("its turn", lambda: not waiting.standby.waits)
    main = threading.Thread(target=waiting.standby.wait, daemon=True)
    main.start()
    if not is_early:
        eventually("its file", lambda: is_ready(tmp_path))
        waiting.give_turn()
    main.join(PATIENCE_S)
    waiting.standby.wait()
    assert begun == ["starting"]


def test_without_a_turn_the_process_ends(tmp_path: Path, waiting: Waiting) -> None:
    waiting.close()
    assert waiting.left.wait(PATIENCE_S)
    assert waiting.standby.waits and not has_pulse(tmp_path)


@pytest.mark.parametrize("waits", [True, False])
def test_the_environment_decides_and_what_the_task_starts_does_not_wait(
    tmp_path: Path, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: Queue[bytes] = Queue()
    monkeypatch.setattr(standby, "_own_input", lambda: lines.get)
    environ: Dict[str, str] = {"LAUNCH_TASK_DIR": str(tmp_path), **({STANDBY: "1"} if waits else {})}
    made = Standby.from_environment(environ, Reporter(tmp_path))
    assert made.waits is waits
    assert STANDBY not in environ and not (tmp_path / READY).exists()
    lines.put(b"\n")
    eventually("its turn", lambda: not made.waits)


# A child that forks closes ``sys.stdin`` first; another reads its input to the end, which must have come.
FORKS = """
import multiprocessing, os, subprocess
from cluster.protocol.standby import Standby
standby = Standby.from_environment(os.environ, None)
with multiprocessing.get_context("fork").Pool(1) as pool:
    print(pool.map(abs, [-7]), subprocess.run(["cat"], stdout=subprocess.PIPE).stdout, flush=True)
standby.wait()
print("its turn", flush=True)
os._exit(0)
"""


@pytest.mark.not_fast
def test_what_a_process_starts_before_its_turn_has_an_empty_input(tmp_path: Path) -> None:
    env = {**os.environ, STANDBY: "1", "LAUNCH_TASK_DIR": str(tmp_path)}
    argv = [sys.executable, "-c", FORKS]
    with subprocess.Popen(argv, env=env, cwd=str(ROOT), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waits:
        try:
            eventually("its file", lambda: is_ready(tmp_path))
            said, _ = waits.communicate(b"\n", PATIENCE_S)
        finally:
            waits.kill()
    assert said.decode().splitlines() == ["[7] b''", "its turn"]
