"""What an attached run shows in plain lines, and a status outside a terminal."""

import io
import re
from dataclasses import replace
from typing import Any, List, Optional

import pytest

from launch.status.run import FormationStatus, RunStatus
from launch.view import live_view, plain_view
from launch.view.console import fold
from launch.view.live_view import print_status
from launch.view.plain_view import View
from tests.support.launch.statuses import status, task


def lines_of(*statuses: RunStatus) -> List[str]:
    """What is told of a run whose status changes so, without the times."""
    output = io.StringIO()
    with View(output) as view:
        for each in statuses:
            view.show(each)
    return [re.sub(r"^\[ *\d+\.\d s\] ", "", line) for line in output.getvalue().splitlines()]


# -- plain lines


def test_a_state_is_told_when_it_changes_and_not_again() -> None:
    starting = status(task(state="starting"), task("worker:1@gpu02", "starting"), state="starting")
    half = status(task(), task("worker:1@gpu02", "starting"), state="starting")
    running = status(task(), task("worker:1@gpu02"))
    assert lines_of(starting, starting, half, running, running) == [
        "starting: 2 starting",
        "starting: 1 running, 1 starting",
        "running: 2 running",
    ]


def test_every_line_begins_with_the_seconds_since_the_start() -> None:
    output = io.StringIO()
    View(output).note("hello")
    assert re.fullmatch(r"\[ +0\.\d s\] hello\n", output.getvalue())


def test_a_failure_is_told_at_once_with_task_host_and_cause_and_each_one_anew() -> None:
    broken = task(state="restarting", cause="exit code 3")
    again = task(state="restarting", cause="exit code 3", restarts=1)
    lines = lines_of(status(), status(broken), status(broken), status(task()), status(again))
    assert [line for line in lines if "exit code" in line] == ["worker:0@gpu01 restarting: exit code 3"] * 2


def test_a_failure_that_ends_the_run_is_told_at_the_end_of_the_run_alone() -> None:
    broken = task(state="failed", cause="exit code 3")
    lines = lines_of(status(), status(broken, state="failed", cause="worker:0@gpu01: exit code 3"))
    assert not any("exit code" in line for line in lines)


def test_progress_is_told_at_first_and_then_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [status(global_step=step, steps=100) for step in range(10)]
    assert [line for line in lines_of(*steps) if "step" in line] == ["step 0/100 (0 %)"]
    monkeypatch.setattr(plain_view, "EVERY_S", 0.0)
    assert len([line for line in lines_of(*steps) if "step" in line]) == 10


def test_what_the_evaluator_found_is_told_once() -> None:
    told = status(evaluation={"step": 800, "loss": 0.0812, "accuracy": 0.976})
    assert lines_of(status(), told, told)[1:] == ["evaluator: step 800, loss 0.0812, accuracy 97.6 %"]


def starts(name: str, doing: str) -> Any:
    return task(f"{name}@h", "starting", doing=doing)


def test_each_warning_is_told_once() -> None:
    first, second = "args.rat: unread", "job.py:3: same"
    lines = lines_of(*(status(warnings=found) for found in ([first], [second, first], [first])))
    assert [line for line in lines if "warning" in line] == [f"warning: {first}", f"warning: {second}"]


def test_what_tasks_do_while_they_start_is_told_as_it_changes() -> None:
    first = status(starts("ps:0", "loads TensorFlow"), *(starts(f"worker:{n}", "builds its graph") for n in range(6)))
    later = status(task("ps:0@h"), *(starts(f"worker:{n}", "reads") for n in range(4)))
    told = lines_of(first, first, later, status(task("ps:0@h")))
    assert told[1] == "builds its graph: worker:0, worker:1, worker:2 and 3 more; loads TensorFlow: ps:0"
    assert not any("reads" in line for line in told)  # the last line was a moment ago


def test_it_is_told_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_view, "STARTING_EVERY_S", 0.0)
    told = lines_of(*(status(starts("ps:0", doing)) for doing in ("loads", "loads", "opens its port")))
    assert told[1:] == ["loads: ps:0", "opens its port: ps:0"]


def test_the_formation_of_an_elastic_run_is_told_when_it_changes() -> None:
    whole = FormationStatus(number=0, workers=4, of_workers=4, ps=2, of_ps=2)
    ending = replace(whole, without=["gpu03"], forming=True)
    next_one = replace(whole, number=1, workers=3, without=["gpu03"])
    told = lines_of(*(status(formation=each) for each in (None, whole, ending, next_one, next_one)))
    assert told[1:] == [
        "formation 0: 4 of 4 workers, 2 of 2 ps; without gpu03; ending before the next formation",
        "formation 1: 3 of 4 workers, 2 of 2 ps; without gpu03",
    ]


def test_nothing_that_is_noted_is_obeyed_by_the_terminal() -> None:
    output = io.StringIO()
    View(output).note("gpu01: \x1b]0;owned\x07Welcome\x9b2J")
    assert output.getvalue().endswith("] gpu01: Welcome\n")


def test_without_a_terminal_the_view_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    view: Optional[View] = live_view.for_terminal()
    assert type(view) is View


def test_hosts_are_folded() -> None:
    assert fold(["gpu01", "gpu02", "gpu03", "gpu07"]) == "gpu[01-03,07]"
    assert fold(["localhost"]) == "localhost"
    assert fold([f"n{index:05}" for index in range(10_000)]) == "n[00000-09999]"


def printed(print_values: Any, values: RunStatus, capsys: pytest.CaptureFixture[str]) -> str:
    print_values(values)
    return capsys.readouterr().out


def test_a_status_for_a_file_is_not_cut_to_the_width_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 150
    text = printed(print_status, status(task(cause=long), state="failed", cause=f"worker:0@gpu01: {long}"), capsys)
    assert f"cause: worker:0@gpu01: {long}\n" in text
