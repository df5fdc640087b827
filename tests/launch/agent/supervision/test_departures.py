"""A host that leaves in order costs an elastic run no step; any other run saves and stops, and names how to go on."""

from typing import List

import pytest

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import (
    DrainRequested,
    Go,
    Joined,
    Leaving,
    Lost,
    Order,
    Prepare,
    Save,
    Start,
    Stop,
)
from launch.agent.supervision.run_state import Phase
from tests.launch.agent.supervision.test_drain import Draining
from tests.support.agent.histories import Replay, advanced, failed

WHY = "its agent received SIGTERM"
HOW = f"leaves: {WHY}; continue with `launch up --resume FILE`"


def training(*tasks: str, **options: object) -> Replay:
    """A run whose chief can save."""
    replay = Replay(*tasks, **options)
    replay.up()
    replay.at(0, advanced("worker:0", 7, save_begun=0, save_done=0))
    return replay


def prepared(orders: List[Order]) -> List[str]:
    return [order.task for order in orders if isinstance(order, Prepare)]


@pytest.mark.parametrize("host", ["a", "b"])
def test_a_run_that_is_not_elastic_saves_and_stops_and_its_cause_has_the_next_command(host: str) -> None:
    replay = training()
    assert replay.at(1, Leaving(host, WHY)) == [Save("worker:0", 0, 1, HOLD)]
    assert replay.at(2, advanced("worker:0", 8, save_begun=1, save_done=1)) == [
        Stop("worker:0", 10.0), Stop("worker:1", 10.0),
    ]  # fmt: skip
    for task in ("worker:0", "worker:1", "ps:0"):
        replay.at(3, failed(task, code=-15))
    status = replay.status()
    assert (status["state"], status["cause"], status["departed"]) == ("stopped", f"{host} {HOW}", host)


def test_an_elastic_run_saves_at_once_and_goes_on_without_the_host() -> None:
    run = Draining()
    save, *orders = run.at(10, Leaving("d", WHY))
    assert save == Save("worker:0", 0, 1)
    assert set(prepared(orders)) == {"ps:0", "ps:1", "worker:0", "evaluator:0"}
    (held,) = run.prepare(20, orders)
    assert held == Save("worker:0", 0, 2, HOLD)
    starts = run.gone(22, run.saved(21, number=2))
    assert {each.task for each in starts if isinstance(each, Start)} == {"ps:0", "ps:1", "worker:0", "evaluator:0"}
    assert run.at(23, Leaving("d", WHY)) == []
    status = run.status()
    assert (status["state"], status["departed"], status["formation"]["drained"]) == ("running", None, ["worker:1"])


def test_a_host_that_has_left_is_an_incident_with_the_reason_and_disturbs_nobody() -> None:
    run = Draining()
    orders = run.at(10, Leaving("d", WHY))
    run.prepare(20, orders)
    run.gone(22, run.saved(21, number=2))
    assert run.at(40, Lost("d", 13.0)) == []
    (incident,) = run.status()["incidents"]
    assert (incident["host"], incident["cause"]) == ("d", f"it has left: {WHY}")
    assert run.run.state.phase is Phase.TRAINING


def test_the_incident_of_a_host_that_has_left_is_over_with_the_next_steps() -> None:
    run = Draining()
    orders = run.at(10, Leaving("d", WHY))
    run.prepare(20, orders)
    run.gone(22, run.saved(21, number=2))
    run.at(40, Lost("d", 13.0))
    for moment, step in ((41, 30), (42, 31)):
        run.at(moment, advanced("worker:0", step, attempt=1, examples=step))
    (incident,) = run.status()["incidents"]
    assert (incident["open"], incident["again_s"], incident["lost_steps"]) == (False, 1.0, 0)


def test_an_elastic_run_that_needs_the_host_stops() -> None:
    for options, host in (({"min_workers": 2}, "d"), ({"min_workers": 1}, "a")):
        run = Draining(**options)
        assert run.at(10, Leaving(host, WHY)) == [Save("worker:0", 0, 1, HOLD)]
        assert run.run.state.cause == f"{host} {HOW}"


def test_two_hosts_leave_one_after_the_other() -> None:
    run = Draining("ps:0@a", "worker:0@a", "worker:1@b", "worker:2@c")
    orders = run.at(10, Leaving("b", WHY), Leaving("c", WHY))
    assert set(prepared(orders)) == {"ps:0", "worker:0", "worker:2"}
    run.prepare(20, orders)
    assert run.formation()["drained"] == ["worker:1"]
    run.gone(22, run.saved(21, number=2))
    assert (run.formation()["drained"], run.formation()["changing"]) == (["worker:1", "worker:2"], True)


def test_a_host_that_leaves_before_the_run_trains_waits_for_that_or_stops_a_run_that_needs_it() -> None:
    replay = Replay()
    replay.at(0, Joined("a"), Leaving("a", WHY), Joined("b"), Go())
    assert (replay.run.state.result, replay.run.state.phase) == ("stopped", Phase.ENDED)
    elastic = Replay("ps:0@a", "worker:0@a", "worker:1@b", min_workers=1)
    elastic.at(0, Joined("a"), Joined("b"), Leaving("b", WHY))
    orders = elastic.at(1, Go())
    assert {type(order) for order in orders} == {Start}


def test_a_host_that_an_operator_wants_back_leaves_no_more() -> None:
    run = Draining()
    run.prepare(20, run.at(10, Leaving("d", WHY)))
    run.gone(22, run.saved(21, number=2))
    assert list(run.run.departures.reasons) == ["d"]
    run.at(30, DrainRequested(["worker:1"], back=True))
    assert list(run.run.departures.reasons) == []


def test_the_host_of_an_evaluator_alone_may_go() -> None:
    run = Draining("ps:0@a", "worker:0@a", "evaluator:0@e")
    assert run.at(10, Leaving("e", WHY)) == [Save("worker:0", 0, 1)]
    assert run.run.state.phase is Phase.TRAINING
