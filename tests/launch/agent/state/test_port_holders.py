"""Who holds the ports of a run: an own run with the command that ends it, once; any other process with its words."""

import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

from launch.agent.linux.sockets import free_ports
from launch.agent.state.port_holders import refusals
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import TaskRequest
from tests.support.agent.requested import task_request

LISTENS = """
import socket, sys
ends = []
for port in sys.argv[1:]:
    ends.append(socket.socket())
    ends[-1].bind(("", int(port)))
    ends[-1].listen()
print("up", flush=True)
sys.stdin.read()
"""
pytestmark = pytest.mark.not_fast


@pytest.fixture
def tasks() -> List[TaskRequest]:
    return [task_request(name, port=port) for name, port in zip(("ps:0", "worker:0", "worker:1"), free_ports(3))]


@pytest.fixture
def run(tmp_path: Path, tasks: List[TaskRequest]) -> Iterator[RunFolder]:
    """Another run, which has the ports of the first two tasks."""
    folder = RunFolder(tmp_path, "other-20260101-000000", "localhost")
    folder.create()
    env = {"LAUNCH_RUN": folder.run, "LAUNCH_TASK_DIR": str(folder.task("ps:0"))}
    argv = [sys.executable, "-c", LISTENS, *(str(task.port) for task in tasks[:2])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None and process.stdout.readline() == b"up\n"
        yield folder
        process.kill()


def test_another_run_is_named_once_with_the_command_that_ends_it_and_a_way_beside_it(
    run: RunFolder, tasks: List[TaskRequest]
) -> None:
    run.write("plan.json", {"name": "other", "file": "'my jobs/other.yaml'"})
    ports = f"ports {tasks[0].port} of ps:0, {tasks[1].port} of worker:0 are taken by the run {run.run}"
    ended = "end it with `launch down 'my jobs/other.yaml'`"
    assert refusals(tasks, None) == [f"{ports}; {ended}"]
    beside = "launch up --local mine.yaml"
    assert refusals(tasks, beside) == [f"{ports}; {ended}, or train beside it with `{beside}`"]
    assert refusals(tasks[1:], None) == [f"port {tasks[1].port} of worker:0 is taken by the run {run.run}; {ended}"]


def test_a_run_whose_plan_cannot_be_read_is_named_all_the_same(run: RunFolder, tasks: List[TaskRequest]) -> None:
    (run.own / "plan.json").write_text("{")
    (text,) = refusals(tasks[:1], None)
    assert text.endswith(f"is taken by the run {run.run}; end it with `launch down FILE`")
