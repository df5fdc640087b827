"""``launch prune`` shows per host what goes and why, with bytes; hosts that are this machine are asked once."""

import json
from typing import Any, Dict, List

import pytest

from cluster.protocol.settings import DEFAULT_KEEP
from cluster.protocol.typed_json import to_values
from launch.errors import HostProblem, ProblemKind
from launch.status.removals import NotRemoved, PruneAnswer, Removable, Spared
from launch.verbs.prune import Pruned, as_values, in_lines, prune_hosts
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

GOING = [
    Removable("run", "r-20260101-120000", 4_100_000_000, "more than 2 runs of its name"),
    Removable("code", "0123456789abcdef", 900_000, "not used for 7 days"),
]
SPARED = [Spared("r-20260102-120000", "more than 2 runs of its name", "its agent on h lives")]
FAILED = [NotRemoved("0123456789abcdef", "/w/code/x: Permission denied")]


def pruned(*failed: NotRemoved) -> Pruned:
    return Pruned({host: PruneAnswer(5, 12_300_000_000, GOING, SPARED, list(failed)) for host in ("g1", "g2")}, [])


def test_a_look_shows_what_would_go_and_what_stays_and_why() -> None:
    assert in_lines(pruned(), remove=False) == [
        "g[1-2]: would remove r-20260101-120000: 4.10 GB; more than 2 runs of its name",
        "g[1-2]: would remove code 0123456789abcdef: 900 kB; not used for 7 days",
        "g[1-2]: keeps r-20260102-120000: its agent on h lives; more than 2 runs of its name",
        "g[1-2]: 4.10 GB to remove; there are 5 runs, 12.3 GB",
    ]


def test_a_removal_shows_what_has_gone_and_what_has_not() -> None:
    assert in_lines(pruned(*FAILED), remove=True) == [
        "g[1-2]: removed r-20260101-120000: 4.10 GB; more than 2 runs of its name",
        "g[1-2]: keeps r-20260102-120000: its agent on h lives; more than 2 runs of its name",
        "g[1-2]: NOT REMOVED: 0123456789abcdef: /w/code/x: Permission denied",
        "g[1-2]: 4.10 GB removed; there were 5 runs, 12.3 GB",
    ]


def test_the_json_has_every_host_also_those_without_an_answer() -> None:
    problems = [HostProblem("g3", ProblemKind.UNREACHABLE, "is off")]
    values = as_values(Pruned({"g1": PruneAnswer(0, 0, [], [], [])}, problems), remove=True)
    assert values["removed"] and [each["host"] for each in values["hosts"]] == ["g1", "g3"]
    assert values["hosts"][1]["error"] == "is off"


@pytest.mark.parametrize("remove", [False, True])
def test_hosts_that_are_this_machine_are_asked_once_under_all_their_names(remove: bool) -> None:
    answer = json.dumps(to_values(PruneAnswer(0, 0, [], [], []))).encode() + b"\n"
    channels = {host: FakeChannel(b'{"missing": []}\n', answer) for host in ("localhost", "g1")}
    hosts = {host: FakeHost(host, *([channels[host]] if host in channels else [])) for host in
             ("localhost", "127.0.0.1", "g1")}  # fmt: skip
    found = prune_hosts(fleet_of(hosts), remove)
    asked: Dict[str, Any] = {}
    for host, channel in channels.items():
        lines: List[bytes] = channel.sent.splitlines()
        asked[host] = json.loads(lines[-1])
    assert set(found.answers) == {"localhost", "g1"} and not found.problems
    assert [asked[host]["hosts"] for host in channels] == [["localhost", "127.0.0.1"], ["g1"]]
    assert asked["g1"]["remove"] is remove and asked["g1"]["rule"] == to_values(DEFAULT_KEEP)
