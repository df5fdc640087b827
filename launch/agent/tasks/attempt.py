"""One attempt (one start) of a task, and its processes in any process group or session.

The leader is the process that the agent started. A process belongs to an attempt if it is in the leader's group or
session, or descends from the leader. An orphan that the agent has adopted also belongs, with its descendants, in two
cases: an earlier search found it below the leader, or its environment has the attempt's folder and number. A process
that clears its environment and loses its parents within ``NOTE_S`` of its start is not found, and runs until the agent
ends.
"""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence, Set, Tuple

from cluster.protocol.heartbeat import PULSE, STACKS
from cluster.protocol.outcome import OUTCOME, PROGRESS
from cluster.protocol.progress_lines import FILE as LINES
from cluster.protocol.save_request import SAVE
from launch.agent.endings.exits import HANG_S
from launch.agent.linux.processes import Process, descendants, environment, inspect, is_same, signal_process
from launch.agent.state.process_records import CONTAINER
from launch.agent.tasks.stacks import PROGRAM_STACKS, Stacks
from launch.agent.tasks.task_log import LogBound, LogTimes

FILES = (PROGRESS, LINES, OUTCOME, SAVE, PULSE, STACKS, PROGRAM_STACKS)  # that the next attempt does not find


class Kin:
    """The processes of one attempt.

    Args:
      agent: pid of the agent, which started the leader and adopts orphans.
      folder: the task's folder, which is in the environment of all its processes.
      container: the name of its container; None without a container.
    """

    def __init__(self, agent: int, leader: int, folder: Path, attempt: int, container: Optional[str] = None):
        self._agent, self._leader = agent, leader
        self._mark = {"LAUNCH_TASK_DIR": str(folder), "LAUNCH_ATTEMPT": str(attempt)}
        self._seen: Set[Tuple[int, int]] = set()  # (pid, start)
        self._contained = None if container is None else Contained(container, leader)

    @property
    def first(self) -> Optional[Process]:
        """Return the first process in the attempt's container, which may have ended; None without a container."""
        return None if self._contained is None else self._contained.first

    @property
    def inside(self) -> List[Process]:
        """Return the processes in the attempt's container that the last call of ``find_living`` has found."""
        return [] if self._contained is None else self._contained.found

    @property
    def pids(self) -> List[int]:
        """Return the pids of the processes that the last call of ``find_living`` has found."""
        return [pid for pid, _ in self._seen]

    def find_living(self, table: Sequence[Process]) -> List[Process]:
        """Return the attempt's living processes except the leader, from the process table ``table``.

        The method also reaps the attempt's ended processes that the agent has adopted.
        """
        self._reap(table)
        roots = [process for process in table if process.parent == self._agent and self._owns(process)]
        members = [process for process in table if self._leader in (process.group, process.session)]
        members += [*roots, *descendants(table, *(root.pid for root in roots))]
        members += [] if self._contained is None else self._contained.find_living(table)
        found = {each for each in members if each.state != "Z" and each.pid != self._leader}
        self._seen = {(each.pid, each.start) for each in found}
        return sorted(found)

    def _owns(self, child: Process) -> bool:
        """Return whether a child of the agent belongs to the attempt."""
        if child.pid == self._leader or (child.pid, child.start) in self._seen:
            return True
        variables = environment(child.pid)
        return all(variables.get(name) == value for name, value in self._mark.items())

    def _reap(self, table: Sequence[Process]) -> None:
        for process in table:
            if process.state == "Z" and process.parent == self._agent and (process.pid, process.start) in self._seen:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)


class Contained:
    """The processes in a container, independent of their parents.

    These are the processes with the container's name in their environment, and their descendants.

    Args:
      leader: pid of the container runtime's program, which started before the processes.
    """

    def __init__(self, container: str, leader: int):
        self._name, self._leader = container, leader
        process = inspect(leader)
        self._began = 0 if process is None else process.start
        self.found: List[Process] = []
        self.first: Optional[Process] = None

    def find_living(self, table: Sequence[Process]) -> List[Process]:
        """Return the living processes, the oldest first."""
        roots = [each for each in table if each.start >= self._began and self._has_name(each)]
        below = descendants(table, *(root.pid for root in roots))
        self.found = sorted({*roots, *below}, key=lambda each: (each.start, each.pid))
        if self.first is None and self.found:
            self.first = self.found[0]
        return self.found

    def _has_name(self, process: Process) -> bool:
        if process.state == "Z" or process.pid == self._leader:
            return False
        return environment(process.pid).get(CONTAINER) == self._name


