"""The next attempts of tasks, in the order in which they begin."""

from launch.agent.supervision.record import TaskRecord
from launch.agent.supervision.restarts import Restarts
from launch.agent.wire.run_plan import TaskPlan


def waiting(name: str) -> TaskRecord:
    return TaskRecord(TaskPlan(name, "worker", 0, "a", "a:2222", False), state="restarting")


def test_tasks_are_due_in_the_order_of_their_times_and_once() -> None:
    restarts, first, second, later = Restarts(), waiting("first"), waiting("second"), waiting("later")
    restarts.put(later, 9.0)
    restarts.put(second, 2.0)
    restarts.put(first, 1.0)
    assert restarts.due(0.5) == []
    assert restarts.due(2.0) == [first, second]
    assert restarts.due(8.9) == []
    assert restarts.due(9.0) == [later]
    assert restarts.due(99.0) == []


def test_the_newest_time_counts() -> None:
    restarts, task = Restarts(), waiting("task")
    restarts.put(task, 5.0)
    restarts.put(task, 1.0)
    assert restarts.due(1.0) == [task]
    assert restarts.due(5.0) == []


def test_a_task_that_no_longer_waits_is_passed_over() -> None:
    restarts, task = Restarts(), waiting("task")
    restarts.put(task, 1.0)
    task.state = "stopped"
    assert restarts.due(1.0) == []
