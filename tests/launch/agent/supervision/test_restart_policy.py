"""The next attempts of tasks, in the order in which they begin, and the pauses before them."""

from typing import List, Tuple

from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.restart_policy import LONGEST_PAUSE_S, Restarts, pause_s
from launch.agent.supervision.task_records import Roster, TaskRecord
from tests.support.agent.histories import run_plan


def three_tasks() -> Tuple[Restarts, List[TaskRecord]]:
    """A queue, and the tasks of its run."""
    plan = run_plan(["worker:0@a", "worker:1@a", "worker:2@a"])
    roster = Roster(plan)
    return Restarts(plan, roster, Incidents(roster.by_name)), list(roster.by_name.values())


def test_tasks_are_due_in_the_order_of_their_times_and_once() -> None:
    restarts, (first, second, later) = three_tasks()
    restarts.put(later, 9.0)
    restarts.put(second, 2.0)
    restarts.put(first, 1.0)
    assert restarts.pop_due(0.5) == []
    assert restarts.pop_due(2.0) == [first, second]
    assert restarts.pop_due(8.9) == []
    assert restarts.pop_due(9.0) == [later]
    assert restarts.pop_due(99.0) == []


def test_the_newest_time_counts() -> None:
    restarts, (task, *_) = three_tasks()
    restarts.put(task, 5.0)
    restarts.put(task, 1.0)
    assert restarts.pop_due(1.0) == [task]
    assert restarts.pop_due(5.0) == []


def test_a_task_that_no_longer_waits_is_passed_over() -> None:
    restarts, (task, *_) = three_tasks()
    restarts.put(task, 1.0)
    task.state = "stopped"
    assert restarts.pop_due(1.0) == []


def test_the_pause_before_the_next_attempt_doubles_up_to_a_minute_however_often_it_failed() -> None:
    pauses = [pause_s(failures, 1.0) for failures in (0, 1, 5, 6, 10_000)]
    assert pauses == [1.0, 2.0, 32.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_pause_that_begins_with_more_than_a_minute_stays_as_it_is() -> None:
    assert pause_s(3, 300.0) == 300.0
