"""Rule: show in the status which tasks do nothing, and which workers remain once another worker has succeeded.

Each host measures for how long its tasks have done nothing (``launch.agent.tasks.idleness``), and reports the tasks
that have done nothing for ``quiet_s``. This rule decides which of these tasks the status names. It gives no orders.

    a worker or the chief is named      in a program under ``command:``, even while others work. Workers of a job wait
                                        for each other, as for a long evaluation. So they are named only if no worker
                                        works; ``hang_detection`` finds a single frozen task
    a ps or an evaluator is named       only if no worker works: otherwise it may simply wait for the workers
    no further task is named            before the run trains, and between two formations of an elastic run; also while
                                        a task restarts or a host is silent, since others may wait for it
    names remain unchanged              once the run has its result: the status shows what stood still before the end

A task is no longer named when it works again, or when its next attempt starts.

The workers of a program under ``command:`` end by themselves. ``Remaining`` names the workers that are still there
``REMAIN_S`` seconds after another worker has exited with code 0.
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.task import ROLES, TRAINERS
from launch.agent.protocol.messages import Event, Measured, Order
from launch.agent.supervision.hang_detection import place
from launch.agent.supervision.run_state import SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord
from launch.status.run import ALIVE, Remaining
from launch.status.task import QuietStatus

LOOK_S = 0.5  # between two decisions: a run may have thousands of tasks, and events all the time
REMAIN_S = 10.0  # the workers of a program end together within seconds
SAME_S = 5.0  # two measurements of one standstill differ by less


class _Report(NamedTuple):
    """The newest report of a task that does nothing."""

    attempt: int
    quiet: QuietStatus


class Quietness(SupervisionRule):
    """The rule that names the tasks of one run that do nothing."""

    def __init__(self, run: SupervisedRun):
        super().__init__(run)
        self._reports: Dict[str, _Report] = {}
        self._left: Dict[str, float] = {}  # {worker that has succeeded: when}
        self._look_at = 0.0
        self._has_named = False

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record the measurements of a host, and name the tasks that do nothing; return no orders."""
        if isinstance(event, Measured):
            for name, usage in event.tasks.items():
                self._take(name, usage, now)
        if self._run.state.is_closing:
            self._run.remaining = None
        elif self._run.trains and now >= self._look_at:
            self._look_at = now + LOOK_S
            self._run.remaining = self._remaining(now)
            if self._reports or self._has_named:
                self._name()
        return []

    def _take(self, name: str, usage: Mapping[str, Any], now: float) -> None:
        before, measured = self._reports.pop(name, None), usage.get("quiet")
        if measured is None or usage["attempt"] != self._run.tasks[name].attempt:
            return
        quiet = self._status(measured, now)
        if before is not None and before.attempt == usage["attempt"] and _is_same(before.quiet, quiet):
            quiet = before.quiet  # so that the status changes with what happens only
        self._reports[name] = _Report(usage["attempt"], quiet)

    def _status(self, measured: Mapping[str, Any], now: float) -> QuietStatus:
        at_s, line_s, stack = self._run.incidents.run_time(now), measured.get("line_s"), measured.get("stack")
        return QuietStatus(
            at_s=round(at_s - measured["for_s"], 1),
            line=measured.get("line"),
            line_at_s=None if line_s is None else round(at_s - line_s, 1),
            where=measured.get("held") or place(stack or ""),
            stack=stack,
        )

    def _name(self) -> None:
        """Name the tasks that do nothing, and no others."""
        tasks = self._run.tasks.values()
        quiet = {task.plan.name for task in tasks if self._is_quiet(task)}
        works = any(task.process and task.plan.role in TRAINERS and task.plan.name not in quiet for task in tasks)
        waits = self._run.misses_a_host or self._run.roster.number("restarting") > 0
        roles = () if waits else self._named_roles(works)
        for task in tasks:
            is_known = waits and task.quiet is not None  # a link that breaks for a moment is no sign of work
            is_named = task.plan.name in quiet and (task.plan.role in roles or is_known)
            task.quiet = self._reports[task.plan.name].quiet if is_named else None
        self._has_named = any(task.quiet for task in tasks)

    def _named_roles(self, works: bool) -> Sequence[str]:
        """Return the roles whose tasks are named; ``works`` is True where the chief or any worker works."""
        if not works:
            return ROLES
        return TRAINERS if self._run.plan.judge == "exit" else ()

    def _is_quiet(self, task: TaskRecord) -> bool:
        report = self._reports.get(task.plan.name)
        ends = task.recalled or task.frozen is not None
        return report is not None and report.attempt == task.attempt and task.process and not ends

    def _remaining(self, now: float) -> Optional[Remaining]:
        """Return the workers that are still there, a while after the first has exited with code 0; None before."""
        if self._run.plan.judge != "exit" or not self._run.roster.number("succeeded"):
            return None
        workers = [task for task in self._run.tasks.values() if task.plan.role in TRAINERS]
        left = [task.plan.name for task in workers if task.state == "succeeded"]
        self._left = {name: self._left.get(name, now) for name in left}
        there = [task.plan.name for task in workers if task.state in ALIVE]
        if not left or not there or now - min(self._left.values()) < REMAIN_S:
            return None
        return Remaining(round(self._run.incidents.run_time(min(self._left.values())), 1), left, there)


def _is_same(one: QuietStatus, other: QuietStatus) -> bool:
    """Return whether two measurements show one standstill with the same last line."""
    times = [(one.at_s, other.at_s), (one.line_at_s or 0.0, other.line_at_s or 0.0)]
    same = all(abs(first - second) < SAME_S for first, second in times)
    return same and (one.line, one.where) == (other.line, other.where)
