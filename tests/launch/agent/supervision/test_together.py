"""Workers that meet only at the start restart together: replayed histories."""

from dataclasses import replace
from typing import Any, List, Sequence

import pytest

from launch.agent.protocol.messages import (
    End,
    Exited,
    Joined,
    KillRequested,
    Order,
    RestartRequested,
    Start,
    Stop,
    StopRequested,
)
from tests.support.agent.histories import Replay, left, started

PEER = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:31210"


def ranks(*tasks: str, **options: Any) -> Replay:
    """A program without ps, all of whose workers run."""
    return meeting(*(tasks or ("worker:0@a", "worker:1@b", "worker:2@c")), **options)


def meeting(*tasks: str, **options: Any) -> Replay:
    replay = Replay(*tasks, **{"judge": "exit", "steps": None, "restart_together": True, "frozen_s": None, **options})
    for order in replay.begin():
        replay.at(0.0, started(order.task))  # type: ignore[union-attr]
    return replay


def broken(task: str, attempt: int = 0, error: str = "", kind: str = "exception", code: int = 1) -> Exited:
    return Exited(task, attempt, code, f"exit code {code}; its error: {error}", None, kind, error=error)


def terminated(task: str, attempt: int = 0) -> Exited:
    """A program that was ended by TERM."""
    return Exited(task, attempt, -15, "killed by SIGTERM", None, "signal")


def deeds(replay: Replay) -> List[str]:
    """What was done about the only incident."""
    (incident,) = replay.run.status().incidents
    return [deed.what for deed in incident.did]


def run_again(replay: Replay, now: float, attempt: int, tasks: Sequence[str]) -> List[Order]:
    """The others end as ordered, and all start as this attempt."""
    orders = [order for task in tasks for order in replay.at(now, terminated(task, attempt - 1))]
    orders += replay.at(now + 60.0)
    for order in orders:
        assert isinstance(order, Start)
        replay.at(now + 60.0, started(order.task, attempt))
    return orders


def test_where_a_worker_fails_the_others_end_and_all_start_again_at_one_moment() -> None:
    replay = ranks()
    assert replay.at(10, broken("worker:1")) == [Stop("worker:0", 10.0, 0), Stop("worker:2", 10.0, 0)]
    assert replay.at(12) == []  # its pause is over, and the others still live
    assert replay.at(13, terminated("worker:0")) == []
    assert replay.at(15) == []
    orders = replay.at(16, terminated("worker:2"))
    assert sorted(orders, key=str) == [Start(f"worker:{index}", 1) for index in (0, 1, 2)]


def test_the_pause_of_the_failure_holds_all() -> None:
    replay = ranks(backoff_s=5.0)
    replay.at(10, broken("worker:1"), terminated("worker:0"), terminated("worker:2"))
    assert replay.at(14.9) == []
    assert len(replay.at(15)) == 3


def test_without_the_key_a_worker_restarts_alone() -> None:
    replay = ranks(restart_together=False)
    assert replay.at(10, broken("worker:1")) == []
    assert replay.at(11) == [Start("worker:1", 1)]


def test_a_common_restart_counts_once_and_those_of_all_workers_add_up() -> None:
    replay = ranks(restart_max=2)
    replay.at(10, broken("worker:1", error="ValueError: a"))
    run_again(replay, 11, 1, ["worker:0", "worker:2"])
    assert {task.failures for task in replay.run.tasks.values()} == {1}
    replay.at(200, broken("worker:0", 1, error="ValueError: b"))
    run_again(replay, 201, 2, ["worker:1", "worker:2"])
    orders = replay.at(400, broken("worker:2", 2, error="ValueError: c"))
    assert replay.run.state.cause == "worker:2@c (attempt 3 of 3): exit code 1; its error: ValueError: c"
    assert orders == [Stop("worker:0", 10.0, 2), Stop("worker:1", 10.0, 2)]


def test_a_worker_that_dies_of_the_failure_of_another_counts_nothing_and_is_no_incident_of_its_own() -> None:
    replay = ranks()
    replay.at(10, broken("worker:1", error="ValueError: a"), broken("worker:0", error=PEER, kind="lost-connection"))
    assert len(replay.at(11, left("worker:2"))) == 3  # it caught the signal
    assert len(replay.status()["incidents"]) == 1
    assert replay.run.tasks["worker:0"].failures == 1


def test_the_worker_whose_error_came_after_the_lost_connection_that_it_caused_is_the_first_cause() -> None:
    replay = ranks()
    replay.at(10, broken("worker:0", error=PEER, kind="lost-connection"))
    replay.at(11, broken("worker:1", error="ValueError: the batch has another shape"))
    (incident,) = replay.status()["incidents"]
    assert (incident["role"], incident["index"], incident["error"]) == (
        "worker",
        1,
        "ValueError: the batch has another shape",
    )
    assert [each["kind"] for each in incident["followed"]] == ["lost-connection"]


