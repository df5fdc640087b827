"""The end of a change of tasks, as statuses show it."""

from dataclasses import replace
from typing import List

import pytest

from launch.status.run import FormationStatus, RunStatus
from launch.verbs.task_changes import Change, Phases, drained, follow
from tests.support.launch.statuses import status, task

FORMED = FormationStatus(1, 2, 2, 1, 2, drained=["ps:1"])


def run(formation: FormationStatus = FORMED, state: str = "running", of_task: str = "running") -> RunStatus:
    return status(task(state=of_task), task("ps:1@b", state="stopped"), state=state, formation=formation, global_step=7)


def test_the_run_is_followed_until_it_trains_and_its_tasks_are_named() -> None:
    looks = [
        run(replace(FORMED, changing=True)), run(replace(FORMED, forming=True)), run(of_task="starting"), run(),
    ]  # fmt: skip
    waits: List[int] = []
    found = follow(lambda: drained("r-1", looks.pop(0)), 60.0, lambda: waits.append(1), "does not train")
    assert found == Change(["r-1 continues to train, from step 7: 2 of 2 workers, 1 of 2 ps; drained: ps:1"], [], [])
    assert len(waits) == 3


def test_each_phase_of_a_drain_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    changing, forming = (run(replace(FORMED, **{name: True})) for name in ("changing", "forming"))
    phases = Phases("r-1")
    for now in (run(), replace(forming, run="r-2"), changing, changing, forming, run(of_task="starting"), run()):
        assert phases.look(now) is now
    assert capsys.readouterr().err.splitlines() == [
        "step 7: the next processes load, and the present ones train",
        "step 7: the present processes end",
        "step 7: the next processes start",
    ]


def test_an_evaluator_that_failed_is_not_waited_for() -> None:
    now = status(task(), task("evaluator:0@c", state="failed"), formation=FORMED, global_step=7)
    assert drained("r-1", now).done != []


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (run(state="failed"), "r-1 has failed: the run is over"),
        (replace(run(), run="r-2"), "r-1 is over, and r-2 has started since"),
        (run(replace(FORMED, problem="the chief could not save")), "r-1 trains as before: the chief could not save"),
        (run(of_task="starting"), "r-1 does not train"),
    ],
)
def test_a_run_that_does_not_train_with_the_change_is_named(now: RunStatus, line: str) -> None:
    found = follow(lambda: drained("r-1", now), -1.0, lambda: None, "does not train")
    assert found == Change([], [], [line])
