"""The tasks' use of their host's network card, and of the GPUs that they were given."""

from typing import Any, Dict, Mapping, Optional, Sequence

from launch.agent.gpus.utilisation import GpuUse, Use
from launch.agent.linux.processes import Process
from launch.agent.linux.traffic import Bytes, Traffic

LOOK_S = 3.0


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
        self._look_at = now + LOOK_S
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
