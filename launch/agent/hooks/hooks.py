"""The hooks of one run: they derive events from the run's statuses, and deliver each event once."""

from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set

from cluster.protocol.outcome import WORK
from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import part_of
from launch.agent.hooks import outbox
from launch.agent.hooks.outbox import Ledger, Outbox
from launch.agent.hooks.receivers import Receiver, Result, receivers, try_once
from launch.agent.protocol.links import now
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from launch.status.hook_event import QUIET, REFORMED, SAVED, STARTED, STRAGGLER, HookEvent
from launch.status.run import ALIVE, ENDED, FormationStatus, RunStatus, quiet_tasks
from launch.status.task import QuietStatus, TaskStatus, name_of


class Hooks(Outbox):
    """The events of a run: derived from its statuses, and delivered once to each receiver.

    Args:
      request: the request to this agent, which has the receivers and the values of secrets.
      restore_code: restores missing or changed files of this agent's own code.
    """

    def __init__(self, request: RunRequest, folder: RunFolder, restore_code: Callable[[], None]):
        chief = next((task.name for task in request.tasks if task.chief), "")
        found = receivers(request.hooks, request.secrets, folder.home(request.folder, chief) / WORK)
        super().__init__(found, self._try_once, self._record)
        self._folder, self._restore_code = folder, restore_code
        self._secrets = list(request.secrets.values())
        before = outbox.read_ledger(folder) if found else Ledger()
        self._events = Events(before.raised)
        for delivery in before.pending:
            if delivery.receiver in range(len(found)):  # else the ledger is damaged
                self.begin(delivery)

    def look(self, status: RunStatus, was_up: bool) -> None:
        """Derive the events since the last call from ``status``, and start to deliver them.

        Args:
          was_up: whether every task has been up at some time.
        """
        events = self._events.look(status, was_up, now()) if self._receivers else []
        if events:
            self.add(events)
            self._record()  # before the first try, which starts when the lead waits next

    async def _try_once(self, receiver: Receiver, event: HookEvent) -> Result:
        if receiver.is_url:
            self._restore_code()
        return await try_once(receiver, event, self._secrets)

    def _record(self) -> None:
        outbox.write_ledger(self._folder, Ledger(tuple(sorted(self._events.raised)), self.pending))


STRAGGLES_S = 30.0  # a worker must be slow this long for an event: many are slow for a moment
WELL_S = 600.0  # and then not slow for this long, before the next event
LONGEST = 2000  # characters of a text: a cause may contain a program's output


class Events:
    """A detector of the events of one run.

    ``raised`` names the events that must not be reported again; a restarted agent begins with these names.
    """

    def __init__(self, raised: Iterable[str] = ()):
        self.raised: Set[str] = set(raised)
        self._formation = 0
        self._slow_since: Dict[str, float] = {}  # {slow worker: since when}
        self._well_since: Dict[str, float] = {}  # {worker that was slow: since when it is not}

    def look(self, status: RunStatus, was_up: bool, now: float) -> List[HookEvent]:
        """Return the events since the last call.

        Args:
          was_up: whether every task has been up at some time.
        """
        return [
            *(self._once(STARTED, status) if was_up else ()),
            *self._saved(status),
            *self._reformed(status),
            *self._stragglers(status, now),
            *self._quiet(status),
            *(self._once(status.state, status) if status.state in ENDED else ()),
        ]

    def _is_new(self, name: str) -> bool:
        new = name not in self.raised
        self.raised.add(name)
        return new

    def _once(self, event: str, status: RunStatus) -> Iterator[HookEvent]:
        if self._is_new(event):
            yield of_run(event, status)

    def _saved(self, status: RunStatus) -> Iterator[HookEvent]:
        """Yield an event for a new checkpoint; of several since the last call, for the newest."""
        step = status.checkpoint_step
        if step is not None and self._is_new(f"{SAVED} {step}"):
            self.raised -= {name for name in self.raised if name.startswith(f"{SAVED} ") and name != f"{SAVED} {step}"}
            key = f"/{step}/{status.updated}"  # a run that went back may save this step again
            yield _event(SAVED, f"has a checkpoint of step {step}", status, key)

    def _reformed(self, status: RunStatus) -> Iterator[HookEvent]:
        """Yield an event for a new formation that trains."""
        formed = status.formation
        if formed is None or formed.number == self._formation or formed.forming or not _trains(status):
            return
        self._formation = formed.number
        yield of_formation(status)

    def _stragglers(self, status: RunStatus, now: float) -> Iterator[HookEvent]:
        slow = {_slow(task): task for task in status.tasks if task.straggler}
        self._slow_since = {name: self._slow_since.get(name, now) for name in slow}
        for name, task in slow.items():
            if now - self._slow_since[name] >= STRAGGLES_S and self._is_new(name):
                yield of_straggler(task, status)
        well = [name for name in self.raised if name.startswith(STRAGGLER) and name not in slow]
        self._well_since = {name: self._well_since.get(name, now) for name in well}
        self.raised -= {name for name, since in self._well_since.items() if now - since >= WELL_S}

    def _quiet(self, status: RunStatus) -> Iterator[HookEvent]:
        """Yield one event for a standstill, however many tasks have part in it."""
        quiet = quiet_tasks(status)
        if not quiet:
            self.raised.discard(QUIET)
        elif status.state not in ENDED and self._is_new(QUIET):
            yield of_quiet(quiet, status)


