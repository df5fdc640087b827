"""One incident: a problem of a run, its consequences, the actions taken, and the losses."""

import signal
from collections import deque
from dataclasses import dataclass, field
from typing import Deque, Generic, Iterator, List, Optional, Sequence, Set, TypeVar

from cluster.protocol.typed_json import part_of
from launch.agent.protocol.messages import Exited
from launch.agent.supervision.task_records import TaskRecord
from launch.status.incident_status import Consequence, Deed, IncidentStatus
from launch.status.task import name_of

CUT_SHORT = "cut-short"
KINDS = {
    "exception": "a Python exception ended the task",
    "signal": "a signal ended the task",
    "out-of-memory": "the task had no memory left, according to its limit, the kernel or an allocator",
    "lost-connection": "the task could not reach another task any more",
    "exit": "the task exited with an exit code, and nothing else shows the cause",
    "not-started": "a task's process, or a host's agent, could not be started",
    "frozen": "the task's process existed, but made no progress",
    "agent": "a host's agent ended",
    "host": "the lead received no more messages from a host",
    "gpu": "the kernel or the driver reported that a GPU failed",
    "checkpoint": "a checkpoint could not be written or read",
    "non-finite": "a loss or a gradient was not a number",
    CUT_SHORT: "the run had succeeded, and its evaluator was stopped before it ended by itself",
}
OF_A_HOST = ("host", "agent")
MOST_LINES, LONGEST_LINE, MOST_STACK = 12, 300, 4000  # characters; each status contains these texts
EARLIEST, NEWEST = 4, 8  # the kept entries of an incident's history
_TIMES = ("at_s", "restarted_s", "again_s", "lost_seconds")  # the status rounds them to milliseconds
Item = TypeVar("Item")


class History(Generic[Item]):
    """A bounded list: it keeps the first and the newest items, and drops the items in between.

    ``count`` is the number of all items that were added, the dropped ones included.

    Args:
      first: the number of earliest items that are never dropped.
      newest: the number of latest items that are kept.
    """

    def __init__(self, first: int = EARLIEST, newest: int = NEWEST):
        self._most_first = first
        self._first: List[Item] = []
        self._newest: Deque[Item] = deque(maxlen=newest)
        self.count = 0

    def add(self, item: Item) -> None:
        """Add an item; the history may drop an item in its middle to make room."""
        self.count += 1
        if len(self._first) < self._most_first:
            self._first.append(item)
        else:
            self._newest.append(item)

    def extend(self, other: "History[Item]") -> None:
        """Add all items of the history ``other``, and count the items that ``other`` has dropped."""
        for item in other:
            self.add(item)
        self.count += other.count - sum(1 for _ in other)

    def replace(self, old: Item, new: Item) -> None:
        """Replace the item ``old`` by ``new``; add ``new`` at the end if ``old`` was dropped."""
        for items in (self._first, self._newest):
            for place, item in enumerate(items):
                if item is old:
                    items[place] = new
                    return
        self.add(new)
        self.count -= 1

    def __iter__(self) -> Iterator[Item]:
        """Yield the kept items, oldest first."""
        yield from self._first
        yield from self._newest


