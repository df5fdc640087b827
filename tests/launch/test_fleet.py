"""All hosts at once: so many at a time, every failure named, and Ctrl-C never waits for the slow ones."""

from contextlib import ExitStack
from pathlib import Path
from threading import Event, Lock
from typing import List

import pytest

from cluster.spec.model import Ssh
from launch.errors import CannotStart, HostProblem, Interrupted, ProblemKind
from launch.fleet import make_hosts
from launch.plan.local_spec import localised
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of
from tests.support.slurm.srun import job_with
from tests.support.waiting import PATIENCE_S


def answering(name: str, answer: bytes) -> FakeHost:
    return FakeHost(name, FakeChannel(b'{"missing": []}\n', answer))


def test_each_host_is_asked_its_own_request() -> None:
    hosts = {name: answering(name, b'{"ok": "%s"}\n' % name.encode()) for name in ("a", "b")}
    channels = {name: host.channels[0] for name, host in hosts.items()}
    with fleet_of(hosts) as fleet:
        answers, problems = fleet.ask("restart", {"a": {"for": "a"}, "b": {"for": "b"}}, 3.0)
    assert (answers, problems) == ({"a": {"ok": "a"}, "b": {"ok": "b"}}, [])
    assert [b'{"for": "%s"}' % name.encode() in channel.sent for name, channel in channels.items()] == [True, True]
    assert [host.closed for host in hosts.values()] == [1, 1]


def test_a_failure_of_one_host_keeps_no_answer_of_another_back() -> None:
    hosts = {"a": answering("a", b'{"ok": 1}\n'), "b": FakeHost("b"), "c": answering("c", b'{"error": "no"}\n')}
    with fleet_of(hosts) as fleet:
        answers, problems = fleet.ask("restart", {name: {} for name in hosts}, 3.0)
    assert answers == {"a": {"ok": 1}}
    assert [str(problem) for problem in problems] == ["b: out of reach", "c: no"]


def test_every_host_that_cannot_be_reached_is_named() -> None:
    def refuse(name: str) -> None:
        raise HostProblem(name, ProblemKind.UNREACHABLE, "no SSH there")

    hosts = {name: FakeHost(name, connect=refuse if name != "b" else None) for name in "abc"}
    with fleet_of(hosts) as fleet, pytest.raises(CannotStart) as caught:
        fleet.connect()
    assert str(caught.value) == "a: no SSH there\nc: no SSH there"
    assert caught.value.exit_code == 3


def test_no_more_hosts_are_reached_at_a_time_than_the_fanout() -> None:
    lock, at_once, most = Lock(), [0], [0]
    second = Event()

    def connect(name: str) -> None:
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            if at_once[0] == 2:
                second.set()
        assert second.wait(PATIENCE_S)  # nobody leaves before two are in
        with lock:
            at_once[0] -= 1

    with fleet_of({f"h{n}": FakeHost(f"h{n}", connect=connect) for n in range(8)}, fanout=2) as fleet:
        fleet.connect()
    assert most == [2]


def test_a_mistake_of_ours_is_not_taken_for_a_hosts_problem() -> None:
    def stumble(name: str) -> None:
        raise ZeroDivisionError

    with fleet_of({"a": FakeHost("a", connect=stumble)}) as fleet, pytest.raises(ZeroDivisionError):
        fleet.connect()


def test_after_a_signal_no_further_host_is_reached_and_the_slow_one_is_not_waited_for() -> None:
    reached: List[str] = []
    entered, release = Event(), Event()

    def connect(name: str) -> None:
        reached.append(name)
        entered.set()
        assert release.wait(PATIENCE_S)

    with fleet_of({name: FakeHost(name, connect=connect) for name in "abc"}, fanout=1) as fleet:
        fleet.interrupts.received.append(2)
        try:
            with pytest.raises(Interrupted):
                fleet.connect()
            assert entered.wait(PATIENCE_S)
        finally:
            release.set()
    fleet._pool.shutdown(wait=True)
    assert reached == ["a"]


def test_what_must_be_finished_is_finished_despite_a_signal() -> None:
    hosts = {name: answering(name, b'{"ready": true}\n') for name in "ab"}
    with fleet_of(hosts, fanout=1) as fleet:
        fleet.interrupts.received.append(15)
        answers, problems = fleet.ask("start", {name: {} for name in hosts}, 3.0, interruptible=False)
    assert (list(answers), problems) == (["a", "b"], [])


@pytest.mark.parametrize(
    ("transport", "client", "kind"),
    [("ssh", "fabric", "SshHost"), ("ssh", "openssh", "OpensshHost"), ("slurm", "openssh", "SlurmHost")],
)
def test_every_host_gets_the_commands_before_its_program_but_for_runs_on_this_machine_alone(
    transport: str, client: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in job_with(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/bin/{name}")
    ssh = Ssh(transport=client, config=None, known_hosts=str(tmp_path / "none"))
    spec = spec_of("worker:0@localhost", "worker:1@h1", before=("module load cuda",), transport=transport, ssh=ssh)
    with ExitStack() as closing:
        hosts = make_hosts(dict.fromkeys(spec.hosts, "py"), spec, closing)
    assert [type(host).__name__ for host in hosts.values()] == ["LocalHost", kind]
    assert [host.before for host in hosts.values()] == [("module load cuda",)] * 2
    assert localised(spec, [1, 2]).before == ()