def _slow(task: TaskStatus) -> str:
    return f"{STRAGGLER} {task.name}"


def _trains(status: RunStatus) -> bool:
    return not any(task.state in ALIVE and task.state != "running" for task in status.tasks)


def of_run(event: str, status: RunStatus) -> HookEvent:
    """Return the event that a run has started, or ended."""
    if event == STARTED:
        return _event(event, f"is up: {quantity(len(status.tasks), 'task')}", status)
    why = f": {status.cause}" if status.cause else ""
    at = f" at step {status.global_step}" if status.global_step is not None and not why else ""
    what = "was stopped" if event == "stopped" else f"has {event}"
    return _event(event, f"{what}{at}{why}", status, cause=_cut(status.cause), **_about(status))


def of_formation(status: RunStatus) -> HookEvent:
    """Return the event that an elastic run trains again, with other tasks than before."""
    formed = status.formation or FormationStatus()
    rest = f"; without {', '.join(formed.without)}" if formed.without else ""
    lost = [f"{each.host}: {each.cause}" for each in status.incidents if each.host in formed.without]
    about = {"cause": _cut(lost[-1]) if lost else None, "without": list(formed.without)}
    what = f"trains again, with {formed.tasks}{rest}"
    return _event(REFORMED, what, status, f"/{formed.number}/{status.updated}", **about)


def of_straggler(task: TaskStatus, status: RunStatus) -> HookEvent:
    """Return the event that a worker is slow."""
    waits = f"the other workers wait {100 * (status.waiting_share or 0.0):.0f} % of each step"
    lags = f"{task.own_ms:.1f} ms of own work per step; {waits}"
    if status.waiting_share is None:  # of a program under ``command:``
        lags = "fewer examples per second than the other workers"
    what = f"has a slow worker: {task.title}, {lags}"
    return _of_task(STRAGGLER, what, status, task)


def of_quiet(quiet: Sequence[TaskStatus], status: RunStatus) -> HookEvent:
    """Return the event that the tasks in ``quiet`` make no progress.

    The event's text describes the first task, and counts the others.
    """
    first, more = quiet[0], len(quiet) - 1
    found = first.quiet or QuietStatus()
    where = f", {found.where}" if found.where else ""
    line = "no line yet" if found.line is None else f"last line: {found.line}"
    others = f"; and {quantity(more, 'more task')}" if more else ""
    what = f"stands still: {first.title}{where}, {line}{others}"
    return _of_task(QUIET, what, status, first)


def _of_task(event: str, what: str, status: RunStatus, task: TaskStatus) -> HookEvent:
    key = f"/{task.name}/{status.updated}"
    return _event(event, what, status, key, task=task.name, host=task.host, log=task.log)


def _event(event: str, what: str, status: RunStatus, key: str = "", **about: Any) -> HookEvent:
    """Return an event with further fields; ``key`` distinguishes its id from other events of its kind."""
    return part_of(
        HookEvent,
        {"cause": None, **about},
        status,
        id=f"{status.run}/{event}{key}",
        event=event,
        text=_cut(f"{status.run} {what}") or "",
        step=status.global_step,
        metrics=dict(status.metrics),
        time=status.updated or "",
    )


def _cut(text: Optional[str]) -> Optional[str]:
    return text if text is None or len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"


def _about(status: RunStatus) -> Dict[str, Any]:
    """Return the task and the host of the incident that has failed a run; empty without an incident."""
    found = next((each for each in status.incidents if each.number == status.cause_incident), None)
    if found is None:
        return {}
    task = None if found.role is None else name_of(found.role, found.index)
    return {"task": task, "host": found.host, "log": found.log}
