"""The lead's records of the tasks of a run, by name, host and state.

A run may have thousands of tasks, and each task reports its progress every second. So the roster keeps the
counts that the rules need up to date. To process one task's report, no rule has to read the records of other tasks.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Deque, Dict, List, NamedTuple, Optional, Set, Tuple, Union

from cluster.protocol.typed_json import part_of
from cluster.task import TRAINERS
from launch.agent.protocol.messages import Advanced, Exited, Measured, Signs, Started
from launch.agent.supervision.failures import CountedFailures
from launch.agent.wire.run_request import RunPlan, TaskPlan
from launch.status.run import ALIVE
from launch.status.task import QuietStatus, TaskStatus

RATE_WINDOW_S = 10.0
LEAST_S = 0.05  # a program's first step is reported a moment before its newest one, whenever it was
LATE_S = 3.0  # without a report, which comes once a second during steps: the rate falls


class Sample(NamedTuple):
    """One progress report, and the time of its arrival.

    ``waited_s`` is None where no worker waits for another. ``rate`` has the examples per second that a program under
    ``command:`` reports; None where the program reports no such rate.
    """

    time: float
    step: int
    examples: int
    waited_s: Optional[float]
    rate: Optional[float] = None


class Pace(NamedTuple):
    """A worker's mean time per step, in milliseconds: its own work, and its waiting for other workers."""

    own_ms: float
    wait_ms: float

    @property
    def step_ms(self) -> float:
        """Return the duration of the whole step, in milliseconds."""
        return self.own_ms + self.wait_ms


SPARE = "a spare: it starts when the host of a ps is lost"
DRAINED = "drained: it starts again after `launch drain --back`"


@dataclass
class TaskRecord:
    """The known facts about one task.

    ``process`` is True where a process of the task may exist. Only ``Roster.turn`` changes ``state`` and ``process``.
    ``attempt`` counts all restarts, from 0; ``failed`` has the failures that ``restart.max`` limits. ``recalled`` is
    True where the task's process was ordered to end, so that the next attempt can begin. ``frozen`` is the reason for
    killing a task that makes no progress. ``quiet`` describes the standstill of a task that does nothing. ``doing``
    describes the current part of the task's start.
    """

    plan: TaskPlan
    state: str = "starting"
    attempt: int = 0
    failed: CountedFailures = field(default_factory=CountedFailures)
    recalled: bool = False
    frozen: Optional[str] = None
    quiet: Optional[QuietStatus] = None
    doing: Optional[str] = None
    process: bool = False
    pid: Optional[int] = None
    started_at: Optional[float] = None
    exit_code: Optional[int] = None
    gpus: List[int] = field(default_factory=list)
    log: Optional[str] = None
    cause: Optional[str] = None
    progress: Dict[str, Any] = field(default_factory=dict)
    usage: Dict[str, Any] = field(
        default_factory=dict
    )  # from its host, with the fields of ``launch.agent.tasks.task_reports``
    restart_at: Optional[float] = None
    samples: Deque[Sample] = field(default_factory=deque)

    @property
    def failures(self) -> int:
        """Return the number of failures that count against ``restart.max``."""
        return self.failed.count

    def record_progress(self, now: float, progress: Dict[str, Any]) -> None:
        """Record a progress report."""
        self.progress = progress
        if progress.get("step") is None:
            return  # a program's remark, before its first step
        step, examples = progress["step"], progress.get("examples") or 0
        self.samples.append(Sample(now, step, examples, progress.get("waited_s"), progress.get("rate")))
        while now - self.samples[0].time > RATE_WINDOW_S and len(self.samples) > 2:
            self.samples.popleft()

    def rates(self, now: float) -> Tuple[float, float]:
        """Return the steps and examples per second over the last ``RATE_WINDOW_S`` seconds.

        Both rates fall while no report arrives.
        """
        if len(self.samples) < 2:
            return 0.0, 0.0
        first, last = self.samples[0], self.samples[-1]
        usual_s = (last.time - first.time) / (len(self.samples) - 1)
        until = now if now - last.time > max(LATE_S, 2 * usual_s) else last.time
        seconds = until - first.time
        if seconds < LEAST_S:
            return 0.0, 0.0
        reported, known = self.reported_rate(), (last.time - first.time) / seconds
        examples = (last.examples - first.examples) / seconds if reported is None else reported * known
        return (last.step - first.step) / seconds, examples

    def reported_rate(self) -> Optional[float]:
        """Return the mean of the reported examples per second; None for a task that reports no such rate."""
        rates = [sample.rate for sample in self.samples if sample.rate is not None]
        return sum(rates) / len(rates) if rates else None

    @property
    def reported_s(self) -> float:
        """Return the seconds between the oldest and the newest of the stored progress reports."""
        return self.samples[-1].time - self.samples[0].time if self.samples else 0.0

    def pace(self) -> Optional[Pace]:
        """Return the mean times per step over the last ``RATE_WINDOW_S`` seconds.

        The result is None if the task's steps or waits are not known.
        """
        if len(self.samples) < 2:
            return None
        first, last = self.samples[0], self.samples[-1]
        steps = last.step - first.step
        if steps <= 0 or first.waited_s is None or last.waited_s is None:
            return None
        step_ms, wait_ms = (1000 * span / steps for span in (last.time - first.time, last.waited_s - first.waited_s))
        return Pace(max(0.0, step_ms - wait_ms), wait_ms)

    def status(self, straggler: bool = False) -> TaskStatus:
        """Return the task's status; ``straggler`` is the result of a comparison with other tasks.

        Fields that this record, the host's measurement or the task's report has under the same name come from there.
        """
        pace, usage = self.pace(), self.usage if self.process else {}
        return part_of(
            TaskStatus,
            self,
            self.plan,
            usage,
            self.progress,
            doing=self.doing if self.state == "starting" else None,
            restarts=self.attempt,
            step=None if self.plan.role == "ps" else self.progress.get("step"),
            wait_ms=None if pace is None else round(pace.wait_ms, 3),
            straggler=straggler,
        )


