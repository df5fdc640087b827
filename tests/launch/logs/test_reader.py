"""Task logs from every host, each line with where it is from."""

import json
from dataclasses import replace
from typing import Any, Dict, List, Optional

import pytest

from cluster.protocol.typed_json import to_values
from launch.errors import UsageError
from launch.hosts.channel import Silence
from launch.logs.task_logs import print_first_cause, print_log_of_culprit, print_logs, select
from launch.status.incident_status import IncidentStatus
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from tests.support.launch import statuses
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of

SPEC = spec_of("ps:0@cpu01", "ps:1@cpu02", "chief:0@gpu01", "worker:0@gpu01", "worker:1@gpu02", "worker:10@gpu02")


def line(task: str, text: str, time: float = 0.0, attempt: int = 0) -> bytes:
    return json.dumps({"task": task, "attempt": attempt, "line": text, "time": time}).encode() + b"\n"


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
    assert [task.name for task in select(SPEC.tasks, patterns)] == names


@pytest.mark.parametrize("pattern", ["worker", "worker:2", "gpu0", "evaluator:*", ""])
def test_a_pattern_that_means_nothing_is_refused_with_what_there_is(pattern: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(SPEC.tasks, ["ps:0", pattern])
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


@pytest.mark.parametrize("follow", [False, True])
def test_a_line_separates_the_attempts_of_a_task(follow: bool) -> None:
    of_a = [line("worker:0", "one"), line("worker:0", "two", 1.0, 2), line("worker:0", "three", 2.0, 2)]
    hosts = {"a": host("a", *of_a), "b": host("b", line("worker:1", "only", 3.0, 1))}
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        assert print_logs(fleet, fleet.spec.tasks, said.append, follow=follow) == []
    assert [each for each in said if "@a " in each] == [
        "worker:0@a one", "worker:0@a -- attempt_2.log --", "worker:0@a two", "worker:0@a three",
    ]  # fmt: skip
    assert [each for each in said if "@b " in each] == ["worker:1@b only"]  # as with --tail


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
    assert sorted(str(problem) for problem in problems) == ["a: no run", "b: out of reach"]
    assert said == ["worker:2@c here"]


def test_a_connection_that_breaks_is_a_problem_of_its_host() -> None:
    with fleet_of({"a": host("a", line("worker:0", "one"), OSError("Socket is closed"))}) as fleet:
        problems = print_logs(fleet, fleet.spec.tasks, print, follow=True)
    assert [str(problem) for problem in problems] == ["a: the connection broke: Socket is closed"]


@pytest.mark.parametrize(
    ("noise", "problem"),
    [
        (b'{"time": 1.0, "task": "wor', "a: the connection broke: it ended in the middle of a line"),
        (b"Connection to a closed by remote host.\n",
         "a: `logs`: expected a line of JSON, found 'Connection to a closed by remote host.'"),
        (b'{"colour": 1}\n', "a: `logs`: expected a line of a task's log with time, found {"),
        (b'{"time": [], "task": 1}\n', "a: `logs`: expected a line of a task's log with time, found {"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("follow", [False, True])
def test_what_is_no_line_of_a_log_is_a_problem_of_its_host(noise: bytes, problem: str, follow: bool) -> None:
    hosts = {"a": host("a", line("worker:0", "before"), noise), "b": host("b", line("worker:1", "after", 1.0))}
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        (found,) = print_logs(fleet, fleet.spec.tasks, said.append, follow=follow, raw=True)
    assert str(found).startswith(problem)
    assert sorted(said) == ["worker:0@a before", "worker:1@b after"]


def test_the_last_lines_of_an_attempt_that_failed_first_are_printed_one_by_one() -> None:
    cause = "worker:1@b: exit code 3"
    incident = IncidentStatus(number=1, role="worker", index=1, host="b", log="/w/attempt_0.log", lines=["one", "two"])
    task = TaskStatus("worker", 1, "b", log="/w/attempt_1.log")
    status = RunStatus(state="failed", cause=cause, cause_incident=1, incidents=[incident], tasks=[task])
    said: List[str] = []
    with fleet_of({"a": host("a"), "b": host("b")}) as fleet:
        print_log_of_culprit(fleet, status, said.append)
    assert said == ["last lines of b:/w/attempt_0.log", "  one", "  two"]


FRAMES = '  File "/me/job.py", line 5, in model\n    return pric(x)'


@pytest.mark.parametrize(
    ("stack", "kind", "expected"),
    [
        (FRAMES, "exception", ["worker:1@b failed in these lines of the job:", *FRAMES.splitlines(),
                               "the whole traceback is in b:/w/attempt_0.log"]),
        ("", "exception", ["the whole traceback is in b:/w/attempt_0.log"]),
        (None, "exception", ["last lines of b:/w/attempt_0.log", "  worker:1@b boom"]),
        ("Thread 1", "frozen", ["last lines of b:/w/attempt_0.log", "  worker:1@b boom"]),
    ],
)  # fmt: skip
def test_an_error_that_a_task_has_explained_needs_no_lines_but_the_authors_own(
    stack: Optional[str], kind: str, expected: List[str]
) -> None:
    run = failed("worker:1@b: exit code 1")
    run = replace(run, incidents=[replace(run.incidents[0], stack=stack, kind=kind)])
    said: List[str] = []
    with fleet_of({"a": host("a"), "b": host("b", line("worker:1", "boom"))}) as fleet:
        print_log_of_culprit(fleet, run, said.append)
    assert said == expected


def test_a_last_line_of_any_length_is_cut() -> None:
    hosts = {"a": host("a"), "b": host("b", line("worker:1", "x" * 100_000))}
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        print_log_of_culprit(fleet, failed("worker:1@b: exit code 3"), said.append)
    assert [len(text) for text in said[1:]] == [300]


def test_the_lines_of_all_hosts_are_in_the_order_of_time() -> None:
    hosts = {
        "a": host("a", line("worker:0", "first", 10.0), line("worker:0", "third", 30.0)),
        "b": host("b", line("worker:1", "second", 20.0), line("worker:1", "fourth", 40.0)),
    }
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        print_logs(fleet, fleet.spec.tasks, said.append)
    assert [text.split()[1] for text in said] == ["first", "second", "third", "fourth"]


@pytest.mark.parametrize("follow", [False, True])
def test_equal_lines_of_many_tasks_are_one_unless_each_is_asked_for(
    follow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "launch.logs.task_logs.WAIT_S", 60.0
    )  # both come before the window is over, however busy the machine is
    for raw, expected in ((False, ["worker:[0-1]@a,b ×2 up"]), (True, ["worker:0@a up", "worker:1@b up"])):
        said: List[str] = []
        with fleet_of({"a": host("a", line("worker:0", "up")), "b": host("b", line("worker:1", "up"))}) as fleet:
            print_logs(fleet, fleet.spec.tasks, said.append, follow=follow, raw=raw)
        assert sorted(said) == expected


def followed_until_a_signal(*told: Any) -> List[str]:
    """What is said of a task's lines by somebody whom a signal reaches as soon as the first is said."""
    said: List[str] = []
    with fleet_of({"a": host("a", *told)}) as fleet:

        def say(text: str) -> None:
            said.append(text)
            fleet.interrupts.received.append(2)

        print_logs(fleet, fleet.spec.tasks, say, follow=True)
    return said


def test_a_line_that_is_followed_is_told_though_no_other_comes() -> None:
    assert followed_until_a_signal(line("worker:0", "one"), *[Silence()] * 10000) == ["worker:0@a one"]


def failed(cause: str, state: str = "failed") -> RunStatus:
    incident = IncidentStatus(1, kind="exit", cause=cause, host="b", log="/w/attempt_0.log", lines=["boom"])
    if cause.startswith("worker:1@b"):
        incident = replace(incident, role="worker", index=1, exit_code=3)
    task = statuses.task("worker:1@b", log="/w/attempt_0.log")
    return statuses.status(task, state=state, cause=cause, incidents=[incident], cause_incident=1)


@pytest.mark.parametrize(
    ("state", "cause", "chosen", "expected"),
    [
        ("failed", "worker:1@b: exit code 3", ["worker:1"],
         ["first cause: worker:1@b: exit code 3", "last lines of b:/w/attempt_0.log", "  worker:1@b boom",
          "every line, by time:"]),
        ("failed", "worker:1@b: exit code 3", ["worker:0"], []),
        ("failed", "b: no message for 10 s", ["worker:1"], []),
        ("running", "worker:1@b: exit code 3", ["worker:1"], []),
    ],
)  # fmt: skip
def test_of_a_run_that_has_failed_the_first_cause_comes_first(
    state: str, cause: str, chosen: List[str], expected: List[str]
) -> None:
    hosts = {
        "a": host("a", json.dumps({"status": to_values(failed(cause, state))}).encode() + b"\n"),
        "b": host("b", line("worker:1", "boom")),
    }
    said: List[str] = []
    with fleet_of(hosts) as fleet:
        print_first_cause(fleet, select(fleet.spec.tasks, chosen), said.append)
    assert said == expected


def test_a_lead_that_is_out_of_reach_has_no_first_cause_to_tell() -> None:
    said: List[str] = []
    with fleet_of({"a": FakeHost("a")}) as fleet:
        print_first_cause(fleet, fleet.spec.tasks, said.append)
    assert said == []


def test_a_silence_is_waited_out() -> None:
    said: List[str] = []
    with fleet_of({"a": host("a", Silence(), Silence(), line("worker:0", "late"))}) as fleet:
        print_logs(fleet, fleet.spec.tasks, said.append, follow=True)
    assert said == ["worker:0@a late"]


def test_a_signal_ends_it() -> None:
    assert followed_until_a_signal(*[line("worker:0", "again")] * 1000) == ["worker:0@a again"]


def test_a_reader_that_goes_ends_it_without_a_fuss(capsys: pytest.CaptureFixture[str]) -> None:
    with fleet_of({"a": host("a", line("worker:0", "one"), line("worker:0", "two"))}) as fleet:

        def say(text: str) -> None:
            raise BrokenPipeError

        with pytest.raises(BrokenPipeError):
            print_logs(fleet, fleet.spec.tasks, say)
    assert capsys.readouterr().err == ""
