"""The reports of agents about tasks: start, progress, checkpoints, resource use, GPUs that fail, and end."""

from collections import deque
from dataclasses import replace
from typing import Any, List, Mapping, Optional, Set, Tuple

from launch.agent.protocol.messages import Advanced, Event, Exited, GpuFailed, Measured, Order, Signs, Started
from launch.agent.supervision import hang_detection
from launch.agent.supervision.elastic import Formations
from launch.agent.supervision.ending import Ending
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.restart_policy import Restarts
from launch.agent.supervision.run_state import Phase, SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import TaskRecord
from launch.agent.wire.run_request import TaskPlan


class TaskEvents(SupervisionRule):
    """The rule that records the start, the progress and the resource use of tasks."""

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record the start, progress, resource use or signs of life that an event reports; return no orders."""
        if isinstance(event, Started):
            self._record_start(event, now)
        elif isinstance(event, Advanced):
            self._record_progress(event, now)
        elif isinstance(event, Measured):
            self._run.roster.record_usage(event)
        elif isinstance(event, Signs):
            self._run.roster.record_signs(event)
        return []

    def _record_start(self, event: Started, now: float) -> None:
        task = self._run.roster.find(event)
        if task is None:
            return
        task.started_at = now if task.started_at is None else task.started_at
        if task.pid != event.pid:  # else a lost host has joined again, and reports a process that it has killed since
            self._run.incidents.record_start(event.task, now)
        task.pid, task.gpus, task.log = event.pid, event.gpus, event.log
        if self._run.plan.judge == "exit":  # a program under ``command:`` may report no progress
            self._run.roster.turn(task, "running", process=True)

    def _record_progress(self, event: Advanced, now: float) -> None:
        task = self._run.roster.find(event)
        if task is None:
            return
        self._run.roster.turn(task, "running", process=True)
        task.record_progress(now, event.progress)
        saved = event.progress.get("checkpoint_step")
        if task.plan.chief and saved is not None:
            self._run.checkpoint_step = saved
        if not task.frozen:  # a frozen task may run for a moment, to write its stack
            self._run.incidents.record_progress(event.task, event.progress, now)


class CheckpointProblems(SupervisionRule):
    """The rule that turns the checkpoint problems that the chief reports into incidents of the chief's host.

    Each problem is one incident, however often the chief reports it. Unreadable checkpoints that a restore skipped are
    one incident, too: the steps from the restored checkpoint to the newest checkpoint are lost. The files of the host
    are the cause, so no problem is a consequence of the chief's own failure, even while that incident is open.
    """

    def __init__(self, run: SupervisedRun):
        super().__init__(run)
        self._problem: Optional[str] = None
        self._saved = 0  # the newest step of a checkpoint when the problem began
        self._passed_over: Optional[str] = None
        self._incident: Optional[Incident] = None

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record the checkpoint problems in the chief's progress; return no orders."""
        if isinstance(event, Advanced):
            task = self._run.roster.find(event)
            if task is not None and task.plan.chief:
                self._record(task.plan, event.progress, now)
        return []

    def _record(self, chief: TaskPlan, progress: Mapping[str, Any], now: float) -> None:
        self._record_passed_over(chief, progress, now)
        problem, saved = progress.get("checkpoint_problem"), progress.get("checkpoint_step") or 0
        if problem == self._problem or (problem is None and saved <= self._saved):  # a new process knows no problem
            return
        if problem is not None:
            self._saved = saved
            self._incident = self._run.incidents.begin("checkpoint", now, host=chief.host, cause=problem)
        else:
            self._run.incidents.record_action(f"a checkpoint of step {saved} is written", now, self._incident)
        self._problem = problem

    def _record_passed_over(self, chief: TaskPlan, progress: Mapping[str, Any], now: float) -> None:
        incidents, passed = self._run.incidents, progress.get("passed_over")
        if passed not in (None, self._passed_over):
            newest, restored = progress["passed_over_from"], progress["passed_over_to"]
            at = incidents.stalls.returned_at(chief.name, restored, now)
            incidents.begin("checkpoint", at, host=chief.host, cause=passed)
            incidents.stalls.pass_over(chief.name, newest, restored, now)
            self._passed_over = passed


class GpuFailures(SupervisionRule):
    """The rule that records each failed GPU once, and continues without the GPU's tasks if the run can."""

    def __init__(self, run: SupervisedRun, formations: Formations):
        super().__init__(run)
        self._formations = formations
        self._known: Set[Tuple[str, str]] = set()  # (host, what)

    def handle(self, event: Event, now: float) -> List[Order]:
        """Return the orders that end the current formation, so that the next one omits the failed GPU's tasks."""
        if not isinstance(event, GpuFailed):
            return []
        host = self._run.tasks[event.tasks[0]].plan.host
        if self._run.state.is_closing or (host, event.what) in self._known:
            return []
        self._known.add((host, event.what))
        incident = self._run.incidents.begin("gpu", now, host=host, cause=event.what)
        orders = self._formations.leave_out(event.tasks, incident)
        if orders is None:
            return []
        without = ", ".join(event.tasks)
        self._run.incidents.record_action(f"continues without {without} until `launch drain --back`", now, incident)
        return orders


class TaskEnds(SupervisionRule):
    """The rule that interprets the end of a task: success, an ordered restart, the run's own end, or a failure."""

    def __init__(self, run: SupervisedRun, formations: Formations, restarts: Restarts, ending: Ending):
        super().__init__(run)
        self._formations, self._restarts, self._ending = formations, restarts, ending

    def handle(self, event: Event, now: float) -> List[Order]:
        """Record the end of a task; another rule orders the next attempt when it is due."""
        if isinstance(event, Exited):
            task = self._run.roster.find(event)
            if task is not None:
                task.exit_code, task.samples = event.exit_code, deque()
                self._record(task, self._name_as_run(event), now)
        return []

    def _name_as_run(self, event: Exited) -> Exited:
        """Return a task's end, with the run's task names in the cause.

        The task itself knows only the names in its formation.
        """
        formation = self._formations.current
        if not formation.number or event.cause is None:
            return event
        return replace(event, cause=formation.name_as_run(event.cause))

    def _record(self, task: TaskRecord, event: Exited, now: float) -> None:
        run, phase = self._run, self._run.state.phase
        if self._ending.has_succeeded(task, event, restarts=task.recalled or phase is Phase.REFORMING):
            run.roster.turn(task, "succeeded", process=False)
            if task.plan.chief:
                run.outcome = event.outcome or {}
        elif phase is Phase.CLOSING:
            run.roster.turn(task, "stopped", process=False)
            self._ending.record_late_exit(task, event, now)
        elif phase is Phase.REFORMING and event.exit_code is not None:
            run.roster.turn(task, "restarting", process=False)
        elif task.recalled and event.exit_code is not None:  # else its process hangs: no second one may start
            self._restarts.put(task, now)
        else:
            failure = hang_detection.as_failure(event, task.frozen) if task.frozen else event
            self._restarts.put_failed(task, failure, now)
