"""The launcher as a user runs it, on this machine, with a project and a working folder of the test's own."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence
from unittest.mock import patch

from launch import cli
from launch.agent.linux.sockets import free_ports
from launch.agent.verbs import down
from launch.agent.verbs import status as inquire
from launch.agent.wire.verb_requests import DownRequest, RunReference
from tests.support import ROOT
from tests.support.launch.laid_code import lay
from tests.support.launch.machine import left_in, living_under
from tests.support.waiting import PATIENCE_S

LAUNCH = [sys.executable, "-m", "launch"]
SHORT_LEASE = (
    "import launch.plan.agent_requests; launch.plan.agent_requests.LEASE_S = 1.5; import launch.cli; launch.cli.main()"
)
if TYPE_CHECKING:
    Running = subprocess.Popen[str]
    Ended = subprocess.CompletedProcess[str]
# Leaves in order when it is told to, and says so in a file that all tasks share.
STAY = "trap 'echo {{role}}:{{index}} >> {order}; exit 0' TERM; echo up; sleep 1000 & wait"


class Launcher:
    """``launch VERB hosts.yaml …``. The file's tasks are a ps and two workers, all running ``script``."""

    had_verbs = True  # whether its working folder is to have the launcher's code already

    def __init__(self, folder: Path):
        self.folder, self.workdir = folder, folder / "w"
        self.file = folder / "project" / "hosts.yaml"
        self.file.parent.mkdir()
        self.ports = free_ports(3)
        self.order = folder / "order"

    def write(self, script: str = "exit 0", **keys: Any) -> None:
        """A hosts file that runs a shell script as every task."""
        ps, *workers = [f"localhost:{port}" for port in self.ports]
        values = {
            "name": "r", "command": ["sh", "-c", script], "workdir": str(self.workdir),
            "cluster": {"ps": [ps], "worker": workers}, "restart": {"max": 0}, **keys,
        }  # fmt: skip
        self.file.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))

    def stay(self, **keys: Any) -> None:
        """A hosts file whose tasks run until they are told to leave."""
        self.write(STAY.format(order=self.order), **keys)

    def begin(self, verb: str, *arguments: str, program: Sequence[str] = LAUNCH, **env: Any) -> "Running":
        """Starts a verb and does not wait for it."""
        self._lay_code(arguments)
        return subprocess.Popen(
            [*program, verb, str(self.file), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, universal_newlines=True, cwd=str(ROOT), env={**os.environ, **env},
        )  # fmt: skip

    def __call__(self, verb: str, *arguments: str, **env: str) -> "Ended":
        """Runs a verb to its end, in this process."""
        self._lay_code(arguments)
        return run_here(verb, str(self.file), *arguments, **env)

    def _lay_code(self, arguments: Sequence[str]) -> None:
        if self.had_verbs:
            lay(self.workdir / "local" if "--local" in arguments else self.workdir)

    def status(self) -> Dict[str, Any]:
        """The newest run's status, asked of its agent or its files as ``launch status`` would."""
        found: Dict[str, Any] = inquire.status(self._reference())["status"]
        return found

    def end(self) -> None:
        """Ends a run that is still up, as ``launch down`` would."""
        down.down(DownRequest(self._reference(), PATIENCE_S, "launch down"))

    def _reference(self) -> RunReference:
        return RunReference("r", "localhost", str(self.workdir))

    def run_folder(self) -> Path:
        """Where the files of the only run are."""
        (folder,) = self._in_runs("*")
        return folder

    def _in_runs(self, pattern: str) -> List[Path]:
        """The files of runs, with --local or without."""
        return [path for runs in ("runs", "local/runs") for path in self.workdir.glob(f"{runs}/{pattern}")]

    def log(self, task: str, attempt: int = 0) -> str:
        """What a task has printed so far."""
        logs = self._in_runs(f"*/{task.replace(':', '.')}/attempt_{attempt}.log")
        return logs[0].read_text() if logs else ""

    def all_up(self) -> bool:
        """Whether every task has said so."""
        return all("up\n" in self.log(task) for task in ("ps:0", "worker:0", "worker:1"))

    def left(self) -> List[str]:
        """Locks, sockets and processes that are still there."""
        return [*left_in(self.folder), *(str(process) for process in living_under(self.folder))]


def run_here(*arguments: str, **env: str) -> "Ended":
    """Runs a verb to its end, in this process: a launcher of its own loads for half a second, over SSH for two."""
    output, errors = io.StringIO(), io.StringIO()
    code = _run(arguments, output, errors, env)
    return subprocess.CompletedProcess(arguments, code, output.getvalue(), errors.getvalue())


def shown_here(*arguments: str, **env: str) -> "Ended":
    """Runs a verb like ``run_here``, with both outputs in one, as a terminal shows them."""
    shown = io.StringIO()
    code = _run(arguments, shown, shown, env)
    return subprocess.CompletedProcess(arguments, code, shown.getvalue(), "")


def _run(arguments: Sequence[str], output: io.StringIO, errors: io.StringIO, env: Mapping[str, str]) -> int:
    with redirect_stdout(output), redirect_stderr(errors), patch.dict(os.environ, env):
        try:
            cli.main(list(arguments))
        except SystemExit as end:
            return int(end.code or 0)
    return 0


def finish(process: "Running") -> "Ended":
    """Waits for the end of a launcher, kills it where that does not come."""
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)
