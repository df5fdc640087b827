"""One attempt of a task, while a process of it exists."""

import signal
import subprocess
from dataclasses import dataclass
from typing import List, Optional, Sequence

from launch.agent.endings.exits import HANG_S
from launch.agent.limits.control_groups import Group
from launch.agent.linux.processes import Process, is_same
from launch.agent.tasks.descendants import Kin, signal_all
from launch.agent.tasks.log_gap import LogBound
from launch.agent.tasks.log_index import LogTimes
from launch.agent.tasks.stacks import Stacks


@dataclass
class Attempt:
    """An attempt. Times are those of the agent's clock.

    Attributes:
      number: which of the task's attempts, from 0.
      wants_term: whether its processes get TERM at the next look.
      kill_at: when its processes get KILL; None where nobody has stopped it.
      stacks: the stacks that it writes before it is killed; None where they were not asked for.
      group: the control group that limits its memory; None where there is none.
      excess_bytes: the memory that it had when the agent stopped it for its limit; 0 where the agent did not.
      progress_ns: modification time of its newest progress file.
      container: the name of its container; None for none.
      bound: what keeps its log from filling the disk; None in tests.
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
    group: Optional[Group] = None
    excess_bytes: int = 0
    progress_ns: int = 0
    bound: Optional[LogBound] = None
    container: Optional[str] = None

    @property
    def pid(self) -> int:
        """Return the pid of the task's living process: in a container that with which the container began."""
        first = self.kin.first
        return first.pid if first and is_same(first.pid, first.start) else self.process.pid

    @property
    def was_pid(self) -> int:
        """Return the pid that ``pid`` was while the task lived."""
        return self.kin.first.pid if self.kin.first else self.process.pid

    def note_log(self, now: float) -> None:
        """Note how long its log is by now, and keep the log within its bound."""
        self.times.note(now)
        if self.bound is not None:
            self.bound.look(now)

    def end_by(self, deadline: float, term: bool) -> None:
        """Have the attempt killed at ``deadline``, or earlier where that was wanted before."""
        self.kill_at = deadline if self.kill_at is None else min(self.kill_at, deadline)
        self.wants_term = self.wants_term or term

    def next_signal(self, now: float) -> Optional["signal.Signals"]:
        """Take the signal that the attempt is to get now; None for no signal.

        KILL is due when the attempt has written its stacks, or at ``kill_at``.
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
        """Return whether the attempt still runs ``HANG_S`` after it was killed.

        Such an attempt does not end any more.
        """
        return self.killed_at is not None and now >= self.killed_at + HANG_S

    def send(self, number: "signal.Signals", table: Sequence[Process]) -> None:
        """Signal the attempt's leader, which is not reaped yet, and the rest of its processes.

        SIGTERM is for the processes in its container, where it has one.
        """
        leader = [process for process in table if process.pid == self.process.pid]
        rest = self.kin.find_living(table)
        if number == signal.SIGTERM and self.kin.inside:  # the runtime's own processes serve it until it has ended
            leader, rest = [], self.kin.inside
        signal_all([*leader, *rest], number)

    def end_rest(self, now: float, table: Sequence[Process]) -> List[Process]:
        """Kill the processes that outlive the attempt's leader, and return them."""
        rest = self.kin.find_living(table)
        if rest and not self.hangs(now):
            self.killed_at = now if self.killed_at is None else self.killed_at
            signal_all(rest, signal.SIGKILL)
        return rest
