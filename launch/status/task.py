"""The status of one task, its numbers as they are shown, and the names of tasks: ``worker:1@gpu02``."""

from dataclasses import dataclass, field
from typing import List, NamedTuple, Optional


def name_of(role: Optional[str], index: Optional[int]) -> str:
    """Return the name of a task: ``worker:1``."""
    return f"{role}:{index}"


def title_of(role: Optional[str], index: Optional[int], host: Optional[str]) -> str:
    """Return the name of a task with its host: ``worker:1@gpu02``; without a role ``gpu02``; without both ""."""
    return host or "" if role is None else f"{name_of(role, index)}@{host}"


@dataclass(frozen=True)
class QuietStatus:
    """The object ``quiet`` of a task that has done nothing for ``quiet_s``.

    Attributes:
      at_s: Seconds from the start of the run to the last sign of work.
      line: Last line of the task's log; null where the log has no line.
      line_at_s: Seconds from the start of the run to that line; null if line is null.
      where: Place in the task's code, as in `in train.py:31 (main)`; or `stopped by a signal`, or `held by a debugger`;
        null where it is not known.
      stack: Stacks of the Python threads, the main thread first; null where they could not be read.
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
      exit_code: Exit code of the newest process that ended, or minus the number of its fatal signal; null before.
      restarts: Number of restarts.
      step: Newest step that the task reported; null before the first, and for a ps.
      step_time_ms: Recent time of one step, in milliseconds; null before the first.
      wait_ms: Part of one step in which the task waits for the others, in milliseconds; null where no task waits.
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
        """Return the name of the task: ``worker:1``."""
        return name_of(self.role, self.index)

    @property
    def is_quiet(self) -> bool:
        """Return whether the task does nothing."""
        return self.quiet is not None

    @property
    def own_ms(self) -> float:
        """Return the milliseconds of a step that a worker needs for its own work."""
        return max(0.0, (self.step_time_ms or 0.0) - (self.wait_ms or 0.0))

    @property
    def mark(self) -> str:
        """Return ``quiet`` for a quiet task, else ``slow`` for a straggler, else ""."""
        return "quiet" if self.quiet else "slow" if self.straggler else ""

    @property
    def title(self) -> str:
        """Return the name of the task with its host: ``worker:1@gpu02``."""
        return title_of(self.role, self.index, self.host)


class Heading(NamedTuple):
    """The column of a number in the table of ``launch status``.

    Attributes:
      place: the order of the columns; a column with a higher place is further to the right.
      rank: of two columns, the column with the higher rank is left out first.
    """

    text: str
    place: int
    rank: int


class Number(NamedTuple):
    """A number of a task's status: its unit, and the outputs besides ``status --json`` that show it.

    Attributes:
      field: the field, or property, of the status; its value None means that the number is unknown.
      metric: the name in ``launch metrics``, where a name that ends in ``_total`` means a counter; empty for no metric.
      meaning: the description of the metric.
      unit: the unit of the field: ms, % or bytes; empty for a count. Metrics are in seconds, shares and bytes.
      heading: the column in ``launch status``; None for no column.
      page: the heading of the column in ``launch view``; empty for no column, or for a column that the page draws by
        itself.
    """

    field: str
    metric: str = ""
    meaning: str = ""
    unit: str = ""
    heading: Optional[Heading] = None
    page: str = ""


TASK_NUMBERS = (
    Number("step", "launch_task_step", "Newest step that the task reported.", heading=Heading("step", 3, 3)),
    Number(
        "step_time_ms", "launch_task_step_seconds", "Seconds that one step of the worker takes.", "ms",
        Heading("ms/step", 4, 4),
    ),
    Number(
        "wait_ms", "launch_task_wait_seconds", "Seconds of one step in which the worker waits for the others.", "ms",
        Heading("waits ms", 5, 9),
    ),
    Number("straggler", "launch_task_straggler", "1 while the other workers wait for this one, else 0."),
    Number("is_quiet", "launch_task_quiet", "1 while the task has done nothing for at least quiet_s, else 0."),
    Number("restarts", "launch_task_restarts_total", "Restarts of the task.", heading=Heading("restarts", 9, 6)),
    Number(
        "dropped_gradients", "launch_task_dropped_gradients_total",
        "Gradients of the worker that arrived too late to count.", heading=Heading("dropped", 14, 15),
    ),
    Number(
        "bytes_in_per_second", "launch_task_received_bytes_per_second",
        "Recent bytes per second that the task receives over TCP.", "bytes", Heading("in/s", 12, 13),
    ),
    Number(
        "bytes_out_per_second", "launch_task_sent_bytes_per_second",
        "Recent bytes per second that the task sends over TCP.", "bytes", Heading("out/s", 13, 14),
    ),
    Number(
        "gpu_percent", "launch_task_gpu_busy_ratio", "Recent GPU utilisation of the task, 0 to 1.", "%",
        Heading("gpu use", 7, 10), page="GPU, %",
    ),
    Number(
        "gpu_memory_bytes", "launch_task_gpu_memory_bytes", "Bytes in use on the task's GPUs, summed.", "bytes",
        Heading("gpu memory", 8, 11),
    ),
    Number("pid", heading=Heading("pid", 10, 8)),
)  # fmt: skip