def test_a_cause_that_no_attempt_can_mend_fails_the_run_although_it_is_reported_last() -> None:
    replay = ranks(restart_max=5)
    replay.at(10, broken("worker:0", error=PEER, kind="lost-connection"))
    orders = replay.at(11, replace(broken("worker:1", error="SyntaxError: invalid syntax"), retry=False))
    assert replay.run.state.result == "failed"
    assert "worker:1@b" in str(replay.run.state.cause) and "SyntaxError" in str(replay.run.state.cause)
    assert replay.states()["worker:1"] == "failed" and replay.at(12, terminated("worker:2")) == [End("failed")]
    assert not any(isinstance(order, Start) for order in orders)


def test_a_worker_that_had_succeeded_trains_again_with_the_others_and_the_run_waits_for_it() -> None:
    replay = ranks()
    replay.at(10, left("worker:0"))
    replay.at(11, broken("worker:1"))
    starts = run_again(replay, 12, 1, ["worker:2"])
    assert len(starts) == 3
    replay.at(100, left("worker:1", 1), left("worker:2", 1))
    assert replay.run.state.result is None
    replay.at(101, left("worker:0", 1))
    assert replay.run.state.result == "succeeded"


def test_an_agent_that_ended_with_its_worker_restarts_all() -> None:
    replay = ranks()
    orders = replay.at(10, Joined("c", "another"))
    assert orders == [Stop("worker:0", 10.0, 0), Stop("worker:1", 10.0, 0)]
    replay.at(11, terminated("worker:0"))
    assert len(replay.at(12, terminated("worker:1"))) == 3
    assert {task.failures for task in replay.run.tasks.values()} == {0}
    assert deeds(replay)[-1] == "all 3 workers restart together"


def test_a_restart_by_the_operator_is_one_of_all_and_counts_nothing() -> None:
    replay = ranks()
    orders = replay.at(10, RestartRequested(["worker:1"]))
    assert sorted(orders, key=str) == [Stop(f"worker:{index}", 10.0, 0) for index in (0, 1, 2)]
    starts = run_again(replay, 11, 1, ["worker:0", "worker:1", "worker:2"])
    assert len(starts) == 3
    assert {task.failures for task in replay.run.tasks.values()} == {0}


def test_a_restart_by_the_operator_ends_the_pause_of_all_workers_and_of_no_others() -> None:
    replay = meeting("ps:0@a", "worker:0@a", "worker:1@b", backoff_s=50.0)
    replay.at(10, broken("worker:1"), terminated("worker:0"))
    assert not any(isinstance(order, Start) for order in replay.at(20, RestartRequested(["ps:0"])))
    orders = replay.at(30, RestartRequested(["worker:1"]))
    assert sorted(orders, key=str) == [Start("worker:0", 1), Start("worker:1", 1)]


def test_a_ps_and_an_evaluator_restart_alone_and_workers_without_them() -> None:
    replay = meeting("ps:0@a", "chief:0@a", "worker:0@b", "evaluator:0@a")
    assert replay.at(10, broken("ps:0")) == []
    assert replay.at(11, broken("evaluator:0")) == [Start("ps:0", 1)]
    replay.at(11, started("ps:0", 1))
    assert replay.at(12) == [Start("evaluator:0", 1)]
    assert replay.at(20, broken("worker:0")) == [Stop("chief:0", 10.0, 0)]
    assert len(replay.at(21, terminated("chief:0"))) == 2
    assert [replay.run.tasks[name].attempt for name in ("ps:0", "evaluator:0")] == [1, 1]


def test_a_process_that_hangs_in_the_kernel_ends_the_run_rather_than_meet_the_next_attempt() -> None:
    replay = ranks()
    replay.at(10, broken("worker:1"), terminated("worker:0"))
    replay.at(30, Exited("worker:2", 0, None, "pid 7 was killed and is still there", kind="frozen"))
    assert replay.run.state.result == "failed"


@pytest.mark.parametrize("request_", [StopRequested("operator"), KillRequested("operator")])
def test_a_stop_in_between_starts_none(request_: Any) -> None:
    replay = ranks()
    replay.at(10, broken("worker:1"))
    replay.at(11, request_)
    orders = [*replay.at(12, terminated("worker:0")), *replay.at(13, terminated("worker:2")), *replay.at(60)]
    assert not any(isinstance(order, Start) for order in orders)
    assert replay.run.state.label == "stopped"


def test_the_same_error_of_another_rank_is_the_same_error() -> None:
    replay = ranks(restart_max=5)
    replay.at(10, broken("worker:1", error="ValueError: bad shard 1"))
    run_again(replay, 11, 1, ["worker:0", "worker:2"])
    replay.at(75, broken("worker:0", 1, error="ValueError: bad shard 0"))
    assert replay.run.state.result == "failed"
    assert "the same error twice" in str(replay.run.state.cause)


def test_the_report_shows_what_all_do() -> None:
    replay = ranks()
    replay.at(10, broken("worker:1"))
    assert deeds(replay) == ["worker:1 restarted after 1.0 s, attempt 2 of 3", "all 3 workers restart together"]
