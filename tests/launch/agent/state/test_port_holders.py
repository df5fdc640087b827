"""Who holds the ports of a run: an own run with the command that ends it, once; any other process with its words."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, Optional

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


@pytest.mark.parametrize(
    ("beside", "way"),
    [
        ("launch up --local r.yaml", "train beside it with `launch up --local r.yaml`, which takes free ports"),
        (None, "set another `port` in the hosts file"),
    ],
)
def test_a_port_of_another_process_is_named_with_the_way_to_another_port(
    beside: Optional[str], way: str, tasks: List[TaskRequest]
) -> None:
    with socket.socket() as other:
        other.bind(("", tasks[2].port))
        other.listen(1)
        (text,) = refusals(tasks, beside)
    assert text.startswith(f"port {tasks[2].port} of worker:1 is taken by pid ") and text.endswith(
        f"; end it, or {way}"
    )


def test_a_run_whose_plan_cannot_be_read_is_named_all_the_same(run: RunFolder, tasks: List[TaskRequest]) -> None:
    (run.own / "plan.json").write_text("{")
    (text,) = refusals(tasks[:1], None)
    assert text.endswith(f"is taken by the run {run.run}; end it with `launch down FILE`")