def signal_all(members: Sequence[Process], number: "signal.Signals") -> None:
    """Send the signal ``number`` to each process, unless another process has its pid by now."""
    for process in members:
        signal_process(process.pid, process.start, number)


@dataclass
class Attempt:
    """One attempt (one start) of a task. Times are seconds on the agent's clock.

    Attributes:
      number: the number of the attempt within its task, from 0.
      wants_term: whether SIGTERM must be sent to its processes next.
      kill_at: the time at which to send SIGKILL to its processes; None if it was not ordered to end.
      stacks: the stack traces that the attempt writes before it is killed; None if they were not requested.
      excess_bytes: the memory that it used when the agent stopped it at its limit; 0 if the agent did not.
      progress_ns: modification time of its newest progress file.
      container: the name of its container; None without a container.
      bound: limits the size of its log; None in tests.
    """

    task: str
    number: int
    process: "subprocess.Popen[bytes]"
    times: LogTimes
    kin: Kin
    wants_term: bool = False
    kill_at: Optional[float] = None
    killed_at: Optional[float] = None
    stacks: Optional[Stacks] = None
    excess_bytes: int = 0
    progress_ns: int = 0
    bound: Optional[LogBound] = None
    container: Optional[str] = None

    @property
    def pid(self) -> int:
        """Return the pid of the task's process, which in a container is the container's first process."""
        first = self.kin.first
        return first.pid if first and is_same(first.pid, first.start) else self.process.pid

    @property
    def was_pid(self) -> int:
        """Return the value that ``pid`` had while the task was alive."""
        return self.kin.first.pid if self.kin.first else self.process.pid

    def note_log(self, now: float) -> None:
        """Record the length of the attempt's log, and keep the log below its size limit."""
        self.times.note(now)
        if self.bound is not None:
            self.bound.look(now)

    def end_by(self, deadline: float, term: bool) -> None:
        """Schedule SIGKILL for ``deadline``, or for an earlier time if one is set; with ``term`` also SIGTERM."""
        self.kill_at = deadline if self.kill_at is None else min(self.kill_at, deadline)
        self.wants_term = self.wants_term or term

    def next_signal(self, now: float) -> Optional["signal.Signals"]:
        """Return the signal that is due for the attempt now; None for no signal.

        Each due signal is returned once. SIGKILL is due when the attempt has written its stacks, or at ``kill_at``.
        """
        wants_term, self.wants_term = self.wants_term, False
        if self.killed_at is not None:
            return None
        has_stacks = self.stacks is not None and self.stacks.are_written()
        if has_stacks or (self.kill_at is not None and now >= self.kill_at):
            self.killed_at = now
            return signal.SIGKILL
        return signal.SIGTERM if wants_term else None

    def hangs(self, now: float) -> bool:
        """Return whether the attempt, which the caller has found alive, was killed at least ``HANG_S`` ago.

        An attempt that is alive so long after SIGKILL is not expected to end.
        """
        return self.killed_at is not None and now >= self.killed_at + HANG_S

    def send(self, number: "signal.Signals", table: Sequence[Process]) -> None:
        """Send the signal ``number`` to the attempt's leader, which must not be reaped yet, and to its other processes.

        In an attempt with a container, SIGTERM goes only to the processes in the container.
        """
        leader = [process for process in table if process.pid == self.process.pid]
        rest = self.kin.find_living(table)
        if number == signal.SIGTERM and self.kin.inside:  # the runtime's own processes serve them until they end
            leader, rest = [], self.kin.inside
        signal_all([*leader, *rest], number)

    def end_rest(self, now: float, table: Sequence[Process]) -> List[Process]:
        """Kill the processes that are still alive after the attempt's leader has ended, and return them."""
        rest = self.kin.find_living(table)
        if rest and not self.hangs(now):
            self.killed_at = now if self.killed_at is None else self.killed_at
            signal_all(rest, signal.SIGKILL)
        return rest
