"""The task processes of one host: only this module starts, watches and ends them."""

import contextlib
import glob
import os
import signal
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from cluster.errors import CheckpointError
from cluster.protocol.command_template import fill
from cluster.protocol.failures import EXIT
from cluster.protocol.heartbeat import PULSE, STACKS
from cluster.protocol.outcome import OUTCOME, PROGRESS, Outcome, read_outcome, read_progress
from cluster.protocol.regular_file import NotRegular
from cluster.protocol.save_request import SAVE, ask
from cluster.task import tf_config
from launch.agent.linux import processes
from launch.agent.linux.oom_kills import MemoryKills
from launch.agent.protocol.messages import (
    Advanced,
    Event,
    Exited,
    Measured,
    Save,
    Signs,
    Start,
    Started,
    Stop,
)
from launch.agent.state.log import say, say_seldom
from launch.agent.state.process_records import NOTE_S, ProcessRecord
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks import exit_causes, task_env
from launch.agent.tasks.descendants import Kin, signal_all
from launch.agent.tasks.exit_causes import Ending
from launch.agent.tasks.health import Seen, Vitals
from launch.agent.tasks.log_errors import SEARCHED
from launch.agent.tasks.log_index import LogTimes
from launch.agent.tasks.shipped import Shipped
from launch.agent.tasks.stacks import WRITE_S, Stacks
from launch.agent.tasks.usage import Usage
from launch.agent.text.plain_text import without_controls
from launch.agent.text.redaction import masked
from launch.agent.wire.run_request import TaskRequest

HANG_S = 10.0  # how long a killed process may stay: one that hangs in the kernel cannot be ended by anybody
LINGER_S = 5.0  # how long a process may live after its outcome, its last act
UNREADABLE = (OSError, ValueError)  # what a program of others may write under these names


@dataclass
class Running:
    """One attempt of a task while a process of it exists."""

    task: str
    attempt: int
    process: "subprocess.Popen[bytes]"
    times: LogTimes
    kin: Kin
    kill_at: Optional[float] = None
    killed_at: Optional[float] = None
    stacks: Optional[Stacks] = None  # where they were wanted before it is killed
    seen: int = 0  # modification time of the newest progress file, in ns

    def is_due(self, now: float) -> bool:
        """Return whether the attempt is to be killed now.

        An attempt is due when its process has written its stacks, or at ``kill_at``.
        """
        if self.stacks is not None and self.stacks.are_written():
            return True
        return self.kill_at is not None and now >= self.kill_at

    def hangs(self, now: float) -> bool:
        """Return whether the attempt still runs ``HANG_S`` after it was killed.

        Such an attempt does not end any more.
        """
        return self.killed_at is not None and now >= self.killed_at + HANG_S


