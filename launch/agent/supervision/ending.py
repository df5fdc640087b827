"""The end of a run and of its tasks: success, the deadline, and the order in which tasks end once the result is known.

A job's task reports its own success. A program under ``command:`` succeeds if it exits with code 0 without an order.

Workers end first, then the ps: a worker that closes its session needs its ps. After a success the tasks have
``leave_s`` seconds to exit by themselves. Meanwhile the lead ends only tasks that never exit by themselves: the
evaluator of a job, and the ps of a program once all other tasks have exited. A job's evaluator then has ``leave_s``
to finish its measurement. A program's evaluator counts as finished only when it exits.
"""

import signal
from dataclasses import replace
from typing import List, Mapping, Optional, Set

from launch.agent.protocol.messages import End, Event, Exited, Order, Stop
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.incident import CUT_SHORT
from launch.agent.supervision.run_state import Phase, SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord

EVALUATOR, WORKERS, PS = "evaluator", "workers", "ps"  # groups that end together; the workers are all but the ps


class Success(SupervisionRule):
    """The rule that marks a run as up once all tasks are up, and closes it once the decisive tasks have succeeded."""

    def __init__(self, run: SupervisedRun, formations: Formations):
        super().__init__(run)
        self._formations = formations

    def handle(self, event: Event, now: float) -> List[Order]:
        """Close the run if it has succeeded; the rule ``Ending`` then ends the tasks."""
        if self._run.trains and not self._run.state.was_up and self._formations.is_up:
            self._run.state.was_up = True
        if self._run.state.phase in (Phase.TRAINING, Phase.REFORMING) and self._run.roster.have_succeeded:
            self._run.close("succeeded", None, now)
        return []


class Deadline(SupervisionRule):
    """The rule that stops the run ``deadline_s`` seconds after its start; the time of restarts counts, too.

    Args:
      resume: the command that continues the stopped run.
    """

    def __init__(self, run: SupervisedRun, resume: str):
        super().__init__(run)
        self._resume = resume

    def handle(self, event: Event, now: float) -> List[Order]:
        """Stop the run in an orderly way once its deadline has passed."""
        deadline_s = self._run.plan.deadline_s
        if deadline_s is None or self._run.state.is_closing or self._run.incidents.run_time(now) < deadline_s:
            return []
        return self._run.stop(f"deadline_s of {deadline_s:.10g} s has passed; continue with `{self._resume}`", now)


class Ending(SupervisionRule):
    """The rule that ends the tasks, and then the run, once the run's result is known."""

    def __init__(self, run: SupervisedRun):
        super().__init__(run)
        self._plan = run.plan
        self._ordered: Set[str] = set()  # names of the tasks that were ordered to end
        self._group: Optional[str] = None  # the group that was ordered to end last

    def handle(self, event: Event, now: float) -> List[Order]:
        """Return the orders that end the tasks, one group after the other, and then the run."""
        run = self._run
        if run.state.phase is not Phase.CLOSING:
            return []
        if run.state.result == "failed" and run.incidents.blame is not None:
            run.state.cause = run.incidents.blame.line  # another incident may now be known as the first cause
        if not run.roster.process_count:
            run.state.turn(Phase.ENDED)
            return [End(run.state.label)]
        return [] if run.saving.is_pending(now) else self._end_group(self._due(run.roster.processes, now))

    @property
    def _succeeded(self) -> bool:
        return self._run.state.result == "succeeded"

    def _end_group(self, group: Optional[str]) -> List[Order]:
        """Return the orders that end a group's tasks, once per group."""
        if group == self._group:
            return []
        self._group = group
        tasks = [task for task in self._run.tasks.values() if task.process and self._is_of(task, group)]
        chosen = [task for task in tasks if not self.was_ordered(task)]
        self._ordered.update(task.plan.name for task in chosen)
        grace_s = max(self._plan.leave_s, self._plan.grace_s) if group == EVALUATOR else self._plan.grace_s
        return [Stop(task.plan.name, grace_s, task.attempt) for task in chosen]

    def was_ordered(self, task: TaskRecord) -> bool:
        """Return whether a task was ordered to end because the run ends."""
        return task.plan.name in self._ordered

    def has_succeeded(self, task: TaskRecord, event: Exited, restarts: bool) -> bool:
        """Return whether ``event``, the end of a task's process, shows that the task has succeeded.

        ``restarts`` is True if the task was ordered to end so that it restarts. An evaluator that ends for that reason
        has not succeeded, although its process exits with code 0.
        """
        if restarts and task.plan.role == EVALUATOR:
            return False
        ordered = self.was_ordered(task) or task.recalled or task.frozen is not None
        return means_success(event, self._plan.judge, ordered)

    def record_late_exit(self, task: TaskRecord, event: Exited, now: float) -> None:
        """Record that a task ended without success while the run was already ending."""
        missed = self._missed_work(task, event, now)
        if missed is not None:
            task.cause = missed.cause
            self._run.incidents.record_exit(missed, now)
        elif self._run.state.result == "failed" and not self.was_ordered(task):
            self._run.incidents.record_late_exit(event, now)

    def _missed_work(self, task: TaskRecord, event: Exited, now: float) -> Optional[Exited]:
        """Return an evaluator's end as a failure, where the evaluator missed work after the run had succeeded.

        A job's evaluator ends by SIGTERM only when it is not measuring.
        """
        if not self._succeeded or task.plan.role != EVALUATOR:
            return None
        if not self.was_ordered(task):
            return event
        if self._plan.judge != "exit" and event.exit_code == -signal.SIGTERM:
            return None
        given = f"stopped {now - self._run.closed_at:.0f} s after the run had succeeded, before it ended by itself"
        measured = "" if self._plan.judge == "exit" else f" (last measured step: {task.progress.get('step') or 0})"
        return replace(event, kind=CUT_SHORT, cause=f"{given}{measured}; a larger leave_s gives it more time")

    def _due(self, processes: Mapping[str, int], now: float) -> Optional[str]:
        """Return the group that must end now; None while all tasks may still exit by themselves.

        ``processes`` is the number of processes by role.
        """
        first = WORKERS if any(number for role, number in processes.items() if role != "ps") else PS
        if not self._succeeded or now >= self._run.closed_at + self._plan.leave_s:
            return first
        if self._plan.judge == "outcome":
            return EVALUATOR  # the ps of a job exit by themselves, a job's evaluator does not
        return PS if first == PS else None

    @staticmethod
    def _is_of(task: TaskRecord, group: Optional[str]) -> bool:
        role = task.plan.role
        return role == group if group == EVALUATOR else (role == "ps") == (group == PS)


def means_success(event: Exited, judge: str, ordered: bool) -> bool:
    """Return whether a task has succeeded, given ``event``, the end of its process.

    ``judge`` is the run's criterion of success. ``ordered`` is True if the task was ordered to end.
    """
    if judge == "exit":
        return event.exit_code == 0 and not ordered
    # A task's last act is to report its outcome; the exit of its process after that does not matter.
    return bool(event.outcome and event.outcome.get("succeeded"))
