"""A host's part of a check, as the launcher speaks to it: a process whose ports are closed when its stdin is."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

from cluster.protocol.settings import Container
from cluster.protocol.typed_json import from_values, to_values
from launch.agent.linux import sockets
from launch.agent.linux.sockets import can_listen, free_ports
from launch.agent.verbs import check
from launch.agent.wire.check_request import CheckFacts, CheckRequest, EphemeralPorts
from launch.agent.wire.host_facts import Disk, FactsRequest, Gpus
from launch.agent.wire.verb_requests import RunReference
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S, eventually

WORDS = ("who is there", "it is me")


class Agent:
    """The agent's verb ``check`` on this machine."""

    def __init__(self, process: "subprocess.Popen[bytes]"):
        self.process = process

    def ask(self, values: Dict[str, Any]) -> Dict[str, Any]:
        self.process.stdin.write(json.dumps(values).encode() + b"\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        answer: Dict[str, Any] = json.loads(self.process.stdout.readline())  # type: ignore[union-attr]
        return answer


@pytest.fixture
def agent() -> Iterator[Agent]:
    with beginning() as process:
        yield Agent(process)


@contextmanager
def beginning() -> Iterator["subprocess.Popen[bytes]"]:
    argv = [sys.executable, "-m", "launch.agent", "check"]
    env = {**os.environ, "no_proxy": "", "http_proxy": "http://proxy:3128"}
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=str(ROOT), env=env
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def opening(port: int, within_s: float = 60.0, workdir: Path = Path("/nowhere"), **changed: Any) -> Dict[str, Any]:
    facts = {"python": sys.executable, "environment": None, "env": {}, "folders": (str(workdir),), **changed}
    request = CheckRequest(
        RunReference("r", "a", str(workdir)), WORDS, (port,), here=("a",), names=("localhost",),
        facts=FactsRequest(str(workdir), **facts, trial=True), targets=((f"localhost:{port}", "a"),), knock_s=5.0,
        programs={"sh": None, "no-such-program": None}, guard=False, limits={}, within_s=within_s,
    )  # fmt: skip
    return to_values(request)


LOOK = {"do": "look", "within_s": 60.0}


def test_a_host_opens_its_ports_tells_the_time_and_what_it_sees(agent: Agent, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    asked = opening(port, workdir=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert agent.ask(asked) == {"ports": {str(port): None}}
    assert agent.ask({"do": "time"})["time"] > 1e9
    (tmp_path / "numpy.py").write_text("__version__ = '1.0'")
    (tmp_path / "tensorflow.py").write_text("__version__ = '9.9'")
    seen = from_values(CheckFacts, agent.ask(LOOK))
    assert seen.unreached == [] and seen.gaps == []
    assert seen.version_of("tensorflow") == "9.9"
    assert seen.gpus == Gpus(None, [])
    assert isinstance(seen.disks[str(tmp_path)], Disk)
    assert seen.missing_programs == ["no-such-program"]
    assert seen.proxies == ["http_proxy"]
    assert seen.ephemeral is None  # as free_ports gives none
    assert seen.run is None and seen.versions and seen.versions.environment_ready


def test_a_port_that_the_kernel_may_give_away_is_reported_with_the_kernel_s_range(agent: Agent, tmp_path: Path) -> None:
    first, last = sockets.outgoing_ports()
    agent.ask(opening(last, workdir=tmp_path))
    seen = from_values(CheckFacts, agent.ask(LOOK))
    assert seen.ephemeral == EphemeralPorts([last], first, last, sockets.reserved_ports())


def test_a_container_without_its_runtime_is_reported_in_place_of_a_python(agent: Agent, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    agent.ask(opening(port, workdir=tmp_path, container=Container(f"{tmp_path}/t.sif", runtime="docker")))
    seen = from_values(CheckFacts, agent.ask(LOOK))
    assert seen.versions is None and len(seen.container) == 2
    assert seen.container[0].startswith("container.")


def test_a_look_that_fails_is_told(agent: Agent, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    agent.ask(opening(port))
    assert agent.ask({"do": "look"})["error"] == "the look failed: KeyError: 'within_s'"


def test_a_file_server_that_hangs_does_not_keep_the_host_from_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    monkeypatch.setattr("os.statvfs", lambda place: over.wait(60))
    (port,) = free_ports(1)
    asked = from_values(CheckRequest, opening(port, workdir=tmp_path, python="/nowhere/python"))
    seen = check.look(asked, 3.0)
    over.set()
    assert [gap.section for gap in seen.gaps if gap.late] == [f"disk {tmp_path}"]
    assert [(each.kind, each.host) for each in seen.unreached] == [("refused", "a")]
    assert seen.missing_programs == ["no-such-program"] and seen.names and seen.disks == {}


def test_the_ports_are_closed_when_the_launcher_goes(agent: Agent) -> None:
    (port,) = free_ports(1)
    agent.ask(opening(port))
    assert not can_listen(port)
    agent.process.stdin.close()  # type: ignore[union-attr]
    assert agent.process.wait(PATIENCE_S) == 0
    assert can_listen(port)


def test_the_ports_are_closed_when_the_launcher_goes_while_python_hangs(agent: Agent, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    agent.ask(opening(port, workdir=tmp_path, env={"PYTHONPATH": str(tmp_path)}))
    (tmp_path / "numpy.py").write_text(
        f"import os, time; open('{tmp_path}/pid', 'w').write(str(os.getpid())); time.sleep(600)"
    )
    agent.process.stdin.write(json.dumps(LOOK).encode() + b"\n")  # type: ignore[union-attr]
    agent.process.stdin.flush()  # type: ignore[union-attr]
    pid = eventually("a Python that hangs", lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    agent.process.stdin.close()  # type: ignore[union-attr]
    assert agent.process.wait(PATIENCE_S) == 0
    eventually("the end of that Python", lambda: not Path(f"/proc/{pid}/cmdline").exists())
    assert can_listen(port)


def test_the_ports_are_closed_at_the_deadline(agent: Agent) -> None:
    (port,) = free_ports(1)
    agent.ask(opening(port, within_s=0.5))
    assert agent.process.wait(PATIENCE_S) == 0
    assert can_listen(port)


def test_a_taken_port_does_not_keep_the_others_closed(agent: Agent) -> None:
    first, second = free_ports(2)
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", first))
        taker.listen(1)
        ports = agent.ask({**opening(first), "ports": [first, second]})["ports"]
    assert ports[str(first)]["pid"] == os.getpid()
    assert ports[str(second)] is None
