"""What a run does next follows from what happened and when: histories are replayed, nothing is started."""

from typing import Any, Dict, List

import pytest

from launch.agent.protocol.messages import (
    End,
    Event,
    Go,
    Joined,
    Lost,
    Order,
    Start,
    Started,
    Stop,
    StopRequested,
    Tick,
)
from launch.agent.supervision.run_state import SupervisionRule
from launch.agent.supervision.task_records import TaskRecord
from tests.support.agent.histories import Replay, advanced, failed, left, started, succeeded

# -- the beginning


def test_tasks_start_when_every_host_has_joined_and_the_launcher_said_go() -> None:
    replay = Replay()
    assert replay.at(0, Joined("a"), Go(), Tick()) == []
    assert replay.run.state.label == "starting"
    assert replay.at(1, Joined("b")) == [Start("ps:0", 0), Start("worker:0", 0), Start("worker:1", 0)]


def test_without_go_nothing_starts_however_long_the_hosts_wait() -> None:
    replay = Replay()
    assert replay.at(0, Joined("a"), Joined("b")) == []
    assert replay.at(1e6) == []


def test_a_host_that_does_not_join_in_time_after_go_fails_the_run_and_is_named() -> None:
    replay = Replay(control="a:2300", join_s=20.0)
    assert replay.at(100, Joined("a"), Tick()) == []
    assert replay.at(200, Go()) == [] and replay.at(220) == []
    assert replay.at(220.1) == [End("failed")]
    assert replay.run.state.cause == (
        "b: its agent has not reached the lead agent at a:2300 within 20 s; `launch check` names the closed port, or "
        "the name that resolves to another machine there"
    )


def test_a_run_is_running_once_every_task_has_told_of_progress_and_stays_so_through_a_restart() -> None:
    replay = Replay()
    replay.begin()
    replay.at(1, started("ps:0"), advanced("ps:0"), started("worker:0"), advanced("worker:0"), started("worker:1"))
    assert replay.run.state.label == "starting"
    replay.at(2, advanced("worker:1"))
    assert replay.run.state.label == "running"
    replay.at(3, failed("worker:1"))
    assert replay.run.state.label == "running"


def test_a_foreign_program_runs_as_soon_as_its_process_does() -> None:
    replay = Replay("worker:0@a", judge="exit")
    replay.begin()
    replay.at(1, started("worker:0"))
    assert replay.run.state.label == "running"


# -- lost hosts


def test_a_lost_host_fails_the_run_and_its_tasks_are_lost_not_stopped() -> None:
    replay = Replay()
    replay.up()
    orders = replay.at(20, Lost("b", 15.0))
    assert replay.states()["worker:1"] == "lost"
    assert replay.run.state.cause == "b: no message for 15 s (host down, network cut, or its agent ended)"
    assert replay.run.tasks["worker:1"].cause == replay.run.state.cause
    assert orders == [Stop("worker:0", 10.0)]
    assert replay.at(21, left("worker:0", code=-15)) == [Stop("ps:0", 10.0)]
    assert replay.at(22, left("ps:0", code=-15)) == [End("failed")]


def test_a_host_that_is_lost_while_the_run_is_stopped_is_not_waited_for() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, StopRequested("enough"), left("worker:0", code=-15))
    assert replay.at(2, Lost("b", 15.0)) == [Stop("ps:0", 10.0)]
    assert replay.run.state.cause == "enough"


def test_what_a_lost_host_tells_later_changes_nothing() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, Lost("b", 15.0))
    assert replay.at(2, Joined("b"), Started("worker:1", 0, 9, [], ""), succeeded("worker:1")) == []
    assert replay.states()["worker:1"] == "lost"


# -- a rule more


class Deadline(SupervisionRule):
    """A run that lasts for too long fails."""

    def handle(self, event: Event, now: float) -> List[Order]:
        if now > 60.0:
            self._run.close("failed", "it has lasted for more than 60 s", now)
        return []


def test_another_rule_is_one_class_and_one_place_before_the_ending() -> None:
    replay = Replay()
    *others, ending = replay.run.rules
    replay.run.rules = (*others, Deadline(replay.run), ending)
    replay.up()
    assert replay.at(60.0) == []
    assert replay.at(60.1) == [Stop("worker:0", 10.0), Stop("worker:1", 10.0)]
    assert replay.run.state.cause == "it has lasted for more than 60 s"


# -- thousands of tasks


class Walked(Dict[str, TaskRecord]):
    """Tasks that count how often somebody looks at all of them."""

    walks = 0

    def values(self) -> Any:
        self.walks += 1
        return super().values()


@pytest.mark.parametrize("judge", ["outcome", "exit"])
def test_what_an_event_costs_does_not_grow_with_the_number_of_tasks(judge: str) -> None:
    replay = Replay("ps:0@a", *(f"worker:{index}@h{index}" for index in range(300)), judge=judge)
    tasks = replay.run.tasks = Walked(replay.run.tasks)
    replay.up()
    for step in range(5):
        replay.at(step, *(advanced(name, step) for name in tasks))
    replay.at(9, failed("worker:7"), *(advanced(name, 9) for name in tasks))
    replay.at(10, Tick(), started("worker:7", 1), advanced("worker:7", attempt=1))
    replay.at(11, *(succeeded(name, attempt=int(name == "worker:7")) for name in tasks if name != "ps:0"))
    replay.at(12, succeeded("ps:0"))
    assert replay.run.state.label == "succeeded"
    assert tasks.walks < 10  # of some two thousand events
