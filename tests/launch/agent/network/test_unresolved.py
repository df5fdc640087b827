"""A host refuses a run whose names it cannot resolve, and names them, in place of waiting for what cannot come."""

import json
import time
from typing import Any, Dict, List, Sequence

import pytest

from cluster.protocol.settings import Container
from launch.agent.network.resolver import LOOKUP_S, LOOKUPS, Meaning, unresolved
from launch.agent.service.beginning import START_S
from launch.agent.wire.run_request import LeadAddress
from tests.support.agent.requested import run_request, task_request

CLUSTER = {"ps": ["p0:1", "p1:1"], "worker": ["w0:1", "w1:1"], "chief": ["c:1"], "evaluator": ["e:1"]}
ALONE = {"worker": ["w0:1", "w1:1"]}


def lines(role: str, cluster: Dict[str, List[str]] = CLUSTER, **changes: Any) -> List[str]:
    """What a host with one task tells that knows no name at all."""
    asked = {"cluster": json.dumps(cluster), "lead": LeadAddress("c", "c:2"), **changes}
    request = run_request(task_request(f"{role}:0"), **asked)
    return unresolved(request, lambda names, _: dict.fromkeys(names, "not known"), lambda _: None)


@pytest.mark.parametrize(
    ("role", "cluster", "names"),
    [
        ("worker", CLUSTER, ["c", "p0", "p1"]),
        ("ps", CLUSTER, ["c", "w0", "w1"]),
        ("evaluator", CLUSTER, ["c"]),
        ("worker", ALONE, ["c", "w0", "w1"]),
    ],
)
def test_the_names_are_those_that_this_host_will_dial(role: str, cluster: Any, names: List[str]) -> None:
    assert sorted(line.split()[2] for line in lines(role, cluster)) == names


def test_a_name_without_an_address_is_told_with_its_task_the_reason_and_what_to_do() -> None:
    first, second, _ = lines("worker")
    assert first == (
        "the name c of the lead on c has no address on this host (not known); see `getent ahosts c` here, or give the "
        "task another address with the key address"
    )
    assert second.startswith("the name p0 of ps:0 has no address on this host (not known); ")


def test_a_task_in_a_container_may_know_other_names_and_the_lead_of_one_host_needs_none() -> None:
    assert [line.split()[2] for line in lines("worker", container=Container("image"))] == ["c"]
    assert lines("worker", container=Container("image"), lead=LeadAddress("c", None)) == []


def test_a_single_task_dials_nobody_so_its_host_may_have_a_name_that_only_ssh_knows() -> None:
    assert lines("worker", {"worker": ["alias:1"]}, lead=LeadAddress("alias", None)) == []


def test_a_name_server_that_is_busy_for_a_moment_is_asked_again_about_what_it_did_not_know() -> None:
    asked: List[Sequence[str]] = []
    paused: List[float] = []

    def resolve(names: Sequence[str], _: float) -> Dict[str, Meaning]:
        asked.append(names)
        return {name: ["10.0.0.1"] if name != "p1" or len(asked) == LOOKUPS else "later" for name in names}

    request = run_request(task_request(), cluster=json.dumps(CLUSTER), lead=LeadAddress("c", "c:2"))
    assert unresolved(request, resolve, paused.append) == []
    assert [list(names) for names in asked] == [["c", "p0", "p1"], ["p1"], ["p1"]] and len(paused) == 2


def test_a_name_server_that_does_not_answer_is_named_before_the_start_of_the_agent_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def resolve(names: Sequence[str], timeout_s: float) -> Dict[str, Meaning]:
        now[0] += timeout_s
        return dict.fromkeys(names, "no answer")

    def pause(pause_s: float) -> None:
        now[0] += pause_s

    request = run_request(task_request(), cluster=json.dumps(CLUSTER), lead=LeadAddress("c", "c:2"))
    assert len(unresolved(request, resolve, pause)) == 3
    assert now[0] - 1000.0 + LOOKUP_S < START_S  # the lead resolves once more, for ``exposed``
