"""Programs on a host through a stand-in for ``srun``: answers, ends, and what keeps programs from starting."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from launch.agent.linux.sockets import free_ports
from launch.errors import HostProblem, ProblemKind
from launch.hosts import relay, rpc
from launch.hosts.bundle import launcher_code
from launch.hosts.channel import Silence
from launch.hosts.closing import EndingProcesses
from launch.slurm.slurm_host import SlurmHost, StepChannel
from launch.slurm.srun import Allocation
from tests.support.slurm.srun import STAND_IN, job_with
from tests.support.waiting import PATIENCE_S


@contextmanager
def host_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: str = STAND_IN, python: str = sys.executable
) -> Iterator[SlurmHost]:
    """A node of a job on which srun is this shell script."""
    environ = job_with(folder, script)
    monkeypatch.setenv("PATH", environ["PATH"])
    ending = EndingProcesses()
    host = SlurmHost("h1", python, Allocation("7", ("h1", "h2")), environ, ending)
    try:
        yield host
    finally:
        host.close()
        ending.close()


def ask(host: SlurmHost, folder: Path) -> Dict[str, Any]:
    """What the host knows of runs of the name r."""
    request = {"workdir": str(folder / "w"), "name": "r", "host": "h1", "run": None}
    return rpc.ask(host, launcher_code(), str(folder / "w"), "find", request, PATIENCE_S)


def problem(host: SlurmHost, folder: Path) -> str:
    with pytest.raises(HostProblem) as caught:
        ask(host, folder)
    return str(caught.value)


def test_a_verb_is_answered_through_srun_twice_by_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = f"echo step >>{tmp_path}/steps; {STAND_IN}"
    with host_with(tmp_path, monkeypatch, counting) as host:
        first = ask(host, tmp_path)
        assert (first["run"], first["highest"]) == (None, 0) and ask(host, tmp_path) == first
    assert (tmp_path / "steps").read_text() == "step\n"


def test_a_python_that_is_not_there_is_told_and_not_the_end_of_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host_with(tmp_path, monkeypatch, python="python9") as host:
        told = problem(host, tmp_path)
    assert told.startswith("h1: no python9 there (") and "Exited" not in told
    assert told.endswith("not found); install it, or name another with the key python")


REFUSED = """
echo "srun: cluster configuration lacks support for cpu binding" >&2
echo "srun: error: Unable to create step for job 7: Requested node configuration is not available" >&2
exit 1"""


def test_a_step_that_srun_refuses_is_a_host_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with host_with(tmp_path, monkeypatch, REFUSED) as host, pytest.raises(HostProblem) as caught:
        ask(host, tmp_path)
    assert caught.value.kind is ProblemKind.UNREACHABLE
    assert str(caught.value) == (
        "h1: srun failed there: Unable to create step for job 7: "
        "Requested node configuration is not available; see `scontrol show job 7`"
    )


def test_a_step_that_does_not_begin_is_told_with_what_srun_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "ANSWER_S", 0.4)
    waits = "Job 7 step creation temporarily disabled, retrying (Requested nodes are busy)"
    with host_with(tmp_path, monkeypatch, f"echo 'srun: {waits}' >&2; exec sleep 1000") as host:
        monkeypatch.setattr("launch.hosts.closing.END_S", 0.1)
        assert f"did not answer within 0 s; it printed 'srun: {waits}'" in problem(host, tmp_path)


def test_an_srun_that_cannot_be_started_is_a_problem_of_this_machine(tmp_path: Path) -> None:
    host = SlurmHost("h1", "python3", Allocation("7"), {"PATH": str(tmp_path)}, EndingProcesses())
    assert problem(host, tmp_path) == "h1: cannot start srun: No such file or directory"


def test_a_step_that_does_not_end_is_ended_and_one_with_an_agent_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.hosts.closing.END_S", 0.2)
    ending, left = EndingProcesses(), StepChannel(["sleep", "1000"], os.environ, EndingProcesses())
    stubborn = StepChannel(["sh", "-c", "trap '' TERM; echo; exec sleep 1000"], os.environ, ending)
    assert stubborn.receive(PATIENCE_S) == b"\n"
    late, prompt = StepChannel(["sleep", "1000"], os.environ, ending), StepChannel(["cat"], os.environ, ending)
    left.leave_running()
    sruns: List[subprocess.Popen[bytes]] = [each._process for each in (left, stubborn, late, prompt)]
    for channel in (left, stubborn, late, prompt):
        channel.close()
    ending.close()
    assert [srun.wait(PATIENCE_S) for srun in sruns[1:]] == [-9, -15, 0] and sruns[0].poll() is None
    sruns[0].kill()


@contextmanager
def shouting() -> Iterator[int]:
    """The port of a server that answers one caller in capitals."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1)

        def serve() -> None:
            connection = server.accept()[0]
            with connection:
                for data in iter(lambda: connection.recv(100), b""):
                    connection.sendall(data.upper())

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def test_commands_run_before_a_step_s_program(tmp_path: Path) -> None:
    python, environ = sys.executable, job_with(tmp_path)
    ending = EndingProcesses()
    host = SlurmHost("h1", python, Allocation("7"), environ, ending, ["echo noise", f"export FILE={tmp_path}/seen"])
    program = "import os; open(os.environ['FILE'], 'w').close(); print('{}')"
    channel = host.open([python, "-c", program])
    assert channel.skip_to(b"noise\n", 10, PATIENCE_S) and channel.receive_line(PATIENCE_S) == {}
    channel.close()
    ending.close()
    assert (tmp_path / "seen").exists()


def test_a_port_of_the_host_is_reached_through_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = f'case "$*" in *--unbuffered*) ;; *) exit 3;; esac; {STAND_IN}'
    with shouting() as port, host_with(tmp_path, monkeypatch, raw) as host, closing(host.dial(port)) as connection:
        connection.sendall(b"a\xff")
        assert connection.recv(10) == b"A\xff"
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(10) == b""


def test_a_port_at_which_nobody_listens_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    with host_with(tmp_path, monkeypatch) as host, pytest.raises(
        HostProblem, match=f"^h1: no answer at port {port}: Con"
    ):
        host.dial(port)


def test_a_silent_connection_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(StepChannel):
        silences = 2

        def receive(self, timeout_s: float) -> bytes:
            self.silences -= 1
            if self.silences >= 0:
                raise Silence
            return b"late"

    channel = Slow(["true"], os.environ, EndingProcesses())
    assert relay.Relayed(channel).recv(10) == b"late"
    channel.close()
