"""Real task processes on this machine, for tests: started under TF_CONFIG, always ended, by the kernel if we die."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from cluster.protocol.outcome import Outcome, Progress, read_outcome, read_progress
from tests.support import ROOT
from tests.support.waiting import PATIENCE_S

PROGRAM = [sys.executable, "-m", "jobs.main"]  # of every task
# The kernel kills the task when our process ends: prctl(PR_SET_PDEATHSIG, SIGKILL). Not as preexec_fn, against which
# newer Pythons warn where there are threads, as TensorFlow's.
DIES_WITH_US = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9, 0, 0, 0); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)
Key = Tuple[str, int]


def free_ports(number: int) -> List[int]:
    """Ports below the range that the kernel takes outgoing connections' from, so that none is taken meanwhile."""
    ports: List[int] = []
    # Processes that were started together begin far from each other: one may take hundreds, and never give them back.
    candidate = 20000 + (os.getpid() * 7417) % 12000
    while len(ports) < number:
        candidate = candidate + 1 if candidate < 32000 else 20000
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", candidate)) != 0:
                ports.append(candidate)
    return ports


class Cluster:
    """The processes of one run, ``folder/ROLE.INDEX`` being each one's LAUNCH_TASK_DIR."""

    def __init__(self, folder: Path, job: str, ps: int = 1, workers: int = 2, **roles: int):
        self.folder, self.job = folder, job
        sizes = {"ps": ps, "worker": workers, **roles}
        ports = iter(free_ports(sum(sizes.values())))
        self.addresses = {role: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for role, size in sizes.items()}
        self.running: Dict[Key, Any] = {}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, role: str, index: int, train: Dict[str, Any], args: Optional[Dict[str, Any]] = None) -> Key:
        """Starts one task, again if it has ended."""
        home = self.folder / f"{role}.{index}"
        home.mkdir(exist_ok=True, parents=True)
        config = {"cluster": self.addresses, "task": {"type": role, "index": index}}
        env = {
            **os.environ,
            "TF_CONFIG": json.dumps(config),
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONUNBUFFERED": "1",
            "LAUNCH_TASK_DIR": str(home),
        }
        argv = [
            *(sys.executable, "-S", "-c", DIES_WITH_US, str(os.getpid())),
            *PROGRAM,
            self.job,
            "--train",
            json.dumps(train),
            "--args",
            json.dumps(args or {}),
        ]
        with (home / "log").open("ab") as log:
            process = subprocess.Popen(argv, cwd=str(ROOT), env=env, stdout=log, stderr=log, start_new_session=True)
        self.running[role, index] = process
        return role, index

    def start_all(self, train: Dict[str, Any], args: Optional[Dict[str, Any]] = None) -> None:
        """Starts every task."""
        for role, addresses in self.addresses.items():
            for index in range(len(addresses)):
                self.start(role, index, train, args)

    def kill(self, role: str, index: int) -> None:
        """Kills one task as a power cut would."""
        process = self.running.pop((role, index))
        os.kill(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)

    def exit_code(self, role: str, index: int) -> int:
        """Waits for one task to end by itself."""
        return int(self.running[role, index].wait(PATIENCE_S))

    def finish(self) -> Outcome:
        """Waits until every task has ended by itself, each with exit code 0; returns the chief's outcome."""
        chief = "chief" if self.addresses.get("chief") else "worker"
        codes = {key: self.exit_code(*key) for key in sorted(self.running, key=lambda key: key[0] == "ps")}
        assert set(codes.values()) == {0}, f"{codes}\n{self.logs()}"
        outcome = self.outcome(chief, 0)
        assert outcome is not None and outcome.succeeded, outcome
        return outcome

    def outcome(self, role: str, index: int) -> Optional[Outcome]:
        return read_outcome(self.folder / f"{role}.{index}")

    def progress(self, role: str, index: int) -> Optional[Progress]:
        return read_progress(self.folder / f"{role}.{index}")

    def step(self, role: str = "worker", index: int = 0) -> int:
        """The last step that a task has told of; -1 before its first."""
        progress = self.progress(role, index)
        return -1 if progress is None else progress.step

    def log(self, role: str, index: int) -> str:
        return (self.folder / f"{role}.{index}" / "log").read_text()

    def logs(self) -> str:
        """All logs, for the message of a failing test."""
        return "\n".join(f"--- {path.parent.name}\n{path.read_text()[-3000:]}" for path in self.folder.glob("*/log"))

    def end(self) -> None:
        """Ends whatever still runs."""
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE_S)
