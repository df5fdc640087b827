"""Signals are remembered in order and change nothing by themselves."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from launch.errors import Interrupted
from launch.interrupts import HEEDED, Interrupts
from tests.launch.launcher import ROOT


@pytest.mark.parametrize("number", HEEDED)
def test_a_signal_is_remembered_and_ends_what_is_under_way_when_it_is_looked_at(number: int) -> None:
    with Interrupts() as interrupts:
        interrupts.check()
        os.kill(os.getpid(), number)
        assert interrupts.received == [number]
        with pytest.raises(Interrupted) as caught:
            interrupts.check()
    assert str(caught.value) == f"interrupted by {signal.Signals(number).name}"
    assert caught.value.exit_code == 128 + number


def test_signals_are_in_the_order_in_which_they_came() -> None:
    with Interrupts() as interrupts:
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
    assert interrupts.received == [signal.SIGTERM, signal.SIGINT]
    assert interrupts.exit_code(otherwise=1) == 143


def test_without_a_signal_the_exit_code_is_the_other_one() -> None:
    assert Interrupts().exit_code(otherwise=1) == 1


def test_afterwards_signals_do_what_they_did_before() -> None:
    before = [signal.getsignal(number) for number in HEEDED]
    with Interrupts():
        assert [signal.getsignal(number) for number in HEEDED] != before
    assert [signal.getsignal(number) for number in HEEDED] == before


HANGS = """
    import threading
    from launch.interrupts import Interrupts

    with Interrupts():
        print("up", flush=True)
        threading.Event().wait()
"""


def test_a_third_signal_ends_the_launcher_whatever_it_waits_for() -> None:
    argv = [sys.executable, "-c", textwrap.dedent(HANGS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=str(ROOT)) as process:
        assert process.stdout is not None and process.stderr is not None and process.stdout.readline() == "up\n"
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # of one kind two could become one
                process.send_signal(number)
            assert process.wait(30) == -signal.SIGHUP or process.returncode in (-signal.SIGINT, -signal.SIGTERM)
            assert "leaving at once; an attached run ends by itself" in process.stderr.read()
        finally:
            process.kill()
