"""Signals are remembered in order and change nothing by themselves."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from launch.errors import Interrupted
from launch.signals import HEEDED, Interrupts
from tests.support import ROOT
from tests.support.launch.machine import is_stopped
from tests.support.waiting import PATIENCE_S, eventually


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


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_the_launcher_was_started_to_ignore_stays_ignored(number: int) -> None:
    former = signal.signal(number, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), number)
            interrupts.check()
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, former)


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


PAUSES = """
    import time
    from launch.signals import Interrupts

    with Interrupts() as interrupts, interrupts.pausable():
        print("up", flush=True)
        while not interrupts.pause_asked:
            time.sleep(0.01)
        before = time.monotonic()
        interrupts.pause()
        print(interrupts.continued_at >= before, interrupts.pause_asked, interrupts.received, flush=True)
"""


@pytest.mark.not_fast
def test_ctrl_z_is_something_to_look_at_until_the_launcher_pauses_itself() -> None:
    argv = [sys.executable, "-c", textwrap.dedent(PAUSES)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, universal_newlines=True, cwd=str(ROOT)) as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTSTP)
        eventually("the pause", lambda: is_stopped(process.pid))
        process.send_signal(signal.SIGCONT)
        assert process.stdout.readline() == "True False []\n"


def test_where_ctrl_z_is_ignored_it_stays_ignored() -> None:
    former = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.pausable():
            os.kill(os.getpid(), signal.SIGTSTP)
        assert not interrupts.pause_asked
    finally:
        signal.signal(signal.SIGTSTP, former)


HANGS = """
    import threading
    from launch.signals import Interrupts

    with Interrupts():
        print("up", flush=True)
        threading.Event().wait()
"""


@pytest.mark.not_fast
def test_a_third_signal_ends_the_launcher_whatever_it_waits_for() -> None:
    argv = [sys.executable, "-c", textwrap.dedent(HANGS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=str(ROOT)) as process:
        assert process.stdout is not None and process.stderr is not None and process.stdout.readline() == "up\n"
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # of one kind two could become one
                process.send_signal(number)
            assert process.wait(PATIENCE_S) == -signal.SIGHUP or process.returncode in (-signal.SIGINT, -signal.SIGTERM)
            assert "leaving at once; an attached run ends by itself" in process.stderr.read()
        finally:
            process.kill()
