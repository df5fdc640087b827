"""What ``down`` tells: per host what was there, what is left, and which host did not answer."""

import json
from typing import Any, Dict, List

import pytest

from launch.down import Left, as_values, look_and_take_down, remains, take_down, told
from launch.errors import HostProblem
from tests.launch.fakes import FakeChannel, FakeHost, fleet_of

NOTHING: Dict[str, Any] = {"run": "r-1", "processes": [], "ports": [], "locks": []}
SOMETHING: Dict[str, Any] = {
    "run": "r-1", "processes": [{"pid": 7, "argv": "python train.py"}], "ports": [2222], "locks": ["/w/locks/r.lock"],
}  # fmt: skip
NEVER = {**NOTHING, "run": None}


def host(name: str, *answers: Dict[str, Any]) -> FakeHost:
    return FakeHost(
        name, *(FakeChannel(b'{"missing": []}\n', json.dumps(answer).encode() + b"\n") for answer in answers)
    )


@pytest.mark.parametrize(
    ("report", "before", "text"),
    [
        (NOTHING, SOMETHING, "a: r-1: 1 processes ended, port 2222 free; no process, port or lock left"),
        (NOTHING, NOTHING, "a: r-1: was not running; no process, port or lock left"),
        (SOMETHING, SOMETHING, "a: r-1: LEFT: process 7 (python train.py), port 2222, lock /w/locks/r.lock"),
        (NEVER, NEVER, "a: no run of this name has been here"),
    ],
)
def test_a_host_is_told_in_a_line(report: Dict[str, Any], before: Dict[str, Any], text: str) -> None:
    assert told(Left({"a": report}, [], {"a": before})) == [text]


@pytest.mark.parametrize(
    ("reports", "problems", "clean"),
    [
        ([NOTHING, NOTHING], [], True),
        ([NOTHING, NEVER], [], True),
        ([NOTHING, SOMETHING], [], False),
        ([NOTHING], [HostProblem("b", "out of reach")], False),
    ],
)
def test_it_is_clean_when_every_host_answered_and_has_nothing_left(
    reports: List[Dict[str, Any]], problems: List[HostProblem], clean: bool
) -> None:
    assert Left({str(number): report for number, report in enumerate(reports)}, problems, {}).clean is clean


def test_a_host_that_did_not_answer_is_told_too() -> None:
    left = Left({"a": NOTHING}, [HostProblem("b", "out of reach")], {})
    assert told(left)[1] == "b: out of reach"
    assert as_values(left)["hosts"][1] == {"host": "b", "error": "out of reach"}


def test_the_json_has_what_was_there_and_what_is_left_of_each_host() -> None:
    values = as_values(Left({"a": NOTHING}, [], {"a": SOMETHING}))
    assert values == {"clean": True, "hosts": [{"host": "a", "error": None, "ended": SOMETHING, **NOTHING}]}
    assert json.loads(json.dumps(values)) == values


def test_what_is_left_is_named_piece_by_piece() -> None:
    assert remains(SOMETHING) == ["process 7 (python train.py)", "port 2222", "lock /w/locks/r.lock"]
    assert remains(NOTHING) == []


def test_the_lead_is_ended_first_since_it_stops_the_whole_run_in_order() -> None:
    order: List[str] = []
    hosts = {name: host(name, NOTHING) for name in ("lead", "m1", "m2")}
    for name, each in hosts.items():
        opening = each.open
        each.open = lambda argv, name=name, opening=opening: (order.append(name), opening(argv))[1]  # type: ignore
    with fleet_of(hosts) as fleet:
        left = take_down(fleet, {name: {"run": "r-1", "host": name} for name in hosts}, reason="enough")
    assert left.clean and order[0] == "lead" and set(order) == set(hosts)


def test_the_other_hosts_are_ended_though_the_lead_is_out_of_reach() -> None:
    hosts = {"lead": host("lead"), "m1": host("m1", NOTHING)}
    with fleet_of(hosts) as fleet:
        left = take_down(fleet, {name: {"run": "r-1", "host": name} for name in hosts}, reason="enough")
    assert list(left.reports) == ["m1"] and [problem.host for problem in left.problems] == ["lead"]


def test_launch_down_looks_before_it_ends_anything() -> None:
    with fleet_of({"a": host("a", SOMETHING, NOTHING)}) as fleet:
        left = look_and_take_down(fleet, reason="launch down")
    assert (left.before, left.reports, left.clean) == ({"a": SOMETHING}, {"a": NOTHING}, True)
