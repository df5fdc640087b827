"""Ctrl-C ends the command in one line and with 130, however early it comes; real processes."""

import signal
import subprocess
import sys
import time
from typing import List

import pytest

from tests.support import ROOT
from tests.support.launch.launcher import LAUNCH, Launcher, finish
from tests.support.waiting import let_pass

# Says when it begins: what comes before is Python's own start, of which no program can have a say.
PROGRAM = (
    "import os, signal, sys; from launch import __main__; "
    "stand = __main__._on_ctrl_c; __main__._on_ctrl_c = lambda to: (stand(to), os.write(1, b'begun\\n')) and "
    "setattr(__main__, '_on_ctrl_c', stand); __main__.main()"
)
MOMENTS = [0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97]  # of the time that the whole command takes


@pytest.fixture(scope="module")
def whole_s(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long the command takes on this machine, now."""
    launch, began = Launcher(tmp_path_factory.mktemp("whole")), time.monotonic()
    launch.stay()
    assert finish(launch.begin("plan")).returncode == 0
    return time.monotonic() - began


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_at_any_moment_is_one_line_and_130(launch: Launcher, moment: float, whole_s: float) -> None:
    launch.stay()
    process = launch.begin("plan", program=[sys.executable, "-c", PROGRAM])
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    let_pass(moment * whole_s)
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert ran.returncode in (130, -signal.SIGINT, 0)
    if ran.returncode == 130:
        assert ran.stderr.strip() == "interrupted by SIGINT"
    else:  # all was done: Python itself was ending, or had ended
        assert "worker:0" in ran.stdout and ran.stderr == ""


def test_a_command_in_the_background_of_a_shell_does_not_end_by_ctrl_c(launch: Launcher) -> None:
    launch.stay()
    ignoring = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    process = launch.begin("plan", program=[sys.executable, "-c", ignoring + PROGRAM])
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert finish(process).returncode == 0


def test_a_verb_is_found_by_either_way_of_calling_it() -> None:
    ways: List[List[str]] = [LAUNCH, [sys.executable, "-c", PROGRAM]]
    for way in ways:
        ran = subprocess.run([*way, "up", "-h"], stdout=subprocess.PIPE, cwd=str(ROOT), timeout=120)
        assert ran.returncode == 0 and b"launch up" in ran.stdout
