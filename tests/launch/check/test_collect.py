"""The conversations: every host is heard or named by the deadline, no listener closed before all have knocked."""

import json
import time
from threading import Event
from typing import Any, Dict, List

import pytest

from launch.agent.wire.check_request import CheckRequest
from launch.check.interview import CLOCK_READINGS, interview, requests
from launch.errors import HostProblem, Interrupted, ProblemKind
from launch.hosts.channel import Silence
from tests.support.launch.facts import facts, plan_of
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of
from tests.support.waiting import PATIENCE_S, eventually

Said = Any


def line(values: Dict[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def telling(*said: Said, ahead_s: float = 0.0) -> FakeChannel:
    """A host's side: it lacks no code, opens its port, tells the time, then says what is given."""
    clock = [line({"time": time.time() + ahead_s}) for _ in range(CLOCK_READINGS)]
    return FakeChannel(line({"missing": []}), line({"ports": {"2222": None}}), *clock, *said)


def look(**more: Any) -> bytes:
    """What a host tells that has looked around."""
    return line({**facts(ports={}, clock=None), **more})


def asked(*hosts: str) -> Dict[str, CheckRequest]:
    plan = plan_of(*(f"worker:{index}@{host}" for index, host in enumerate(hosts)))
    return requests(plan, ("call", "answer"), PATIENCE_S)


def problems(found: List[HostProblem]) -> List[str]:
    return sorted(map(str, found))


def test_each_host_tells_its_ports_its_clock_and_what_it_sees() -> None:
    channels = {"a": telling(look(proxies=["1"]), ahead_s=100.0), "b": telling(look(proxies=["2"]))}
    with fleet_of({name: FakeHost(name, channel) for name, channel in channels.items()}) as fleet:
        facts, none = interview(fleet, asked("a", "b"), PATIENCE_S)
    assert none == []
    assert {host: (seen.ports, seen.proxies) for host, seen in facts.items()} == {
        "a": ({"2222": None}, ["1"]),
        "b": ({"2222": None}, ["2"]),
    }
    clocks = {host: seen.clock for host, seen in facts.items() if seen.clock}
    assert 99.0 < clocks["a"].offset_s < 101.0
    assert abs(clocks["b"].offset_s) < 1.0
    assert all(channel.closed for channel in channels.values())


def test_a_host_that_cannot_be_asked_keeps_no_other_from_its_answer() -> None:
    def refuse(name: str) -> None:
        raise HostProblem(name, ProblemKind.UNREACHABLE, "no SSH there")

    hosts = {
        "a": FakeHost("a", telling(look(proxies=["1"]))),
        "b": FakeHost("b", connect=refuse),
        "c": FakeHost("c", telling(line({"error": "the look failed: KeyError: 'x'"}))),
        "d": FakeHost("d", telling(Silence())),
        "e": FakeHost("e", telling(b"Welcome!\n")),
        "f": FakeHost("f", telling(OSError("reset"))),
        "g": FakeHost("g", telling()),
    }
    with fleet_of(hosts) as fleet:
        facts, found = interview(fleet, asked(*hosts), PATIENCE_S)
    assert list(facts) == ["a"]
    assert problems(found) == [
        "b: no SSH there",
        "c: the look failed: KeyError: 'x'",
        f"d: no answer within {PATIENCE_S:.0f} s",
        "e: expected a line of JSON, found 'Welcome!'",
        "f: the connection broke: reset",
        "g: the check ended there: without output",
    ]


def test_a_host_that_hangs_is_named_after_half_the_deadline_and_the_others_go_on() -> None:
    release = Event()
    hosts = {
        "a": FakeHost("a", telling(look(proxies=["1"]))),
        "b": FakeHost("b", connect=lambda name: assert_true(release.wait(PATIENCE_S))),
    }
    with fleet_of(hosts) as fleet:
        try:
            facts, found = interview(fleet, asked("a", "b"), 2.0)
        finally:
            release.set()
        assert hosts["b"].closed == 1
    assert list(facts) == ["a"]
    assert problems(found) == ["b: no answer within 1 s"]


def assert_true(value: bool) -> None:
    assert value


def test_nobody_is_asked_to_look_before_everybody_listens() -> None:
    first = telling(look(proxies=["1"]))

    def connect(name: str) -> None:
        eventually("the other host's last clock reading", lambda: first.sent.count(b'"time"') == CLOCK_READINGS)
        assert b'"do": "look"' not in first.sent

    hosts = {"a": FakeHost("a", first), "b": FakeHost("b", telling(look(proxies=["2"])), connect=connect)}
    with fleet_of(hosts) as fleet:
        facts, found = interview(fleet, asked("a", "b"), PATIENCE_S)
    assert (sorted(facts), found) == (["a", "b"], [])
    assert b'"do": "look"' in first.sent


def test_after_a_signal_every_conversation_is_closed() -> None:
    channel = telling(look(proxies=["1"]))
    with fleet_of({"a": FakeHost("a", channel)}) as fleet:
        release = Event()
        fleet.hosts["b"] = FakeHost("b", connect=lambda name: interrupt(fleet.interrupts.received, release))
        with pytest.raises(Interrupted):
            interview(fleet, asked("a", "b"), PATIENCE_S)
        release.set()
    assert channel.closed


def interrupt(received: List[int], release: Event) -> None:
    """A signal comes while this host is waited for."""
    received.append(2)
    release.wait(PATIENCE_S)
