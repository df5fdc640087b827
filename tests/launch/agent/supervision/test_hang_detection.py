"""A frozen task is named, by what it tells itself and what the kernel says, and never a task that is not."""

from typing import Any, Dict, List, Optional

import pytest

from launch.agent.protocol.messages import Exited, RestartRequested, Signs, Start, Stop, StopRequested
from launch.agent.supervision import hang_detection
from tests.support.agent.histories import Replay, advanced, failed, started

STEP_S = 0.5


def sign(task: str, attempt: int = 0, state: str = "S", **told: Any) -> Signs:
    """What an agent tells of one task: one that lives, and waits for others in a step, unless it is said otherwise."""
    values = {"stopped_s": 0.0, "silent_s": 0.0, "phase": "step", "phase_s": 0.0, "slowest_s": STEP_S, "owes": False}
    values.update(told)
    return Signs({task: {"attempt": attempt, "state": state, "counted_s": values["phase_s"], **values}})


def run(*tasks: str, **options: Any) -> Replay:
    """A run whose tasks have been running for a while."""
    replay = Replay(*(tasks or ("ps:0@a", "worker:0@a", "worker:1@b")), **options)
    replay.up()
    pass_time(replay, 0.0, 100.0)
    return replay


def pass_time(replay: Replay, start: float, end: float) -> None:
    """The lead lives through these seconds."""
    for quarter in range(int((end - start) * 4) + 1):
        replay.at(start + quarter / 4)


def killed(orders: List[Any]) -> List[str]:
    """The tasks that are killed, each with its stack."""
    assert all(isinstance(order, Stop) and order.stack and order.grace_s == 0.0 for order in orders), orders
    return [order.task for order in orders]


def test_a_task_that_a_signal_has_stopped_is_killed_with_its_stack_and_started_again() -> None:
    replay = run()
    assert replay.at(100.0, sign("worker:1", state="T", stopped_s=9.0)) == []
    assert killed(replay.at(101.0, sign("worker:1", state="T", stopped_s=10.0))) == ["worker:1"]
    assert replay.run.tasks["worker:1"].cause == "frozen: stopped by a signal for 10 s"
    replay.at(
        101.5, Exited("worker:1", 0, -9, "killed by SIGKILL", stack='  File "/c/jobs/digits.py", line 31 in inputs')
    )
    record = replay.run.tasks["worker:1"]
    assert (record.state, record.failures) == ("restarting", 1)
    assert record.cause == "frozen: stopped by a signal for 10 s, in jobs/digits.py:31 (inputs)"
    assert replay.at(102.5) == [Start("worker:1", 1)]


def test_its_incident_names_it_and_ends_when_it_trains_again() -> None:
    replay = run()
    replay.at(100.0, advanced("worker:1", 5, examples=5), advanced("worker:0", 5, examples=5))
    replay.at(111.0, sign("worker:1", state="T", stopped_s=10.0))
    (incident,) = replay.status()["incidents"]
    assert (incident["kind"], incident["role"], incident["index"], incident["host"]) == ("frozen", "worker", 1, "b")
    replay.at(111.1, advanced("worker:1", 9, examples=9))  # while it was let go on to tell where it was
    replay.at(111.5, Exited("worker:1", 0, -9, "killed by SIGKILL", stack="stack"))
    replay.at(112.5)
    replay.at(113.0, started("worker:1", 1), advanced("worker:1", 10, attempt=1, examples=1))
    (incident,) = replay.status()["incidents"]
    assert (incident["open"], incident["stack"], incident["exit_code"]) == (False, "stack", -9)


def test_a_task_is_accused_once_per_attempt_and_counts_as_failed_each_time() -> None:
    replay = run(restart_max=1)
    stopped: Dict[str, Any] = {"state": "T", "stopped_s": 11.0}
    assert killed(replay.at(100.0, sign("worker:1", **stopped))) == ["worker:1"]
    assert replay.at(101.0, sign("worker:1", **stopped)) == []
    replay.at(102.0, Exited("worker:1", 0, -9, "killed by SIGKILL"))
    replay.at(104.0, started("worker:1", 1), advanced("worker:1", attempt=1))
    assert replay.at(105.0, sign("worker:1", **stopped)) == []  # of the attempt before
    assert killed(replay.at(106.0, sign("worker:1", attempt=1, **stopped))) == ["worker:1"]
    replay.at(107.0, Exited("worker:1", 1, -9, "killed by SIGKILL"))
    assert replay.run.state.cause == "worker:1@b (attempt 2 of 2): frozen: stopped by a signal for 11 s"


