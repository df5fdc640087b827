"""Which of the tasks that do nothing are named, and who remains once a worker has left. Replayed."""

from typing import Any, Dict, List

from launch.agent.protocol.messages import Exited, Lost, Measured, Order, StopRequested
from launch.agent.supervision.quietness import REMAIN_S
from tests.support.agent.histories import Replay, started

STACK = 'Current thread 0x2:\n  File "/r/work/train.py", line 31 in main\n'


class Program(Replay):
    """A program with a ps and two workers on one host each, of which some do nothing."""

    def __init__(self, judge: str = "exit", **options: Any):
        super().__init__("ps:0@a", "worker:0@a", "worker:1@b", judge=judge, **options)
        self.up()

    def measure(self, now: float, *quiet: str, attempt: int = 0, **report: Any) -> List[Order]:
        """What every host has measured; these tasks have done nothing for 300 s."""
        found = {"for_s": 300.0, "line": "step 840", "line_s": 302.0, "stack": STACK, "held": None, **report}
        use = {name: {"attempt": attempt, **({"quiet": found} if name in quiet else {})} for name in self.run.tasks}
        orders = self.at(now, Measured({"ps:0": use["ps:0"], "worker:0": use["worker:0"]}))
        return orders + self.at(now + 1.0, Measured({"worker:1": use["worker:1"]})) + self.at(now + 2.0)

    def quiet(self) -> Dict[str, Any]:
        return {f"{each['role']}:{each['index']}": each["quiet"] for each in self.status()["tasks"] if each["quiet"]}


def test_a_worker_that_does_nothing_is_named_with_its_line_of_code_and_no_order_follows() -> None:
    run = Program()
    assert run.measure(400.0, "worker:1") == []
    assert run.quiet() == {
        "worker:1": {
            "at_s": 101.0, "line": "step 840", "line_at_s": 99.0, "where": "in work/train.py:31 (main)", "stack": STACK,
        }
    }  # fmt: skip
    run.measure(420.0)
    assert run.quiet() == {}


def test_a_ps_that_waits_for_a_worker_that_works_is_not_named() -> None:
    run = Program()
    run.measure(400.0, "ps:0", "worker:1")
    assert set(run.quiet()) == {"worker:1"}
    run.measure(420.0, "ps:0", "worker:0", "worker:1")
    assert set(run.quiet()) == {"ps:0", "worker:0", "worker:1"}


def test_workers_of_a_job_that_wait_for_another_one_are_not_named_and_a_whole_job_is() -> None:
    run = Program(judge="outcome")
    run.measure(400.0, "ps:0", "worker:1")
    assert run.quiet() == {}
    run.measure(420.0, "ps:0", "worker:0", "worker:1")
    assert set(run.quiet()) == {"ps:0", "worker:0", "worker:1"}
    run.measure(440.0, "ps:0", "worker:1")
    assert run.quiet() == {}


def test_while_a_task_restarts_or_a_host_is_silent_others_may_wait_for_it() -> None:
    run = Program(restart_max=2, backoff_s=100.0)
    run.at(390.0, Exited("worker:1", 0, 1, "exit code 1", kind="exit"))
    run.measure(400.0, "ps:0", "worker:0")
    assert run.states()["worker:1"] == "restarting" and run.quiet() == {}
    run.at(495.0, started("worker:1", 1))
    run.measure(500.0, "worker:0")
    run.measure(501.0)
    run.run.silent = ["b"]
    run.measure(510.0, "worker:0")
    assert run.quiet() == {}


def test_a_task_that_is_named_stays_so_while_a_link_is_broken_until_it_works() -> None:
    run = Program()
    run.measure(400.0, "worker:0")
    run.run.silent = ["b"]
    run.measure(410.0, "worker:0")
    assert set(run.quiet()) == {"worker:0"}
    run.measure(420.0)
    assert run.quiet() == {}


def test_an_elastic_run_that_has_lost_a_host_still_names_its_standstills() -> None:
    run = Program(judge="outcome", min_workers=1)
    run.at(20.0, Lost("b", 13.0))
    run.run.silent = ["b"]  # until it returns
    for task in ("ps:0", "worker:0"):
        run.at(30.0, Exited(task, 0, -15, "killed by SIGTERM"))
    assert run.states() == {"ps:0": "starting", "worker:0": "starting", "worker:1": "lost"}
    run.measure(400.0, "ps:0", "worker:0", attempt=1)
    assert set(run.quiet()) == {"ps:0", "worker:0"}


def test_a_report_about_an_earlier_attempt_names_nobody_and_the_next_attempt_clears_the_name() -> None:
    run = Program(restart_max=2, backoff_s=1.0)
    run.measure(400.0, "worker:1", attempt=3)
    assert run.quiet() == {}
    run.measure(410.0, "worker:1")
    run.at(420.0, Exited("worker:1", 0, 1, "exit code 1", kind="exit"))
    run.at(422.0)
    assert run.states()["worker:1"] == "starting" and run.quiet() == {}


def test_the_status_of_one_standstill_stays_the_same_until_its_line_is_another() -> None:
    run = Program()
    run.measure(400.0, "worker:1")
    before = run.quiet()
    run.measure(403.0, "worker:1", for_s=303.2, line_s=305.2)
    assert run.quiet() == before
    run.measure(406.0, "worker:1", for_s=306.0, line_s=0.0)
    assert run.quiet()["worker:1"]["line_at_s"] == 407.0


def test_what_holds_a_process_goes_before_its_place() -> None:
    run = Program()
    run.measure(400.0, "worker:1", held="stopped by a signal")
    assert run.quiet()["worker:1"]["where"] == "stopped by a signal"
    run.measure(420.0, "worker:1", stack=None, line=None, line_s=None)
    assert run.quiet()["worker:1"] == {"at_s": 121.0, "line": None, "line_at_s": None, "where": None, "stack": None}


def test_a_run_that_was_stopped_shows_what_stood_still_before() -> None:
    run = Program()
    run.measure(400.0, "worker:1")
    run.at(500.0, StopRequested("launch down"))
    run.measure(501.0)
    assert set(run.quiet()) == {"worker:1"}


def test_who_remains_is_known_a_while_after_a_worker_has_left_with_0() -> None:
    run = Program()
    run.at(100.0, Exited("worker:1", 0, 0))
    run.at(99.0 + REMAIN_S)
    assert run.status()["remaining"] is None
    run.at(100.5 + REMAIN_S)
    assert run.status()["remaining"] == {"at_s": 100.0, "left": ["worker:1"], "tasks": ["worker:0"]}
    run.at(200.0, Exited("worker:0", 0, 0))
    run.at(201.0)
    assert run.status()["remaining"] is None


def test_of_a_job_whose_workers_leave_when_they_are_done_nobody_remains() -> None:
    run = Program(judge="outcome")
    run.at(100.0, Exited("worker:1", 0, 0, outcome={"succeeded": True, "step": 100}))
    run.at(200.0)
    assert run.states()["worker:1"] == "succeeded" and run.status()["remaining"] is None
