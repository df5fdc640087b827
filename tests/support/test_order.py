"""Files of tests are taken in the order of their time, and none of the table's has gone."""

from collections import OrderedDict
from typing import Any, List

import pytest

from tests.support import ROOT
from tests.support.order import SECONDS, LongestFirst


class Node:
    """A process of pytest, which notes what it is given."""

    shutting_down = False

    def __init__(self) -> None:
        self.given: List[int] = []

    def send_runtest_some(self, indices: List[int]) -> None:
        self.given += indices


@pytest.fixture
def scheduler() -> Any:
    """One with a queue and no session."""
    scheduler = LongestFirst.__new__(LongestFirst)
    scheduler.assigned_work = OrderedDict()
    return scheduler


def test_the_longest_of_the_waiting_files_is_taken_first_and_unknown_ones_in_their_order(scheduler: Any) -> None:
    node, (*_, slow, slower) = Node(), sorted(SECONDS, key=lambda file: SECONDS[file])
    files = ["tests/a.py", f"tests/{slow}", "tests/b.py", f"tests/{slower}"]
    scheduler.workqueue = OrderedDict((file, {f"{file}::test": False}) for file in files)
    scheduler.registered_collections = {node: [f"{file}::test" for file in files]}
    while scheduler.workqueue:
        scheduler._assign_work_unit(node)
    assert [files[index] for index in node.given] == [files[3], files[1], "tests/a.py", "tests/b.py"]


def test_files_that_a_process_had_completed_before_it_died_are_not_taken_again(scheduler: Any) -> None:
    dead, other = Node(), Node()
    tests = ["tests/a.py::test", "tests/b.py::first", "tests/b.py::second", "tests/c.py::test"]
    scheduler.assigned_work[dead] = {"tests/a.py": {tests[0]: True}, "tests/b.py": {tests[1]: True, tests[2]: False}}
    scheduler.assigned_work[other] = {"tests/c.py": {tests[3]: False}}
    scheduler.workqueue, scheduler.log = OrderedDict(), print
    scheduler.registered_collections = {other: tests}
    assert (scheduler.remove_node(dead), other.given) == (tests[2], [2])


def test_every_file_of_the_table_is_there() -> None:
    assert [file for file in SECONDS if not (ROOT / "tests" / file).is_file()] == []
