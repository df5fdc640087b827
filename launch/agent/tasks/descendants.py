"""The processes of one attempt of a task, in whatever group or session they are by now.

A process belongs to an attempt if it is in its leader's group or session, if it descends from the
leader, or if the agent has adopted it, and one of these holds: it was seen below the leader before
its parent ended; its environment has the attempt's folder and number. So does whatever descends
from it. A process that clears its environment and leaves its parents behind within ``NOTE_S`` of its start is
not found: nobody knows whose it is, so it is left alone until the agent ends.
"""

import contextlib
import os
import signal
from pathlib import Path
from typing import List, Optional, Sequence, Set, Tuple

from launch.agent.containers.command import MARK
from launch.agent.linux.processes import Process, descendants, environment, inspect, signal_process


class Kin:
    """The processes of one attempt.

    Args:
      agent: pid of the process that started the leader and adopts orphans.
      folder: the task's own, in the environment of all that it starts.
      container: the name of its container; None for none.
    """

    def __init__(self, agent: int, leader: int, folder: Path, attempt: int, container: Optional[str] = None):
        self._agent, self._leader = agent, leader
        self._mark = {"LAUNCH_TASK_DIR": str(folder), "LAUNCH_ATTEMPT": str(attempt)}
        self._seen: Set[Tuple[int, int]] = set()  # (pid, start)
        self._contained = None if container is None else Contained(container, leader)

    @property
    def first(self) -> Optional[Process]:
        """Return the process with which its container began, which may have ended; None for none."""
        return None if self._contained is None else self._contained.first

    @property
    def inside(self) -> List[Process]:
        """Return the processes in its container that were found last."""
        return [] if self._contained is None else self._contained.found

    @property
    def pids(self) -> List[int]:
        """Return the processes that were found last."""
        return [pid for pid, _ in self._seen]

    def find_living(self, table: Sequence[Process]) -> List[Process]:
        """Return the attempt's living processes except the leader; reap adopted ones that have ended."""
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
    """The processes in a container, whoever is their parent: all that have its name in their environment.

    Args:
      leader: pid of the runtime's program, than which they are younger.
    """

    def __init__(self, container: str, leader: int):
        self._name, self._leader = container, leader
        process = inspect(leader)
        self._began = 0 if process is None else process.start
        self.found: List[Process] = []
        self.first: Optional[Process] = None

    def find_living(self, table: Sequence[Process]) -> List[Process]:
        """Return the living processes, the eldest first."""
        roots = [each for each in table if each.start >= self._began and self._has_name(each)]
        below = descendants(table, *(root.pid for root in roots))
        self.found = sorted({*roots, *below}, key=lambda each: (each.start, each.pid))
        if self.first is None and self.found:
            self.first = self.found[0]
        return self.found

    def _has_name(self, process: Process) -> bool:
        if process.state == "Z" or process.pid == self._leader:
            return False
        return environment(process.pid).get(MARK) == self._name


def signal_all(members: Sequence[Process], number: "signal.Signals") -> None:
    """Signal each process that still is the one that was seen."""
    for process in members:
        signal_process(process.pid, process.start, number)
