"""Which processors each task gets: never one for two tasks, nor for two runs."""

import os
from pathlib import Path
from typing import Dict

import pytest

from cluster.protocol.settings import Limits
from launch.agent.limits.processors import Booked, ImpossibleLimit, booked, give, processors_in

EIGHT = set(range(8))
NODES = {0: {0, 1, 4, 5}, 1: {2, 3, 6, 7}}


def taken(*others: int) -> object:
    return lambda processor: processor not in others


def given(wishes: Dict[str, Limits], *others: int) -> object:
    return give(wishes, EIGHT, NODES, taken(*others))  # type: ignore[arg-type]


def test_each_task_gets_processors_of_its_own() -> None:
    wishes = {"ps:0": Limits(processors=2), "ps:1": Limits(processors=3), "worker:0": Limits(memory_gib=1)}
    assert given(wishes) == {"ps:0": (0, 1), "ps:1": (2, 3, 4)}


def test_processors_of_other_runs_are_passed_over() -> None:
    assert given({"ps:0": Limits(processors=2)}, 0, 2) == {"ps:0": (1, 3)}


def test_a_task_of_a_node_chooses_before_those_that_may_run_anywhere() -> None:
    wishes = {"worker:0": Limits(processors=4), "ps:0": Limits(processors=3, numa_node=0)}
    assert given(wishes) == {"ps:0": (0, 1, 4), "worker:0": (2, 3, 5, 6)}


def test_a_task_with_a_node_and_no_number_has_all_processors_of_the_node() -> None:
    wishes = {"ps:0": Limits(numa_node=1), "ps:1": Limits(numa_node=1)}
    assert given(wishes) == {"ps:0": (2, 3, 6, 7), "ps:1": (2, 3, 6, 7)}


@pytest.mark.parametrize(
    ("limits", "others", "text"),
    [
        (Limits(processors=9), (), "limits.processors of ps:0: expected 9 processors, found 8 that no other task"),
        (Limits(processors=5, numa_node=0), (), "limits.processors of ps:0: expected 5 processors, found 4 that"),
        (Limits(processors=1), range(8), "limits.processors of ps:0: expected 1 processor, found 0 that no other"),
        (Limits(numa_node=2), (), r"limits.numa_node of ps:0: expected a NUMA node with processors \(0, 1\), found 2"),
    ],
)
def test_what_a_host_lacks_is_said_with_what_it_has(limits: Limits, others: object, text: str) -> None:
    with pytest.raises(ImpossibleLimit, match=f"^{text}"):
        given({"ps:0": limits}, *others)  # type: ignore[misc]


def test_a_processor_is_booked_by_one_run_and_seen_by_all_until_it_is_released() -> None:
    number = 10**9 + os.getpid()  # of no machine: this one's may be booked by a run
    first, second = Booked(), Booked()
    assert first.take(number) and not second.take(number)
    assert number in booked()
    first.release()
    assert number not in booked()
    assert second.take(number)
    second.release()


def test_a_name_that_only_begins_like_ours_is_no_processor(tmp_path: Path) -> None:
    (tmp_path / "unix").write_text(
        "Num Path\n0: 1 @launch/processor/3\n0: 2 @launch/processor/3x\n0: 3 @launch/gpu/4\n"
    )
    assert booked(tmp_path / "unix") == {3}


def test_the_kernel_s_lists_of_processors_are_read() -> None:
    assert processors_in("0-2,8\n") == {0, 1, 2, 8}
    assert processors_in("\n") == set()
