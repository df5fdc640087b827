"""The status of one task."""

from dataclasses import dataclass, field
from typing import List, Optional

from launch.status.meanings import means
from launch.status.task_names import name_of, title_of


@dataclass(frozen=True)
class TaskStatus:
    """One of ``tasks`` in ``status --json``."""

    role: str = field(default="", metadata=means("ps, chief, worker or evaluator"))
    index: int = field(default=0, metadata=means("which of its role, from 0"))
    host: str = field(default="", metadata=means("where it runs, as the hosts file calls it"))
    address: str = field(default="", metadata=means("where the other tasks connect, host:port"))
    gpus: List[int] = field(default_factory=list, metadata=means("the indices of its GPUs"))
    state: str = field(
        default="starting", metadata=means("starting, running, succeeded, failed, restarting, stopped or lost")
    )
    doing: Optional[str] = field(
        default=None,
        metadata=means("what it does of its start, in words; null where that is not known, and once it runs"),
    )
    pid: Optional[int] = field(default=None, metadata=means("of its newest process; null before the first"))
    exit_code: Optional[int] = field(
        default=None, metadata=means("of its newest process that has ended; negative: the signal; null before")
    )
    restarts: int = field(default=0, metadata=means("how often it was started again"))
    step: Optional[int] = field(
        default=None, metadata=means("the newest that it has reported; null before, and for a ps")
    )
    step_time_ms: Optional[float] = field(
        default=None, metadata=means("of its newest steps, in milliseconds; null before the first")
    )
    wait_ms: Optional[float] = field(
        default=None, metadata=means("of a step, its waiting for the others, in milliseconds; null where none waits")
    )
    bytes_in_per_second: Optional[float] = field(
        default=None, metadata=means("that it receives over TCP, over the last seconds; null where that is not known")
    )
    bytes_out_per_second: Optional[float] = field(default=None, metadata=means("that it sends, likewise"))
    gpu_percent: Optional[float] = field(
        default=None,
        metadata=means("how much of the last seconds its GPUs computed, in the mean; null without a GPU"),
    )
    gpu_memory_bytes: Optional[int] = field(
        default=None, metadata=means("in use on its GPUs, in all; null without a GPU")
    )
    dropped_gradients: int = field(
        default=0, metadata=means("how many of its gradients came too late to count, with backup workers")
    )
    log: Optional[str] = field(
        default=None, metadata=means("the log of its newest attempt, on its host; null before the first")
    )
    cause: Optional[str] = field(default=None, metadata=means("why it failed, in one line; else null"))
    straggler: bool = field(
        default=False,
        metadata=means("whether it works so much longer than the other workers that they wait for it"),
    )

    @property
    def name(self) -> str:
        """Return ``worker:1``."""
        return name_of(self.role, self.index)

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``."""
        return title_of(self.role, self.index, self.host)
