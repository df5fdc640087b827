"""A run on fake hosts under attack: ``h1`` and ``h2`` are its cluster, ``h3`` a neighbour, and a stranger is on ``h1``.

An attack has got through where the run does not train on, somebody in it is accused or started again, the lead's memory
or log has grown too much, or something of the attacker's ran or was answered.
"""

import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence

from launch.hosts.bundle import launcher_code
from tests.support.hosts import FakeHosts
from tests.support.hosts.host import Host
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually

INTRUDER = str(Path(__file__).with_name("intruder.py"))
STRANGER, ROOT = 65534, 0  # users
MOST_MIB, MOST_LOG = 50, 64 << 10
GROWS_S = 60.0  # for the next steps, on a busy machine
LEAD_PORT = 2301  # the first above those of the lead's tasks
OWNED = "/tmp/owned"
RECORDED = "/tmp/recorded"
WORKDIR = "/srv/launch"  # which every user may write into
COUNTER = """
import json, os, time
folder, step = os.environ["LAUNCH_TASK_DIR"], 0
while True:
    time.sleep(0.1)
    step += 1
    with open(folder + "/progress.new", "w") as file:
        json.dump({"step": step, "time": time.time()}, file)
    os.replace(folder + "/progress.new", folder + "/progress.json")
"""


class Attack(NamedTuple):
    """What is done: an intruder's kind and its options, by a user of a host (counted from 0)."""

    title: str
    kind: str
    host: int
    user: int
    options: Sequence[str]
    refused: Callable[[Dict[str, Any]], bool] = lambda seen: not seen.get("answered")


class Result(NamedTuple):
    """What was seen of an attack; ``through`` says what it has reached, nothing where it failed."""

    title: str
    seen: str
    through: List[str]


