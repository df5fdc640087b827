"""Task logs from every host, each line with where it is from."""

import json
from typing import Any, Dict, List

import pytest

from launch.channel import Silence
from launch.errors import UsageError
from launch.logs import print_logs, select
from tests.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of

SPEC = spec_of("ps:0@cpu01", "ps:1@cpu02", "chief:0@gpu01", "worker:0@gpu01", "worker:1@gpu02", "worker:10@gpu02")


def line(task: str, text: str) -> bytes:
    return json.dumps({"task": task, "attempt": 0, "line": text}).encode() + b"\n"


def host(name: str, *said: Any) -> FakeHost:
    return FakeHost(name, FakeChannel(b'{"missing": []}\n', *said))


def request(channel: FakeChannel) -> Dict[str, Any]:
    """What the agent was asked."""
    asked: Dict[str, Any] = json.loads(channel.sent.splitlines()[1].decode())
    return asked


# -- which tasks


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([], ["ps:0", "ps:1", "chief:0", "worker:0", "worker:1", "worker:10"]),
        (["worker:1"], ["worker:1"]),
        (["ps:*"], ["ps:0", "ps:1"]),
        (["gpu01"], ["chief:0", "worker:0"]),
        (["gpu02", "ps:0", "worker:1"], ["ps:0", "worker:1", "worker:10"]),
        (["*"], ["ps:0", "ps:1", "chief:0", "worker:0", "worker:1", "worker:10"]),
    ],
)
def test_a_pattern_means_a_task_a_role_or_a_host(patterns: List[str], names: List[str]) -> None:
    assert [task.name for task in select(SPEC, patterns)] == names


@pytest.mark.parametrize("pattern", ["worker", "worker:2", "gpu0", "evaluator:*", ""])
def test_a_pattern_that_means_nothing_is_refused_with_what_there_is(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(SPEC, ["ps:0", pattern])
    assert str(caught.value) == (
        "TASK: expected a task, ROLE:* or a host among ps:0, ps:1, chief:0, worker:0, worker:1, worker:10, "
        f"cpu01, cpu02, gpu01, gpu02; found {pattern!r}"
    )


# -- their lines


def test_each_line_says_which_task_on_which_host_it_is_from() -> None:
    hosts = {"a": host("a", line("worker:0", "one")), "b": host("b", line("worker:1", "two") + line("worker:1", ""))}
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        assert print_logs(fleet, fleet.spec.tasks, said.append) == []
    assert said == ["worker:0@a one", "worker:1@b two", "worker:1@b "]


def test_only_the_hosts_of_the_chosen_tasks_are_asked_and_for_those_tasks() -> None:
    hosts = {"a": host("a"), "b": host("b")}
    channel = hosts["b"].channels[0]
    with fleet_of(hosts) as fleet:
        print_logs(fleet, fleet.spec.tasks[1:], print, tail=3)
    assert (hosts["a"].opened, request(channel)["tasks"], request(channel)["tail"]) == ([], ["worker:1"], 3)
    assert channel.closed


def test_a_host_that_has_no_logs_or_is_out_of_reach_is_a_problem_and_the_others_are_printed() -> None:
    hosts = {"a": host("a", b'{"error": "no run"}\n'), "b": FakeHost("b"), "c": host("c", line("worker:2", "here"))}
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        problems = print_logs(fleet, fleet.spec.tasks, said.append)
    assert [str(problem) for problem in problems] == ["a: no run", "b: out of reach"]
    assert said == ["worker:2@c here"]


def test_a_connection_that_breaks_is_a_problem_of_its_host() -> None:
    with fleet_of({"a": host("a", line("worker:0", "one"), OSError("Socket is closed"))}) as fleet:
        problems = print_logs(fleet, fleet.spec.tasks, print, follow=True)
    assert [str(problem) for problem in problems] == ["a: the connection broke: Socket is closed"]


def test_a_silence_is_waited_out() -> None:
    said: List[str] = []
    with fleet_of({"a": host("a", Silence(), Silence(), line("worker:0", "late"))}) as fleet:
        print_logs(fleet, fleet.spec.tasks, said.append, follow=True)
    assert said == ["worker:0@a late"]


def test_a_signal_ends_it() -> None:
    said: List[str] = []
    with fleet_of({"a": host("a", *[line("worker:0", "again")] * 1000)}) as fleet:

        def say(text: str) -> None:
            said.append(text)
            fleet.interrupts.received.append(2)

        print_logs(fleet, fleet.spec.tasks, say, follow=True)
    assert said == ["worker:0@a again"]


def test_a_reader_that_goes_ends_it_without_a_fuss(capsys: pytest.CaptureFixture[str]) -> None:
    with fleet_of({"a": host("a", line("worker:0", "one"), line("worker:0", "two"))}) as fleet:

        def say(text: str) -> None:
            raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            print_logs(fleet, fleet.spec.tasks, say)
    assert capsys.readouterr().err == ""
