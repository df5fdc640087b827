"""A start succeeds on every host or is taken back."""

import json
from typing import Dict, List

import pytest

from launch.agent.wire.run_request import RunRequest
from launch.errors import CannotStart, HostProblem, Interrupted, ProblemKind
from launch.hosts.channel import Silence
from launch.run.start import advising, read_secrets, start_agents
from tests.launch.run.leads import line
from tests.support.agent.requested import run_request
from tests.support.launch import leftovers
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of
from tests.support.waiting import eventually, let_pass

READY = b'{"ready": true, "pid": 1}\n'
CLEAN = line({"run": "r-1", **leftovers.NOTHING, "after": None})
HUNG = line({"run": "r-1", **leftovers.NOTHING, "ports": [2222], "after": None})


def request(host: str) -> RunRequest:
    return run_request(run="r-1", host=host, workdir="/w", secrets={"KEY": "hunter2"})


class Recorded(FakeHost):
    """A host that answers ``start`` and ``down`` as it was made to; a lead is attached to, too."""

    def __init__(self, name: str, started: bytes, leads: bool = False, down: bytes = CLEAN):
        says = (started, b"", down) if leads else (started, down)
        self.used = [FakeChannel(b'{"missing": []}\n', said) for said in says]
        super().__init__(name, *self.used)

    def verbs(self) -> List[str]:
        """What it was asked to run."""
        return [json.loads(channel.sent.split(b"\n")[0].decode())["verb"] for channel in self.used if channel.sent]


def test_every_agent_is_started_with_its_request() -> None:
    hosts = {name: Recorded(name, READY, leads=name == "a") for name in "ab"}
    with fleet_of(hosts) as fleet:
        start_agents(fleet, {name: request(name) for name in hosts})
    assert [host.verbs() for host in hosts.values()] == [["start", "attach"], ["start"]]
    assert b"hunter2" in hosts["a"].used[0].sent


def test_what_hosts_ended_first_and_limits_that_they_watch_are_told_once_for_hosts_alike() -> None:
    answers = {"a": b'"ended": ["x"], "notes": []', "b": b'"notes": ["w"]', "c": b'"ended": [], "notes": ["w"]'}
    hosts = {name: Recorded(name, b'{"ready": true, ' + said + b"}\n", name == "a") for name, said in answers.items()}
    with fleet_of(hosts) as fleet:
        assert start_agents(fleet, {name: request(name) for name in hosts}) == ["a: x", "b,c: w"]


def test_a_lead_that_is_ready_hears_of_the_launcher_while_other_hosts_are_still_being_started() -> None:
    lead = Recorded("a", READY, leads=True)

    class Slow(FakeChannel):
        def receive(self, timeout_s: float) -> bytes:
            said = super().receive(timeout_s)
            if said == READY:
                eventually("a beat", lambda: b'{"do": "beat", ' in lead.used[1].sent)
            return said

    hosts = {"a": lead, "b": FakeHost("b", Slow(b'{"missing": []}\n', READY))}
    with fleet_of(hosts) as fleet:
        start_agents(fleet, {name: request(name) for name in hosts})
    assert b"hunter2" not in lead.used[1].sent and lead.used[1].closed


def test_a_beat_names_the_newest_answer_although_the_lead_sends_much_else() -> None:
    def quiet() -> bytes:
        let_pass(0.02)
        raise Silence

    lead = Recorded("a", READY, leads=True)
    lead.used[1] = FakeChannel(
        b'{"missing": []}\n', *[b'{"run": null}\n'] * 20, b'{"beat": [9.0, 9.5]}\n', *[quiet] * 400
    )
    lead.channels[1] = lead.used[1]

    class Slow(FakeChannel):
        def receive(self, timeout_s: float) -> bytes:
            said = super().receive(timeout_s)
            if said == READY:
                eventually("its answer in a beat", lambda: b'"heard": [9.0, 9.5]' in lead.used[1].sent, 5.0)
            return said

    hosts = {"a": lead, "b": FakeHost("b", Slow(b'{"missing": []}\n', READY))}
    with fleet_of(hosts) as fleet:
        start_agents(fleet, {name: request(name) for name in hosts})


def test_the_only_host_of_a_run_need_not_hear_of_the_launcher_before_it_is_told_to_go() -> None:
    lead = Recorded("a", READY, leads=True)
    with fleet_of({"a": lead}) as fleet:
        start_agents(fleet, {"a": request("a")})
    assert lead.verbs() == ["start"]