@pytest.mark.parametrize(
    "told",
    [
        {"silent_s": 10.0},
        {"silent_s": 10.0, "phase": "serving"},
        {"silent_s": 300.0, "phase": "starting"},
        {"silent_s": 60.0, "phase": "saving"},
        {"phase_s": 10.0, "owes": True},
        {"phase_s": 20.0, "owes": True, "slowest_s": 4.0},
        {"phase_s": 60.0, "owes": True, "usual_s": 30.0},  # of which it waited nearly all
        {"phase_s": 300.0, "owes": True, "phase": "first step"},
        {"phase_s": 60.0, "phase": "saving", "owes": None},
        {"stopped_s": 10.0, "state": "T", "phase": "starting"},
    ],
)
def test_what_makes_a_task_frozen(told: Dict[str, Any]) -> None:
    replay = run()
    pass_time(replay, 100.0, 500.0)
    assert killed(replay.at(500.0, sign("worker:1", **told))) == ["worker:1"]


@pytest.mark.parametrize(
    "told",
    [
        {"silent_s": 9.0},
        {"silent_s": 19.0, "slowest_s": 4.0},  # a sign of life may be as late as a step is long
        {"silent_s": 299.0, "phase": "starting"},
        {"silent_s": 59.0, "phase": "ending"},
        {"phase_s": 9.0, "owes": True},
        {"phase_s": 19.0, "owes": True, "slowest_s": 4.0},
        {"phase_s": 59.0, "owes": True, "usual_s": 30.0},
        {"phase_s": 200.0, "owes": False},  # it waits for another
        {"phase_s": 200.0, "owes": None},  # nobody knows
        {"phase_s": 299.0, "owes": True, "phase": "first step"},
        {"phase_s": 600.0, "phase": "starting", "owes": None},
        {"phase_s": 600.0, "phase": "ending", "owes": None},
        {"phase_s": 59.0, "phase": "saving", "owes": None},
        {"phase_s": 299.0, "phase": "saving", "owes": None, "slowest_s": 30.0},
        {"silent_s": 200.0, "state": "t"},  # a debugger holds it
    ],
)
def test_what_does_not(told: Dict[str, Any]) -> None:
    replay = run()
    pass_time(replay, 100.0, 700.0)
    assert replay.at(700.0, sign("worker:1", **told)) == []


def test_a_task_has_its_full_time_from_when_the_step_waits_for_it_and_not_for_others() -> None:
    replay = run()
    pass_time(replay, 100.0, 130.0)
    assert replay.at(130.0, sign("worker:1", phase_s=30.0, owes=False)) == []
    assert replay.at(131.0, sign("worker:1", phase_s=31.0, owes=True)) == []
    assert replay.at(139.0, sign("worker:1", phase_s=39.9, owes=True)) == []
    assert killed(replay.at(140.0, sign("worker:1", phase_s=40.0, owes=True))) == ["worker:1"]


def test_what_it_did_not_owe_in_one_step_is_not_taken_off_another() -> None:
    replay = run()
    assert replay.at(100.0, sign("worker:1", phase_s=30.0, owes=False)) == []
    assert replay.at(104.0, sign("worker:1", phase_s=3.0, owes=None)) == []
    assert killed(replay.at(111.0, sign("worker:1", phase_s=10.0, owes=True))) == ["worker:1"]


def test_a_run_that_says_so_waits_longer_or_for_ever() -> None:
    assert run(frozen_s=60.0).at(100.0, sign("worker:1", phase_s=59.0, owes=True)) == []
    assert killed(run(frozen_s=60.0).at(100.0, sign("worker:1", phase_s=60.0, owes=True))) == ["worker:1"]
    assert run(frozen_s=None).at(100.0, sign("worker:1", state="T", stopped_s=5000.0)) == []


