"""Find frozen tasks, whose processes exist and make no progress.

The verdict is a pure function of signs of life and time. Criteria for the culprit, where ``frozen_s`` is
``restart.frozen_s``:

    stopped       the kernel reports that a signal has stopped it, for ``frozen_s``; also for programs of others
    silent        its sign of life is late by ``frozen_s``, or by five times its slowest recent step; in its first
                  step, and while it saves or ends, by a minute; while it loads or builds its graph by five
    in its step   it lives, and the step that waits for it has lasted as long, and twice as long as steps usually do
                  with all waiting; its first step may take five minutes
    saving        a checkpoint has been written for a minute, or for ten times as long as the slowest recent one

The agent counts these seconds (``launch.agent.tasks.task_reports``): fewer than the clock's for a task that works.

A task can be ``in its step`` only where the task reports that the others wait for it, or that nobody waits for
anybody. The count begins at the last report to the contrary: a task that has waited for others has as long as they
had. No task is ``in its step`` while another task is stopped, silent or saving, a host is silent, or a ps is away.
The others then have cause to wait, and after it they have as long as before. If every worker were ``in its step`` at
once, the workers share something slow: each has five minutes, as in a first step.

A debugger that holds a process (state ``t``) does so on purpose: then the process is no culprit. Where every process
of the run is stopped, somebody has paused the run.
"""

import os
import re
from dataclasses import replace
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from cluster.protocol.heartbeat import STEPS
from cluster.task import TRAINERS
from launch.agent.protocol.messages import Advanced, Event, Exited, Joined, Lost, Signs, Stop
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.task_records import TaskRecord

