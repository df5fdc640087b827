"""What ``down`` tells: per host what was there, what is left, and which host did not answer."""

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Sequence

import pytest

from cluster.protocol.typed_json import from_values
from launch.agent.state import runs
from launch.agent.state.run_folder import RunFolder
from launch.agent.verbs.down import down
from launch.agent.wire.verb_requests import DownRequest, RunReference
from launch.errors import HostProblem, ProblemKind
from launch.status.removals import RunEnded, RunLeftovers
from launch.target import Target
from launch.teardown import NOTHING_LEFT, Left, as_values, failures, in_lines, look_and_take_down, take_down
from launch.verbs.down import saved_lines
from tests.support.launch import leftovers
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

NOTHING: Dict[str, Any] = {"run": "r-1", **leftovers.NOTHING}


def process(pid: int, group: int = 7, waits_in: Optional[str] = None) -> Dict[str, Any]:
    return {"pid": pid, "group": group, "start": 100 + pid, "argv": "python train.py", "waits_in": waits_in}


SOMETHING: Dict[str, Any] = {
    "run": "r-1", "processes": [process(7)], "ports": [2222], "gpu_memory": [{"gpu": 0, "pid": 7, "mib": 1536}],
    "locks": ["/w/locks/r.lock"], "groups": ["/cg/r"], "containers": ["launch.r"],
}  # fmt: skip
HUNG = {**NOTHING, "processes": [process(7, waits_in="nfs_wait")]}
MORE = {**NOTHING, "processes": [process(7), process(8), process(9, 9)], "ports": [2222, 2223]}
NEVER = {**NOTHING, "run": None}
NONE = NOTHING_LEFT


def left_of(
    reports: Mapping[str, Any], problems: Sequence[HostProblem] = (), before: Mapping[str, Any] = MappingProxyType({})
) -> Left:
    """What hosts answered, as JSON."""

    ended = {host: from_values(RunEnded, {"after": None, **answer}) for host, answer in reports.items()}
    there = {host: from_values(RunLeftovers, answer) for host, answer in before.items()}
    return Left(ended, list(problems), there)


def host(name: str, *answers: Dict[str, Any], after: Optional[str] = None) -> FakeHost:
    """A host whose last answer is that to ``down``."""
    given = [*answers[:-1], *({**answer, "after": after} for answer in answers[-1:])]
    return FakeHost(name, *(FakeChannel(b'{"missing": []}\n', json.dumps(answer).encode() + b"\n") for answer in given))


@pytest.mark.parametrize(
    ("report", "before", "text"),
    [
        (NOTHING, SOMETHING, "ended 1 process in 1 group (pids 7), port 2222, 1536 MiB of GPU 0, 1 lock,"
                             " 1 control group, 1 container; " + NONE),
        (NOTHING, MORE, "ended 3 processes in 2 groups (pids 7, 8, 9), port 2222, port 2223; " + NONE),
        (NOTHING, NOTHING, "nothing was there; " + NONE),
        (SOMETHING, SOMETHING, "nothing was there; LEFT: process 7 (python train.py), port 2222, 1536 MiB of GPU 0, "
                               "lock /w/locks/r.lock, control group /cg/r, container launch.r"),
        (HUNG, MORE, "ended 2 processes in 2 groups (pids 8, 9), port 2222, port 2223; "
                     "LEFT: process 7 (python train.py), which hangs in nfs_wait"),
        (NEVER, NEVER, "no run of this name has been here"),
    ],
)  # fmt: skip
def test_a_host_is_told_in_a_line(report: Dict[str, Any], before: Dict[str, Any], text: str) -> None:
    prefix = "a: " if report["run"] is None else "a: r-1: "
    assert in_lines(left_of({"a": report}, [], {"a": before})) == [prefix + text]


def test_hosts_of_which_the_same_is_to_be_said_share_a_line() -> None:
    reports = {f"gpu{number:02}": NOTHING for number in range(1, 65)}
    assert in_lines(left_of(reports, [], {})) == [f"gpu[01-64]: r-1: nothing was there; {NONE}"]


@pytest.mark.parametrize(
    ("reports", "problems", "clean"),
    [
        ([NOTHING, NOTHING], [], True),
        ([NOTHING, NEVER], [], True),
        ([NOTHING, SOMETHING], [], False),
        ([NOTHING], [HostProblem("b", ProblemKind.UNREACHABLE, "out of reach")], False),
    ],
)
def test_it_is_clean_when_every_host_answered_and_has_nothing_left(
    reports: List[Dict[str, Any]], problems: List[HostProblem], clean: bool
) -> None:
    assert left_of({str(number): report for number, report in enumerate(reports)}, problems, {}).clean is clean


def test_commands_after_the_tasks_that_failed_are_told_and_leave_nothing() -> None:
    left = left_of({"a": {**NOTHING, "after": "`rm x`: exit code 1"}, "b": NOTHING}, [], {"a": SOMETHING})
    line = "failed commands of the key after: `rm x`: exit code 1"
    assert left.clean and failures(left) == [f"a: {line}"] and failures(left_of({"b": NOTHING})) == []
    assert in_lines(left)[0].endswith(f"1 container; {NONE}; {line}")
    assert [each["after"] for each in as_values(left)["hosts"]] == ["`rm x`: exit code 1", None]


