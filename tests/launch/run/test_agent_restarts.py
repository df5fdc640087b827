"""Agents that died under an attached run are started again, beside the watching of it."""

import json
import threading
from dataclasses import replace
from typing import Any, Callable, Dict, List

import pytest

from cluster.protocol.typed_json import from_values
from launch.agent.supervision.agent_lives import MOST, WINDOW_S
from launch.agent.wire.run_request import RunRequest
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.run import attached
from launch.run.attached import AgentRestarts
from tests.launch.run.leads import READY, line
from tests.support.agent.requested import run_request
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of
from tests.support.waiting import eventually

LOST_S = 10.0  # a host is lost a little later
STARTED = line({"ready": True, "pid": 42})
LIVES = line({"ready": True, "pid": 42, "lives": True})


class Scene:
    """A revival of two hosts, the first the lead's, on a clock that stands until it is set."""

    def __init__(self, **hosts: FakeHost):
        self.hosts, self.now = hosts, 0.0
        self.fleet: Fleet = fleet_of(hosts)
        self.requests = {host: run_request(host=host) for host in hosts}
        self.revival = AgentRestarts(self.fleet, self.requests, clock=lambda: self.now)

    def look(self, *silent: str) -> List[str]:
        """What is told, once every try that this began is over."""
        told = self.revival.look(silent)
        self.revival.close()
        return told


def until(event: threading.Event) -> Callable[[str], None]:
    """A way to connect that takes until an event."""

    def connect(_: str) -> None:
        event.wait(20.0)

    return connect


def asked(channel: FakeChannel) -> Dict[str, Any]:
    """The request that a host got."""
    found: Dict[str, Any] = json.loads(channel.sent.splitlines()[1].decode())
    return found


def test_a_silent_hosts_agent_is_started_again_with_its_own_request_over_a_new_connection() -> None:
    channel = FakeChannel(READY, STARTED)
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2", channel))
    with scene.fleet:
        assert scene.look("h2") == ["h2: its agent is silent; restarting it"]
        assert scene.look("h2") == []
    assert from_values(RunRequest, asked(channel)) == replace(scene.requests["h2"], again=True)
    assert scene.hosts["h2"].closed and not scene.hosts["h1"].opened


def test_where_nobody_is_silent_nothing_is_started() -> None:
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2"))
    with scene.fleet:
        assert scene.look() == []
    assert not scene.hosts["h2"].opened


def test_a_host_that_stays_out_of_reach_is_tried_again_ever_more_rarely_and_told_of_once() -> None:
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2"))  # no channel: out of reach
    with scene.fleet:
        said = []
        for tenth in range(600):
            scene.now = tenth / 10
            said += scene.look("h2")
    assert said == [
        "h2: its agent is silent; restarting it",
        "h2: its agent did not restart: out of reach",
    ]
    assert 15 <= len(scene.hosts["h2"].opened) <= 40


def test_a_host_that_was_heard_again_is_tried_at_once_the_next_time() -> None:
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2", *(FakeChannel(READY, LIVES) for _ in range(3))))
    with scene.fleet:
        for _ in range(3):
            scene.look("h2")
            scene.look("h2")
            scene.look()
    assert len(scene.hosts["h2"].opened) == 3


@pytest.mark.parametrize("ends_late", [False, True])
def test_a_try_that_ends_when_the_host_is_back_does_not_delay_the_one_after_its_next_silence(ends_late: bool) -> None:
    slow = threading.Event()
    channels = FakeChannel(READY, LIVES), FakeChannel(READY, STARTED)
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2", *channels, connect=until(slow)))
    with scene.fleet:
        scene.revival.look(["h2"])
        scene.revival.look([])  # it is back, and the try still under way
        if not ends_late:
            slow.set()
            eventually("its try", lambda: scene.revival.look([]) == [] and not scene.revival._tries)
        scene.now = 180.0
        if ends_late:
            scene.revival.look([])
            slow.set()
        said = []
        while len(scene.hosts["h2"].opened) < 2 and scene.now < 180.0 + LOST_S:
            said += scene.look("h2")
            scene.now += 0.1
    assert said == ["h2: its agent is silent; restarting it"] and scene.now < 180.0 + LOST_S


def test_a_try_that_failed_when_its_host_was_heard_again_is_told_all_the_same() -> None:
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2"))
    with scene.fleet:
        scene.look("h2")
        assert scene.look() == ["h2: its agent did not restart: out of reach"]


def test_looking_never_waits_for_a_host() -> None:
    slow = threading.Event()
    scene = Scene(h1=FakeHost("h1"), h2=FakeHost("h2", FakeChannel(READY, STARTED), connect=until(slow)))
    with scene.fleet:
        assert len(scene.revival.look(["h2"])) == 1
        assert scene.revival.look(["h2"]) == [] and not scene.hosts["h2"].opened
        slow.set()
        eventually("its try", lambda: scene.hosts["h2"].opened)
        scene.revival.close()


def test_a_try_that_does_not_end_is_broken_off_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "ENDING_S", 0.05)
    slow = threading.Event()
    host = FakeHost("h2", FakeChannel(READY, STARTED), connect=until(slow))
    scene = Scene(h1=FakeHost("h1"), h2=host)
    with scene.fleet:
        scene.revival.look(["h2"])
        eventually("its try", lambda: host.closed == 1)
        scene.revival.close()
        assert host.closed == 2
        slow.set()


def test_the_leads_agent_is_started_again_at_once_until_it_has_died_too_often() -> None:
    channels = [FakeChannel(READY, STARTED) for _ in range(MOST + 1)]
    scene = Scene(h1=FakeHost("h1", *channels))
    with scene.fleet:
        *started, refused = [scene.revival.start_lead() for _ in range(MOST + 2)]
    assert started == [None] * (MOST + 1)
    often = f"the lead agent ended {MOST + 1} times within {WINDOW_S:.0f} s, so this launcher does not restart it"
    assert refused == f"{often}; see the run's agent.log on that host"
    assert asked(channels[0])["again"]


def test_a_leads_agent_that_lives_has_not_died() -> None:
    scene = Scene(h1=FakeHost("h1", *(FakeChannel(READY, LIVES) for _ in range(3 * MOST))))
    with scene.fleet:
        assert not any(scene.revival.start_lead() for _ in range(3 * MOST))


def test_a_leads_host_that_is_out_of_reach_is_a_problem_of_that_host() -> None:
    scene = Scene(h1=FakeHost("h1"))
    with scene.fleet, pytest.raises(HostProblem, match="h1: out of reach"):
        scene.revival.start_lead()
