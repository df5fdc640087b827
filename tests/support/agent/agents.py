"""Real agents on this machine: each host of a run is one of the names that mean it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from cluster.protocol.settings import Restart
from cluster.protocol.typed_json import to_values
from cluster.spec.model import Spec, TaskSpec
from launch.agent import leftovers
from launch.agent.linux.processes import Process, inspect, is_same, signal_process
from launch.agent.linux.sockets import free_ports
from launch.agent.protocol import local_socket
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder, lock_path
from launch.agent.verbs import down
from launch.agent.verbs import status as inquire
from launch.agent.wire.verb_requests import DownRequest, RunReference
from launch.hosts.bundle import Bundle, Code, JobCode
from launch.plan.agent_requests import requests
from launch.plan.plan import make_plan
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S, eventually

RUN = "r-20261120-120000"
LEAD, MEMBER = "localhost", "127.0.0.1"
CODE = Code({"job": Bundle(b"", "0123456789abcdef")})
NO_RESTART = Restart(0, 0.0)


class Agents:
    """The agents of one run of shell scripts, in a working folder of the test's own.

    Args:
      scripts: {"worker:0@localhost": script}; worker:0 is the chief, its host the lead's.
      changes: what is asked of every agent, other than the launcher asks it.
    """

    def __init__(self, workdir: Path, scripts: Mapping[str, str], restart: Restart = NO_RESTART, **changes: Any):
        self.workdir = workdir
        (workdir / "code" / CODE.hashes["job"]).mkdir(parents=True, exist_ok=True)
        tasks = [_task(name, port) for name, port in zip(scripts, free_ports(len(scripts)))]
        spec = Spec(Path("r.yaml"), "r", tuple(tasks), command=("sh",), restart=restart, workdir=str(workdir))
        plan = make_plan(spec, JobCode(workdir, ""), RUN, sys.executable)
        asked = requests(plan, CODE, "token", {}, resume=False)
        self.requests = {host: to_values(request) for host, request in asked.items()}
        control = f"127.0.0.1:{free_ports(1)[0]}"  # the plan's own may be taken by another test's task
        for request in self.requests.values():
            request.update({"lead": {"host": LEAD, "address": control}, "lease_s": 300.0, **changes})
            for task in request["tasks"]:
                task["argv"] = ["sh", "-c", scripts[f"{task['name']}@{task['host']}"]]
        run_plan = {key: changes[key] for key in ("lost_after_s", "grace_s", "join_s") if key in changes}
        self.requests[LEAD]["run_plan"].update(run_plan)
        self._agents: List[Process] = []
        self._keepers: List[Process] = []

    def start(self, host: str = LEAD, **changes: Any) -> Dict[str, Any]:
        """What a host's ``start`` answers."""
        request = {**self.requests[host], **changes}
        answer = self.verb("start", request)
        agent = inspect(answer.get("pid", 0))
        if agent is not None:
            self._agents.append(agent)
            self._keepers += [keeper for keeper in [inspect(agent.parent)] if keeper]
        return answer

    def verb(self, name: str, request: Mapping[str, Any]) -> Dict[str, Any]:
        """The first answer to a verb, as the receiver would have it run."""
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(
            [sys.executable, "-m", "launch.agent", name], input=json.dumps(request).encode() + b"\n",
            stdout=subprocess.PIPE, timeout=PATIENCE_S, cwd=str(self.workdir), env=env, check=True,
        )  # fmt: skip
        answer: Dict[str, Any] = json.loads(ran.stdout.splitlines()[0].decode())
        return answer

    def boot(self, host: str = LEAD) -> None:
        """Starts the agent of a host as systemd does after a boot, with next to no environment."""
        argv = [sys.executable, "-m", "launch.agent", "return", str(self.folder(host).own)]
        env = {"HOME": os.environ["HOME"], "PYTHONPATH": str(ROOT)}
        subprocess.run(argv, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, cwd=str(self.workdir), env=env, check=True)

    def up(self) -> None:
        """Starts every host's agent, says go, and waits until every task runs."""
        for host in self.requests:
            answer = self.start(host)
            assert answer.get("ready"), answer
        self.tell({"do": "go"})
        eventually("a run that runs", lambda: self.status()["state"] == "running")

    def folder(self, host: str = LEAD) -> RunFolder:
        return RunFolder(self.workdir, RUN, host)

    def tell(self, request: Mapping[str, Any], host: str = LEAD) -> None:
        """Says something that is not answered."""
        with local_socket.connect(self.folder(host).own, 10.0) as agent:
            agent.sendall(json.dumps(request).encode() + b"\n")

    def status(self) -> Dict[str, Any]:
        """The run's status, from its lead or the lead's files."""
        found: Dict[str, Any] = inquire.status(self.reference())["status"]
        return found

    def reference(self, host: str = LEAD, run: Optional[str] = None) -> RunReference:
        """A host's part of the newest run, or of another."""
        return RunReference("r", host, str(self.workdir), run)

    def down(
        self, host: str = LEAD, timeout_s: float = 20.0, reason: str = "launch down", run: Optional[str] = None
    ) -> Dict[str, Any]:
        """What a host's ``down`` answers."""
        return to_values(down.down(DownRequest(self.reference(host, run), timeout_s, reason)))

    def look(self, host: str = LEAD) -> Dict[str, Any]:
        """What a host's ``look`` answers."""
        return to_values(down.look(self.reference(host)))

    def task(self, name: str) -> Dict[str, Any]:
        """A task's entry in the status."""
        found: Dict[str, Any] = next(t for t in self.status()["tasks"] if f"{t['role']}:{t['index']}" == name)
        return found

    def ended(self) -> Dict[str, Any]:
        """The last status, once every agent and its keeper have gone."""
        serving = [*self._agents, *self._keepers]
        eventually("the end of every agent", lambda: not any(is_same(each.pid, each.start) for each in serving))
        return self.status()

    def alive(self, host: str) -> bool:
        """Whether a host's agent holds its lock."""
        return leftovers.agent_pid(self.folder(host)) is not None

    def log(self, task: str, attempt: int = 0) -> str:
        """What a task has printed."""
        path = self.folder().log(task, attempt)
        return path.read_text() if path.exists() else ""

    def kill(self, host: str, keeper: bool = False) -> None:
        """Ends an agent as the kernel does when memory runs out; with ``keeper``, nobody is there to clean up."""
        agent, kept_by = process_records.agent_of(self.folder(host))
        for process in [kept_by, agent] if keeper else [agent]:
            os.kill(process.pid, signal.SIGKILL)

    def left(self) -> List[str]:
        """Locks and sockets that are still there."""
        paths = [lock_path(self.workdir, "r", host) for host in self.requests]
        paths += [self.folder(host).own / "agent.sock" for host in self.requests]
        return [str(path) for path in paths if path.exists()]

    def end(self) -> None:
        """Ends and removes what still is there, also where a test has killed who would. An agent may lack a record."""
        for host in self.requests:
            leftovers.end(self.folder(host))
        for agent in self._agents:
            signal_process(agent.pid, agent.start, signal.SIGKILL)


def _task(text: str, port: int) -> TaskSpec:
    name, host = text.split("@")
    role, index = name.split(":")
    return TaskSpec(role, int(index), host, f"{host}:{port}", port)


def wait_for(path: Path) -> str:
    """A file's text, once there is one."""
    return str(eventually(f"a text in {path}", lambda: path.exists() and path.read_text()))
