"""A number of a status is shown where its declaration says, and nothing else names it for that."""

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest

from launch.monitoring.exporter import families
from launch.page.run_page import facts
from launch.status.run import RUN_NUMBERS, RunStatus
from launch.status.task import TASK_NUMBERS, Number, TaskStatus
from launch.view.task_table import PLACES, task_table
from tests.support.launch.statuses import status, task


@pytest.mark.parametrize("kind, numbers", [(TaskStatus, TASK_NUMBERS), (RunStatus, RUN_NUMBERS)])
def test_each_number_is_of_its_status_and_its_metric_and_its_column_are_its_own(kind: Any, numbers: Any) -> None:
    assert [each.field for each in numbers if not hasattr(kind(), each.field)] == []
    assert {each.field for each in numbers if each.heading} <= {each.name for each in fields(kind)}
    places = [each.heading.place for each in numbers if each.heading]
    names = [each.metric for each in numbers if each.metric]
    assert [each for each, count in Counter([*places, *names]).items() if count > 1] == []
    assert len(PLACES) == 6 + len([each for each in TASK_NUMBERS if each.heading])  # six columns are no numbers


@pytest.mark.parametrize("number", [each for each in TASK_NUMBERS if each.heading], ids=lambda each: each.field)
def test_a_number_has_its_column_with_news_only(number: Number) -> None:
    assert number.heading is not None
    default = getattr(TaskStatus, number.field)
    without, with_it = replace(task(), **{number.field: default}), replace(task(), **{number.field: 7})
    shown = [[str(each.header) for each in task_table([one]).columns] for one in (without, with_it)]
    assert [number.heading.text in each for each in shown] == [False, True]


def test_a_metric_is_in_the_unit_of_prometheus() -> None:
    still = status(task(wait_ms=500.0, gpu_percent=50.0, gpu_memory_bytes=3), waiting_share=0.25)
    values = {family.name: [each.value for each in family.samples] for family in families("r", "h", True, still)}
    found = [values[f"launch_{name}"] for name in ("task_wait_seconds", "task_gpu_busy_ratio", "task_gpu_memory_bytes")]
    assert found == [[0.5], [0.5], [3.0]] and values["launch_waiting_ratio"] == [0.25]


def test_a_number_with_a_heading_for_the_page_has_its_column_there() -> None:
    found = facts(status(task(gpu_percent=12.5)))
    assert ["GPU, %", "gpu_percent", 0] in found["numbers"]
    assert [row["gpu_percent"] for row in found["tasks"]] == [12.5]
