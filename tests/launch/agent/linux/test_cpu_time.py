"""A task that works is counted the part of its time that the machine gives it, one that does nothing all of it."""

import os
import subprocess
import sys
import time
from typing import Callable

import pytest

from launch.agent.linux.procfs import SLOWEST, Work, pace, work_of
from tests.support.waiting import eventually


@pytest.mark.parametrize(
    ("processor_s", "moved", "expected"),
    [
        (0.0, 0, 1.0),  # it waits for something that does not come
        (0.4, 500_000, 1.0),  # its own signs of life, over ten seconds
        (1.0, 0, 0.1),
        (5.0, 0, 0.5),
        (10.0, 0, 1.0),  # a loop that does not end
        (80.0, 0, 1.0),  # the same on many threads
        (0.6, 0, SLOWEST),
        (0.0, 10 << 20, SLOWEST),  # it reads from a slow disk
    ],
)
def test_what_counts_of_ten_seconds(processor_s: float, moved: int, expected: float) -> None:
    assert pace(Work(3.0, 7), Work(3.0 + processor_s, 7 + moved), 10.0) == pytest.approx(expected)


def test_no_time_at_all_is_no_reason_to_spare_anybody() -> None:
    assert pace(Work(0.0, 0), Work(1.0, 0), 0.0) == 1.0


def grows(program: str, what: Callable[[Work], float]) -> bool:
    """Whether a process that runs ``program`` does ever more of something."""
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            first = eventually("a process", lambda: work_of(process.pid))
            eventually("more of it", lambda: what(work_of(process.pid) or first) > what(first) + 0.2)
            return True
        finally:
            process.kill()


def test_a_process_that_computes_is_seen_to() -> None:
    assert grows("while True: pass", lambda work: work.processor_s)


def test_a_process_that_reads_is_seen_to() -> None:
    read = "import time\nwhile True: open('/dev/zero', 'rb').read(1 << 20); time.sleep(0.01)"
    assert grows(read, lambda work: work.bytes)


def test_what_a_child_that_has_ended_computed_counts_where_it_is_asked_for() -> None:
    child = "import time\nwhile time.process_time() < 0.5: pass"
    program = f"import subprocess, sys, time\nsubprocess.call([sys.executable, '-c', {child!r}])\ntime.sleep(1000)"

    def of_children(pid: int) -> float:
        own, whole = work_of(pid), work_of(pid, children=True)
        return whole.processor_s - own.processor_s if own and whole else 0.0

    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            eventually("the end of the child", lambda: of_children(process.pid) > 0.4)
        finally:
            process.kill()


def test_a_process_that_waits_is_seen_to_do_nothing() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            before, began = eventually("a process", lambda: work_of(process.pid)), time.monotonic()
            eventually("a moment later", lambda: time.monotonic() - began > 0.3)
            after = work_of(process.pid)
            assert after is not None and pace(before, after, time.monotonic() - began) == 1.0
        finally:
            process.kill()


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert work_of(gone.pid) is None and work_of(os.getpid()) is not None
