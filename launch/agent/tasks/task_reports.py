"""Report what the running tasks of this host do: their progress, their signs of life, their use of the host.

The use of the host is that of its network card, and of the GPUs that the tasks were given.
"""

import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from cluster.protocol.outcome import PROGRESS, read_progress
from launch.agent.endings.exits import UNREADABLE
from launch.agent.gpus.watching import Failures, GpuUse, Use
from launch.agent.linux import processes
from launch.agent.linux.processes import Process
from launch.agent.linux.traffic import Bytes, Traffic
from launch.agent.protocol.messages import Advanced, Event, GpuFailed, Measured, Signs
from launch.agent.state.log import say_seldom
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt
from launch.agent.tasks.health import Seen, Vitals

USAGE_S = 3.0


class Usage:
    """Looks at the tasks of this host, every ``LOOK_S``.

    Args:
      gpus: {task: the indices of its GPUs}
    """

    def __init__(self, gpus: Mapping[str, Sequence[int]], traffic: Optional[Traffic] = None):
        self._gpus, self._traffic = gpus, traffic or Traffic()
        self._gpu_use = GpuUse() if any(gpus.values()) else None
        self._look_at = 0.0

    def due(self, now: float) -> bool:
        """Return whether the next look is due; once true, false for ``LOOK_S``."""
        if now < self._look_at:
            return False
        self._look_at = now + USAGE_S
        return True

    def look(self, now: float, leaders: Mapping[str, int], table: Sequence[Process]) -> Dict[str, Dict[str, Any]]:
        """Return each task's use in the terms of ``status --json``, without unknown values.

        Args:
          leaders: {task: pid of its own process, whose session and group are all the task's}
          table: the processes of this host.
        """
        sessions = {process.pid: process.session for process in table}
        marks = {task: {leader, sessions.get(leader, leader)} for task, leader in leaders.items()}
        pids = {task: [p.pid for p in table if mark & {p.group, p.session}] for task, mark in marks.items()}
        rates, gpus = self._traffic.look(now, pids), self._gpu_use.look(now) if self._gpu_use else {}
        own = {task: [gpus[index] for index in self._gpus[task] if index in gpus] for task in leaders}
        return {task: {**_network(rates.get(task)), **_of_gpus(own[task])} for task in leaders}


def _network(rate: Optional[Bytes]) -> Dict[str, Any]:
    if rate is None:
        return {}
    return {"bytes_in_per_second": round(rate.into), "bytes_out_per_second": round(rate.out)}


def _of_gpus(uses: Sequence[Use]) -> Dict[str, Any]:
    """The mean of the GPUs' use, the sum of their memory."""
    percents = [use.percent for use in uses if use.percent is not None]
    memories = [use.memory_bytes for use in uses if use.memory_bytes is not None]
    mean = {"gpu_percent": round(sum(percents) / len(percents), 1)} if percents else {}
    return {**mean, **({"gpu_memory_bytes": sum(memories)} if memories else {})}


class Reports:
    """The reports about the attempts that run on this host; ``emit`` receives them as events."""

    def __init__(self, folder: RunFolder, gpus: Mapping[str, List[int]], emit: Callable[[Event], None]):
        self._folder, self._emit = folder, emit
        self._usage, self._vitals, self._gpus = Usage(gpus), Vitals(), gpus
        self._failures = Failures() if any(gpus.values()) else None

    def look(self, now: float, running: Mapping[str, Attempt]) -> None:
        """Report the use of the host, tasks that are unwell, and GPUs that have failed, where a look is due."""
        leaders = {name: attempt.pid for name, attempt in running.items()}
        if leaders and self._usage.due(now):
            used = self._usage.look(now, leaders, processes.table())
            self._emit(Measured({name: {"attempt": running[name].number, **used[name]} for name in used}))
        if self._vitals.due(now):
            seen = {name: Seen(running[name].number, pid, self._folder.task(name)) for name, pid in leaders.items()}
            unwell = self._vitals.look(now, seen)
            if unwell:
                self._emit(Signs(unwell))

        if leaders and self._failures is not None and self._failures.due(now):
            self._report_failures(self._failures.look(now), running)

    def _report_failures(self, failures: Mapping[int, str], running: Mapping[str, Attempt]) -> None:
        """Report each GPU that has failed and that a running task uses."""
        for index, what in failures.items():
            users = [name for name in running if index in self._gpus[name]]
            if users:
                self._emit(GpuFailed(users, what))

    def look_at_progress(self, attempt: Attempt) -> None:
        """Report the progress of a task if it has written a newer one."""
        folder = self._folder.task(attempt.task)
        try:
            written_ns = os.lstat(f"{folder}/{PROGRESS}").st_mtime_ns
        except OSError:  # there is none yet, or the task has closed its folder
            return
        if written_ns == attempt.progress_ns:
            return
        attempt.progress_ns = written_ns
        try:
            progress = read_progress(folder)
        except UNREADABLE as error:
            say_seldom(attempt.task, f"{attempt.task}: ignored an unreadable {PROGRESS}: {error}")
            return
        if progress is not None:
            self._emit(Advanced(attempt.task, attempt.number, dict(vars(progress))))