def record_of(plan: TaskPlan) -> TaskRecord:
    """Return the record of a task before its run begins."""
    return TaskRecord(plan, state="stopped", cause=SPARE) if plan.spare else TaskRecord(plan)


class Roster:
    """The records of all tasks of one run.

    ``processes`` counts, by role, the tasks that may have a process. With ``restart.together`` the workers share one
    count of failures.
    """

    def __init__(self, plan: RunPlan):
        self.by_name: Dict[str, TaskRecord] = {task.name: record_of(task) for task in plan.tasks}
        self.by_host: Dict[str, List[TaskRecord]] = {host: [] for host in plan.hosts}
        for task in self.by_name.values():
            self.by_host[task.plan.host].append(task)
        workers = CountedFailures()
        for task in self.by_name.values() if plan.restart_together else ():
            task.failed = workers if task.plan.role in TRAINERS else task.failed
        self.processes: Dict[str, int] = Counter()
        self._states = Counter(task.state for task in self.by_name.values())
        self._decisive = decisive_tasks(plan)
        self._undecided = set(self._decisive)

    def turn(self, task: TaskRecord, state: str, process: bool) -> None:
        """Set the state of a task.

        ``process`` is True where a process of the task may exist.
        """
        self._states[task.state] -= 1
        self._states[state] += 1
        self.processes[task.plan.role] += process - task.process
        task.state, task.process = state, process
        if state == "succeeded":
            self._undecided.discard(task.plan.name)
        elif state == "restarting" and task.plan.name in self._decisive:  # also with the others, after its success
            self._undecided.add(task.plan.name)

    def begin_attempt(self, task: TaskRecord) -> None:
        """Record that a task is ordered to start, and forget the task's earlier process."""
        self.turn(task, "starting", process=True)
        task.restart_at, task.recalled, task.progress, task.usage = None, False, {}, {}
        task.pid = task.started_at = task.exit_code = task.cause = task.frozen = task.quiet = task.doing = None

    def find(self, event: Union[Started, Advanced, Exited]) -> Optional[TaskRecord]:
        """Return the task of an event; None where the event is about an earlier process of the task."""
        task = self.by_name[event.task]
        return task if event.attempt == task.attempt and task.process else None

    def record_usage(self, event: Measured) -> None:
        """Record the resources that a host's tasks use."""
        for name, usage in event.tasks.items():
            if usage["attempt"] == self.by_name[name].attempt:
                self.by_name[name].usage = usage

    def record_signs(self, event: Signs) -> None:
        """Record what each task of a host is doing at present, if the task is starting."""
        for name, sign in event.tasks.items():
            if sign["attempt"] == self.by_name[name].attempt:
                self.by_name[name].doing = sign.get("doing") or None

    def number(self, *states: str) -> int:
        """Return the number of tasks in any of these states."""
        return sum(self._states[state] for state in states)

    @property
    def process_count(self) -> int:
        """Return the number of processes of the run that may exist."""
        return sum(self.processes.values())

    @property
    def have_succeeded(self) -> bool:
        """Return whether every task that decides the run's result has succeeded."""
        return not self._undecided

    @property
    def chief(self) -> Optional[TaskRecord]:
        """Return the chief, the task that saves; None where no task saves."""
        return next((task for task in self.by_name.values() if task.plan.chief), None)

    def live_tasks(self) -> List[TaskRecord]:
        """Return the tasks that may have a process."""
        return [task for task in self.by_name.values() if task.process]

    @property
    def is_starting(self) -> bool:
        """Return whether any task starts or will start."""
        return self.number("starting", "restarting") > 0 or any(task.recalled for task in self.by_name.values())

    def pending_tasks(self) -> List[TaskRecord]:
        """Return the tasks that have no process and will start one."""
        return [task for task in self.by_name.values() if task.state in ALIVE and not task.process]


def decisive_tasks(plan: RunPlan) -> Set[str]:
    """Return the names of the tasks that must all succeed for the run to succeed, by the key ``success``."""
    if plan.success not in (None, "chief", "all"):
        return {task.name for task in plan.tasks if task.name == plan.success}
    if plan.success == "all":
        return {task.name for task in plan.tasks if task.role in TRAINERS}
    chief_decides = (
        plan.success == "chief" or plan.judge == "outcome" or any(task.role == "chief" for task in plan.tasks)
    )
    return {task.name for task in plan.tasks if task.chief or (task.role == "worker" and not chief_decides)}
