"""A mistake in a job is found before a task starts, and a right job is never refused."""

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any, Callable, List, Optional

import pytest

from launch.agent.wire.run_request import RunRequest
from launch.errors import LaunchError
from launch.fleet import Fleet
from launch.hosts.bundle import Code, JobCode, with_folder
from launch.run import graph_check
from launch.run.graph_check import GraphCheck, is_useful
from launch.run.start import start_agents
from tests.support.agent.requested import run_request, task_request
from tests.support.launch.facts import plan_of
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of
from tests.support.waiting import PATIENCE_S, eventually

HAS_CODE = b'{"missing": []}\n'
MISTAKE = b'{"cause": "/p/job.py:4: NameError: name \'x\' is not defined"}\n'
RIGHT = b'{"cause": null}\n'


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No check gives up, unless its test has it do so; copies of the job's folder lie in a folder of the test."""
    monkeypatch.setattr(graph_check, "PATIENCE_S", PATIENCE_S)
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))


def check(folder: Path, script: str, useful: bool = True) -> GraphCheck:
    """A check whose Python is a shell script, and whose job's folder has one file."""
    (folder / "python").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "python").chmod(0o755)
    (folder / "project").mkdir()
    (folder / "project" / "digits.py").write_text("the job")
    job = JobCode(folder / "project", "digits.py")
    return GraphCheck(plan_of("ps:0@a", "worker:0@a"), with_folder(Code({}), job), job, useful, str(folder / "python"))


def request() -> RunRequest:
    return run_request(task_request("ps:0"), task_request("worker:0", chief=True), run="r-1", host="a", workdir="/w")


class Asked:
    """The chief's host, which answers the verb ``graph`` once; and what was done before it was asked."""

    def __init__(self, *answer: bytes):
        self.channel = FakeChannel(HAS_CODE, *answer)
        self.events: List[str] = []

    def mistake(self, graph: GraphCheck, prepare: Callable[[Fleet], Any] = lambda fleet: None) -> Optional[LaunchError]:
        with fleet_of({"a": FakeHost("a", self.channel)}) as fleet, graph:
            prepare(fleet)
            return graph.mistake(fleet, request(), lambda: self.events.append("before asking"))

    @property
    def sent(self) -> List[Any]:
        return [json.loads(line) for line in self.channel.sent.decode().splitlines()]


@pytest.mark.parametrize(
    ("tasks", "keys", "useful"),
    [
        (["ps:0@a", "worker:0@b"], {}, True),
        (["ps:0@localhost", "worker:0@b"], {}, True),
        (["ps:0@localhost", "worker:0@localhost"], {}, False),
        (["ps:0@a", "worker:0@b"], {"local": True}, False),
        (["ps:0@a", "worker:0@b"], {"command": ("true",)}, False),
    ],
)
def test_it_serves_jobs_whose_tasks_are_elsewhere(tasks: List[str], keys: Any, useful: bool) -> None:
    assert is_useful(plan_of(*tasks, **keys).spec) == useful


@pytest.mark.not_fast
def test_a_mistake_that_both_find_names_the_host_and_the_authors_line(tmp_path: Path) -> None:
    asked = Asked(MISTAKE)
    found = asked.mistake(check(tmp_path, "exit 3"))
    assert str(found) == (
        "no task was started, because a cannot build the job's graph: /p/job.py:4: NameError: name 'x' is not defined"
    )
    assert found is not None and found.exit_code == 1
    assert asked.events == ["before asking"]
    greeting, sent = asked.sent
    assert greeting["verb"] == "graph"
    assert [task["name"] for task in sent["tasks"]] == ["worker:0"]


@pytest.mark.not_fast
@pytest.mark.parametrize("answer", [RIGHT, b'{"error": "no such verb"}\n', b"", b"nonsense\n"])
def test_what_only_this_machine_finds_refuses_no_job(tmp_path: Path, answer: bytes) -> None:
    asked = Asked(answer)
    assert asked.mistake(check(tmp_path, "exit 3")) is None
    assert asked.sent[0]["verb"] == "graph"


