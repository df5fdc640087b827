"""The tasks of a run in the room that there is."""

import io
import random
from dataclasses import replace
from typing import Any, List, Optional

import pytest
from rich.console import Console

from launch.status.incident_status import IncidentStatus
from launch.status.run import TASK_STATES
from launch.status.task import TaskStatus
from launch.view.task_table import count_left_out, divided, task_table, urgency
from tests.support.launch.statuses import status, task

WORKERS = [task(f"worker:{index}@g{index}") for index in range(100)]


def left_out(tasks: List[TaskStatus], most: Optional[int]) -> List[str]:
    """The line about the tasks without a row."""
    return count_left_out(divided(tasks, most, urgency(status(*tasks)))[1])


def drawn(tasks: List[TaskStatus], width: Optional[int] = None, most: Optional[int] = None) -> List[str]:
    """The lines of a table."""
    console = Console(file=io.StringIO(), width=width or 500)
    console.print(task_table(divided(tasks, most, urgency(status(*tasks)))[0], width))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def test_a_row_has_what_is_known_of_a_task() -> None:
    head, server, worker = drawn([task("ps:0@cpu01"), task(gpus=[0, 1], step=50, step_time_ms=31.94, restarts=2)])
    assert head.split() == ["task", "host", "state", "step", "ms/step", "gpus", "restarts", "pid", "address"]
    assert server.split() == ["ps:0", "cpu01", "running", "-", "-", "cpu", "0", "42", "cpu01:2222"]
    assert worker.split() == ["worker:0", "gpu01", "running", "50", "31.9", "0,1", "2", "42", "gpu01:2222"]


def test_a_cause_has_a_column_when_there_is_one() -> None:
    text = "\n".join(drawn([task(), task("worker:1@gpu02", "failed", cause="exit code 3; its last line: [boom]")]))
    assert "cause" in text and "exit code 3; its last line: [boom]" in text
    assert "cause" not in drawn([task()])[0]


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    text = "\n".join(drawn([task(address="[fd00::1]:2222"), task("worker:1@gpu02", address="h:smile:2222")]))
    assert "[fd00::1]:2222" in text and "h:smile:2222" in text


def test_a_starting_task_shows_its_activity() -> None:
    assert "starting: builds its graph" in drawn([task(state="starting", doing="builds its graph")])[1]


def test_of_many_tasks_those_in_trouble_are_first_and_the_rest_is_counted() -> None:
    tasks = list(WORKERS)
    tasks[77] = replace(tasks[77], state="restarting")
    tasks[88] = replace(tasks[88], state="failed")
    tasks[99] = replace(tasks[99], straggler=True)
    lines = drawn(tasks, most=10)
    assert [line.split()[0] for line in lines[1:5]] == ["worker:88", "worker:77", "worker:99", "worker:0"]
    assert len(lines) == 10  # a head and nine rows
    assert left_out(tasks, 10) == ["… and 91 more: 91 running"]


LOST = IncidentStatus(number=1, kind="host", host="g3", cause="no message for 15 s")
DIED = IncidentStatus(number=2, kind="signal", role="worker", index=60, host="g60")


@pytest.mark.parametrize("state", ["running", "succeeded", "stopped"])
def test_those_that_had_trouble_stay_first_for_the_whole_life_of_a_run(state: str) -> None:
    tasks = [replace(each, state=state) for each in WORKERS]
    tasks[50] = replace(tasks[50], restarts=1)
    tasks[99] = replace(tasks[99], state="stopped")
    rank = urgency(status(*tasks, incidents=[LOST, DIED]))
    assert [each.index for each in divided(tasks, 6, rank)[0]][:3] == [3, 50, 60]


FEW_AND_MORE: List[Any] = [{}, {"restarts": 1, "gpus": [0], "step": 3}]


def test_a_column_that_holds_nothing_is_left_out() -> None:
    heads = [drawn([task(**fields)])[0].split() for fields in FEW_AND_MORE]
    assert heads[0] == ["task", "host", "state", "pid", "address"]
    assert heads[1] == ["task", "host", "state", "step", "gpus", "restarts", "pid", "address"]


@pytest.mark.parametrize("most", [None, 100, 200])
def test_nothing_is_left_out_of_a_table_that_has_the_room(most: Optional[int]) -> None:
    assert len(drawn(WORKERS, most=most)) == 101
    assert left_out(WORKERS, most) == []


def any_task(chance: random.Random, index: int) -> TaskStatus:
    """A task with any of its fields known."""
    known: Any = {
        "step": 10 ** chance.randrange(9), "step_time_ms": 3e4 * chance.random(), "wait_ms": 4.0, "restarts": 12,
        "gpus": [0, 1, 10, 11], "gpu_percent": 99.0, "gpu_memory_bytes": 10**11, "dropped_gradients": 7,
        "bytes_in_per_second": 1e9, "bytes_out_per_second": 1e3, "doing": "initialises its variables",
        "cause": "exit code 1; its error: " + "x" * chance.randrange(200), "straggler": True,
    }  # fmt: skip
    some = {field: value for field, value in known.items() if chance.random() < 0.5}
    host = chance.choice(["gpu01", "n00001", "gpu-node-0017.eu-west-1.compute.internal", "fd00::1"])
    return task(f"worker:{index}@{host}", chance.choice(TASK_STATES), **some)


def test_no_line_is_longer_than_the_terminal_and_no_tasks_name_is_ever_cut() -> None:
    chance = random.Random(17)
    for _ in range(100):
        tasks = [any_task(chance, index * 37) for index in range(chance.randrange(1, 40))]
        width, most = chance.randrange(40, 260), chance.choice([None, 3, 10])
        lines = drawn(tasks, width, most)
        assert max(map(len, lines)) <= width
        names = [line.split()[0] for line in lines[1:]]
        assert set(names) <= {each.name for each in tasks}
        assert len(names) == (len(tasks) if most is None or len(tasks) <= most else most - 1)
        assert "state" in lines[0]  # it has room at every width


def test_columns_give_way_in_the_order_of_their_rank() -> None:
    known: Any = {"bytes_in_per_second": 1e6, "bytes_out_per_second": 1e6, "restarts": 1}
    tasks = [task(step=5, step_time_ms=1.0, wait_ms=1.0, gpus=[0], **known)]
    heads = [drawn(tasks, width)[0].split("  ") for width in (140, 80, 60, 45)]
    shown = [{heading.strip() for heading in head if heading.strip()} for head in heads]
    assert shown[0] >= {"address", "in/s", "out/s", "pid"}
    assert "out/s" not in shown[1] and shown[1] >= {"task", "host", "state", "gpus", "restarts", "pid"}
    assert "pid" not in shown[2] and shown[2] >= {"task", "host", "state", "gpus", "restarts"}
    assert shown[3] == {"task", "host", "state", "step", "ms/step"}
