"""The page has the words of ``launch status``, and no more than it has room for."""

import pytest

from launch.page.run_page import LONGEST, MOST_LINES, clean, facts, incident, lines_of_each, task
from launch.status.incident_status import Consequence, IncidentStatus
from launch.status.run import EffectiveTime
from tests.launch.page.examples import training
from tests.support.launch.statuses import history, status
from tests.support.launch.statuses import task as a_task


def test_a_run_that_has_not_begun_has_no_figures_but_its_step() -> None:
    assert facts(status())["figures"] == [["step", "0"]]


def test_a_training_run_has_its_progress_time_and_copies() -> None:
    found = facts(training())
    assert found["figures"] == [
        ["step", "840/2000"], ["loss", "0.21"], ["steps/s", "31.2"], ["examples/s", "3,994"], ["elapsed", "1:23"],
        ["left, about", "37.2 s"],
    ]  # fmt: skip
    assert found["lines"] == ["checkpoint of step 800, 40 steps ago, about 1.3 s"]
    assert found["copies"] == ["checkpoint of step 800", "copy on gpu001: step 800", "copy on gpu002: none yet"]


def test_the_effective_time_is_a_figure_and_its_parts_a_line() -> None:
    found = facts(status(effective=EffectiveTime(0.8, 80.0, 100.0, start_s=20.0)))
    assert ["effective", "80 %"] in found["figures"]
    assert found["lines"] == ["80 % effective: 1:20 of 1:40; start 20.0 s"]


def test_the_result_is_the_held_out_metrics() -> None:
    assert facts(status(state="succeeded", metrics={"accuracy": 0.976}))["metrics"] == ["accuracy 97.6 %"]


def test_a_step_is_work_and_waiting() -> None:
    row = task(a_task(step_time_ms=30.0, wait_ms=10.0))
    assert (row["work_ms"], row["wait_ms"]) == (20.0, 10.0)
    assert task(a_task())["work_ms"] is None


def test_an_incident_has_its_sentence_what_followed_and_where_its_log_is() -> None:
    followed = [Consequence(2.0, "exit", "worker", n, "h", cause="reset") for n in range(30)]
    found = incident(
        IncidentStatus(
            number=1, at_s=1.5, host="h", cause="no disk", followed=followed, followed_count=40, log="/l", again_s=4.0
        )
    )
    assert found["text"].startswith("h: no disk") and found["lasted_s"] == 4.0
    assert found["details"][:2] == ["cause: no disk", "2.0 s: worker:0@h: reset"]
    assert found["details"][-2:] == ["20 more consequences", "log: h:/l"]


@pytest.mark.parametrize("tasks", [0, 1, 3, 32, 999, 1000])
def test_the_lines_of_all_tasks_are_bounded(tasks: int) -> None:
    assert 2 <= lines_of_each(tasks) <= 100
    assert lines_of_each(tasks) * tasks <= MOST_LINES


def test_a_line_of_a_log_is_cut_and_has_no_control_characters() -> None:
    assert clean("\x1b[31mred\x1b[0m") == "red"
    assert clean("x" * 10000) == "x" * (LONGEST - 1) + "…"


def test_a_loss_that_is_no_number_is_left_out_of_the_curve() -> None:
    assert facts(status(history=history([(1, 2.0), (2, None)])))["points"] == [[1, 2.0]]


def test_the_curve_has_the_held_out_data_and_the_events_of_training() -> None:
    curve = history([(1, 2.0)], evaluations=[{"step": 40, "loss": 0.5, "accuracy": 0.9}], marks={"checkpoint": [40]})
    killed = IncidentStatus(
        number=1, kind="signal", role="worker", index=1, host="b", step=41, cause="killed by SIGKILL"
    )
    found = facts(status(history=curve, incidents=[killed]))
    assert found["held_out"] == [[40, 0.5, "held-out data at step 40: loss 0.5, accuracy 90.0 %"]]
    assert found["marks"] == [
        [40, "checkpoint", "checkpoint at step 40"],
        [41, "incident", "worker:1@b: killed by SIGKILL"],
    ]