def test_a_worker_is_not_accused_while_a_ps_is_stopped_for_which_it_waits() -> None:
    replay = run()
    late = sign("worker:0", phase_s=10.0, owes=True)
    assert killed(replay.at(100.0, sign("ps:0", state="T", stopped_s=10.0, phase="serving"), late)) == ["ps:0"]


def test_nor_by_a_debugger_in_another() -> None:
    replay = run()
    assert replay.at(100.0, sign("ps:0", state="t", silent_s=4.0), sign("worker:0", phase_s=90.0, owes=True)) == []


def test_nor_while_a_ps_comes_back_and_then_it_has_as_long_as_before() -> None:
    replay = run()
    replay.at(100.0, failed("ps:0"))
    assert replay.at(100.0, sign("worker:0", phase_s=10.0, owes=True)) == []
    pass_time(replay, 100.0, 120.0)
    replay.at(120.0, started("ps:0", 1), advanced("ps:0", attempt=1))
    pass_time(replay, 120.0, 129.0)
    assert replay.at(129.0, sign("worker:0", phase_s=39.0, owes=True)) == []
    pass_time(replay, 129.0, 130.5)
    assert killed(replay.at(130.5, sign("worker:0", phase_s=40.0, owes=True))) == ["worker:0"]


def test_nor_while_a_host_is_silent() -> None:
    replay = run()
    replay.run.silent = ["b"]
    assert replay.at(100.0, sign("worker:0", phase_s=12.0, owes=True)) == []
    replay.run.silent = []
    assert replay.at(101.0, sign("worker:0", phase_s=13.0, owes=True)) == []
    pass_time(replay, 101.0, 111.0)
    assert killed(replay.at(111.0, sign("worker:0", phase_s=23.0, owes=True))) == ["worker:0"]


def test_nor_by_a_silent_host_that_the_run_goes_on_without() -> None:
    replay = run("ps:0@a", "worker:0@a", "worker:1@b")
    replay.run.silent = ["b"]
    replay.run.tasks["worker:1"].process = False  # as where a run is formed anew without its host
    assert killed(replay.at(100.0, sign("worker:0", phase_s=12.0, owes=True))) == ["worker:0"]


def test_nor_while_the_chief_saves_what_takes_the_ps_time() -> None:
    replay = run()
    for second in range(100, 130):
        saving = sign("worker:0", phase="saving", phase_s=second - 100.0, owes=None)
        assert replay.at(float(second), saving, sign("worker:1", phase_s=second - 100.0, owes=True)) == []
    pass_time(replay, 130.0, 138.0)
    assert replay.at(138.0, sign("worker:0"), sign("worker:1", phase_s=38.0, owes=True)) == []
    pass_time(replay, 138.0, 141.0)
    assert killed(replay.at(141.0, sign("worker:1", phase_s=41.0, owes=True))) == ["worker:1"]


def test_a_ps_that_is_not_started_again_excuses_nobody() -> None:
    replay = run("ps:0@a", "ps:1@a", "worker:0@a")
    replay.at(100.0, failed("ps:1"))
    replay.run.tasks["ps:1"].state = "stopped"  # as where a run is formed anew without it
    pass_time(replay, 100.0, 111.0)
    assert "worker:0" in [each.task for each in replay.at(111.0, sign("worker:0", phase_s=11.0, owes=True))]  # type: ignore[union-attr]


def test_two_that_are_stuck_at_a_time_are_both_named() -> None:
    replay = run()
    assert killed(replay.at(100.0, sign("worker:0", phase_s=10.0, owes=True))) == ["worker:0"]
    replay.at(100.5, Exited("worker:0", 0, -9, "killed by SIGKILL"))
    assert killed(replay.at(101.0, sign("worker:1", phase_s=11.0, owes=True))) == ["worker:1"]


def test_a_task_that_is_ended_by_the_operator_is_not_accused() -> None:
    replay = run()
    replay.at(100.0, RestartRequested(["worker:1"]))
    assert replay.at(101.0, sign("worker:1", silent_s=20.0)) == []
    replay.at(102.0, StopRequested("enough"))
    assert replay.at(103.0, sign("worker:0", silent_s=20.0)) == []


def test_a_run_whose_every_process_is_stopped_has_been_paused() -> None:
    replay = run()
    for second in range(100, 130):
        stopped: Dict[str, Any] = {"state": "T", "stopped_s": float(second - 100), "silent_s": float(second - 100)}
        signs = [sign(task, **stopped) for task in ("ps:0", "worker:0", "worker:1")]
        assert replay.at(float(second), *signs) == []