class HostTasks:
    """Start, watch and end the tasks of this host, located as ``launch.agent.service.located`` does it.

    ``emit`` receives the events. Call ``poll`` often: ``poll`` notices exits and progress, and kills tasks whose time
    to stop is over.
    """

    def __init__(
        self,
        tasks: Sequence[TaskRequest],
        folder: RunFolder,
        gpus: Mapping[str, List[int]],
        emit: Callable[[Event], None],
        secrets: Mapping[str, str],
        shipped: Optional[Shipped] = None,
    ):
        self._tasks = {task.name: task for task in tasks}
        self._folder, self._gpus, self._emit, self._secrets = folder, gpus, emit, secrets
        self._shipped = shipped
        self.running: Dict[str, Running] = {}
        self._record = ProcessRecord(folder, os.getpid())
        self._note_at = 0.0
        self._usage = Usage(gpus)
        self._vitals = Vitals()
        self._memory_kills = MemoryKills()

    def obey(self, order: Union[Start, Save, Stop], now: float) -> None:
        """Carries out an order that is about a task of this host."""
        if isinstance(order, Start):
            self.start(order.task, order.attempt, order.cluster, order.index)
        elif isinstance(order, Save):
            self.save(order.task, order.attempt, order.number)
        else:
            self.stop(order.task, order.grace_s, now, order.stack)

    def start(self, name: str, attempt: int, cluster: Optional[str] = None, index: Optional[int] = None) -> None:
        """Start a task in the run's cluster, or at ``index`` in ``cluster``; emit the result.

        The result is ``Started``, or ``Exited`` where the process cannot start.
        """
        task, folder = self._tasks[name], self._folder.task(name)
        log = self._folder.log(name, attempt)
        argv = [fill(word, {"gpus": str(len(self._gpus[name]))}) for word in task.argv]
        try:
            if self._shipped is not None:
                self._shipped.restore()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for stale in (PROGRESS, OUTCOME, SAVE, PULSE, STACKS):
                with contextlib.suppress(FileNotFoundError):
                    (folder / stale).unlink()
            further = self._further(task, cluster, index)
            env = task_env.of_task(task.env, further, attempt, folder, self._gpus[name])
            process = processes.start(argv, env, Path(task.folder), log)
        except OSError as error:
            # Not Popen's strerror, to which Python 3.7 adds the name once more.
            why = error.strerror if isinstance(error, NotRegular) else os.strerror(error.errno or 0)
            cause = f"cannot start {error.filename or task.argv[0]}: {why}"
            self._emit(Exited(name, attempt, None, cause, kind="not-started"))
            return
        kin = Kin(os.getpid(), process.pid, folder, attempt)
        self.running[name] = Running(name, attempt, process, LogTimes(log), kin)
        self._record.began(process.pid)
        self._emit(Started(name, attempt, process.pid, list(self._gpus[name]), str(log)))

    def _further(self, task: TaskRequest, cluster: Optional[str], index: Optional[int]) -> Dict[str, str]:
        """Return the environment variables of a task that its request does not contain."""
        if cluster is None or index is None:
            return dict(self._secrets)
        return {"TF_CONFIG": tf_config(cluster, task.role, index), **self._secrets}

    def save(self, name: str, attempt: int, number: int) -> None:
        """Ask a task for a checkpoint; the task's progress reports the checkpoint once it exists."""
        running = self.running.get(name)
        if running is None or running.attempt != attempt:
            return
        try:
            ask(self._folder.task(name), number)
        except OSError as error:
            say(f"{name} cannot be asked to save: {error}")

    def stop(self, name: str, grace_s: float, now: float, stack: bool = False) -> None:
        """End every process of a task: TERM now, KILL after ``grace_s`` (at once for 0).

        With ``stack`` the task's process first writes its stacks, and gets no TERM.
        """
        running = self.running.get(name)
        if running is None:
            return
        if stack and running.stacks is None:
            running.stacks, grace_s = Stacks(running.process.pid, self._folder.task(name)), WRITE_S
        deadline = now + grace_s
        running.kill_at = deadline if running.kill_at is None else min(running.kill_at, deadline)
        if grace_s > 0 and not stack:
            self._signal(running, signal.SIGTERM)

    def stop_all(self, grace_s: float, now: float) -> None:
        """Ends every task of this host."""
        for name in list(self.running):
            self.stop(name, grace_s, now)

    def poll(self, now: float) -> None:
        """Notices progress and exits, and kills what was stopped and did not leave."""
        self._note_processes(now)
        self._memory_kills.look(now)
        self._tell_usage(now)
        self._tell_vitals(now)
        if self._shipped is not None:
            self._shipped.look(now)
        for running in list(self.running.values()):
            running.times.note(now)
            ended = processes.has_exited(running.process.pid)  # asked first, so that its last progress is told
            self._tell_progress(running)
            if ended:
                self._collect(running, now)
            elif running.kill_at is None and os.path.lexists(str(self._folder.task(running.task) / OUTCOME)):
                running.kill_at = now + LINGER_S
            elif running.hangs(now):
                self._give_up(running, running.process.pid)
            elif running.killed_at is None and running.is_due(now):
                running.killed_at = now
                self._signal(running, signal.SIGKILL)

    def _signal(self, running: Running, number: signal.Signals) -> None:
        """Signals a task's leader, which is not reaped yet, and the rest of its processes."""
        leader = processes.inspect(running.process.pid)
        signal_all([*([leader] if leader else []), *running.kin.living(processes.table())], number)

    def _note_processes(self, now: float) -> None:
        """Record the owner of each process every ``NOTE_S``.

        The parents of a process prove its owner, and the parents may end.
        """
        if now < self._note_at:
            return
        self._note_at, table = now + NOTE_S, processes.table()
        self._record.note(table)
        for running in self.running.values():
            running.kin.living(table)

    def _tell_usage(self, now: float) -> None:
        leaders = {name: running.process.pid for name, running in self.running.items()}
        if leaders and self._usage.due(now):
            used = self._usage.look(now, leaders, processes.table())
            self._emit(Measured({name: {"attempt": self.running[name].attempt, **used[name]} for name in used}))

    def _tell_vitals(self, now: float) -> None:
        if self._vitals.due(now):
            tasks = {
                name: Seen(running.attempt, running.process.pid, self._folder.task(name))
                for name, running in self.running.items()
            }
            unwell = self._vitals.look(now, tasks)
            if unwell:
                self._emit(Signs(unwell))

    def _tell_progress(self, running: Running) -> None:
        folder = self._folder.task(running.task)
        try:
            written = os.lstat(str(folder / PROGRESS)).st_mtime_ns
        except OSError:  # there is none yet, or the task has closed its folder
            return
        if written != running.seen:
            running.seen = written
            try:
                progress = read_progress(folder)
            except UNREADABLE as error:
                say_seldom(running.task, f"{running.task}: ignored an unreadable {PROGRESS}: {error}")
                return
            if progress is not None:
                self._emit(Advanced(running.task, running.attempt, asdict(progress)))

    def _collect(self, running: Running, now: float) -> None:
        """Kill the remaining processes of an ended leader, then reap the leader and emit ``Exited``."""
        rest = running.kin.living(processes.table())
        if rest and running.hangs(now):
            self._give_up(running, rest[0].pid)
            return
        if rest:
            running.killed_at = now if running.killed_at is None else running.killed_at
            signal_all(rest, signal.SIGKILL)
            return  # until the next poll
        del self.running[running.task]
        code = running.process.wait()
        running.times.note(0.0, at_once=True)
        outcome = self._outcome(running.task)
        told = {key: self._masked(value) for key, value in asdict(outcome).items()} if outcome else None
        if outcome and outcome.succeeded:
            self._emit(Exited(running.task, running.attempt, code, None, told))
            return
        lines = exit_causes.last_lines(self._folder.log(running.task, running.attempt), self._masked, SEARCHED)
        kind, cause, error, retry = self._ending(running, code, outcome, lines, now)
        shown, stack = lines[-exit_causes.MOST_LINES :], self._stack(running)
        self._emit(Exited(running.task, running.attempt, code, cause, told, kind, shown, stack, retry, error))

    def _stack(self, running: Running) -> Optional[str]:
        return None if running.stacks is None else str(self._masked(running.stacks.text()))

    def _masked(self, value: Any) -> Any:
        """Return a text without secrets and control characters; return other values unchanged.

        A task's text goes to other hosts and into their files; secrets and control characters do not.
        """
        return masked(without_controls(value), self._secrets.values()) if isinstance(value, str) else value

    def _give_up(self, running: Running, pid: int) -> None:
        """Report the killed process ``pid``, which hangs in the kernel, as ``frozen``.

        The run ends without the process, and ``down`` reports the process as left.
        """
        del self.running[running.task]
        cause = (
            f"pid {pid} was killed and is still there after {HANG_S:.0f} s; it hangs in {processes.wait_channel(pid)}"
        )
        self._emit(Exited(running.task, running.attempt, None, cause, kind="frozen"))

    def _outcome(self, name: str) -> Optional[Outcome]:
        """Return the checked outcome that a task wrote; None where the task wrote none.

        A chief that has to save a checkpoint succeeds only if its final checkpoint is there. An outcome that cannot be
        read is a failure.
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

    def _ending(self, running: Running, code: int, outcome: Optional[Outcome], lines: List[str], now: float) -> Ending:
        """Return the kind, and the masked cause and error, of an attempt's failure.

        A process that this agent was to kill counts as killed by the agent, whatever the kernel does meanwhile.
        """
        starved = code == -signal.SIGKILL and running.kill_at is None
        no_memory = starved and self._memory_kills.took(running.process.pid, now)
        ending = exit_causes.judge(code, outcome, lines, no_memory)
        return ending._replace(cause=self._masked(ending.cause), error=self._masked(ending.error))

    def sweep(self, kept: Sequence[int] = ()) -> int:
        """Kills and reaps descendants that left their group, except ``kept``; returns how many still live."""
        leaders = [*kept, *(running.process.pid for running in self.running.values())]
        living = processes.strays(os.getpid(), leaders)
        for process in living:
            processes.signal_process(process.pid, process.start, signal.SIGKILL)
        for process in processes.table():
            if process.parent == os.getpid() and process.state == "Z" and process.pid not in leaders:
                os.waitpid(process.pid, os.WNOHANG)
        return len(living)
