"""The status of a run as its lead publishes it: in files, to receivers of the key ``on``, and to ``watch``.

status.json     the newest status, as ``status --json`` prints it
report.json     the incidents of the run; complete at its end

The fields of report.json:

run, name, state, cause      as in ``status --json``
began, seconds               the start of the run, in seconds since 1970 on the lead's clock, and its duration so far
global_step, steps, checkpoint_step, lost_steps, lost_seconds, effective, cause_incident, incidents
                             as in ``status --json``
incident_count               the number of all incidents; of many, ``incidents`` has the first and the newest
words                        the incidents as lines for people
"""

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any, AsyncIterator, Callable, Dict, Optional

from cluster.protocol.typed_json import to_values
from launch.agent.checkpoints.replication import Replicas
from launch.agent.hooks.hooks import Hooks
from launch.agent.protocol.links import now
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.supervisor import Supervisor
from launch.status import incident_status
from launch.status.run import ENDED, RunStatus, utc
from launch.status.task import TaskStatus

PUBLISH_S = 0.25
STILL_S = 1.0  # between two looks at a status without news
PUBLISH_SHARE = 0.1  # of a processor's time: with thousands of tasks, the lead publishes less often
FILE = "report.json"
LARGE = ("incidents", "history")  # fields of a status: log lines, and the points of a curve
SAME = (
    "run", "name", "state", "cause", "global_step", "steps", "checkpoint_step", "lost_steps", "lost_seconds",
    "effective", "cause_incident", "incidents",
)  # fmt: skip


def report(status: RunStatus, began: float, seconds: float) -> Dict[str, Any]:
    """Return the report of a run with this ``status``; ``began`` and ``seconds`` are the fields of report.json."""
    incidents, values = status.incidents, to_values(status)
    return {
        **{key: values[key] for key in SAME},
        "began": began,
        "seconds": round(seconds, 3),
        "incident_count": incidents[-1].number if incidents else 0,
        "words": incident_status.lines(incidents),
    }


@dataclass(frozen=True)
class _Beginning:
    """The field of the report that the next agent reads."""

    began: float


class ReportFile:
    """The file report.json, which is written when its content has changed.

    ``began`` is the start of the run by ``clock``, in seconds since 1970.
    """

    def __init__(self, folder: RunFolder, clock: Callable[[], float]):
        self._folder, self._clock = folder, clock
        earlier = folder.read_record(FILE, _Beginning)  # from the earlier agent, where this agent was restarted
        self.began = clock() if earlier is None else earlier.began
        self._written: Any = None

    def note(self, status: RunStatus, final: bool) -> None:
        """Write the report if an incident or the run's state has changed, and at the run's end (``final``)."""
        news = (status.state, status.cause, status.incidents)
        if final or news != self._written:
            seconds = self._clock() - self.began
            self._written = news if self._folder.note(FILE, report(status, self.began, seconds)) else None


class Publication:
    """The status of one run, which is published after each change.

    Args:
      durable: whether a change of the run's state must survive a power cut, since a boot starts the next lead.
    """

    def __init__(self, run: Supervisor, folder: RunFolder, replicas: Replicas, hooks: Hooks, durable: bool):
        self._run, self._folder, self._durable = run, folder, durable
        self._replicas, self._hooks = replicas, hooks
        self._report = ReportFile(folder, time.time)
        self._published: Optional[RunStatus] = None
        self._is_written = True  # whether the status file has the published status: a disk may have been full
        self._ended_at: Optional[float] = None
        self._publish_at = 0.0
        self._has_news = False  # since the last look at the status
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()

    def status(self) -> RunStatus:
        """Return the run's status now."""
        return self._timed(self._known())

    def note_news(self) -> None:
        """Record that an event may have changed the status, so that ``look`` soon compares it."""
        self._has_news = True

    def look(self) -> None:
        """Publish the status if a publication is due and the status has changed."""
        if now() >= self._publish_at + (0.0 if self._has_news else STILL_S):
            self._publish(final=False)

    def complete(self) -> None:
        """Publish the status of a run that has ended."""
        self._publish(final=True)

    def end(self) -> None:
        """Publish the last status, and let every ``watch`` end."""
        self._publish(final=True)
        self._ended.set()

    async def watch(self) -> AsyncIterator[Dict[str, Any]]:
        """Yield the status, then its changes: {"run": …, "tasks": {name: …}}; last {"end": state}.

        Each item has all fields of the run, but the large ones only when they have changed.
        """
        sent: Dict[str, TaskStatus] = {}
        sent_parts: Dict[str, Any] = {}
        while True:
            over = self._ended.is_set()
            status = self.status()
            tasks = {task.name: task for task in status.tasks}
            changed = {name: to_values(task) for name, task in tasks.items() if sent.get(name) != task}
            parts = {name: getattr(status, name) for name in LARGE}
            same = ["tasks", *(name for name in LARGE if parts[name] is sent_parts.get(name))]
            run = to_values(replace(status, tasks=[]))
            yield {"run": {key: value for key, value in run.items() if key not in same}, "tasks": changed}
            sent, sent_parts = tasks, parts
            if over:
                yield {"end": self._run.state.label}
                return
            await _either(self._changed.wait(), self._ended.wait())

    def _known(self) -> RunStatus:
        return self._run.status(replicas=dict(self._replicas.steps), hook_problem=self._hooks.problem)

    def _timed(self, status: RunStatus) -> RunStatus:
        moment = time.time()
        if self._ended_at is None and self._run.state.label in ENDED:
            self._ended_at = moment
        ended = None if self._ended_at is None else utc(self._ended_at)
        return replace(status, started=utc(self._report.began), ended=ended, updated=utc(moment))

    def _publish(self, final: bool) -> None:
        self._has_news = False
        began, known = time.process_time(), self._known()
        changed = final or known != self._published
        if changed:
            is_news = self._durable and (self._published is None or known.state != self._published.state)
            self._published = known
            status = self._timed(known)
            self._write(status, is_news or not self._is_written)
            self._hooks.look(status, self._run.state.was_up)
            self._report.note(status, final)
            self._changed.set()
            self._changed.clear()
        elif not self._is_written:
            self._write(self._timed(known), durable=True)
        pause_s = (time.process_time() - began) / PUBLISH_SHARE
        self._publish_at = now() + (max(PUBLISH_S, pause_s) if changed else pause_s)

    def _write(self, status: RunStatus, durable: bool) -> None:
        self._is_written = self._folder.note("status.json", to_values(status), durable and self._durable)


async def _either(*waits: Any) -> None:
    """Wait until one of the waits is over."""
    pending = {asyncio.ensure_future(wait) for wait in waits}
    _, rest = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    for wait in rest:
        wait.cancel()
