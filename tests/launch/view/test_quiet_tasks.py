"""Tasks that do nothing, and workers that remain, in words: in a status, and in the plain lines of an attached run."""

from typing import Any, List

from launch.monitoring.exporter import families
from launch.page.run_page import lines
from launch.status.run import Remaining, RunStatus
from launch.status.task import QuietStatus
from launch.view.run_text import LONGEST_LINE, quietness, remaining
from launch.view.task_table import task_table
from tests.launch.view.test_live_view import lines_of
from tests.support.launch.statuses import status, task

TIMES = {"started": "2026-11-23T12:00:00+00:00", "updated": "2026-11-23T12:06:40+00:00"}  # 400 s later
WORKER = QuietStatus(90.0, "step 840", 88.0, "in train.py:31 (main)", "a stack")


def stands(name: str, at_s: float = 100.0, **fields: Any) -> Any:
    return task(name, quiet=QuietStatus(at_s, **fields))


def of(*tasks: Any, **fields: Any) -> RunStatus:
    return status(*tasks, **{**TIMES, **fields})


def test_a_quiet_worker_has_its_place_its_last_line_and_its_age() -> None:
    assert quietness(of(task("worker:1@gpu02", quiet=WORKER))) == [
        "quiet for 5:10: worker:1@gpu02, in train.py:31 (main), last line 5:12 ago: step 840"
    ]
    assert quietness(of(stands("worker:1@gpu02"))) == ["quiet for 5:00: worker:1@gpu02, no line yet"]
    (line,) = quietness(of(stands("worker:1@gpu02", line="x" * 999, line_at_s=390.0)))
    assert line.endswith("x…") and line.count("x") == LONGEST_LINE - 1


def test_workers_come_first_in_the_order_of_their_standstill_and_the_ps_last_in_one_line() -> None:
    still = of(stands("ps:0@c", 1), stands("ps:1@c", 1), stands("worker:0@a", 40), stands("worker:1@b", 30), task())
    assert quietness(still) == [
        "quiet for 6:10: worker:1@b, no line yet", "quiet for 6:00: worker:0@a, no line yet", "also quiet: ps:0, ps:1",
    ]  # fmt: skip
    many = of(*(stands(f"worker:{index}@a", index) for index in range(9)), stands("ps:0@c", 0))
    assert [line.split(",")[0] for line in quietness(many)] == [
        "quiet for 6:40: worker:0@a", "quiet for 6:39: worker:1@a", "quiet for 6:38: worker:2@a",
        "also quiet: worker:3",
    ]  # fmt: skip
    assert quietness(many)[-1] == "also quiet: worker:3, worker:4, worker:5 and 4 more"
    assert quietness(of(stands("ps:0@c", 1))) == ["quiet for 6:39: ps:0@c, no line yet"]


def test_a_run_that_ended_shows_what_was_quiet_and_one_that_succeeded_nothing() -> None:
    assert quietness(of(stands("worker:1@b"), state="stopped", ended=TIMES["updated"])) == [
        "was quiet for 5:00: worker:1@b, no line yet"
    ]
    assert quietness(of(stands("worker:1@b"), state="succeeded")) == []


def test_who_remains_is_named_with_who_has_left_and_when() -> None:
    assert remaining(of(remaining=Remaining(200.0, ["worker:0"], ["worker:1", "worker:2"]))) == [
        "worker:0 left with exit code 0, 3:20 ago; still there: worker:1, worker:2"
    ]
    assert remaining(of()) == []


def test_an_attached_run_prints_each_standstill_once_its_end_and_who_remains() -> None:
    one, two = stands("worker:1@b"), stands("worker:0@a")
    there = Remaining(200.0, ["worker:2"], ["worker:0"])
    printed = lines_of(
        of(task("worker:0@a"), one), of(two, one), of(two, one), of(two, task("worker:1@b"), remaining=there),
        of(two, task("worker:1@b"), remaining=there),
    )  # fmt: skip
    assert printed == [
        "running: 2 running",
        "quiet for 5:00: worker:1@b, no line yet",
        "quiet for 5:00: worker:0@a, no line yet",
        "no longer quiet: worker:1",
        "worker:2 left with exit code 0, 3:20 ago; still there: worker:0",
    ]


def test_the_table_the_page_and_the_metrics_show_it() -> None:
    still = of(task("worker:0@a"), task("worker:1@gpu02", quiet=WORKER), remaining=Remaining(1.0, ["x"], ["y"]))
    states: List[str] = [str(cell) for cell in task_table(still.tasks).columns[2].cells]
    assert states == ["running", "running (quiet)"]
    assert [line.split(",")[0] for line in lines(still)] == [
        "quiet for 5:10: worker:1@gpu02",
        "x left with exit code 0",
    ]
    (family,) = [each for each in families("r", "gpu01", True, still) if each.name == "launch_task_quiet"]
    assert [(sample.labels["task"], sample.value) for sample in family.samples] == [("worker:0", 0), ("worker:1", 1)]
