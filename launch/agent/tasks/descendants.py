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
from typing import List, Sequence, Set, Tuple

from launch.agent.linux.processes import Process, descendants, environment, signal_process


class Kin:
    """The processes of one attempt.

    Args:
      agent: pid of the process that started the leader and adopts orphans.
      folder: the task's own, in the environment of all that it starts.
    """

    def __init__(self, agent: int, leader: int, folder: Path, attempt: int):
        self._agent, self._leader = agent, leader
        self._mark = {"LAUNCH_TASK_DIR": str(folder), "LAUNCH_ATTEMPT": str(attempt)}
        self._seen: Set[Tuple[int, int]] = set()  # (pid, start)

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


def signal_all(members: Sequence[Process], number: "signal.Signals") -> None:
    """Signal each process that still is the one that was seen."""
    for process in members:
        signal_process(process.pid, process.start, number)
