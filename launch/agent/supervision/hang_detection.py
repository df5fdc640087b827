"""The detection of frozen tasks: their processes exist, but make no progress.

The verdict depends only on the tasks' signs of life (heartbeats) and on time. A task is frozen by one of these
criteria, where ``frozen_s`` is the key ``restart.frozen_s``:

    stopped       a signal has stopped the task for ``frozen_s``, as the kernel reports; also under ``command:``
    silent        the task has sent no sign of life for ``frozen_s``, and for five times its slowest recent step. The
                  bound is at least a minute in its first step, while it saves and while it ends, and at least five
                  minutes while it loads or builds its graph
    in its step   the task lives, and the step waits for this task. The step has lasted for ``frozen_s``, for five times
                  the task's slowest recent step, and for twice the usual whole step, waits included. A first step may
                  take five minutes
    saving        the task has been writing a checkpoint for a minute, and for ten times as long as its slowest recent
                  checkpoint took

The agent counts these seconds (``launch.agent.tasks.task_reports``). It counts fewer seconds than the clock while a
task waits for a processor, reads or writes.

A task can be ``in its step`` only where the task reports that the others wait for it, or that no task waits for
another. The count begins at the last report to the contrary: a task that waited for others then has the full time
again. No task is ``in its step`` while another task is stopped, silent or saving, a host is silent, or a ps is away.
The others then have a reason to wait, and the count begins again afterwards. If every worker is ``in its step`` at
once, the workers share something slow: each worker then has five minutes, as in a first step.

A process that a debugger holds (state ``t``) is not frozen: somebody holds it on purpose. If every process of the
run is stopped, somebody has paused the run.
"""

import os
import re
from dataclasses import replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set

from cluster.protocol.heartbeat import STEPS
from cluster.task import TRAINERS
from launch.agent.protocol.messages import Advanced, Event, Exited, Joined, Lost, Order, Signs, Stop
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord

SLOWER = 5.0  # the factor by which a step may exceed the task's slowest recent step
SLOWER_IN_ALL = 2.0  # and the mean step with all waiting, as where each host has little of a processor
SAVING_S, SAVING_SLOWER = 60.0, 10.0
FIRST_S = 300.0
LONGEST_GAP_S = 1.0  # between two events: for any longer time, the lead itself stood still
QUIET_S = 3.0  # others may wait for a task whose sign is this late
FRESH_S = 5.0  # older signs count no more
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_OF_PYTHON = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<")
_OURS = ("/cluster/", "/jobs/main.py")
_IDLE = ("/cluster/protocol/heartbeat.py", "/jobs/main.py")


class _Shared(NamedTuple):
    """The newest check for a step that lasts for all workers at once.

    ``holds`` is the result of the check, and ``at`` its time on the watch's clock.
    """

    holds: bool
    at: float


