"""The launcher's side of a build: what is sent, what is told, and how it ends when something goes wrong."""

import io
import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from cluster.protocol.typed_json import to_values
from cluster.spec.model import Setup
from launch.environments import builder
from launch.environments.builder import SetupOutcome, as_values, in_lines, set_up
from launch.environments.identity import Order
from launch.errors import Interrupted
from launch.fleet import Fleet
from launch.hosts.channel import Silence
from launch.view.host_progress import HostProgress
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of
from tests.support.launch.tiny_wheels import tiny_wheel

MET = b'{"missing": []}\n'
HOSTS = ("a", "b", "c")


def said(**values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"


def order_for(folder: Path, *hosts: str) -> Order:
    (folder / "my.lock").write_text(tiny_wheel(folder / "wheels", "tiny"))
    spec = replace(spec_of(), path=folder / "r.yaml", setup=Setup("my.lock", "wheels"))
    return Order(spec, dict.fromkeys(hosts, "python3.7"))


@pytest.fixture
def order(tmp_path: Path) -> Order:
    """An order for the host a."""
    return order_for(tmp_path, "a")


@pytest.fixture
def progress() -> Iterator[HostProgress]:
    with HostProgress(HOSTS, io.StringIO()) as progress:
        yield progress


def fleet(*channels: FakeChannel) -> Fleet:
    return fleet_of({host: FakeHost(host, channel) for host, channel in zip(HOSTS, channels)})


def test_a_host_gets_the_files_that_it_lacks_and_no_others(tmp_path: Path, progress: HostProgress) -> None:
    order = order_for(tmp_path, *HOSTS)
    (digest, path), *_ = order.files.items()
    lacking = FakeChannel(MET, said(want=[digest]), said(stage="installing tiny"), said(done="built"))
    having = FakeChannel(MET, said(want=[]), said(done="built"))
    current = FakeChannel(MET, said(done="up to date"))
    outcome = set_up(fleet(lacking, having, current), order, progress)
    assert outcome == SetupOutcome({"a": "built", "b": "built", "c": "up to date"}, [])
    assert lacking.sent.endswith(path.read_bytes())
    assert json.loads(having.sent.splitlines()[-1].decode()) == to_values(order.request("b"))
    assert in_lines(outcome) == ["a,b: built", "c: up to date"]
    assert progress.text() == "3 of 3 ready"


def test_a_host_that_fails_or_is_out_of_reach_is_named_while_the_others_finish(
    tmp_path: Path, progress: HostProgress
) -> None:
    order = order_for(tmp_path, *HOSTS)
    failing = FakeChannel(MET, said(want=[]), said(error="the disk is full"))
    hosts = fleet(failing, FakeChannel(MET, said(done="built")))
    hosts.hosts["c"] = FakeHost("c")
    outcome = set_up(hosts, order, progress)
    assert outcome.ready == {"b": "built"}
    assert sorted(map(str, outcome.problems)) == ["a: the disk is full", "c: out of reach"]
    assert progress.text() == "1 of 3 ready, 2 failed"
    values = as_values(order, outcome)
    assert not values["ready"]
    assert [(host["host"], host["state"], host["error"]) for host in values["hosts"]] == [
        ("a", "failed", "the disk is full"),
        ("b", "built", None),
        ("c", "failed", "out of reach"),
    ]


class Full(FakeChannel):
    """Takes no file."""

    def send(self, data: bytes) -> None:
        super().send(data)
        if data.startswith(b"PK"):
            raise BrokenPipeError("broken pipe")


@pytest.mark.parametrize(
    ("last_words", "reason"),
    [
        ([said(error="the disk is full")], "the disk is full"),
        ([], "the connection broke while tiny-1.0-py3-none-any.whl was sent: broken pipe"),
    ],
)
def test_a_host_that_takes_no_more_files_has_the_last_word_if_it_has_one(
    order: Order, progress: HostProgress, last_words: List[bytes], reason: str
) -> None:
    channel = Full(MET, said(want=list(order.files)), *last_words)
    assert list(map(str, set_up(fleet(channel), order, progress).problems)) == [f"a: {reason}"]
    assert channel.ended == 1  # so that the host does not wait for the rest


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([said(want=[])], "its build ended without a result: killed"),
        ([said(want=[]), OSError("reset")], "the connection broke during its build: reset"),
        ([b"hello\n"], "the connection broke during its build: expected a line of JSON, found 'hello'"),
    ],
)
def test_a_build_that_ends_without_its_last_word_is_a_problem_of_its_host(
    order: Order, progress: HostProgress, script: List[Any], reason: str
) -> None:
    outcome = set_up(fleet(FakeChannel(MET, *script, complaint="oh\nkilled")), order, progress)
    assert list(map(str, outcome.problems)) == [f"a: {reason}"]


def test_a_host_that_falls_silent_is_given_up(
    order: Order, progress: HostProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder, "SILENT_S", 0.0)
    outcome = set_up(fleet(FakeChannel(MET, said(want=[]), Silence())), order, progress)
    assert list(map(str, outcome.problems)) == ["a: the build sent no message for 0 s"]


def test_a_signal_ends_the_builds_on_the_hosts_and_waits_until_they_have_ended(
    order: Order, progress: HostProgress
) -> None:
    class Interrupting(FakeChannel):
        def receive(self, timeout_s: float) -> bytes:
            data = super().receive(timeout_s)
            if b"stage" in data:
                hosts.interrupts.received.append(signal.SIGINT)
            return data

    building = Interrupting(MET, said(want=[]), said(stage="fetching numpy"), said(stage="fetching numpy"))
    hosts = fleet(building)
    with pytest.raises(Interrupted):
        set_up(hosts, order, progress)
    assert (building.ended, building.closed) == (1, 1)
    assert building.receive_line(0) is None  # all that it said was heard
    assert progress.text().startswith("0 of 3 ready")


def test_hosts_that_had_not_begun_when_the_signal_came_are_left_alone(order: Order, progress: HostProgress) -> None:
    hosts = fleet(FakeChannel(MET, said(done="built")))
    hosts.interrupts.received.append(signal.SIGTERM)
    with pytest.raises(Interrupted):
        set_up(hosts, order, progress)
    assert hosts.hosts["a"].opened == []  # type: ignore[attr-defined]
