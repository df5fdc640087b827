"""Report the end of a task's process to the lead, without the values of secrets."""

import glob
import os
import signal
from dataclasses import asdict
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from cluster.errors import CheckpointError
from cluster.protocol.failure_kinds import EXIT, OUT_OF_MEMORY
from cluster.protocol.outcome import Outcome, read_outcome
from cluster.protocol.shared_files import NotRegular
from launch.agent.endings import exit_causes
from launch.agent.endings.exit_causes import ExitCause
from launch.agent.endings.log_errors import SEARCHED
from launch.agent.linux import processes
from launch.agent.linux.kernel_log import MemoryKills
from launch.agent.protocol.messages import Exited
from launch.agent.state.run_folder import RunFolder
from launch.agent.text import mask, without_controls
from launch.agent.wire.run_request import TaskRequest

HANG_S = 10.0  # how long a killed process may stay: a process that hangs in the kernel cannot be ended
UNREADABLE = (OSError, ValueError)  # errors from files that a foreign program may have written under these names


class Excess(NamedTuple):
    """A limit that a task has reached.

    Attributes:
      reached: the text that this limit was reached.
      consequence: the consequence of reaching the limit, and the remedy.
      kills: the number of processes that the kernel killed because of the limit.
    """

    reached: str
    consequence: str
    kills: int = 0

    def ending(self, code: int, own: ExitCause) -> ExitCause:
        """Return the end of a task that failed because of this limit.

        Args:
          code: the exit code of the task's process, negative for a signal.
          own: the end of the process as judged without the limit. Its cause is shown, too, where the kernel killed only
            a child of the process.
        """
        if code == -signal.SIGKILL:
            return ExitCause(OUT_OF_MEMORY, f"{self.reached}: {self.consequence}", self.reached)
        return own._replace(kind=OUT_OF_MEMORY, cause=f"{self.reached} by a child that was killed; then {own.cause}")


class Exits:
    """Reports on the ends of this host's tasks. Call ``look`` often: the kernel counts kills without their times."""

    def __init__(self, tasks: Sequence[TaskRequest], folder: RunFolder, secrets: Mapping[str, str]):
        self._tasks = {task.name: task for task in tasks}
        self._folder, self._secrets = folder, secrets
        self._memory_kills = MemoryKills()

    def look(self, now: float) -> None:
        """Record how many processes the kernel killed since the last look."""
        self._memory_kills.look(now)

    def not_started(self, name: str, attempt: int, error: OSError) -> Exited:
        """Report that the process of an attempt could not be started, because of ``error``."""
        # Not Popen's strerror: Python 3.7 adds the name to it once more.
        why = error.strerror if isinstance(error, NotRegular) else os.strerror(error.errno or 0)
        cause = f"cannot start {error.filename or self._tasks[name].argv[0]}: {why}"
        return Exited(name, attempt, None, cause, kind="not-started")

    def beside(self, name: str, attempt: int, other: int, pid: int) -> Exited:
        """Report an attempt that was not started, because process ``pid`` of another attempt still runs here.

        The report ends the run, as for a hanging process: otherwise two processes of the task would train.
        """
        cause = f"attempt {other} of {name} still runs here (pid {pid}), so attempt {attempt} cannot start"
        return Exited(name, attempt, None, cause, kind="not-started", retry=False)

    def hanging(self, name: str, attempt: int, pid: int) -> Exited:
        """Report the process ``pid`` as ``frozen``: it was killed, but hangs in the kernel.

        The run ends without the process, and ``down`` reports the process as left over.
        """
        place = processes.wait_channel(pid)
        cause = f"pid {pid} was killed and is still there after {HANG_S:.0f} s; it hangs in {place}"
        return Exited(name, attempt, None, cause, kind="frozen")

    def ended(
        self,
        name: str,
        attempt: int,
        pid: int,
        code: int,
        now: float,
        killed: bool,
        stack: Optional[str],
        excess: Optional[Excess] = None,
    ) -> Exited:
        """Report a process that ended.

        Args:
          code: the exit code of the process, negative for a signal.
          killed: whether this agent had to kill the process, so that the kernel has not killed it for lack of memory.
          stack: the stacks that the process wrote before its end; None where stacks were not requested.
          excess: the limit that the task reached; None where the task reached no limit.
        """
        if excess is not None:
            self._memory_kills.explained(excess.kills, now)
        outcome = self._outcome(name)
        shown = {key: self._mask(value) for key, value in asdict(outcome).items()} if outcome else None
        if outcome and outcome.succeeded:
            return Exited(name, attempt, code, None, shown)
        lines = exit_causes.last_lines(self._folder.log(name, attempt), self._mask, SEARCHED)
        no_memory = code == -signal.SIGKILL and not killed and not excess and self._memory_kills.took(pid, now)
        ending = self._ending(code, outcome, lines, no_memory)
        if excess is not None:
            ending = excess.ending(code, ending)
        return Exited(
            task=name,
            attempt=attempt,
            exit_code=code,
            cause=ending.cause,
            outcome=shown,
            kind=ending.kind,
            lines=lines[-exit_causes.MOST_LINES :],
            stack=self._mask(stack or (outcome.frames if outcome else None)),
            retry=ending.retry,
            error=ending.error,
        )

    def _ending(self, code: int, outcome: Optional[Outcome], lines: List[str], no_memory: bool) -> ExitCause:
        ending = exit_causes.judge(code, outcome, lines, no_memory)
        return ending._replace(cause=self._mask(ending.cause), error=self._mask(ending.error))

    def _mask(self, value: Any) -> Any:
        """Return a text without secrets and control characters; return other values unchanged.

        A task's text reaches other hosts and their files; secrets and control characters must not.
        """
        return mask(without_controls(value), self._secrets.values()) if isinstance(value, str) else value

    def _outcome(self, name: str) -> Optional[Outcome]:
        """Return the checked outcome that a task wrote; None where the task wrote none.

        A chief that has to save a checkpoint succeeds only if its final checkpoint exists. An unreadable outcome is a
        failure.
        """
        try:
            outcome = read_outcome(self._folder.task(name))
        except UNREADABLE as error:
            return Outcome(False, cause=f"its outcome cannot be read: {error}", kind=EXIT)
        task = self._tasks[name]
        if outcome is None or not outcome.succeeded or not (task.chief and task.saves):
            return outcome
        if outcome.checkpoint and glob.glob(glob.escape(outcome.checkpoint) + "*"):
            return outcome
        missing = f"it reports success, but its final checkpoint is missing: {outcome.checkpoint}"
        return Outcome(False, outcome.step, missing, kind=CheckpointError.kind)
