"""Find a mistake in a job before any task starts: build the job's graph while the launcher connects to the hosts.

The launcher's own Python builds the graph first, in a copy of the job's folder, during the start. This machine may lack
files or packages that the hosts have, or have another TensorFlow. So a mistake found here does not end the start: the
chief's host then builds the graph too, in the chief's environment, and that result counts. If the graph can be built
here, the start does not wait for that host. With ``train.warm_start`` the chief's host always builds the graph, since
only that host can read the checkpoint.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Callable, Optional

from cluster.protocol.outcome import GRAPH_MISTAKE
from cluster.spec.model import Spec
from launch.agent.linux.processes import die_with
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.typed_verbs import GRAPH
from launch.errors import Interrupted, LaunchError
from launch.fleet import Fleet
from launch.hosts.bundle import Code, JobCode, unpack
from launch.plan import estimate
from launch.plan.plan import Plan
from launch.signals import Interrupts

PATIENCE_S = 5.0  # from the beginning of the start; the tasks check a graph that takes longer
ANSWER_S = 60.0  # for the chief's host
LOOK_S = 0.2


class GraphCheck:
    """A separate process that builds the graph of a plan's job; it begins with the ``with`` block."""

    def __init__(self, plan: Plan, code: Code, job: JobCode, useful: bool = True, python: str = sys.executable):
        self._plan, self._code, self._job, self._useful, self._python = plan, code, job, useful, python
        self._asks_at_once = useful and plan.spec.train.warm_start is not None
        self._building: Optional[subprocess.Popen[bytes]] = None
        self._until = 0.0
        self._ending = ExitStack()  # ends the process, and then removes its folder

    def __enter__(self) -> "GraphCheck":
        self._until = time.monotonic() + PATIENCE_S
        if self._useful and not self._asks_at_once:
            with suppress(OSError):  # then the tasks find the mistake
                self._building = self._begin()
        return self

    def _begin(self) -> "subprocess.Popen[bytes]":
        folder, job = Path(tempfile.mkdtemp(prefix="launch-graph-")), self._job
        self._ending.callback(shutil.rmtree, str(folder), ignore_errors=True)
        if job.folder is not None:
            # The job may write into its own folder, and may be killed while it writes. So it runs in a copy.
            unpack(self._code.bundles["job"], folder)
            job = replace(job, folder=folder)
        building = subprocess.Popen(
            estimate.command(self._plan, job, self._python), env=estimate.environment(self._plan, job), cwd=str(folder),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=die_with(os.getpid()),
        )  # fmt: skip
        self._ending.callback(_end, building)
        return building

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    def mistake(self, fleet: Fleet, request: RunRequest, before_asking: Callable[[], None]) -> Optional[LaunchError]:
        """Return the mistake that the chief's host finds; None without a mistake, or after a signal.

        The method asks the chief's host only if this machine has found a mistake, or with ``train.warm_start``.

        Args:
          request: the request to the chief's host.
          before_asking: a function to call before the request to that host, which takes seconds.
        """
        fails = self._asks_at_once or self._fails(fleet.interrupts)
        self._ending.close()
        if not fails or fleet.interrupts.received:
            return None
        before_asking()
        with suppress(Interrupted):  # the caller checks for signals itself
            return _ask(fleet, request)
        return None

    def _fails(self, interrupts: Interrupts) -> bool:
        """Return whether building the graph here failed by a mistake in the job."""
        while self._building is not None and not interrupts.received:
            left_s = self._until - time.monotonic()
            try:
                return self._building.wait(max(0.0, min(LOOK_S, left_s))) == GRAPH_MISTAKE
            except subprocess.TimeoutExpired:
                if left_s <= 0:
                    return False
        return False


def _end(building: "subprocess.Popen[bytes]") -> None:
    """End the process and its children."""
    if building.poll() is None:
        os.killpg(building.pid, signal.SIGKILL)  # not reaped yet, so the pid is still its own
    building.wait()


def _ask(fleet: Fleet, request: RunRequest) -> Optional[LaunchError]:
    chief = tuple(task for task in request.tasks if task.chief)
    answers, _ = fleet.ask_for(GRAPH, {fleet.lead: replace(request, tasks=chief, run_plan=None)}, ANSWER_S)
    cause = answers[fleet.lead].cause if answers else None
    if cause is None:
        return None
    return LaunchError(f"no task was started, because {fleet.lead} cannot build the job's graph: {cause}")


def is_useful(spec: Spec) -> bool:
    """Return whether tasks on other machines would find a mistake later than this machine.

    Where all tasks run here, the chief finds a mistake just as early.
    """
    away = not all(map(spec.is_here, spec.hosts))
    return away and spec.command is None and not spec.train.verify