def test_when_one_host_cannot_start_the_others_are_taken_back_and_all_reasons_are_told() -> None:
    hosts = {
        "a": Recorded("a", READY, leads=True),
        "b": Recorded("b", b'{"error": "port 1 is taken"}\n'),
        "c": Recorded("c", READY),
    }
    hosts["d"] = Recorded("d", b'{"error": "no python"}\n')
    with fleet_of(hosts) as fleet, pytest.raises(CannotStart) as caught:
        start_agents(fleet, {name: request(name) for name in hosts})
    assert str(caught.value) == "b: port 1 is taken\nd: no python"
    assert {name: host.verbs() for name, host in hosts.items()} == {
        "a": ["start", "attach", "down"], "b": ["start"], "c": ["start", "down"], "d": ["start"],
    }  # fmt: skip
    taken_back = json.loads(hosts["a"].used[2].sent.split(b"\n")[1].decode())
    assert (taken_back["run"]["run"], taken_back["reason"]) == ("r-1", "the start failed")
    assert b"hunter2" not in hosts["a"].used[2].sent


def test_a_signal_during_the_start_takes_it_back_everywhere() -> None:
    hosts = {name: Recorded(name, READY, leads=name == "a") for name in "ab"}
    with fleet_of(hosts) as fleet:
        fleet.interrupts.received.append(2)
        with pytest.raises(Interrupted):
            start_agents(fleet, {name: request(name) for name in hosts})
    assert [host.verbs() for host in hosts.values()] == [["start", "attach", "down"], ["start", "down"]]


@pytest.mark.parametrize(
    ("signals", "ends"), [([], "b: port 1 is taken"), ([2], "interrupted by SIGINT\nb: port 1 is taken")]
)
def test_hosts_on_which_an_agent_may_be_left_are_named(signals: List[int], ends: str) -> None:
    hosts = {
        "a": Recorded("a", READY, leads=True, down=HUNG),
        "b": Recorded("b", b'{"error": "port 1 is taken"}\n'),
        "c": Recorded("c", READY),
    }
    hosts["c"].channels.pop()
    with fleet_of(hosts) as fleet, pytest.raises((CannotStart, Interrupted)) as caught:
        fleet.interrupts.received += signals
        start_agents(fleet, {name: request(name) for name in hosts})
    assert str(caught.value) == f"{ends}\na: LEFT: port 2222\nc: out of reach; the run may continue there"


def test_secrets_are_read_from_the_environment_by_name() -> None:
    spec = spec_of("worker:0@a", secrets=("KEY", "EMPTY"))
    assert read_secrets(spec, {"KEY": "v", "EMPTY": "", "OTHER": "o"}) == {"KEY": "v", "EMPTY": ""}


def test_every_secret_that_is_not_set_is_named() -> None:
    with pytest.raises(CannotStart) as caught:
        read_secrets(spec_of("worker:0@a", secrets=("A", "B", "C")), {"B": "1"})
    assert str(caught.value) == (
        "this machine: secrets: expected A in the environment, found none; export it first\n"
        "this machine: secrets: expected C in the environment, found none; export it first"
    )


def test_what_cannot_start_names_the_check_that_finds_the_rest() -> None:
    with pytest.raises(CannotStart) as caught, advising("r.yaml", ["a", "b"]):
        raise CannotStart([HostProblem("a", ProblemKind.UNREACHABLE, "no SSH there")])
    assert str(caught.value) == "a: no SSH there\nlist every obstacle with `launch check r.yaml`"
    assert [problem.host for problem in caught.value.problems] == ["a"]


@pytest.mark.parametrize(
    ("kinds", "is_named"),
    [
        ({"a": ProblemKind.UNREACHABLE, "b": ProblemKind.UNKNOWN_NAME}, True),
        ({"a": ProblemKind.UNREACHABLE, "b": ProblemKind.UNREACHABLE}, True),
        ({"a": ProblemKind.UNREACHABLE}, False),
        ({"a": ProblemKind.UNREACHABLE, "b": ProblemKind.AUTHENTICATION}, False),
        ({}, False),
    ],
)
def test_only_where_no_host_is_found_the_next_step_names_local(kinds: Dict[str, ProblemKind], is_named: bool) -> None:
    with pytest.raises(CannotStart) as caught, advising("r.yaml", ["localhost", "a", "b"]):
        raise CannotStart([HostProblem(host, kind, "no way there") for host, kind in kinds.items()])
    assert ("; `launch up --local r.yaml` trains on this machine alone" in str(caught.value)) == is_named
