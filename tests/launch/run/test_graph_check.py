"""A mistake in a job is found before a task starts, and a right job is never refused."""

import json
import signal
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

import pytest

from cluster.task import Train
from launch.agent.wire.run_request import RunRequest
from launch.errors import LaunchError
from launch.run.graph_check import find_mistake, is_useful
from launch.run.start import start_agents
from tests.launch.run.leads import line
from tests.support.agent.requested import run_request, task_request
from tests.support.launch import leftovers
from tests.support.launch.facts import plan_of
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of

HAS_CODE = b'{"missing": []}\n'
MISTAKE = b'{"cause": "/p/job.py:4: NameError: name \'x\' is not defined"}\n'
RIGHT = b'{"cause": null}\n'
SAID = "no task was started, because a cannot build the job's graph: /p/job.py:4: NameError: name 'x' is not defined"


def request() -> RunRequest:
    chief = task_request("worker:0", chief=True, waits=True)
    return run_request(task_request("ps:0"), chief, run="r-1", host="a", workdir="/w", run_plan=None)


def asked(answer: bytes, signals: int = 0, **train: Any) -> Tuple[Optional[LaunchError], Dict[str, Any]]:
    """What the launcher finds where the chief's host answers so, and what it asked the host."""
    channel = FakeChannel(HAS_CODE, answer)
    with fleet_of({"a": FakeHost("a", channel)}) as fleet:
        fleet.spec = replace(fleet.spec, train=Train.from_dict(train))
        fleet.interrupts.received += [signal.SIGINT] * signals
        found = find_mistake(fleet, request())
    sent: List[Any] = [json.loads(line) for line in channel.sent.decode().splitlines()]
    return found, {**sent[0], **sent[1]} if sent else {}


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


def test_a_mistake_names_the_host_and_the_authors_line() -> None:
    found, sent = asked(MISTAKE)
    assert found is not None and str(found) == SAID and found.exit_code == 1
    assert sent["verb"] == "graph"
    assert [(task["name"], task["waits"]) for task in sent["tasks"]] == [("worker:0", True)]


@pytest.mark.parametrize("answer", [RIGHT, b'{"error": "no such verb"}\n', b"", b"nonsense\n"])
def test_a_host_that_finds_none_or_cannot_answer_refuses_no_job(answer: bytes) -> None:
    found, sent = asked(answer)
    assert found is None and sent["verb"] == "graph"


@pytest.mark.parametrize("train", [{"warm_start": {"checkpoint": "/m/model-1"}}, {"replication": "in-graph"}], ids=str)
def test_what_the_chiefs_process_does_not_build_before_its_turn_its_host_builds(train: Dict[str, Any]) -> None:
    _, sent = asked(RIGHT, **train)
    assert [task["waits"] for task in sent["tasks"]] == [False]


def test_after_a_signal_nothing_is_found() -> None:
    assert asked(MISTAKE, signals=1)[0] is None


def test_agents_are_taken_back_and_the_lead_knows_of_the_launcher_until_then() -> None:
    left = line({"run": "r-1", **leftovers.NOTHING, "ports": [2222], "after": None})
    used = [FakeChannel(HAS_CODE, said) for said in (b'{"ready": true, "pid": 1}\n', b"", MISTAKE, left)]
    with fleet_of({"a": FakeHost("a", *used)}) as fleet, pytest.raises(LaunchError) as caught:
        start_agents(fleet, {"a": request()}, checks_graph=True)
    assert str(caught.value) == f"{SAID}\na: LEFT: port 2222" and caught.value.exit_code == 1
    verbs = [json.loads(channel.sent.split(b"\n")[0].decode())["verb"] for channel in used]
    assert sorted(verbs) == ["attach", "down", "graph", "start"] and verbs[0] == "start" and verbs[-1] == "down"
