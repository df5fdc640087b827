"""Standby processes, started in advance: for the first attempts of a run, and for the next cluster of an elastic run.

When its task's attempt begins, a standby has loaded TensorFlow and built its graph (``cluster.protocol.standby``), or
soon will have. If a standby was prepared for another cluster, the agent ends it and starts a new process.
"""

import contextlib
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set

from cluster.protocol import standby
from launch.agent.linux import processes
from launch.agent.protocol.messages import PREPARE_S, Prepared
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt

END_S = 1.0  # for killed processes to end; the agent ends any rest when it leaves
LOADS, READY, ENDED = "loads", "ready", "ended"


@dataclass
class _Waiting:
    """A waiting process: its attempt, and the environment variables of the attempt's cluster."""

    attempt: Attempt
    place: Mapping[str, str]
    began: float
    state: str = LOADS


class Standbys:
    """The standby processes of one host's tasks, at most one per task.

    Args:
      ended: called with the attempt of each standby that has ended without a turn, and whether it ended by itself.
    """

    def __init__(self, folder: RunFolder, ended: Callable[[Attempt, bool], None]):
        self._folder, self._ended = folder, ended
        self._waiting: Dict[str, _Waiting] = {}
        self._left: Set[str] = set()  # tasks whose newest process has ended by itself

    @property
    def pids(self) -> List[int]:
        """Return the pids of the standby processes."""
        return [each.attempt.process.pid for each in self._waiting.values()]

    def add(self, task: str, place: Mapping[str, str], start: Callable[[], Attempt]) -> None:
        """Start a standby process of a task, after ending an earlier one of the task.

        Args:
          place: the environment variables that describe the process's cluster.
          start: starts the process, with a pipe as its standard input.

        Raises:
          OSError: the process cannot start.
        """
        self.end(task)
        standby.clear(self._folder.task(task))
        self._waiting[task] = _Waiting(start(), place, time.monotonic())

    def take(self, task: str, number: int, place: Mapping[str, str]) -> Optional[Attempt]:
        """Make the standby of a task begin its attempt, and return the attempt.

        The result is None without a standby for this attempt in this cluster; another standby is then ended.
        """
        found = self._waiting.get(task)
        if found is None:
            return None
        fits = found.attempt.number == number and found.place == place
        in_time = found.state == READY or time.monotonic() < found.began + PREPARE_S
        if not (fits and in_time and _give_turn(found.attempt)):
            self.end(task)
            return None
        return self._waiting.pop(task).attempt

    def state(self, task: str) -> Optional[str]:
        """Return whether the standby of a task loads, is ready, or has ended by itself; None without a standby."""
        if task in self._left:
            return ENDED
        return self._waiting[task].state if task in self._waiting else None

    def look(self) -> List[Prepared]:
        """Return the new events: one for each standby that has become ready, or has ended before that."""
        found: List[Prepared] = []
        for task, each in list(self._waiting.items()):
            has_ended = processes.has_exited(each.attempt.process.pid)
            if each.state == LOADS and (has_ended or standby.is_ready(self._folder.task(task))):
                each.state = READY
                found.append(Prepared(task, each.attempt.number))
            if has_ended:
                say(f"{task}: the process for attempt {each.attempt.number} has ended before its turn")
                self._end([task], by_themselves=True)
                self._left.add(task)
        return found

    def end(self, *tasks: str) -> None:
        """End the standby processes of these tasks."""
        self._left.difference_update(tasks)
        self._end(tasks)

    def _end(self, tasks: Sequence[str], by_themselves: bool = False) -> None:
        """End all processes of these standbys; ``by_themselves``: the leaders have ended already."""
        ending = [self._waiting.pop(task).attempt for task in tasks if task in self._waiting]
        for attempt in ending:
            processes.signal_group(attempt.process.pid, signal.SIGKILL)
        until = time.monotonic() + END_S
        for attempt in ending:
            with contextlib.suppress(OSError):
                attempt.process.stdin.close()  # type: ignore[union-attr]
            with contextlib.suppress(subprocess.TimeoutExpired):
                attempt.process.wait(max(0.0, until - time.monotonic()))
            self._ended(attempt, by_themselves)

    def end_all(self) -> None:
        """End all standby processes."""
        self.end(*self._waiting, *self._left)


def _give_turn(attempt: Attempt) -> bool:
    try:
        with attempt.process.stdin as source:  # type: ignore[union-attr]
            source.write(b"\n")
    except OSError:  # the process has ended
        return False
    return True
