"""Rule: the steps that a program under ``command:`` reports.

Only the first report of a program shows that it reports steps. From then on the run expects steps, as it does of a
job. A task without steps of its own, such as a ps, counts as recovered from a restart once any worker takes a step.
Only steps of workers count as training: the status shows an evaluator's steps, and nothing waits for them.
"""

from typing import Any, Iterable, List, Mapping

from cluster.task import TRAINERS
from launch.agent.protocol.messages import Advanced, Event, Exited, Order
from launch.agent.supervision.run_state import SupervisionRule
from launch.agent.supervision.task_records import TaskRecord

TOGETHER_S = 5.0  # processes that begin within this time begin from one checkpoint


class ProgramSteps(SupervisionRule):
    """The rule that notes whether a program reports steps, and warns if its step goes back without a restart.

    A step that goes back means a return to a checkpoint in two cases: in the first report of a process, and while an
    incident is open and the task's process has not restarted since. In all other cases the program counts from the
    start again, as in every epoch, and has lost nothing.
    """

    _has_warned = False  # of a step that went back; the first such task suffices

    def restore(self, programs: Iterable[str]) -> None:
        """Restore ``programs``, the tasks that have reported a step to an earlier lead."""
        tasks = self._run.tasks
        self._run.incidents.programs.update(name for name in programs if tasks[name].plan.role in TRAINERS)
        self._run.incidents.has_progress = bool(self._run.incidents.programs)

    def handle(self, event: Event, now: float) -> List[Order]:
        """Update the run's incidents after a report or the end of a task; return no orders."""
        if isinstance(event, Advanced) and event.progress.get("reports"):
            if self._run.roster.find(event) is not None:
                self._record(event.task, event.progress)
        elif isinstance(event, Exited) and event.exit_code == 0 and self._run.incidents.programs:
            task = self._run.roster.find(event)
            if task is not None and not task.recalled and not task.frozen:
                self._run.incidents.record_end(event.task, now)
        return []

    def _record(self, task: str, progress: Mapping[str, Any]) -> None:
        incidents, step = self._run.incidents, progress["step"]
        self.restore([task])
        is_calm = progress["reports"] > 1 and not self._may_return(self._run.tasks[task])
        last = incidents.stalls.recount(task, step) if is_calm and self._run.tasks[task].plan.role in TRAINERS else None
        if last is not None:
            incidents.effective.recount(step - 1)
            why = f"its step went back from {last} to {step} without a restart; count the steps over the whole training"
            if not self._has_warned:
                self._has_warned = True
                self._run.warnings.append(f"progress of {task}: {why}")

    def _may_return(self, task: TaskRecord) -> bool:
        """Return whether an open incident may take a task's present process back to a checkpoint."""
        incidents = self._run.incidents
        began_s = TOGETHER_S + (0.0 if task.started_at is None else incidents.run_time(task.started_at))
        restarts = ((each, each.again_s if each.restarted_s is None else each.restarted_s)
                    for each in incidents.statuses() if each.open)  # fmt: skip
        return any(after_s is None or each.at_s + after_s > began_s for each, after_s in restarts)