@dataclass
class Incident:
    """One incident of a live run.

    ``launch.status.incident_status`` documents the fields that the status shows. Times are seconds since the run
    began, on the lead's clock. ``task`` is None where the incident concerns no task. For a program that reports no
    progress, ``restarted_s`` is the last field that becomes known. ``lost_steps`` and ``resumed_from`` are known once
    training has gone back, or ``again_s`` is known.
    """

    number: int
    kind: str
    at_s: float
    task: Optional[str] = None
    role: Optional[str] = None
    index: Optional[int] = None
    host: Optional[str] = None
    attempt: Optional[int] = None
    step: Optional[int] = None
    cause: Optional[str] = None
    error: Optional[str] = None
    exit_code: Optional[int] = None
    log: Optional[str] = None
    lines: List[str] = field(default_factory=list)
    stack: Optional[str] = None
    open: bool = True
    restarted_s: Optional[float] = None
    again_s: Optional[float] = None
    resumed_from: Optional[int] = None
    lost_steps: Optional[int] = None
    lost_seconds: Optional[float] = None
    followed: "History[Consequence]" = field(default_factory=History)
    did: "History[Deed]" = field(default_factory=History)
    tried: int = 1  # the number of the attempt, as ``restart.max`` counts
    advances: int = 0  # the count of newer steps when the task was restarted

    @property
    def title(self) -> str:
        """Return the task and its host, as ``worker:1@gpu02``; without a task, the host; without both, the kind."""
        if self.task is None:
            return self.host or self.kind
        return f"{self.task}@{self.host}"

    @property
    def line(self) -> str:
        """Return the incident as one line, such as ``gpu02: no message for 15 s``."""
        return f"{self.title}: {self.cause or self.kind}"

    def concern(self, task: TaskRecord) -> None:
        """Record ``task`` and its present attempt as the subject of the incident."""
        self.role, self.index, self.host = task.plan.role, task.plan.index, task.plan.host
        self.attempt, self.tried, self.log = task.attempt, task.failures + 1, task.log

    def take_over(self, earlier: "Incident") -> None:
        """Take over the number and history of ``earlier``, which turned out to be a consequence of this incident."""
        self.number, earlier.open = earlier.number, False
        self.followed.add(earlier.as_consequence())
        self.followed.extend(earlier.followed)
        self.did.extend(earlier.did)

    def learn(self, end: Exited) -> None:
        """Add the facts that the end of the task's process shows."""
        self.exit_code, self.error = end.exit_code, end.error
        self.lines = [line[:LONGEST_LINE] for line in end.lines[-MOST_LINES:]]
        self.stack = None if end.stack is None else end.stack[-MOST_STACK:]

    def status(self) -> IncidentStatus:
        """Return the incident as the status shows it."""
        times = {
            name: value if value is None else round(value, 3) for name, value in vars(self).items() if name in _TIMES
        }
        return part_of(
            IncidentStatus,
            times,
            self,
            signal=signal_name(self.exit_code),
            lines=list(self.lines),
            followed=list(self.followed),
            followed_count=self.followed.count,
            did=list(self.did),
        )

    def as_consequence(self) -> Consequence:
        """Return the incident as a consequence of another incident."""
        return part_of(Consequence, self, at_s=round(self.at_s, 3))


def restore(status: IncidentStatus) -> Incident:
    """Create a closed incident from its status: no supervisor follows this incident any more."""
    task = None if status.role is None else name_of(status.role, status.index)
    incident = part_of(Incident, status, task=task, open=False, followed=History(), did=History())
    for consequence in status.followed:
        incident.followed.add(consequence)
    for deed in status.did:
        incident.did.add(deed)
    incident.followed.count = status.followed_count
    return incident


def signal_name(exit_code: Optional[int]) -> Optional[str]:
    """Return the name of the signal that an exit code stands for: ``SIGKILL`` for -9; None for no signal."""
    if exit_code is None or exit_code >= 0:
        return None
    names = {int(each): each.name for each in signal.Signals}
    return names.get(-exit_code, f"signal {-exit_code}")


class Returns:
    """The incidents of hosts whose return makes tasks restart; each incident includes the losses of these restarts.

    A task that ends late restarts late. The other tasks may have taken steps by then, and the late restart loses these
    steps, too.
    """

    def __init__(self) -> None:
        self._expected: List[Incident] = []  # until a task starts
        self._counted: List[Incident] = []  # afterwards, until a step is newer than any before
        self._tasks: Set[str] = set()  # that restart one by one, until each starts

    def expect(self, incident: Incident, tasks: Sequence[str]) -> None:
        """Expect tasks to start because of ``incident``; ``tasks`` are the tasks that restart one by one."""
        self._expected.append(incident)
        self._tasks.update(tasks)

    def clear(self) -> None:
        """Stop expecting starts of the tasks that restart one by one."""
        self._tasks.clear()

    def record_start(self, task: str, advances: int) -> None:
        """Record the start of a task's process; ``advances`` counts how often training has reached a newer step."""
        awaited, self._expected = self._expected, []
        self._counted += awaited
        for incident in self._counted if task in self._tasks else awaited:
            incident.advances = advances
        self._tasks.discard(task)

    def counted(self, advances: int) -> List[Incident]:
        """Return the incidents whose losses the present step may change; ``advances`` is as in ``record_start``."""
        found = self._counted
        if not self._tasks:
            self._counted = [each for each in found if each.advances >= advances]
        return found
