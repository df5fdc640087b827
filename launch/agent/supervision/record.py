"""The lead's knowledge of one task."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Tuple

from launch.agent.wire.run_plan import TaskPlan
from launch.status.task import TaskStatus

RATE_WINDOW_S = 10.0
LONGEST_PAUSE_S = 60.0  # before a task's next attempt, unless it begins with more
MOST_DOUBLINGS = 20  # of that pause; a power of two of thousands is no float
LATE_S = 3.0  # without a report, which comes once a second if steps do: the rate goes down


class Sample(NamedTuple):
    """One progress report, and the time of its arrival.

    ``waited_s`` is None where no worker waits for another.
    """

    time: float
    step: int
    examples: int
    waited_s: Optional[float]


class Pace(NamedTuple):
    """A worker's mean step: milliseconds of work of its own, then of waiting for the others."""

    own_ms: float
    wait_ms: float

    @property
    def step_ms(self) -> float:
        """Return the duration of the whole step, in milliseconds."""
        return self.own_ms + self.wait_ms


SPARE = "a spare: it starts when the host of a ps is lost"


@dataclass
class TaskRecord:
    """The known facts about one task.

    ``process`` is True where a process of the task may exist. Only ``Roster.turn`` changes ``state`` and
    ``process``. ``attempt`` counts from 0, whoever wanted a new one; ``failures`` are those that count
    against ``restart.max``. ``recalled`` is True where the task's process was ordered to end, so that the
    next attempt can begin. ``frozen`` is the reason for killing a task that makes no progress. ``doing``
    is the current part of the task's start, in words.
    """

    plan: TaskPlan
    state: str = "starting"
    attempt: int = 0
    failures: int = 0
    recalled: bool = False
    frozen: Optional[str] = None
    doing: Optional[str] = None
    process: bool = False
    pid: Optional[int] = None
    exit_code: Optional[int] = None
    gpus: List[int] = field(default_factory=list)
    log: Optional[str] = None
    cause: Optional[str] = None
    progress: Dict[str, Any] = field(default_factory=dict)
    usage: Dict[str, Any] = field(default_factory=dict)  # of its host, as ``launch.agent.tasks.usage`` tells it
    restart_at: Optional[float] = None
    history: Deque[Sample] = field(default_factory=deque)

    def pause_s(self, backoff_s: float) -> float:
        """Return the seconds to wait before the task's next attempt.

        Each pause is twice as long as the one before, up to ``LONGEST_PAUSE_S``, or ``backoff_s`` where that is longer.
        """
        return min(backoff_s * 2.0 ** min(self.failures, MOST_DOUBLINGS), max(backoff_s, LONGEST_PAUSE_S))

    def remember(self, now: float, progress: Dict[str, Any]) -> None:
        """Record a progress report."""
        self.progress = progress
        step, examples = progress.get("step") or 0, progress.get("examples") or 0
        self.history.append(Sample(now, step, examples, progress.get("waited_s")))
        while now - self.history[0].time > RATE_WINDOW_S and len(self.history) > 2:
            self.history.popleft()

    def rates(self, now: float) -> Tuple[float, float]:
        """Return the steps and examples per second over the last ``RATE_WINDOW_S`` seconds.

        Both rates fall while no report arrives.
        """
        if len(self.history) < 2:
            return 0.0, 0.0
        first, last = self.history[0], self.history[-1]
        usual_s = (last.time - first.time) / (len(self.history) - 1)
        until = now if now - last.time > max(LATE_S, 2 * usual_s) else last.time
        seconds = max(until - first.time, 1e-9)
        return (last.step - first.step) / seconds, (last.examples - first.examples) / seconds

    def pace(self) -> Optional[Pace]:
        """Return the mean step of the last ``RATE_WINDOW_S`` seconds.

        The result is None where nothing is known of the task's steps or waits.
        """
        if len(self.history) < 2:
            return None
        first, last = self.history[0], self.history[-1]
        steps = last.step - first.step
        if steps <= 0 or first.waited_s is None or last.waited_s is None:
            return None
        step_ms, wait_ms = (1000 * span / steps for span in (last.time - first.time, last.waited_s - first.waited_s))
        return Pace(max(0.0, step_ms - wait_ms), wait_ms)

    def status(self, straggler: bool = False) -> TaskStatus:
        """Return the task's status; only a comparison with other tasks shows a ``straggler``."""
        pace, usage = self.pace(), self.usage if self.process else {}
        return TaskStatus(
            role=self.plan.role,
            index=self.plan.index,
            host=self.plan.host,
            address=self.plan.address,
            gpus=self.gpus,
            state=self.state,
            doing=self.doing if self.state == "starting" else None,
            pid=self.pid,
            exit_code=self.exit_code,
            restarts=self.attempt,
            step=None if self.plan.role == "ps" else self.progress.get("step"),
            step_time_ms=self.progress.get("step_time_ms"),
            wait_ms=None if pace is None else round(pace.wait_ms, 3),
            bytes_in_per_second=usage.get("bytes_in_per_second"),
            bytes_out_per_second=usage.get("bytes_out_per_second"),
            gpu_percent=usage.get("gpu_percent"),
            gpu_memory_bytes=usage.get("gpu_memory_bytes"),
            dropped_gradients=self.progress.get("dropped_gradients", 0),
            log=self.log,
            cause=self.cause,
            straggler=straggler,
        )


def record_of(plan: TaskPlan) -> TaskRecord:
    """Return the record of a task before its run begins."""
    return TaskRecord(plan, state="stopped", cause=SPARE) if plan.spare else TaskRecord(plan)
