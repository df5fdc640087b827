"""What is asked of all tasks of a run is counted as each of them changes."""

from launch.agent.supervision.roster import Roster
from tests.launch.agent.supervision.histories import run_plan


def test_tasks_are_counted_by_state_and_their_processes_by_role() -> None:
    roster = Roster(run_plan())
    for name in ("worker:0", "worker:1"):
        roster.turn(roster.by_name[name], "running", process=True)
    roster.turn(roster.by_name["worker:1"], "restarting", process=False)
    assert (roster.number("running"), roster.number("running", "restarting")) == (1, 2)
    assert roster.processes == {"worker": 1}
    assert [task.plan.name for task in roster.running()] == ["worker:0"]
    assert [task.plan.name for task in roster.waiting()] == ["ps:0", "worker:1"]


def test_a_task_that_turns_into_what_it_is_counts_once() -> None:
    roster = Roster(run_plan())
    for _ in range(3):
        roster.turn(roster.by_name["worker:0"], "running", process=True)
    assert (roster.number("running"), roster.processes["worker"]) == (1, 1)


def test_tasks_are_found_by_their_host() -> None:
    by_host = Roster(run_plan()).by_host
    assert {host: [task.plan.name for task in by_host[host]] for host in by_host} == {
        "a": ["ps:0", "worker:0"],
        "b": ["worker:1"],
    }


def test_a_run_has_succeeded_with_those_of_its_tasks_that_decide() -> None:
    job, programs = Roster(run_plan()), Roster(run_plan(judge="exit"))
    for roster in (job, programs):
        roster.turn(roster.by_name["worker:0"], "succeeded", process=False)
    assert (job.have_succeeded, programs.have_succeeded) == (True, False)
