"""A thread is stopped between two of its steps, or not waited for where its step does not end."""

import threading
from typing import List

import pytest

from cluster.steps import base_worker
from cluster.steps.base_worker import Crossing
from tests.support.waiting import eventually


class Stepping(threading.Thread):
    """Crosses before each step, which waits for ``may_end``."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.crossing, self.may_end, self.steps = Crossing(), threading.Event(), 0

    def run(self) -> None:
        for _ in range(1000):
            self.crossing.cross()
            self.steps += 1
            self.may_end.wait()
        self.crossing.leave()


@pytest.fixture
def stepping() -> Stepping:
    thread = Stepping()
    thread.start()
    eventually("a step", lambda: thread.steps)
    return thread


def test_a_thread_takes_no_step_inside_and_goes_on_afterwards(stepping: Stepping) -> None:
    stepping.may_end.set()
    seen: List[int] = []
    for _ in range(3):
        with stepping.crossing.closed():
            seen += [stepping.steps, stepping.steps]
    stepping.join()
    assert seen[::2] == seen[1::2] and stepping.steps == 1000


def test_a_step_that_does_not_end_is_not_waited_for(stepping: Stepping, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_worker, "STILL_S", 0.05)
    with stepping.crossing.closed():
        assert stepping.steps == 1
    stepping.may_end.set()
    stepping.join()


def test_a_thread_that_has_ended_is_not_waited_for(stepping: Stepping) -> None:
    stepping.may_end.set()
    stepping.join()
    with stepping.crossing.closed():
        assert stepping.steps == 1000
