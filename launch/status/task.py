"""The status of one task, and the names of tasks: ``worker:1``, and with the host ``worker:1@gpu02``."""

from dataclasses import dataclass, field
from typing import List, Optional

from launch.status.meanings import means


def name_of(role: Optional[str], index: Optional[int]) -> str:
    """Return ``worker:1``."""
    return f"{role}:{index}"


def title_of(role: Optional[str], index: Optional[int], host: Optional[str]) -> str:
    """Return ``worker:1@gpu02``; without a role, ``gpu02`` or nothing."""
    return host or "" if role is None else f"{name_of(role, index)}@{host}"


@dataclass(frozen=True)
class TaskStatus:
    """One of ``tasks`` in ``status --json``."""

    role: str = field(default="", metadata=means("Role of the task: ps, chief, worker or evaluator."))
    index: int = field(default=0, metadata=means("Index of the task within its role, from 0."))
    host: str = field(default="", metadata=means("Host of the task, as the hosts file names it."))
    address: str = field(default="", metadata=means("Address of the task for the other tasks, host:port."))
    gpus: List[int] = field(default_factory=list, metadata=means("Indices of the task's GPUs; empty without a GPU."))
    state: str = field(
        default="starting",
        metadata=means("State of the task: starting, running, succeeded, failed, restarting, stopped or lost."),
    )
    doing: Optional[str] = field(
        default=None,
        metadata=means(
            "Current phase of the task's start, in words; null where it is unknown, and once the task runs."
        ),
    )
    pid: Optional[int] = field(default=None, metadata=means("Process id of the newest attempt; null before the first."))
    exit_code: Optional[int] = field(
        default=None,
        metadata=means("Exit code of the newest process that ended; negative: minus the signal's number. null before."),
    )
    restarts: int = field(default=0, metadata=means("Number of restarts."))
    step: Optional[int] = field(
        default=None, metadata=means("Newest step that the task reported; null before the first, and for a ps.")
    )
    step_time_ms: Optional[float] = field(
        default=None, metadata=means("Recent time of one step, in milliseconds; null before the first.")
    )
    wait_ms: Optional[float] = field(
        default=None,
        metadata=means(
            "Time of one step that the task waits for the others, in milliseconds; null where no task waits."
        ),
    )
    bytes_in_per_second: Optional[float] = field(
        default=None, metadata=means("Recent rate of bytes that the task receives over TCP; null where it is unknown.")
    )
    bytes_out_per_second: Optional[float] = field(
        default=None, metadata=means("Recent rate of bytes that the task sends over TCP; null where it is unknown.")
    )
    gpu_percent: Optional[float] = field(
        default=None,
        metadata=means("Recent utilisation of the task's GPUs, 0 to 100, averaged over them; null without a GPU."),
    )
    gpu_memory_bytes: Optional[int] = field(
        default=None, metadata=means("Memory in use on the task's GPUs, summed, in bytes; null without a GPU.")
    )
    dropped_gradients: int = field(
        default=0,
        metadata=means("Number of the task's gradients that arrived too late to count; 0 without backup workers."),
    )
    log: Optional[str] = field(
        default=None, metadata=means("Path of the newest attempt's log, on the task's host; null before the first.")
    )
    cause: Optional[str] = field(
        default=None, metadata=means("Cause of the failure in one line; null where the task has not failed.")
    )
    straggler: bool = field(
        default=False,
        metadata=means("True while the other workers wait for this one, because its steps take much longer."),
    )

    @property
    def name(self) -> str:
        """Return ``worker:1``."""
        return name_of(self.role, self.index)

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``."""
        return title_of(self.role, self.index, self.host)
