"""Real task processes on this machine, for tests: started under TF_CONFIG, always ended, by the kernel if we die."""

import json
import os
import signal
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from cluster.protocol.outcome import Outcome, Progress, read_outcome, read_progress
from launch.agent.linux.sockets import free_ports
from tests.support.training.forks import Forked, server
from tests.support.waiting import PATIENCE_S

Key = Tuple[str, int]


class Cluster:
    """The processes of one run, ``folder/ROLE.INDEX`` being each one's LAUNCH_TASK_DIR."""

    def __init__(self, folder: Path, job: str, ps: int = 1, workers: int = 2, **roles: int):
        self.folder, self.job = folder, job
        sizes = {"ps": ps, "worker": workers, **roles}
        ports = iter(free_ports(sum(sizes.values())))
        self.addresses = {role: [f"127.0.0.1:{next(ports)}" for _ in range(size)] for role, size in sizes.items()}
        self.running: Dict[Key, Forked] = {}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:
            print(self.logs())  # pytest shows it with the failure
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
            "TMPDIR": str(home),  # a killed task leaves what TensorFlow writes there
        }
        argv = [self.job, "--train", json.dumps(train), "--args", json.dumps(args or {})]
        # The chief and the next worker have parents that hash differently: their sets have different orders.
        process = server(index % 2).start("jobs.main", argv, env, str(home / "log"))
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
        """A task's log, "" before it has begun."""
        path = self.folder / f"{role}.{index}" / "log"
        return path.read_text() if path.exists() else ""

    def logs(self) -> str:
        """All logs, for the message of a failing test."""
        return "\n".join(f"--- {path.parent.name}\n{path.read_text()[-3000:]}" for path in self.folder.glob("*/log"))

    def end(self) -> None:
        """Ends whatever still runs."""
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE_S)
