"""The start of an attempt's process, with its limits and its container, and their removal after its end."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Iterable, List, Mapping, NamedTuple, Optional

from cluster.protocol.command_template import fill
from cluster.protocol.settings import HostSettings
from launch.agent.containers.command import Inside, RunContainers, exit_code
from launch.agent.containers.task_containers import TaskContainers
from launch.agent.endings.exits import Excess
from launch.agent.limits.enforcement import Terms
from launch.agent.limits.task_limits import TaskLimits
from launch.agent.linux import processes
from launch.agent.state import temporary
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import task_env
from launch.agent.tasks.attempt import Attempt, Kin
from launch.agent.tasks.task_log import LogBound, LogTimes
from launch.agent.tasks.work_folder import LOOK_S, Shipped
from launch.agent.wire.run_request import TaskRequest


class TaskShare(NamedTuple):
    """The GPUs, limits, containers, code and settings that a run's tasks have on this host.

    Attributes:
      gpus: the GPUs of each task, by index.
      terms: the limits of the tasks.
      container: the containers of the tasks; None where they run on this host itself.
      shipped: the launcher's code, restored before a task starts; None without such code.
      settings: the keys of the hosts file for each host.
    """

    gpus: Mapping[str, List[int]]
    terms: Terms = Terms()
    container: Optional[RunContainers] = None
    shipped: Optional[Shipped] = None
    settings: HostSettings = HostSettings(quiet_s=None)


class Spawner:
    """A starter of this host's attempts, which also removes the control group and the container of an ended attempt.

    Args:
      secrets: secret environment variables of every task.
    """

    def __init__(self, folder: RunFolder, share: TaskShare, secrets: Mapping[str, str]):
        self._folder, self._share, self._secrets = folder, share, secrets
        self._freshen_at = 0.0
        self._limits = TaskLimits(folder, share.terms)
        self._containers = TaskContainers(folder, share.container)

    def restore_code(self) -> None:
        """Restore missing or changed files of the launcher's code on this host."""
        if self._share.shipped is not None:
            self._share.shipped.restore()

    def spawn(
        self, task: TaskRequest, attempt: int, further: Mapping[str, str], source: int = subprocess.DEVNULL
    ) -> Attempt:
        """Start the process of an attempt, with ``further`` environment variables. Raises OSError."""
        name, folder, log = task.name, self._folder.task(task.name), self._folder.log(task.name, attempt)
        gpus = self._share.gpus[name]
        argv = [fill(word, {"gpus": str(len(gpus))}) for word in task.argv]
        self.restore_code()
        os.makedirs(str(folder), 0o700, exist_ok=True)
        besides = {**further, **self._secrets}
        scratch = None if "TMPDIR" in {**task.env, **besides} else self._temporary(folder, attempt)
        own = {} if scratch is None else {"TMPDIR": scratch}
        outside = {**self._containers.outside, **own}
        env = task_env.own_variables(task.env, {**own, **besides}, attempt, folder, gpus, outside)
        enforced = self._limits.of(name, attempt)
        container = self._containers.name(name, attempt)
        if self._share.settings.quiet_s is not None and container is None and not task_env.writes_stacks(argv):
            env = task_env.with_stacks(env)  # not in a container, whose image may set PYTHONPATH itself
        inside = Inside(
            container or "", argv, env, task.folder, has_gpus=bool(gpus), reads=source == subprocess.PIPE,
            nofile=enforced.limits.nofile, temporary=scratch,
        )  # fmt: skip
        command = self._containers.command(inside)
        process = processes.start(command.argv, command.env, Path(task.folder), log, source, enforced.before_program)
        kin = Kin(os.getpid(), process.pid, folder, attempt, container)
        return Attempt(name, attempt, process, LogTimes(log), kin, bound=LogBound(log), container=container)

    def _temporary(self, folder: Path, attempt: int) -> Optional[str]:
        """Make the attempt's folder for temporary files; return None where its container has its own /tmp."""
        container = self._share.container
        return None if container is not None and container.is_named else temporary.make(folder, attempt)

    def look(self, now: float, running: Iterable[Attempt]) -> None:
        """End the attempts that exceed their memory limit, and continue the removal of containers.

        The method also renews the times of the code and temporary folders, so that no cleanup by age removes them.
        """
        if self._limits.due(now):
            for attempt in running:
                if attempt.killed_at is None:
                    self._end_in_excess(attempt, now)
        self._containers.look()
        if now >= self._freshen_at:
            self._freshen_at = now + LOOK_S
            for name in self._share.gpus:
                temporary.freshen(self._folder.task(name))
        if self._share.shipped is not None:
            self._share.shipped.look(now)

    def _end_in_excess(self, attempt: Attempt, now: float) -> None:
        pids = [attempt.process.pid, *attempt.kin.pids]
        used = self._limits.excess_bytes(attempt.task, attempt.number, pids)
        if used:
            attempt.excess_bytes = used
            attempt.end_by(now, term=False)

    def is_gone(self, attempt: Attempt) -> bool:
        """Remove the container of an ended attempt; return whether it is gone. Call this until it returns True."""
        return self._containers.is_gone(attempt.container)

    def removing(self) -> List[int]:
        """Return the pids of the processes that are removing containers of ended attempts."""
        self._containers.look()
        return self._containers.pids

    def ended(self, attempt: Attempt) -> Optional[Excess]:
        """Remove an ended attempt's temporary folder and control group; return the limit that it exceeded, or None."""
        temporary.forget(self._folder.task(attempt.task), attempt.number)
        return self._limits.ended(attempt.task, attempt.number, attempt.excess_bytes)

    def forget(self, standby: Attempt, keeps_log: bool) -> None:
        """Remove what an unused standby process leaves: temporary folder, control group, container, and log.

        Its attempt has not begun. If that attempt begins later, another process appends to the log. ``keeps_log``: the
        process has ended by itself, and its log may have the reason.
        """
        self.ended(standby)
        if not keeps_log:
            with suppress(OSError):
                os.unlink(str(self._folder.log(standby.task, standby.number)))
        self._containers.remove(standby.container)


def exit_code_of(attempt: Attempt) -> int:
    """Reap an attempt's process, and return the exit code of its program, negative for a signal."""
    code = attempt.process.wait()
    return code if attempt.container is None else exit_code(code)