SLOWER = 5.0  # a step that takes so many times its slowest recent step
SLOWER_IN_ALL = 2.0  # and so many times what steps take in all, as where each host has little of a processor
SAVING_S, SAVING_SLOWER = 60.0, 10.0
FIRST_S = 300.0
LONGEST_GAP_S = 1.0  # between two events: the lead itself stood still for what is more
QUIET_S = 3.0  # a task whose sign is so late may be what others wait for
FRESH_S = 5.0  # older signs say nothing
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<function>.+)$', re.MULTILINE)
_OF_PYTHON = ("/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "<")
_OURS = ("/cluster/", "/jobs/main.py")
_IDLE = ("/cluster/protocol/heartbeat.py", "/jobs/main.py")


class Culprit(NamedTuple):
    """A frozen task, and the reason for the verdict."""

    task: str
    why: str


class _Shared(NamedTuple):
    """The newest check for a step that lasts for all workers at once.

    ``holds`` is the result of the check, and ``at`` its time on the watch's clock.
    """

    holds: bool
    at: float


class Watch:
    """The lead's knowledge of tasks that may be frozen.

    Args:
      frozen_s: seconds without progress after which a task is frozen, at the least; None for never.
    """

    def __init__(self, frozen_s: Optional[float]):
        self._frozen_s = frozen_s
        self._clock = 0.0  # seconds that the lead has lived through
        self._last: Optional[float] = None
        self._settled_at = 0.0  # on that clock
        self._ps_away: Set[str] = set()
        self._busy: Dict[str, float] = {}  # stopped, silent or saving, so that others may wait: when its last sign came
        self._stopped: Dict[str, float] = {}
        self._owing: Dict[str, float] = {}  # those whose step lasts, and waits for them
        self._free_until: Dict[str, float] = {}  # the seconds counted of a step when it last did not wait for the task
        self._shared: Optional[_Shared] = None

    def record_event(self, event: Event, now: float) -> None:
        """Record the lead's own time, and any cause that an event gives tasks to wait."""
        self._clock += min(LONGEST_GAP_S, max(0.0, now - (now if self._last is None else self._last)))
        self._last = now
        if isinstance(event, Exited) and event.task.startswith("ps:"):
            self._ps_away.add(event.task)
        elif isinstance(event, Advanced) and event.task in self._ps_away:
            self._ps_away.discard(event.task)
        elif not isinstance(event, (Joined, Lost)):
            return
        self._settled_at = self._clock

    def culprits(
        self, event: Signs, tasks: Mapping[str, TaskRecord], processes: int, silent: Sequence[str] = ()
    ) -> List[Culprit]:
        """Return the frozen tasks of one host, as far as its signs show.

        Args:
          processes: the number of tasks that have a process.
          silent: hosts from which the lead receives nothing; other tasks may wait for the tasks there.
        """
        if self._frozen_s is None:
            return []
        self._ps_away = {name for name in self._ps_away if tasks[name].state in ("starting", "restarting")}
        if silent:
            self._settled_at = self._clock
        found: List[Culprit] = []
        for name, sign in event.tasks.items():
            task = tasks[name]
            self._note(name, sign)
            if sign["attempt"] != task.attempt or not task.process or task.recalled or task.frozen:
                continue
            why = self._reason(name, sign, self._frozen_s, processes, tasks)
            found += [Culprit(name, why)] if why else []
        return found

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

    def _reason(
        self, name: str, sign: Mapping[str, Any], frozen_s: float, processes: int, tasks: Mapping[str, TaskRecord]
    ) -> Optional[str]:
        if sign["state"] == "t":
            return None
        if sign["stopped_s"] >= frozen_s:
            paused = self._count_fresh(self._stopped) == processes > 1
            return None if paused else f"stopped by a signal for {sign['stopped_s']:.0f} s"
        phase, slowest_s = sign.get("phase"), float(sign.get("slowest_s") or 0.0)
        bound_s = max(frozen_s, SLOWER * slowest_s)
        if phase is not None and sign["silent_s"] >= max(bound_s, _MAY_BE_SILENT_S.get(phase, 0.0)):
            return f"no sign of life for {sign['silent_s']:.0f} s while {_WHILE[phase]}"
        if self._count_fresh(self._busy, but=name) or self._ps_away:
            return None
        phase_s, counted_s = float(sign.get("phase_s") or 0.0), float(sign.get("counted_s") or 0.0)
        if phase == "saving" and counted_s >= max(frozen_s, SAVING_S, SAVING_SLOWER * slowest_s):
            return f"writing a checkpoint for {phase_s:.0f} s"
        settled_s = self._clock - self._settled_at
        lasts_s = min(counted_s - self._free_until.get(name, 0.0), settled_s)
        usual_s = float(sign.get("usual_s") or 0.0)
        if phase not in STEPS or not sign.get("owes") or lasts_s < max(bound_s, SLOWER_IN_ALL * usual_s):
            return None
        if lasts_s < FIRST_S and (phase == "first step" or self._is_shared(tasks)):
            return None
        return f"in {'its first' if phase == 'first step' else 'one'} step for {min(phase_s, settled_s):.0f} s"

    def _is_shared(self, tasks: Mapping[str, TaskRecord]) -> bool:
        """Return whether the step of every worker lasts, and waits for that worker.

        The watch counts once a second. The result is False with fewer than two workers.
        """
        if self._shared is None or self._clock - self._shared.at >= 1.0:
            trainers = sum(bool(task.process) and task.plan.role in TRAINERS for task in tasks.values())
            self._shared = _Shared(1 < trainers <= self._count_fresh(self._owing), self._clock)
        return self._shared.holds

    def _count_fresh(self, table: Dict[str, float], but: Optional[str] = None) -> int:
        """Count a table's tasks other than ``but``, and remove entries that are too old."""
        for name in [name for name, at in table.items() if self._clock - at > FRESH_S]:
            del table[name]
        return len(table) - (but in table)


# Reading a large library from a slow disk holds Python up as a whole, and so may a graph of a million nodes.
_MAY_BE_SILENT_S = {"starting": 300.0, "first step": 60.0, "saving": 60.0, "comparing": 60.0, "evaluating": 60.0,
                     "ending": 60.0}  # fmt: skip
_WHILE = {
    "starting": "it started", "first step": "it took its first step", "step": "it trained",
    "evaluating": "it measured a checkpoint",
    "saving": "it wrote a checkpoint", "comparing": "it compared", "ending": "it ended", "serving": "it served",
    "following": "it evaluated",
}  # fmt: skip


def accuse(culprit: Culprit, task: TaskRecord, incidents: Incidents, now: float) -> Stop:
    """Record a task as frozen, and return the order that kills the task.

    The order asks for the task's stack.
    """
    task.frozen, task.cause = culprit.why, f"frozen: {culprit.why}"
    incidents.begin("frozen", now, culprit.task, cause=task.cause)
    return Stop(culprit.task, 0.0, task.attempt, stack=True)


def as_failure(event: Exited, why: str) -> Exited:
    """Turn the end of a task that was killed as frozen into a failure."""
    where = place(event.stack or "")
    return replace(event, kind="frozen", cause=f"frozen: {why}{', ' + where if where else ''}")


def place(stack: str) -> Optional[str]:
    """Describe the place where a task was: ``in jobs/digits.py:31 (inputs)``.

    A place in the job's own code goes before one in ours.

    Args:
      stack: threads as faulthandler writes them, each with its innermost call first.
    """
    frames = [match for match in _FRAME.finditer(stack) if not any(part in match["file"] for part in _OF_PYTHON)]
    own = [frame for frame in frames if not any(part in frame["file"] for part in _OURS)]
    ours = [frame for frame in frames if not frame["file"].endswith(_IDLE)]
    for frame in (own or ours)[:1]:
        return f"in {_shorten(frame['file'])}:{frame['line']} ({frame['function']})"
    return None


def _shorten(file: str) -> str:
    """Return a file of ours from its package on, any other with its folder."""
    _, ours, tail = file.rpartition("/cluster/")
    return f"cluster/{tail}" if ours else os.sep.join(file.split(os.sep)[-2:])
