"""The chief's command on this host, with another module in place of ``jobs.main``; with it, a job's graph is built.

It runs in a working folder of its own, beside those of the run's tasks, with the chief's Python, code and environment.
It ends with this process.

``jobs.describe`` builds the graph before the tasks start, with the chief's GPUs, as the chief would. It trains nothing
and opens no port. ``mistake`` reports why a graph cannot be built.
"""

import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence

from cluster.protocol.outcome import GRAPH_MISTAKE, read_outcome
from launch.agent.containers.runtimes import Lacking
from launch.agent.containers.task_containers import OneShot
from launch.agent.gpus import assignment, nvidia_smi
from launch.agent.linux.processes import die_with
from launch.agent.service.located import code_of, folder_of, located
from launch.agent.tasks import task_env, work_folder
from launch.agent.text import Redaction
from launch.agent.wire.run_request import Gpus, RunRequest, TaskRequest
from launch.agent.wire.verb_requests import GraphAnswer


class ChiefCommand:
    """The command of the chief ``task``. ``folder`` is its own."""

    def __init__(self, request: RunRequest, task: TaskRequest, folder: Path, program: OneShot):
        self.task, self.folder, self._secrets, self._program = task, folder, request.secrets, program

    def start(
        self, module: str, arguments: Sequence[str] = (), gpus: Sequence[int] = (), **streams: Any
    ) -> "subprocess.Popen[bytes]":
        """Start it. Raises OSError.

        Args:
          module: has the place of ``jobs.main``.
          gpus: that it sees.
          streams: as for ``subprocess.Popen``; without them, nothing is read and written.
        """
        argv = [module if word == "jobs.main" else word for word in self.task.argv]
        env = task_env.own_variables(self.task.env, self._secrets, 0, self.folder, list(gpus))
        command = self._program.command([*argv, *arguments], env, self.task.folder, bool(gpus))
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return subprocess.Popen(
            command.argv, cwd=self.task.folder, env=command.env, start_new_session=True,
            preexec_fn=die_with(os.getpid()), **{**nothing, **streams},
        )  # fmt: skip

    def cause(self, otherwise: Optional[str] = None) -> Optional[str]:
        """Return the mistake that it has reported, or else ``otherwise``, without secrets."""
        outcome = read_outcome(self.folder)
        cause = otherwise if outcome is None or outcome.cause is None else outcome.cause
        return None if cause is None else Redaction(self._secrets.values(), [self.task.env], self._secrets).text(cause)


@contextmanager
def chief_command(request: RunRequest, name: str) -> Iterator[ChiefCommand]:
    """Yield the command of the request's only task, the chief, in a folder of this name that is removed at the end.

    Raises:
      OSError, ValueError: the folder cannot be filled.
      Lacking: the container of the tasks cannot run here.
    """
    run = folder_of(request)
    own = run.task(name)
    program = OneShot(name.split(":")[0], request.container, run.workdir, request.checkpoint_dir)
    try:
        task = located(replace(request, tasks=(replace(request.tasks[0], name=name),)), run).tasks[0]
        work_folder.fill(own, code_of(request, run, "job") if "job" in request.code else None)
        yield ChiefCommand(request, task, own, program)
    finally:
        program.end()
        shutil.rmtree(str(own), ignore_errors=True)


GRAPH_TASK = "graph:0"  # of its folder, beside those of the run's tasks
GRAPH_S = 45.0


def mistake(request: RunRequest) -> GraphAnswer:
    """Return the reason why the graph of the request's only task, the chief, cannot be built."""
    try:
        with chief_command(request, GRAPH_TASK) as command:
            return GraphAnswer(command.cause() if _build_graph(command) == GRAPH_MISTAKE else None)
    except (OSError, ValueError, nvidia_smi.NoDriverAnswer, Lacking, subprocess.TimeoutExpired):
        return GraphAnswer()  # the tasks find out


def _build_graph(command: ChiefCommand) -> int:
    """Return the exit code of ``jobs.describe``."""
    building = command.start("jobs.describe", ["--warm-start"], gpus=_gpus_for(command.task.gpus))
    try:
        return building.wait(GRAPH_S)
    finally:
        building.kill()
        building.wait()


def _gpus_for(wish: Gpus) -> List[int]:
    # A job may look for GPUs while it builds its graph. How many a share is matters to no mistake: it gets all.
    usable = assignment.allotted(nvidia_smi.list_gpus(), os.environ) if wish else []
    return usable if isinstance(wish, str) else [usable[number] for number in wish if number < len(usable)]