class Siege(HostsFile):
    """One run that is attacked.

    Args:
      job: keys of the hosts file that say what is run.
    """

    def __init__(self, hosts: FakeHosts, folder: Path, **job: Any):
        super().__init__(hosts, folder, "besieged")
        (folder / "count.py").write_text(COUNTER)
        self.lead, self.member, self.neighbour = hosts[0], hosts[1], hosts[2]
        cluster = {"worker": ["h1:2300", "h2:2300"], **({"ps": ["h1:2222"]} if "job" in job else {})}
        command = {} if "job" in job else {"command": ["{python}", "count.py"]}
        self.put(cluster=cluster, workdir=WORKDIR, restart={"max": 0}, **command, **job)
        for host in hosts:
            host.run(["sh", "-c", f"mkdir -p {WORKDIR} && chmod 1777 {WORKDIR}"])

    @contextmanager
    def up(self) -> Iterator[None]:
        """The run, training; the member's first words to the lead are recorded meanwhile."""
        with ExitStack() as stack:
            recorder = self._begin(self.lead, "record", ROOT, ["--host", "h2", "--port", str(LEAD_PORT),
                                   "--file", RECORDED, "--seconds", "120"])  # fmt: skip
            stack.callback(recorder.kill)
            began = self.launch_apart("up", "-d")
            stack.callback(self.launch, "down")
            assert began.returncode == 0, began.stdout
            eventually("a step", lambda: self.step() > 0)
            recorder.communicate(timeout=150)
            self._hand_over_the_record()
            yield

    def _hand_over_the_record(self) -> None:
        data = self.lead.run(["base64", "-w0", RECORDED]).stdout
        self.neighbour.run(["sh", "-c", f"base64 -d > {RECORDED}"], stdin=data)

    def step(self) -> int:
        """The run's step, as its lead has it."""
        text = self.lead.run(["sh", "-c", f"cat {WORKDIR}/runs/*/hosts/h1/status.json"]).stdout
        status = json.loads(text) if text.startswith("{") else {}
        return max([task["step"] or 0 for task in status.get("tasks", [])] or [0])

    def carry_out(self, attack: Attack) -> Result:
        """Attack, and look at the run while it lasts and after it."""
        before, pid = self.step(), self.agent()
        memory, log = self.memory(pid), self.log()
        intruder = self._begin(self.hosts[attack.host], attack.kind, attack.user, attack.options)
        output, _ = intruder.communicate(timeout=300)
        seen: Dict[str, Any] = json.loads(output) if output.strip() else {}
        through = [] if seen else ["the attack itself could not be carried out"]
        through += [] if attack.refused(seen) else [f"it was answered: {seen}"]
        through += self._harm(before, pid, memory, log)
        grown = (self.memory(pid) - memory) >> 20
        return Result(attack.title, f"{_words(seen)}; step {before} to {self.step()}; {grown} MiB more", through)

    def _harm(self, before: int, pid: int, memory: int, log: int) -> List[str]:
        """What an attack has done to the run."""
        status = self.status()
        harm = [] if self.trains_on(before) else ["the run does not train on"]
        harm += [] if status["state"] == "running" and pid == self.agent() else [f"the run is {status['state']}"]
        harm += [f"it caused: {each['kind']}" for each in status["incidents"]]
        harm += ["a task was started again"] if any(task["restarts"] for task in status["tasks"]) else []
        grown = (self.memory(pid) - memory) >> 20
        harm += [f"the lead has {grown} MiB more"] if grown > MOST_MIB else []
        harm += [f"the log has {self.log() - log} bytes more"] if self.log() - log > MOST_LOG else []
        owners = [host.name for host in self.hosts if host.exists(OWNED)]
        return harm + ([f"it ran on {', '.join(owners)}"] if owners else [])

    def trains_on(self, before: int) -> bool:
        """Whether more steps come in time."""
        until = time.monotonic() + GROWS_S
        while time.monotonic() < until:
            if self.step() > before + 1:
                return True
            time.sleep(0.2)
        return False

    def agent(self) -> int:
        """The pid of the lead's agent, on its host."""
        found = [each.pid for each in self.lead.processes() if "launch agent of" in " ".join(each.argv)]
        return found[-1] if found else 0

    def memory(self, pid: int) -> int:
        """The most bytes that a process of the lead's host has had in use."""
        text = self.lead.run(["cat", f"/proc/{pid}/status"]).stdout
        rows = [line.split() for line in text.splitlines() if line.startswith("VmHWM")]
        return int(rows[0][1]) << 10 if rows else 0

    def log(self) -> int:
        """Bytes of the lead's log."""
        return len(self.lead.run(["sh", "-c", f"cat {WORKDIR}/runs/*/hosts/h1/agent.log"]).stdout)

    def intrude(self, host: Host, kind: str, user: int, options: Sequence[str]) -> Dict[str, Any]:
        """What an intruder saw at last."""
        output, _ = self._begin(host, kind, user, options).communicate(timeout=300)
        seen: Dict[str, Any] = json.loads(output)
        return seen

    def _begin(self, host: Host, kind: str, user: int, options: Sequence[str]) -> "subprocess.Popen[Any]":
        argv = [sys.executable, INTRUDER, kind, "--user", str(user), *options]
        return host.popen(argv, stdout=subprocess.PIPE, universal_newlines=True)


def planted(siege: Siege) -> Result:
    """A stranger has put code where the run's own will lie, before its first ``up``."""
    digest = launcher_code().hashes["launcher"]
    seen = siege.intrude(siege.lead, "plant", STRANGER, ["--file", f"{WORKDIR}:{digest}"])
    began = siege.launch_apart("up", "-d")
    siege.launch_apart("down")
    through = [f"it ran on {host.name}" for host in siege.hosts if host.exists(OWNED)]
    for host in siege.hosts:
        host.run(["sh", "-c", f"rm -rf {WORKDIR}/* {OWNED}"])
    return Result(
        "another user: planted code and folders", f"{_words(seen)}; up ended with {began.returncode}", through
    )


def _words(seen: Dict[str, Any]) -> str:
    return ", ".join(f"{value if not isinstance(value, list) else len(value)} {key}" for key, value in seen.items())
