"""In a terminal a run is drawn in place; the terminal here is a pseudo-terminal."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any, Iterator, List, Optional

import pytest

from cluster.protocol.typed_json import to_values
from tests.support import ROOT
from tests.support.launch.launcher import LAUNCH, Launcher
from tests.support.launch.statuses import status, task
from tests.support.waiting import PATIENCE_S

SHOW = """
import json, sys
from launch.view import live_view
from launch.status.run import RunStatus
from cluster.protocol.typed_json import from_values
with live_view.for_terminal() as view:
    view.note("a line of its own")
    for values in json.loads(sys.argv[1]):
        view.show(from_values(RunStatus, values))
"""


class Terminal:
    """A program in a terminal of 120 columns and 40 lines."""

    def __init__(self, argv: List[str]):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, cwd=str(ROOT), env={**env, "TERM": "xterm-256color"}
        )
        os.close(slave)
        self.raw = b""

    def read(self, until: Optional[str] = None) -> str:
        """The text that was drawn, up to a word or the end of the program."""
        while until is None or until not in self.text():
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the last holder of the other side has gone
                break
            self.raw += data
        return self.text()

    def text(self) -> str:
        """What was drawn, without the codes that colour and move it."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw.decode(errors="replace"))

    def write(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def echoes_controls(self) -> bool:
        """Return whether the terminal prints ^C where the cursor is."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHOCTL)

    def end(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self._master)


@pytest.fixture
def terminals() -> Iterator[Any]:
    """``terminals(argv)``: programs that end with the test."""
    opened: List[Terminal] = []

    def of(argv: List[str]) -> Terminal:
        opened.append(Terminal(argv))
        return opened[-1]

    yield of
    for terminal in opened:
        terminal.end()


def test_progress_is_a_bar_and_a_table_with_a_row_for_each_task(terminals: Any) -> None:
    tasks = [task("ps:0@cpu01"), task("worker:0@gpu01", gpus=[0, 1], step=50)]
    shown = [status(*tasks, global_step=50, steps=100, loss=0.5), status(*tasks, global_step=99, steps=100, loss=0.25)]
    terminal = terminals([sys.executable, "-c", SHOW, json.dumps([to_values(each) for each in shown])])
    text = terminal.read()
    assert terminal.process.wait(PATIENCE_S) == 0
    assert "a line of its own" in text
    assert "━" * 20 in text
    assert "step 99/100 (99 %), loss 0.25" in text
    assert re.search(r"worker:0 +gpu01 +running +50 +0,1 +42", text)
    assert b"\x1b[?25l" in terminal.raw and terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l")


WAIT = """
import sys
from launch.view import live_view
with live_view.for_terminal() as view:
    view.note("drawn")
    sys.stdin.readline()
    with view.hidden():
        print("hidden", flush=True)
        sys.stdin.readline()
    view.note("drawn again")
    sys.stdin.readline()
"""


def test_a_key_pressed_while_the_view_is_drawn_prints_no_caret(terminals: Any) -> None:
    terminal = terminals([sys.executable, "-c", WAIT])
    echoed = []
    for line in ("drawn", "hidden", "drawn again"):
        terminal.read(until=line)
        echoed.append(terminal.echoes_controls())
        terminal.write("\n")
    terminal.read()
    assert terminal.process.wait(PATIENCE_S) == 0
    assert [*echoed, terminal.echoes_controls()] == [False, True, False, True]


def test_up_in_a_terminal_draws_its_tasks_and_says_its_end_below(terminals: Any, launch: Launcher) -> None:
    launch.stay()
    terminal = terminals([*LAUNCH, "up", str(launch.file)])
    text = terminal.read(until="worker:1  localhost  running")
    assert "3 tasks on localhost" in text and "restarts" not in text
    assert not re.search(r"\[ +\d+\.\d s\]", text)
    terminal.process.send_signal(signal.SIGINT)
    text = terminal.read()
    assert terminal.process.wait(PATIENCE_S) == 130
    assert text.rstrip().endswith("stopped: SIGINT to launch up")
    assert launch.left() == []


def test_what_is_no_terminal_gets_plain_lines(launch: Launcher, tmp_path: Path) -> None:
    launch.write()
    ran = launch("up")
    assert "\x1b" not in ran.stdout and "━" not in ran.stdout
    assert all(re.match(r"\[ +\d+\.\d s\] ", line) for line in ran.stdout.splitlines()[:-1])