@pytest.mark.not_fast
@pytest.mark.parametrize("script", ["exit 0", "exit 1", "exit 2", "kill -9 $$"])
def test_a_right_job_and_a_machine_that_lacks_something_wait_for_no_host(tmp_path: Path, script: str) -> None:
    asked = Asked(MISTAKE)
    assert asked.mistake(check(tmp_path, script)) is None
    assert asked.sent == asked.events == []


def test_without_its_python_and_where_it_is_of_no_use_nothing_is_found(tmp_path: Path) -> None:
    asked = Asked(MISTAKE)
    assert asked.mistake(check(tmp_path, "exit 3", useful=False)) is None
    assert asked.sent == []


def spinning(folder: Path) -> str:
    """A script that reports the numbers of its process and of a child, and does not end."""
    return f"sleep 1000 & echo $$ $! > {folder}/.pids; mv {folder}/.pids {folder}/pids; wait"


def is_gone(pid: str) -> bool:
    return not os.path.exists(f"/proc/{pid}") or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


@pytest.mark.not_fast
@pytest.mark.parametrize("why", ["its time is over", "a signal came"])
def test_a_graph_that_is_not_built_yet_is_ended_and_left_to_the_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    asked = Asked(MISTAKE)
    graph = check(tmp_path, spinning(tmp_path))

    def prepare(fleet: Fleet) -> None:
        eventually("its process", (tmp_path / "pids").exists)
        if why == "a signal came":
            fleet.interrupts.received.append(signal.SIGINT)
        else:
            monkeypatch.setattr(graph, "_until", 0.0)

    assert asked.mistake(graph, prepare) is None
    eventually("their end", lambda: all(map(is_gone, (tmp_path / "pids").read_text().split())))
    assert asked.sent == [] and list((tmp_path / "copies").iterdir()) == []


@pytest.mark.not_fast
def test_a_start_that_fails_earlier_ends_the_process_too(tmp_path: Path) -> None:
    with pytest.raises(KeyError), check(tmp_path, spinning(tmp_path)):
        eventually("its process", (tmp_path / "pids").exists)
        raise KeyError
    eventually("their end", lambda: all(map(is_gone, (tmp_path / "pids").read_text().split())))
    assert list((tmp_path / "copies").iterdir()) == []


@pytest.mark.not_fast
def test_what_a_job_writes_while_its_graph_is_built_does_not_reach_its_folder(tmp_path: Path) -> None:
    script = f"cp digits.py {tmp_path}/seen; echo $3 > {tmp_path}/entry; echo half > data.csv; echo > digits.py; exit 3"
    assert Asked(RIGHT).mistake(check(tmp_path, script)) is None
    assert (tmp_path / "seen").read_text() == "the job"
    assert (tmp_path / "entry").read_text().startswith(f"{tmp_path}/copies/")
    assert {path.name: path.read_text() for path in (tmp_path / "project").iterdir()} == {"digits.py": "the job"}
    assert list((tmp_path / "copies").iterdir()) == []


class Found(GraphCheck):
    """A check that finds a mistake, after it has had the lease kept."""

    def __init__(self) -> None:
        super().__init__(plan_of("ps:0@a", "worker:0@a"), Code({}), JobCode(None, "digits"))

    def mistake(self, fleet: Fleet, request: RunRequest, before_asking: Callable[[], None]) -> LaunchError:
        before_asking()
        before_asking()  # begins nothing twice
        return LaunchError("no task was started")


def test_agents_are_taken_back_and_the_lead_knows_of_the_launcher_until_then() -> None:
    clean = b'{"run": "r-1", "processes": [], "ports": [], "locks": []}\n'
    used = [FakeChannel(HAS_CODE, said) for said in (b'{"ready": true, "pid": 1}\n', b"", clean)]
    with fleet_of({"a": FakeHost("a", *used)}) as fleet, pytest.raises(LaunchError, match="no task was started"):
        start_agents(fleet, {"a": request()}, Found())
    verbs = [json.loads(channel.sent.split(b"\n")[0].decode())["verb"] for channel in used]
    assert verbs == ["start", "attach", "down"]
