"""Gateways: the way to each host, each opened once for all of them, and a failure that is one problem."""

from threading import Barrier, Thread
from typing import Any, Dict, List, Mapping, Optional

import pytest

from launch.errors import HostProblem, ProblemKind
from launch.remote.gateways import Gateways
from tests.support.waiting import PATIENCE_S


class Connection:
    """An open connection, as the gateways see one."""

    def __init__(self, name: str, through: Optional["Connection"]):
        self.name, self.through, self.is_connected = name, through, True

    def close(self) -> None:
        self.is_connected = False


def last(several: Gateways, *route: str) -> Connection:
    connection = several.last(route)
    assert isinstance(connection, Connection)
    return connection


def gateways(jumps: Mapping[str, str], opened: List[str], down: str = "") -> Gateways:
    """Gateways over what is written for each host; ``opened`` gets the name of each that is opened."""

    def open_one(name: str, through: Optional[Any]) -> Connection:
        opened.append(name)
        if name == down:
            raise HostProblem(name, ProblemKind.UNREACHABLE, "no SSH there")
        return Connection(name, through)

    return Gateways(open_one, lambda name, is_last: jumps.get(name, ""), Connection.close)


@pytest.mark.parametrize(
    ("jumps", "written", "route"),
    [
        ({}, None, ()),
        ({"h": "gw"}, None, ("gw",)),
        ({"h": "a,me@b:2200"}, None, ("a", "me@b:2200")),
        ({"h": "b", "b": "a"}, None, ("a", "b")),
        ({"h": "b,c", "b": "a", "c": "passed over"}, None, ("a", "b", "c")),
        ({"h": "none"}, None, ()),
        ({"h": "gw", "gw": "gw"}, None, ("gw",)),
        ({"h": "h"}, None, ()),
        ({"h": "gw"}, "other, third", ("other", "third")),
        ({"gw": "outer"}, "gw", ("outer", "gw")),
    ],
)
def test_the_way_to_a_host(jumps: Dict[str, str], written: Optional[str], route: Any) -> None:
    assert gateways(jumps, []).route("h", written) == route


def test_a_host_that_is_the_gateway_of_the_hosts_file_is_reached_directly() -> None:
    assert gateways({}, []).route("gw", "gw") == ()


def test_a_way_that_leads_in_a_circle_is_named() -> None:
    with pytest.raises(HostProblem) as caught:
        gateways({"h": "a", "a": "b", "b": "h"}, []).route("h")
    assert (
        str(caught.value)
        == "b: its gateways form a circle: h, a, b, h; correct ssh.gateway, or ProxyJump in the SSH configuration"
    )


def test_a_gateway_is_opened_once_for_all_who_come_at_once_and_before_those_behind_it() -> None:
    opened: List[str] = []
    several, start = gateways({}, opened), Barrier(8)
    got: List[Connection] = []

    def come() -> None:
        start.wait(PATIENCE_S)
        got.append(last(several, "a", "b"))

    threads = [Thread(target=come) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert opened == ["a", "b"]
    assert len(got) == 8 and len(set(map(id, got))) == 1
    assert got[0].through is not None and got[0].through.name == "a"


def test_the_failure_of_a_gateway_is_the_same_problem_for_all_hosts_behind_it() -> None:
    opened: List[str] = []
    several = gateways({}, opened, down="a")
    problems = []
    for route in (("a",), ("a",), ("a", "b")):
        with pytest.raises(HostProblem) as caught:
            several.last(route)
        problems.append(caught.value)
    assert problems[0] is problems[1] and opened == ["a"]
    assert str(problems[0]) == "a: no SSH there; it is the gateway to other hosts"
    assert problems[2] is problems[0]


def test_a_gateway_whose_connection_broke_is_opened_again() -> None:
    opened: List[str] = []
    several = gateways({}, opened)
    last(several, "a").close()
    assert last(several, "a").is_connected and opened == ["a", "a"]


def test_at_the_end_every_gateway_is_closed() -> None:
    several = gateways({}, [])
    connections = [last(several, "a"), last(several, "a", "b")]
    several.close()
    assert not any(connection.is_connected for connection in connections)


def test_a_gateway_whose_connection_is_full_is_opened_once_more_for_all_further_hosts() -> None:
    opened: List[str] = []
    several = gateways({}, opened)
    first = last(several, "gw")
    second = several.further(("gw",), first)
    assert several.further(("gw",), first) is second is last(several, "gw") is not first
    assert opened == ["gw", "gw"] and first.is_connected
    several.close()
    assert not first.is_connected and not second.is_connected
