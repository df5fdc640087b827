"""Rules about several hosts: silent ones, what should be equal, who else can come in."""

from dataclasses import replace
from typing import Any, Dict, List

import pytest

from cluster.spec.model import Ssh
from launch.check import fleet_rules
from launch.check.findings import Note
from launch.check.fleet_rules import ROWS, unanswered
from launch.errors import HostProblem, ProblemKind
from tests.support.launch.facts import CODE, evidence, found, only, plan_of, versions

PLAN = plan_of("ps:0@p1", "ps:1@p2", "worker:0@w1", "worker:1@w2", "worker:2@w3")


def test_versions_that_differ_are_a_diff_with_hosts_folded() -> None:
    told = {"w2": {"versions": versions(tensorflow="2.4.1")}}
    one = only(fleet_rules.versions, evidence(PLAN, told))
    assert (one.kind, one.hosts) == ("tensorflow-differs", ("w2",))
    assert one.what == "TensorFlow 1.15.0: p[1-2],w[1,3] | 2.4.1: w2"


def test_drivers_that_differ_are_told_and_hosts_without_gpus_have_none() -> None:
    drivers = {"w1": "535.1", "w2": "535.1", "w3": "470.9"}
    told = {host: {"gpus": {"driver": driver, "gpus": []}} for host, driver in drivers.items()}
    assert found(fleet_rules.drivers, evidence(PLAN, told)) == [
        "w3: driver-differs: NVIDIA driver 535.1: w[1-2] | 470.9: w3"
    ]


def test_code_that_a_run_was_started_with_is_compared_with_what_is_here() -> None:
    same = {"run": {"run": "r-0", "pid": 4, "code": CODE}}
    assert found(fleet_rules.code, evidence(PLAN, dict.fromkeys(PLAN.hosts, same))) == []
    other = {"run": {"run": "r-0", "pid": 4, "code": {"launcher": "3" * 16}}}
    assert found(fleet_rules.code, evidence(PLAN, {"w1": other, "w2": other}))[0] == (
        "w1: code-differs: r-0 runs other code than this machine has now"
    )


def test_a_folder_in_which_no_checkpoint_would_be_whole_is_a_note() -> None:
    spec = replace(PLAN.spec, job=None, command=("train", "--logdir=out"))
    (note,) = fleet_rules.folders(evidence(replace(PLAN, spec=spec), {}))
    assert isinstance(note, Note) and (note.kind, note.hosts) == ("split-folder", ("w1", "p1", "p2"))


@pytest.mark.parametrize(
    ("kind", "advice", "finding", "mend"),
    [
        (ProblemKind.HOST_KEY, "accept it with `ssh h1 true`", "host-key", "accept it with `ssh h1 true`"),
        (ProblemKind.FOLDER, "give another workdir", "disk", "give another workdir"),
        (ProblemKind.DISK, "", "disk", "see `ssh p1 df -h ~/.launch`, or choose another folder with the key workdir"),
        (ProblemKind.NO_PYTHON, "install it", "python", "install it; see `ssh p1 ls /usr/bin /usr/local/bin`"),
        (ProblemKind.OLD_PYTHON, "", "python", "name a newer one with the key python"),
        (ProblemKind.PYTHON_ENDED, "", "python", "name another with the key python"),
        (ProblemKind.UNREACHABLE, "check that the host is up", "unreachable", "see `ssh p1 true`"),
        (ProblemKind.UNREACHABLE, "", "unreachable", "see `ssh p1 true`"),
        (ProblemKind.UNKNOWN_NAME, "see `getent hosts p1`", "unreachable", "see `getent hosts p1`"),
        (ProblemKind.AUTHENTICATION, "try `ssh p1`", "unreachable", "try `ssh p1`"),
        (ProblemKind.SSHD, "see MaxStartups", "unreachable", "see MaxStartups; see `ssh p1 true`"),
        (ProblemKind.NOISE, "", "unreachable", "see `ssh p1 true`"),
        (ProblemKind.SLOW, "", "slow", "see `ssh p1 uptime`, or raise --deadline-s"),
    ],
)
def test_a_host_that_did_not_answer_has_a_kind_and_something_to_do(
    kind: ProblemKind, advice: str, finding: str, mend: str
) -> None:
    what = "expected a folder of no answer within the key python; `host key`?"  # words that nothing may decide by
    one = only(unanswered, evidence(PLAN, {}, [HostProblem("p1", kind, what, advice)], silent=["p1"]))
    assert (one.kind, one.hosts, one.what, one.mend) == (finding, ("p1",), what, mend)


def test_every_kind_of_problem_is_a_finding_with_something_to_do() -> None:
    assert set(ROWS) == set(ProblemKind)


def test_hosts_behind_a_gateway_that_failed_are_named_with_it() -> None:
    problem = HostProblem(
        "gate", ProblemKind.UNREACHABLE, "no SSH at gate port 22 (refused)", "check that the host is up"
    )
    one = only(unanswered, evidence(PLAN, {}, [problem.with_advice("it is the gateway")], silent=["p1", "p2"]))
    assert (one.hosts, one.what, one.mend) == (
        ("p1", "p2"),
        "gate: no SSH at gate port 22 (refused)",
        "see `ssh gate true`",
    )


def test_an_address_that_the_internet_can_reach_is_wrong_unless_the_file_allows_it() -> None:
    told = {"w1": {"names": {"p1": ["8.8.8.8"], "p2": ["10.0.0.2"]}}}
    assert found(fleet_rules.public, evidence(PLAN, told))[0].startswith(
        "p1: public: the internet can reach ps:0 at p1:2222, which is 8.8.8.8"
    )
    settings: List[Dict[str, Any]] = [{"allow_public": True}, {"guard": "nftables"}]
    for allowed in settings:
        plan = plan_of("ps:0@p1", "worker:0@w1", **allowed)
        assert found(fleet_rules.public, evidence(plan, told)) == []


def test_whoever_sets_no_guard_is_told_who_can_run_code() -> None:
    assert "can run code as this user" in only(fleet_rules.open_ports, evidence(PLAN, {})).what
    guarded = plan_of("ps:0@p1", "worker:0@w1", guard="nftables", ssh=Ssh())
    assert found(fleet_rules.open_ports, evidence(guarded, {})) == []
