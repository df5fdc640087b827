"""A task gives a sign of life every second, whatever its own thread does, and tells where it is when it is asked."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, List, Optional

import pytest

from cluster.protocol.heartbeat import PULSE, SIZE, STACKS, STACKS_BY, WINDOW_S, Heartbeat, Slowest, read_sign
from tests.support import ROOT
from tests.support.clocks import Clock
from tests.support.waiting import eventually, let_pass

HANG = """
import sys
from cluster.protocol.heartbeat import Heartbeat

def hang():
    while True:
        pass

Heartbeat(sys.argv[1]).begin()
hang()
"""


def test_a_process_that_hangs_in_python_gives_signs_of_life_and_tells_where_it_hangs(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HANG, str(tmp_path)], cwd=str(ROOT)) as process:
        try:
            beats = eventually("a second sign", lambda: (read_sign(tmp_path) or Heartbeat(None).beat()).beat >= 2)
            assert beats and (tmp_path / PULSE).stat().st_size == SIZE
            os.kill(process.pid, STACKS_BY)
            eventually("its stacks", lambda: "in hang\n" in (tmp_path / STACKS).read_text())
            assert process.poll() is None  # which ends nothing
        finally:
            process.kill()


def test_a_phase_lasts_as_many_beats_as_it_has_seen() -> None:
    heartbeat = Heartbeat(None)
    heartbeat.begin_phase("step")
    assert [heartbeat.beat().phase_s for _ in range(3)] == [0.0, 1.0, 2.0]
    heartbeat.begin_phase("step")
    sign = heartbeat.beat()
    assert (sign.beat, sign.phase, sign.phase_s) == (4, "step", 0.0)


def test_what_it_does_of_its_start_is_in_the_sign_until_the_next_phase() -> None:
    heartbeat = Heartbeat(None)
    heartbeat.note("builds its graph")
    assert heartbeat.beat().doing == "builds its graph"
    heartbeat.begin_phase("first step")
    assert heartbeat.beat().doing == ""


def test_how_long_a_step_takes_leaves_out_what_it_waits_for_others() -> None:
    clock = Clock()
    heartbeat = Heartbeat(None, clock)
    heartbeat.begin_phase("step")
    clock.now += 3.0
    heartbeat.begin_phase("step", waited_s=2.0)
    assert heartbeat.beat().slowest_s == 1.0


def test_what_steps_usually_take_counts_waiting_and_no_single_step() -> None:
    now = [100.0]
    heartbeat = Heartbeat(None, clock=lambda: now[0])
    usual: List[float] = []
    for phase, seconds in [("first step", 90.0), ("step", 2.0), ("saving", 500.0), ("step", 4.0), ("step", 400.0)]:
        heartbeat.begin_phase(phase, waited_s=1.0)
        usual.append(heartbeat.beat().usual_s)
        now[0] += seconds
    heartbeat.begin_phase("ending", waited_s=399.0)
    assert [*usual, heartbeat.beat().usual_s] == [0.0, 90.0, 2.0, 2.0, 4.0, 4.0]


def test_a_step_that_was_broken_off_says_nothing_of_how_long_steps_take() -> None:
    clock = Clock()
    heartbeat = Heartbeat(None, clock)
    heartbeat.begin_phase("step")
    clock.now += 3.0
    heartbeat.restart()
    heartbeat.begin_phase("step")
    assert heartbeat.beat().slowest_s == 0.0


def test_only_a_late_step_is_asked_about_and_the_answer_is_for_that_step() -> None:
    heartbeat, answers = Heartbeat(None), [True]
    asked: List[bool] = []

    def ask() -> Optional[bool]:
        asked.append(True)
        return answers[0]

    heartbeat.ask = ask
    heartbeat.begin_phase("step")
    assert [heartbeat.beat().owes for _ in range(3)] == [None] * 3 and not asked
    eventually("an answer", lambda: heartbeat.beat().owes)
    heartbeat.begin_phase("step")
    assert heartbeat.beat().owes is None


def test_a_question_that_is_never_answered_holds_no_sign_up() -> None:
    heartbeat = Heartbeat(None)
    heartbeat.ask = lambda: let_pass(1000)
    heartbeat.begin_phase("step")
    assert [heartbeat.beat().owes for _ in range(10)] == [None] * 10


def test_a_question_that_fails_is_not_answered() -> None:
    heartbeat = Heartbeat(None)
    asked: List[bool] = []

    def ask() -> Any:
        asked.append(True)
        raise RuntimeError("the session was closed")

    heartbeat.ask = ask
    heartbeat.begin_phase("step")
    eventually("two questions", lambda: heartbeat.beat().owes is None and len(asked) > 1)


def test_the_slowest_is_one_of_the_last_minutes() -> None:
    slowest = Slowest()
    for now, span_s in ((0.0, 9.0), (1.0, 1.0)):
        slowest.note(now, span_s)
    assert slowest.seconds == 9.0
    slowest.note(WINDOW_S + 1, 2.0)
    assert slowest.seconds == 9.0
    slowest.note(2 * WINDOW_S + 2, 3.0)
    assert slowest.seconds == 3.0


@pytest.mark.parametrize("text", ["", "{", json.dumps({"beat": 1, "what": 2}), "[]"])
def test_what_is_no_sign_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / PULSE).write_text(text)
    assert read_sign(tmp_path) is None
