"""The drawing has every step of the newest window, all that is known in bounded size, and the stall."""

import json

import pytest

from launch.timeline.drawing import NEWEST, PIECES, drawn
from tests.launch.timeline.simulated import STEP_S, Recording


def test_the_newest_steps_are_drawn_each_by_itself_with_work_and_wait() -> None:
    values = drawn(Recording([0.0, 500.0]).take(NEWEST + 20).line())
    window = values["windows"]["newest"]
    assert [row["name"] for row in window["rows"]] == ["worker:0", "worker:1"]
    own = window["rows"][0]["pieces"]
    steps = [(first, last) for _, _, phase, first, last, _ in own if phase == "step"]
    assert steps == [(step, step) for step in range(21, NEWEST + 21)]
    for ago, seconds, _, _, _, waited in own:
        assert 0 <= ago <= window["seconds"] + 1e-3 and STEP_S < seconds < 2 * STEP_S and 0 <= waited < seconds


def test_all_that_is_known_has_a_bounded_number_of_pieces_and_loses_no_time() -> None:
    recording = Recording([0.0]).take(900).pause(0, "saving", 2.0).take(100)
    (row,) = drawn(recording.line())["windows"]["all"]["rows"]
    assert len(row["pieces"]) <= PIECES + 2
    lasted = recording.spans[0][-1]["ended"] - recording.spans[0][0]["began"]
    assert sum(piece[1] for piece in row["pieces"]) == pytest.approx(lasted, rel=1e-3)
    assert [piece[2] for piece in row["pieces"]].count("saving") == 1
    assert (row["pieces"][0][3], row["pieces"][-1][4]) == (1, 1000)


def test_in_a_stall_the_task_that_blocks_and_those_that_wait_reach_to_the_end() -> None:
    recording = Recording([0.0, 0.0]).take(50)
    recording.now += 20
    recording.sign(0, "step", 20.0, owes=False)
    recording.sign(1, "step", 20.0, owes=True)
    rows = drawn(recording.line())["windows"]["newest"]["rows"]
    for row, phase in zip(rows, ("waits", "blocks")):
        ago, seconds, seen, first, _, waited = row["pieces"][-1]
        assert (seen, first, waited) == (phase, 51, None)
        assert ago == pytest.approx(20, abs=0.1) and seconds == pytest.approx(20, abs=0.1)


def test_a_step_that_an_error_ended_is_marked() -> None:
    recording = Recording([0.0]).take(3)
    recording.spans[0][-1]["whole"] = False
    assert drawn(recording.line())["windows"]["all"]["rows"][0]["pieces"][-1][2] == "broken off"


def test_a_thousand_steps_of_32_tasks_fit_into_a_page() -> None:
    values = drawn(Recording([0.0] * 32).take(1000).line())
    assert len(json.dumps(values)) < 1_000_000


def test_the_drawing_of_a_run_that_has_ended_ends_with_its_last_step() -> None:
    recording = Recording([0.0, 0.0]).take(50)
    recording.now += 3600
    recording.sign(0, "step", 0.0)
    for values in (drawn(recording.line(states={0: "stopped", 1: "stopped"})), drawn(Recording([0.0]).take(50).line())):
        assert values["windows"]["newest"]["seconds"] < 2 * NEWEST * STEP_S