def test_a_host_that_did_not_answer_is_told_too() -> None:
    left = left_of({"a": NOTHING}, [HostProblem("b", ProblemKind.UNREACHABLE, "out of reach")], {})
    assert in_lines(left)[1] == "b: out of reach"
    assert as_values(left)["hosts"][1] == {"host": "b", "error": "out of reach"}


def test_the_json_has_what_was_there_and_what_is_left_of_each_host() -> None:
    values = as_values(left_of({"a": NOTHING}, [], {"a": SOMETHING}))
    gone = {kind: SOMETHING[kind] for kind in SOMETHING if kind != "run"}
    assert values == {"clean": True, "hosts": [{"host": "a", "error": None, "ended": gone, **NOTHING, "after": None}]}
    assert json.loads(json.dumps(values)) == values


def test_the_lead_is_ended_first_since_it_stops_the_whole_run_in_order() -> None:
    order: List[str] = []
    hosts = {name: host(name, NOTHING) for name in ("lead", "m1", "m2")}
    for name, each in hosts.items():
        opening = each.open
        each.open = lambda argv, name=name, opening=opening: (order.append(name), opening(argv))[1]  # type: ignore
    with fleet_of(hosts) as fleet:
        left = take_down(fleet, {name: fleet.reference(name, "r-1") for name in hosts}, reason="enough")
    assert left.clean and order[0] == "lead" and set(order) == set(hosts)


def test_the_other_hosts_are_ended_though_the_lead_is_out_of_reach() -> None:
    hosts = {"lead": host("lead"), "m1": host("m1", NOTHING)}
    with fleet_of(hosts) as fleet:
        left = take_down(fleet, {name: fleet.reference(name, "r-1") for name in hosts}, reason="enough")
    assert list(left.reports) == ["m1"] and [problem.host for problem in left.problems] == ["lead"]


FOUND = {"run": "r-1", "generation": 1, "lives": True, "lead": "a", "highest": 1}


def test_launch_down_dials_a_lead_that_is_out_of_reach_once() -> None:
    found = {"run": "r-1", "generation": 1, "lives": True, "lead": "a", "hosts": ["a", "b"]}
    lead = FakeHost("a")
    with fleet_of({"a": lead, "b": host("b", found, NOTHING, NOTHING)}) as fleet:
        left = look_and_take_down(fleet, "launch down")
    assert [str(problem) for problem in left.problems] == ["a: out of reach"] and list(left.reports) == ["b"]
    assert len(lead.opened) == 1


def test_launch_down_looks_before_it_ends_anything() -> None:
    there = host("a", FOUND, SOMETHING, NOTHING)
    asked = there.channels[2]
    with fleet_of({"a": there}) as fleet:
        left = look_and_take_down(fleet, reason="launch down")
    request = json.loads(asked.sent.splitlines()[1].decode())
    assert request["was"] == [7] and request["for_good"]  # the memory of 7 is looked for afterwards
    assert left == left_of({"a": NOTHING}, [], {"a": SOMETHING}) and left.clean


def test_a_run_that_begins_on_its_lead_after_that_host_was_asked_is_ended_too() -> None:
    """Found by seed 3035197: the other hosts' agents had ended, and ``launch up`` started them again."""
    never = [{"run": None, "highest": 0}, NEVER, {**NEVER, "after": None}]
    hosts = {
        "a": host("a", *never, FOUND, SOMETHING, NOTHING),
        "b": host("b", *never[:2], {**NOTHING, "after": None}, {**FOUND, "lives": False}, NOTHING, NOTHING),
    }
    with fleet_of(hosts) as fleet:
        left = look_and_take_down(fleet, reason="launch down")
    assert left == left_of({"a": NOTHING, "b": NOTHING}, [], {"a": SOMETHING, "b": NOTHING})


ENDED = {"run": "r-1", "state": "stopped", "steps": 100, "global_step": 52, "checkpoint_step": 40,
         "tasks": [{"role": "worker", "index": 0, "host": "a"}]}  # fmt: skip
GO_ON = "saved: the checkpoint of step 40 on a, 12 steps before the end; continue with `launch up --resume {}r.yaml`"


@pytest.mark.parametrize(
    ("status", "local", "lines"),
    [
        (ENDED, False, [GO_ON.format("")]),
        (ENDED, True, [GO_ON.format("--local ")]),
        ({**ENDED, "state": "succeeded"}, False, []),
        ({**ENDED, "steps": None}, False, []),  # a program
    ],
)
def test_launch_down_names_the_checkpoint_and_the_command_that_goes_on(
    status: Dict[str, Any], local: bool, lines: List[str]
) -> None:
    with fleet_of({"a": host("a", {**FOUND, "lives": True, "status": status})}) as fleet:
        fleet.spec = replace(fleet.spec, local=local)
        assert saved_lines(fleet, Target("r.yaml")) == lines


def test_a_run_whose_lead_does_not_answer_has_no_such_line() -> None:
    with fleet_of({"a": host("a")}) as fleet:
        assert saved_lines(fleet, Target("r.yaml")) == []


@pytest.mark.parametrize("for_good", [True, False])
def test_only_the_end_by_a_user_prevents_a_successor_and_needs_no_first_look(for_good: bool, tmp_path: Path) -> None:
    """A connection may break during the first look, so the end itself is recorded, too."""
    folder = RunFolder(tmp_path, "r-20261119-120000", "h")
    folder.create()
    down(DownRequest(RunReference("r", "h", str(tmp_path), folder.run), 1.0, "launch down", for_good=for_good))
    assert folder.has(runs.ENDED_FOR_GOOD) is for_good
