"""The status of one task, and the names of tasks: ``worker:1``, or with the host ``worker:1@gpu02``."""

from dataclasses import dataclass, field
from typing import List, Optional


def name_of(role: Optional[str], index: Optional[int]) -> str:
    """Return ``worker:1``."""
    return f"{role}:{index}"


def title_of(role: Optional[str], index: Optional[int], host: Optional[str]) -> str:
    """Return ``worker:1@gpu02``; without a role, ``gpu02`` or nothing."""
    return host or "" if role is None else f"{name_of(role, index)}@{host}"


@dataclass(frozen=True)
class QuietStatus:
    """The object ``quiet`` of a task that has done nothing for ``quiet_s``.

    Attributes:
      at_s: Seconds from the start of the run to the last sign of work.
      line: Last line of the task's log; null where it has none.
      line_at_s: Seconds from the start of the run to that line; null as for line.
      where: Place in the task's code, as in `in train.py:31 (main)`; or `stopped by a signal`, or `held by a debugger`;
        null where it is not known.
      stack: Stacks of the Python threads, the main thread first; null where they could not be had.
    """

    at_s: float = 0.0
    line: Optional[str] = None
    line_at_s: Optional[float] = None
    where: Optional[str] = None
    stack: Optional[str] = None


@dataclass(frozen=True)
class TaskStatus:
    """An item of ``tasks`` in ``status --json``.

    Attributes:
      role: Role of the task: ps, chief, worker or evaluator.
      index: Index of the task within its role, from 0.
      host: Host of the task, as the hosts file names it.
      address: Address of the task for the other tasks, host:port.
      gpus: Indices of the task's GPUs; empty without a GPU.
      state: State of the task: starting, running, succeeded, failed, restarting, stopped or lost.
      doing: Current phase of the task's start, in words; null where the phase is unknown, and once the task runs.
      pid: Process id of the newest attempt; null before the first.
      exit_code: Exit code of the newest process that ended; negative: minus the signal's number. null before.
      restarts: Number of restarts.
      step: Newest step that the task reported; null before the first, and for a ps.
      step_time_ms: Recent time of one step, in milliseconds; null before the first.
      wait_ms: Time of one step that the task waits for the others, in milliseconds; null where no task waits.
      bytes_in_per_second: Recent rate of bytes that the task receives over TCP; null where the rate is unknown.
      bytes_out_per_second: Recent rate of bytes that the task sends over TCP; null where the rate is unknown.
      gpu_percent: Recent utilisation of the task's GPUs, 0 to 100, averaged over them; null without a GPU.
      gpu_memory_bytes: Memory in use on the task's GPUs, summed, in bytes; null without a GPU.
      dropped_gradients: Number of the task's gradients that arrived too late to count; 0 without backup workers.
      log: Path of the newest attempt's log, on the task's host; null before the first.
      cause: Cause of the failure in one line; null where the task has not failed.
      straggler: True while other workers wait for this worker, because its steps take much longer; for a program, while
        it computes far fewer examples per second than the others.
      quiet: Standstill of a task that has done nothing for quiet_s; else null. It stays after the end of the run.
    """

    role: str = ""
    index: int = 0
    host: str = ""
    address: str = ""
    gpus: List[int] = field(default_factory=list)
    state: str = "starting"
    doing: Optional[str] = None
    pid: Optional[int] = None
    exit_code: Optional[int] = None
    restarts: int = 0
    step: Optional[int] = None
    step_time_ms: Optional[float] = None
    wait_ms: Optional[float] = None
    bytes_in_per_second: Optional[float] = None
    bytes_out_per_second: Optional[float] = None
    gpu_percent: Optional[float] = None
    gpu_memory_bytes: Optional[int] = None
    dropped_gradients: int = 0
    log: Optional[str] = None
    cause: Optional[str] = None
    straggler: bool = False
    quiet: Optional[QuietStatus] = None

    @property
    def name(self) -> str:
        """Return ``worker:1``."""
        return name_of(self.role, self.index)

    @property
    def is_quiet(self) -> bool:
        """Return whether the task does nothing."""
        return self.quiet is not None

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``."""
        return title_of(self.role, self.index, self.host)