class Watch(SupervisionRule):
    """The rule that detects and kills frozen tasks."""

    def __init__(self, run: SupervisedRun):
        super().__init__(run)
        self._frozen_s = run.plan.frozen_s  # the shortest time without progress that is a hang; None for no check
        self._clock = 0.0  # seconds for which the lead itself has run
        self._last: Optional[float] = None
        self._settled_at = 0.0  # on ``_clock``
        self._ps_away: Set[str] = set()
        self._busy: Dict[str, float] = {}  # by task stopped, silent or saving: when its last sign came
        self._stopped: Dict[str, float] = {}
        self._owing: Dict[str, float] = {}  # tasks whose step lasts, and waits for them
        self._free_until: Dict[str, float] = {}  # the seconds counted of a step that did not wait for the task then
        self._shared: Optional[_Shared] = None

    def handle(self, event: Event, now: float) -> List[Order]:
        """Return the orders that kill frozen tasks, which then fail."""
        self._record_event(event, now)
        if not isinstance(event, Signs) or self._frozen_s is None or not self._run.trains:
            return []
        return self._look(event, self._frozen_s, now)

    def _record_event(self, event: Event, now: float) -> None:
        """Count the lead's own time, and record any reason that an event gives tasks to wait."""
        self._clock += min(LONGEST_GAP_S, max(0.0, now - (now if self._last is None else self._last)))
        self._last = now
        if isinstance(event, Exited) and event.task.startswith("ps:"):
            self._ps_away.add(event.task)
        elif isinstance(event, Advanced) and event.task in self._ps_away:
            self._ps_away.discard(event.task)
        elif not isinstance(event, (Joined, Lost)):
            return
        self._settled_at = self._clock

    def _look(self, event: Signs, frozen_s: float, now: float) -> List[Order]:
        """Return the orders that kill the frozen tasks of one host, by the signs of that host."""
        tasks = self._run.tasks
        self._ps_away = {name for name in self._ps_away if tasks[name].state in ("starting", "restarting")}
        if self._run.misses_a_host:
            self._settled_at = self._clock  # other tasks may wait for the tasks there
        orders: List[Order] = []
        for name, sign in event.tasks.items():
            task = tasks[name]
            self._note(name, sign)
            if sign["attempt"] != task.attempt or not task.process or task.recalled or task.frozen:
                continue
            why = self._reason(name, sign, frozen_s)
            if why is not None:
                orders.append(self._accuse(task, why, now))
        return orders

    def _note(self, name: str, sign: Mapping[str, Any]) -> None:
        stopped = sign["state"] in "Tt"
        saves = sign.get("phase") == "saving" and sign["phase_s"] >= QUIET_S
        busy = stopped or saves or sign["silent_s"] >= QUIET_S
        owes = sign.get("phase") in STEPS and sign["phase_s"] >= QUIET_S and bool(sign.get("owes"))
        for table, holds in ((self._stopped, stopped), (self._busy, busy), (self._owing, owes)):
            table.pop(name, None)
            if holds:
                table[name] = self._clock
        if busy:
            self._settled_at = self._clock
        counted_s = float(sign.get("counted_s") or 0.0)
        if sign.get("owes") is False:
            self._free_until[name] = counted_s
        elif counted_s < self._free_until.get(name, 0.0):  # another step
            self._free_until.pop(name, None)

    def _reason(self, name: str, sign: Mapping[str, Any], frozen_s: float) -> Optional[str]:
        if sign["state"] == "t":
            return None
        if sign["stopped_s"] >= frozen_s:
            paused = self._count_fresh(self._stopped) == self._run.roster.process_count > 1
            return None if paused else f"stopped by a signal for {sign['stopped_s']:.0f} s"
        phase, slowest_s = sign.get("phase"), float(sign.get("slowest_s") or 0.0)
        bound_s = max(frozen_s, SLOWER * slowest_s)
        if phase is not None and sign["silent_s"] >= max(bound_s, _MAY_BE_SILENT_S.get(phase, 0.0)):
            return f"no sign of life for {sign['silent_s']:.0f} s while {_WHILE[phase]}"
        if self._count_fresh(self._busy, but=name) or self._ps_away:
            return None
        phase_s, counted_s = float(sign.get("phase_s") or 0.0), float(sign.get("counted_s") or 0.0)
        if phase == "saving" and counted_s >= max(frozen_s, SAVING_S, SAVING_SLOWER * slowest_s):
            return f"it has been writing a checkpoint for {phase_s:.0f} s"
        settled_s = self._clock - self._settled_at
        lasts_s = min(counted_s - self._free_until.get(name, 0.0), settled_s)
        usual_s = float(sign.get("usual_s") or 0.0)
        if phase not in STEPS or not sign.get("owes") or lasts_s < max(bound_s, SLOWER_IN_ALL * usual_s):
            return None
        if lasts_s < FIRST_S and (phase == "first step" or self._is_shared()):
            return None
        return f"{'its first' if phase == 'first step' else 'one'} step has lasted {min(phase_s, settled_s):.0f} s"

    def _is_shared(self) -> bool:
        """Return whether the step of every worker lasts, and waits for that worker.

        The watch counts once a second. The result is False with fewer than two workers.
        """
        if self._shared is None or self._clock - self._shared.at >= 1.0:
            tasks = self._run.tasks.values()
            trainers = sum(bool(task.process) and task.plan.role in TRAINERS for task in tasks)
            self._shared = _Shared(1 < trainers <= self._count_fresh(self._owing), self._clock)
        return self._shared.holds

    def _count_fresh(self, table: Dict[str, float], but: Optional[str] = None) -> int:
        """Count a table's tasks other than ``but``, and remove entries that are too old."""
        for name in [name for name, at in table.items() if self._clock - at > FRESH_S]:
            del table[name]
        return len(table) - (but in table)

    def _accuse(self, task: TaskRecord, why: str, now: float) -> Stop:
        """Record a task as frozen, and return the order that kills the task.

        The order asks for the task's stack.
        """
        task.frozen, task.cause = why, f"frozen: {why}"
        self._run.incidents.begin("frozen", now, task.plan.name, cause=task.cause)
        return Stop(task.plan.name, 0.0, task.attempt, stack=True)


# Reading a large library from a slow disk stops all of Python, and so may a graph of a million nodes.
_MAY_BE_SILENT_S = {"starting": 300.0, "first step": 60.0, "saving": 60.0, "comparing": 60.0, "evaluating": 60.0,
                     "ending": 60.0}  # fmt: skip
_WHILE = {
    "starting": "it started", "first step": "it took its first step", "step": "it trained",
    "evaluating": "it measured a checkpoint",
    "saving": "it wrote a checkpoint", "comparing": "it compared", "ending": "it ended", "serving": "it served",
    "following": "it evaluated",
}  # fmt: skip


def as_failure(event: Exited, why: str) -> Exited:
    """Return ``event``, the end of a frozen task, with a cause that has ``why`` and the line of code where it hung."""
    where = place(event.stack or "")
    return replace(event, kind="frozen", cause=f"frozen: {why}{', ' + where if where else ''}")


def place(stack: str) -> Optional[str]:
    """Describe the line of code that a task was executing: ``in jobs/digits.py:31 (inputs)``.

    A line of the job's own code is preferred to a line of the launcher's code.

    Args:
      stack: the stacks of threads as faulthandler writes them, each with its innermost call first.
    """
    frames = [match for match in _FRAME.finditer(stack) if not any(part in match["file"] for part in _OF_PYTHON)]
    own = [frame for frame in frames if not any(part in frame["file"] for part in _OURS)]
    ours = [frame for frame in frames if not frame["file"].endswith(_IDLE)]
    for frame in (own or ours)[:1]:
        return f"in {_shorten(frame['file'])}:{frame['line']} ({frame['function']})"
    return None


def _shorten(file: str) -> str:
    """Return a path of our code from its package on, and any other path with its folder."""
    _, ours, tail = file.rpartition("/cluster/")
    return f"cluster/{tail}" if ours else os.sep.join(file.split(os.sep)[-2:])
