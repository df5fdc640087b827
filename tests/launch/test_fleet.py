"""All hosts at once: so many at a time, every failure named, and Ctrl-C never waits for the slow ones."""

import math
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Lock, Thread
from typing import Any, Callable, List

import pytest

from cluster.spec.model import Ssh
from launch.calls import LOOK_S
from launch.errors import CannotStart, HostProblem, Interrupted, ProblemKind
from launch.hosts.channel import Silence
from launch.plan.local_spec import localised
from launch.transports import make_hosts
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of
from tests.support.slurm.srun import job_with
from tests.support.waiting import PATIENCE_S

MISSES_NOTHING = b'{"missing": []}\n'


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


class LookedUp(FakeHost):
    """A host that is looked up by a function, and must be before it is prepared."""

    def __init__(self, name: str, look_up: Callable[[], Any]):
        super().__init__(name)
        self._look_up, self.steps = look_up, ""

    def look_up(self) -> None:
        self._look_up()
        self.steps += "looked up, "

    def prepare(self) -> None:
        self.steps += "prepared"


def test_hosts_are_looked_up_at_the_same_time_and_then_prepared() -> None:
    together = Barrier(3)
    hosts = [LookedUp(name, lambda: together.wait(PATIENCE_S)) for name in "abc"]
    with fleet_of({host.name: host for host in hosts}):
        assert [host.steps for host in hosts] == ["looked up, prepared"] * 3


def test_a_signal_while_hosts_are_looked_up_ends_the_verb_and_is_no_problem_of_a_host() -> None:
    hosts = [LookedUp(name, lambda: fleet.interrupts.received.append(2)) for name in "ab"]
    fleet = fleet_of({host.name: host for host in hosts}, fanout=1)
    with pytest.raises(Interrupted), fleet:
        pass
    assert [host.steps for host in hosts] == ["looked up, ", ""]


def test_a_problem_of_this_machine_is_one_for_all_hosts() -> None:
    def refuse(name: str) -> None:
        raise HostProblem.here("no room in /tmp")

    with fleet_of({name: FakeHost(name, connect=refuse) for name in "abc"}) as fleet:
        _, problems = fleet.each(lambda host: host.connect(), list("abc"))
    assert list(map(str, problems)) == ["this machine: no room in /tmp"]


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


def test_a_verb_tries_a_host_that_is_out_of_reach_once_and_the_next_verb_tries_it_again() -> None:
    hosts = {"a": FakeHost("a"), "b": FakeHost("b", *(FakeChannel(MISSES_NOTHING, b'{"ok": 1}\n') for _ in range(3)))}
    with fleet_of(hosts) as fleet:
        with fleet.within(PATIENCE_S):
            for _ in range(2):
                answers, problems = fleet.ask("restart", {name: {} for name in hosts}, 3.0)
                assert (list(answers), [str(each) for each in problems]) == (["b"], ["a: out of reach"])
            with fleet.asking():
                fleet.ask("restart", {"a": {}}, 3.0)
        assert len(hosts["a"].opened) == 1
        fleet.ask("restart", {"a": {}}, 3.0)
    assert len(hosts["a"].opened) == 2


def test_a_host_that_was_only_slow_is_asked_again_in_the_same_verb() -> None:
    slow = FakeHost("a", FakeChannel(Silence()), FakeChannel(MISSES_NOTHING, b'{"ok": 1}\n'))
    with fleet_of({"a": slow}) as fleet, fleet.within(PATIENCE_S):
        assert fleet.ask("restart", {"a": {}}, 3.0)[1][0].kind is ProblemKind.SILENT
        assert fleet.ask("restart", {"a": {}}, 3.0)[0] == {"a": {"ok": 1}}


def test_all_questions_of_a_verb_share_its_deadline_and_a_host_that_hangs_is_closed() -> None:
    came: List[str] = []
    release = Event()

    def hang(name: str) -> None:
        came.append(name)
        assert_set(release)

    hanging = FakeHost("a", connect=hang)
    with fleet_of({"a": hanging}) as fleet:
        began = time.monotonic()
        with fleet.within(0.5):
            _, first = fleet.each(lambda host: host.connect(), ["a"])
            _, second = fleet.each(lambda host: host.connect(), ["a"], timeout_s=PATIENCE_S)
        took_s = time.monotonic() - began
        release.set()
        assert hanging.closed == 2 and came == ["a"]  # no time is left for a second login
    assert [(each[0].kind, each[0].what) for each in (first, second)] == [
        (ProblemKind.SLOW, "no answer within 0 s, the deadline of this verb"),
    ] * 2
    assert 0.5 <= took_s < 0.5 + LOOK_S


def test_a_deadline_is_that_of_the_thread_that_has_it_and_of_no_other() -> None:
    """The page of a run asks hosts in several threads."""
    hosts = {"a": FakeHost("a")}
    with fleet_of(hosts) as fleet, ExitStack() as stack:
        entered, leave = Event(), Event()

        def other() -> None:
            with fleet.within(PATIENCE_S):
                entered.set()
                assert_set(leave)

        thread = Thread(target=other)
        thread.start()
        assert_set(entered)
        stack.callback(thread.join)
        stack.callback(leave.set)
        for _ in range(2):  # without a deadline here, each question tries the host
            fleet.ask("restart", {"a": {}}, 3.0)
        with fleet.within(PATIENCE_S):
            leave.set()
            thread.join()
            for _ in range(2):
                fleet.ask("restart", {"a": {}}, 3.0)
        fleet.ask("restart", {"a": {}}, 3.0)
    assert len(hosts["a"].opened) == 4


@pytest.mark.parametrize(("bounded", "reached"), [(True, ["a", "b", "c"]), (False, ["a"])])
def test_mute_hosts_lend_their_places_to_as_many_others_before_a_deadline(bounded: bool, reached: List[str]) -> None:
    came: List[str] = []
    release = Event()

    def connect(name: str) -> None:
        came.append(name)
        if name != "b":
            assert_set(release)

    with fleet_of({name: FakeHost(name, connect=connect) for name in "abcd"}, fanout=1) as fleet:
        fleet.spec = replace(fleet.spec, ssh=replace(fleet.spec.ssh, connect_timeout_s=0.1))
        with fleet.within(1.0 if bounded else math.inf):
            _, problems = fleet.each(lambda host: host.connect(), list("abcd"), timeout_s=1.0)
        release.set()
    assert came == reached  # c has the place that a lends, and d waits for it
    assert [each.host for each in problems] == [name for name in "abcd" if not (bounded and name == "b")]


def assert_set(event: Event) -> None:
    assert event.wait(PATIENCE_S)


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
