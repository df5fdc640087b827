"""What ``sweep`` tells: per host what earlier runs left, what of it was ended, and what lives."""

import json
from typing import Any, Dict, Mapping, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.status.removals import SweepAnswer
from launch.status.values import from_values
from launch.teardown import NOTHING_LEFT
from launch.verbs.sweep import Swept, as_values, in_lines, look_for_leftovers
from tests.support.launch import leftovers
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

NOTHING: Dict[str, Any] = {"running": [], "found": [], "left": []}
OLD: Dict[str, Any] = {
    "run": "r-1", **leftovers.NOTHING, "folders": [],
    "processes": [{"pid": 7, "group": 7, "start": 5, "argv": "python train.py", "waits_in": None}],
}  # fmt: skip
NO_RUN = {**OLD, "run": None, "processes": [], "folders": ["/w/code/.x"]}
FOUND = {"running": [{"run": "r-2", "pid": 42}], "found": [OLD, NO_RUN], "left": [OLD, NO_RUN]}
KILLED = {**FOUND, "left": []}


def swept(answers: Mapping[str, Any], problems: Sequence[HostProblem]) -> Swept:
    """What hosts answered, as JSON."""
    return Swept({host: from_values(SweepAnswer, answer) for host, answer in answers.items()}, list(problems))


def test_what_was_found_is_told_as_left_until_it_is_ended() -> None:
    assert in_lines(swept({"a": FOUND}, [])) == [
        "a: r-2 is running (agent pid 42): left alone",
        "a: r-1: LEFT: process 7 (python train.py)",
        "a: of no run: LEFT: unfinished folder /w/code/.x",
    ]
    assert in_lines(swept({"a": KILLED}, []))[1:] == [
        f"a: r-1: ended 1 process in 1 group (pids 7); {NOTHING_LEFT}",
        f"a: of no run: ended 1 unfinished folder; {NOTHING_LEFT}",
    ]


def test_hosts_that_have_nothing_share_a_line() -> None:
    found = swept({"h1": NOTHING, "h2": NOTHING}, [HostProblem("h3", ProblemKind.UNREACHABLE, "out of reach")])
    assert in_lines(found) == ["h[1-2]: nothing is left by earlier runs", "h3: out of reach"]


def test_it_is_clean_when_every_host_answered_and_nothing_is_left() -> None:
    assert swept({"a": NOTHING, "b": KILLED}, []).clean
    assert not swept({"a": FOUND}, []).clean
    assert not swept({"a": NOTHING}, [HostProblem("b", ProblemKind.UNREACHABLE, "out of reach")]).clean


def test_the_json_has_what_was_found_what_of_it_ended_and_what_is_left() -> None:
    values = as_values(swept({"a": KILLED}, [HostProblem("b", ProblemKind.UNREACHABLE, "out of reach")]))
    assert json.loads(json.dumps(values)) == values
    host, problem = values["hosts"]
    assert (host["found"], host["ended"], host["left"], host["running"]) == (
        [OLD, NO_RUN], [OLD, NO_RUN], [], [{"run": "r-2", "pid": 42}],
    )  # fmt: skip
    assert problem == {"host": "b", "error": "out of reach"}
    assert as_values(swept({"a": FOUND}, []))["hosts"][0]["ended"][0]["processes"] == []


def test_nothing_is_ended_that_is_not_asked_for() -> None:
    channels = [FakeChannel(b'{"missing": []}\n', json.dumps(NOTHING).encode() + b"\n") for _ in range(2)]
    with fleet_of({"a": FakeHost("a", *channels)}) as fleet:
        assert look_for_leftovers(fleet, kill=False).clean and look_for_leftovers(fleet, kill=True).clean
    asked = [json.loads(channel.sent.splitlines()[1].decode()) for channel in channels]
    assert [request["kill"] for request in asked] == [False, True]
