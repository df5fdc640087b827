"""The task processes of one host: only this module starts, watches and ends them."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Union

from cluster.protocol.outcome import OUTCOME
from cluster.protocol.save_request import NOW, ask
from cluster.protocol.standby import STANDBY
from cluster.task import tf_config
from launch.agent.endings.exits import Exits
from launch.agent.linux import processes
from launch.agent.linux.processes import Process
from launch.agent.protocol.messages import Dismiss, Event, Prepare, Prepared, Save, Start, Started, Stop
from launch.agent.state.log import say
from launch.agent.state.process_records import NOTE_S, ProcessRecord
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import FILES, Attempt
from launch.agent.tasks.foreign_progress import ForeignProgress
from launch.agent.tasks.saved_checkpoints import SavedCheckpoints
from launch.agent.tasks.spawning import Spawner, TaskShare, exit_code_of
from launch.agent.tasks.stacks import WRITE_S, Stacks
from launch.agent.tasks.standbys import Standbys
from launch.agent.tasks.task_reports import Reports
from launch.agent.text import mask
from launch.agent.wire.run_request import TaskRequest

LINGER_S = 5.0  # how long a process may live after it has written its outcome, its last act


class HostTasks:
    """A manager of this host's tasks, which starts, watches and ends their processes.

    ``tasks`` have the paths that ``launch.agent.service.located`` has filled in. ``emit`` receives the events. Call
    ``poll`` often: it detects exits and progress, and kills tasks that have not stopped in time.
    """

    def __init__(
        self,
        tasks: Sequence[TaskRequest],
        folder: RunFolder,
        share: TaskShare,
        emit: Callable[[Event], None],
        secrets: Mapping[str, str],
    ):
        self._tasks = {task.name: task for task in tasks}
        self._folder, self._gpus, self._emit, self._secrets = folder, share.gpus, emit, secrets
        settings = share.settings
        self.running: Dict[str, Attempt] = {}
        self._hanging: List[Process] = []  # processes of abandoned attempts
        self._spawner = Spawner(folder, share, secrets)
        self._standbys = Standbys(folder, self._spawner.forget)
        self._record = ProcessRecord(folder, os.getpid())
        self._note_at = 0.0
        saved = SavedCheckpoints(self._tasks, self._masked)
        self._reports = Reports(folder, share.gpus, emit, settings.quiet_s, self._masked, saved)
        self._foreign = ForeignProgress(folder, settings.progress, emit, secrets)
        self._exits = Exits(tasks, folder, secrets)

    def _masked(self, text: str) -> str:
        return mask(text, self._secrets.values())

    def restore_code(self) -> None:
        """Restore missing or changed files of the launcher's code on this host."""
        self._spawner.restore_code()

    def obey(self, order: Union[Start, Prepare, Dismiss, Save, Stop], now: float) -> None:
        """Carry out an order about a task of this host."""
        if isinstance(order, Start):
            self.start(order.task, order.attempt, order.cluster, order.index)
        elif isinstance(order, Prepare):
            self.prepare(order.task, order.attempt, order.cluster, order.index)
        elif isinstance(order, Save):
            self.save(order.task, order.attempt, order.number, order.manner)
        elif isinstance(order, Dismiss):
            self._standbys.end(order.task)
        else:
            self.stop(order.task, order.grace_s, now, order.stack)

    def start(self, name: str, attempt: int, cluster: Optional[str] = None, index: Optional[int] = None) -> None:
        """Start a task as planned, or as the task ``index`` of another ``cluster``; emit the result.

        The result is ``Started``, or ``Exited`` if the process cannot start. No process starts while another attempt of
        the task is running here. An order for the attempt that is already running has no effect.
        """
        running = self.running.get(name)
        if running is not None:
            say(f"{name} attempt {attempt} not started: attempt {running.number} runs here, pid {running.pid}")
            if running.number != attempt:
                self._emit(self._exits.beside(name, attempt, running.number, running.pid))
            return
        task, place = self._tasks[name], self._place(name, cluster, index)
        try:
            self._clear(self._folder.task(name))
            begun = self._standbys.take(name, attempt, place) or self._spawn(task, attempt, place)
        except OSError as error:
            self._emit(self._exits.not_started(name, attempt, error))
            return
        self.running[name] = begun
        log = str(self._folder.log(name, attempt))
        self._emit(Started(name, attempt, begun.process.pid, list(self._gpus[name]), log))

    def prepare_first(self) -> None:
        """Start the processes of the first attempts in advance: they load TensorFlow while others still start."""
        for task in self._tasks.values():
            if task.waits and not task.spare:
                self.prepare(task.name, 0)

    def prepared(self, name: str) -> Optional[str]:
        """Return the state of the process that was started in advance for a task, as in ``Standbys.state``."""
        return self._standbys.state(name)

    def prepare(self, name: str, attempt: int, cluster: Optional[str] = None, index: Optional[int] = None) -> None:
        """Start a process in advance for a task's next attempt; emit ``Prepared`` when it is ready or cannot start."""
        task, place = self._tasks[name], self._place(name, cluster, index)
        try:
            self._standbys.add(
                name, place, lambda: self._spawn(task, attempt, {**place, STANDBY: "1"}, subprocess.PIPE)
            )
        except OSError as error:
            say(f"{name} cannot be prepared: {error}")
            self._emit(Prepared(name, attempt))

    def _place(self, name: str, cluster: Optional[str], index: Optional[int]) -> Dict[str, str]:
        """Return the environment variables for a task's place in a cluster; none for the run's own cluster."""
        if cluster is None or index is None:
            return {}
        return {"TF_CONFIG": tf_config(cluster, self._tasks[name].role, index)}

    @staticmethod
    def _clear(folder: Path) -> None:
        """Remove the files of a task's earlier attempt."""
        for stale in FILES:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/{stale}")

    def _spawn(
        self, task: TaskRequest, attempt: int, further: Mapping[str, str], source: int = subprocess.DEVNULL
    ) -> Attempt:
        """Start the process of an attempt and record it. Raises OSError."""
        begun = self._spawner.spawn(task, attempt, further, source)
        self._record.began(begun.process.pid)
        return begun

    def save(self, name: str, attempt: int, number: int, manner: str = NOW) -> None:
        """Ask a task to save a checkpoint. The task's progress reports the checkpoint once it exists."""
        running = self.running.get(name)
        if running is None or running.number != attempt:
            return
        try:
            ask(self._folder.task(name), number, manner)
        except OSError as error:
            say(f"{name} cannot be asked to save: {error}")

    def stop(self, name: str, grace_s: float, now: float, stack: bool = False) -> None:
        """End every process of a task: SIGTERM at the next ``poll``, SIGKILL after ``grace_s`` (0: SIGKILL only).

        With ``stack``, the task's process first writes its stack traces, and gets no SIGTERM.
        """
        attempt = self.running.get(name)
        if attempt is None:
            return
        if stack and attempt.stacks is None:
            attempt.stacks, grace_s = Stacks(attempt.pid, self._folder.task(name)), WRITE_S
        attempt.end_by(now + grace_s, term=grace_s > 0 and not stack)

    def stop_all(self, grace_s: float, now: float) -> None:
        """End every task of this host."""
        self._standbys.end_all()
        for name in self.running:
            self.stop(name, grace_s, now)

    def is_hanging(self) -> bool:
        """Return whether any process still exists that survived SIGKILL, and whose attempt was given up."""
        self._hanging = [each for each in self._hanging if processes.is_same(each.pid, each.start)]
        return bool(self._hanging)

    def record(self, leader: int) -> None:
        """Record a process that belongs to no task, so that it is ended with the run."""
        self._record.began(leader)

    def poll(self, now: float) -> None:
        """Detect progress and exits, and signal the tasks that must end.

        The process table is read once for all tasks. It is read after the detection of exits, so that it has all
        processes that an exited leader has started.
        """
        self._note_processes(now)
        self._exits.look(now)
        for prepared in self._standbys.look():
            self._emit(prepared)
        self._spawner.look(now, self.running.values())
        self._reports.look(now, self.running)
        exited: List[Attempt] = []
        living: List[Attempt] = []
        for attempt in list(self.running.values()):
            attempt.note_log(now)
            has_exited = processes.has_exited(attempt.process.pid)
            (exited if has_exited else living).append(attempt)
            self._reports.look_at_progress(attempt)  # after the detection of its exit: its last progress counts
            if not attempt.progress_ns:
                self._foreign.look(now, attempt.task, attempt.number, has_exited)
        signals = {attempt.task: self._next_signal(attempt, now) for attempt in living}
        table = processes.table() if exited or any(signals.values()) else processes.ProcessTable([])
        for attempt in exited:
            self._collect(attempt, now, table)
        for attempt in living:
            number = signals[attempt.task]
            if number is not None:
                attempt.send(number, table)
            elif attempt.hangs(now):
                self._give_up(attempt, attempt.pid)

    def _next_signal(self, attempt: Attempt, now: float) -> Optional[signal.Signals]:
        if attempt.kill_at is None and os.path.lexists(f"{self._folder.task(attempt.task)}/{OUTCOME}"):
            attempt.end_by(now + LINGER_S, term=False)
        return attempt.next_signal(now)

    def _note_processes(self, now: float) -> None:
        """Record the owner of each process every ``NOTE_S``.

        The parents of a process prove its owner, but the parents may end.
        """
        if now < self._note_at:
            return
        self._note_at, table = now + NOTE_S, processes.table()
        for attempt in self.running.values():
            attempt.kin.find_living(table)
        self._record.note(table, [each for attempt in self.running.values() for each in attempt.kin.inside])

    def _collect(self, attempt: Attempt, now: float, table: Sequence[Process]) -> None:
        """Kill the remaining processes of an ended leader, then reap the leader and emit ``Exited``."""
        rest = attempt.end_rest(now, table)
        if rest:
            if attempt.hangs(now):
                self._give_up(attempt, rest[0].pid)
            return  # until the next poll
        if not self._spawner.is_gone(attempt):
            return
        del self.running[attempt.task]
        code = exit_code_of(attempt)
        attempt.times.note(0.0, at_once=True)
        stack = None if attempt.stacks is None else attempt.stacks.text()
        killed = attempt.kill_at is not None
        excess = self._spawner.ended(attempt)
        ended = self._exits.ended(
            name=attempt.task, attempt=attempt.number, pid=attempt.was_pid, code=code, now=now, killed=killed,
            stack=stack, excess=excess,
        )  # fmt: skip
        self._reports.look_at_end(attempt)
        self._emit(ended)

    def _give_up(self, attempt: Attempt, pid: int) -> None:
        """Abandon an attempt whose process ``pid`` does not end."""
        del self.running[attempt.task]
        table = processes.table()
        self._hanging += [each for each in table if each.pid == pid] + attempt.kin.find_living(table)
        self._spawner.ended(attempt)
        exited = self._exits.hanging(attempt.task, attempt.number, pid)
        say(f"{attempt.task}: {exited.cause}")
        self._emit(exited)

    def sweep(self, kept: Sequence[int] = ()) -> int:
        """Kill the orphans that this process has adopted, except the pids ``kept``; return how many were killed.

        The method also reaps ended orphans; call it until it returns 0. While containers are being removed, it only
        returns the number of processes that remove them, which end by themselves.
        """
        removing = self._spawner.removing()
        if removing:
            return len(removing)
        leaders = [*kept, *(running.process.pid for running in self.running.values()), *self._standbys.pids]
        living = processes.strays(os.getpid(), leaders)
        for process in living:
            processes.signal_process(process.pid, process.start, signal.SIGKILL)
        for process in processes.table():
            if process.parent == os.getpid() and process.state == "Z" and process.pid not in leaders:
                os.waitpid(process.pid, os.WNOHANG)
        return len(living)