def test_what_the_lead_did_not_live_through_counts_against_nobody() -> None:
    replay = run()
    replay.at(100.0, failed("ps:0"), started("ps:0", 1))
    replay.at(102.0, advanced("ps:0", attempt=1))
    assert replay.at(500.0, sign("worker:0", phase_s=398.0, owes=True)) == []


def test_a_program_of_others_that_a_signal_has_stopped_is_frozen_too() -> None:
    replay = Replay(judge="exit")
    for order in replay.begin():
        replay.at(0.0, started(order.task))  # type: ignore[union-attr]
    told = {"attempt": 0, "state": "T", "stopped_s": 10.0, "silent_s": 0.0}
    assert killed(replay.at(20.0, Signs({"worker:1": told}))) == ["worker:1"]


PYTHON = """\
Thread 0x00007f (most recent call first):
  File "/usr/lib/python3.7/threading.py", line 300 in wait
  File "/w/code/ab/cluster/protocol/heartbeat.py", line 108 in _live

Thread 0x00007f (most recent call first):
{inputs}
Thread 0x00007f (most recent call first):
  File "/v/lib/python3.7/site-packages/tensorflow_core/python/client/session.py", line 1443 in _call_tf_sessionrun
  File "/w/code/ab/cluster/steps/sync_worker.py", line 122 in step
  File "/w/code/ab/jobs/main.py", line 74 in _run
"""


@pytest.mark.parametrize(
    "inputs, where",
    [
        ('  File "/w/code/cd/jobs/digits.py", line 31 in inputs\n', "in jobs/digits.py:31 (inputs)"),
        ("", "in cluster/steps/sync_worker.py:122 (step)"),
    ],
)
def test_the_place_is_in_the_jobs_own_code_where_there_is_any(inputs: str, where: Optional[str]) -> None:
    assert hang_detection.place(PYTHON.format(inputs=inputs)) == where


def test_without_a_stack_there_is_no_place() -> None:
    assert hang_detection.place("pid 7, state D:\n  3 threads in nfs_wait") is None
    assert hang_detection.as_failure(Exited("worker:1", 0, -9, "killed by SIGKILL"), "silent").cause == "frozen: silent"


def test_a_step_that_is_slow_only_since_the_task_gets_little_of_a_processor_is_not_accused() -> None:
    replay = run()
    for second in range(60):
        told = sign("worker:1", phase_s=4.0 + second, counted_s=(4.0 + second) / 10, owes=True)
        assert replay.at(100.0 + second, told) == []
    assert killed(replay.at(161.0, sign("worker:1", phase_s=104.0, counted_s=10.4, owes=True))) == ["worker:1"]


def owing(phase_s: float, *tasks: str) -> List[Signs]:
    """What the agents tell of tasks that are in a step that waits for them."""
    return [sign(task, phase_s=phase_s, owes=True) for task in tasks]


def test_a_step_that_lasts_for_all_workers_at_once_is_nobodys_fault_for_five_minutes() -> None:
    replay = run()
    for second in range(4, 300):
        assert replay.at(100.0 + second, *owing(float(second), "worker:0", "worker:1")) == []
    orders = [
        order
        for second in range(300, 303)
        for order in replay.at(400.0 + second - 300, *owing(float(second), "worker:0", "worker:1"))
    ]
    assert sorted(killed(orders)) == ["worker:0", "worker:1"]


def test_as_soon_as_one_of_them_goes_on_the_other_is_accused() -> None:
    replay = run()
    for second in range(4, 30):
        assert replay.at(100.0 + second, *owing(float(second), "worker:0", "worker:1")) == []
    orders = [
        order for second in range(30, 40) for order in replay.at(100.0 + second, *owing(float(second), "worker:1"))
    ]
    assert killed(orders) == ["worker:1"]


def test_the_only_worker_of_a_run_is_accused_as_ever() -> None:
    replay = run("ps:0@a", "worker:0@a")
    orders = [
        order for second in range(4, 12) for order in replay.at(100.0 + second, *owing(float(second), "worker:0"))
    ]
    assert killed(orders) == ["worker:0"]
