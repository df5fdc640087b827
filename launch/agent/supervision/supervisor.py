"""Decide the next orders of a run, from the events so far and the time.

The supervisor touches no process, socket or clock. ``handle(event, now)`` takes an event
and returns the orders that follow; the agent carries them out. So tests replay histories
to check every rule below.

``run_state`` has the phases of a run.
``launch.status.run`` names the states of tasks, and ``ending`` decides which have succeeded.
"""

from collections import deque
from typing import Any, Callable, Dict, List, Optional, Set, Tuple, Type

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import (
    Advanced,
    DrainRequested,
    End,
    Event,
    Exited,
    Go,
    GpuFailed,
    Joined,
    KillRequested,
    Leaving,
    Lost,
    Measured,
    Order,
    Prepared,
    RestartRequested,
    Signs,
    Started,
    Stop,
    StopRequested,
)
from launch.agent.supervision import hang_detection
from launch.agent.supervision.agents import Gathering, Lives
from launch.agent.supervision.departures import Departures
from launch.agent.supervision.elastic import NOTHING, Decision, Failure, Formations
from launch.agent.supervision.ending import Ending
from launch.agent.supervision.incidents import Incidents
from launch.agent.supervision.restart_policy import Restarts
from launch.agent.supervision.run_state import Phase, RunState
from launch.agent.supervision.saving import CheckpointProblems, Saving
from launch.agent.supervision.status import run_status
from launch.agent.supervision.task_records import Roster, TaskRecord
from launch.agent.wire.run_request import RunPlan
from launch.status.run import FormationStatus, RunStatus

LONG = 1.5  # times the silence after which a host is lost; only one that a boot brings back is silent for longer


class Supervisor:
    """The state of one run. Times are seconds on any clock that does not jump.

    Args:
      resume: the command with which the run goes on once it has stopped.
    """

    def __init__(self, plan: RunPlan, resume: str = "launch up --resume FILE"):
        self.plan = plan
        self.state = RunState()
        self.outcome: Dict[str, Any] = {}  # the chief's
        self.silent: List[str] = []  # hosts from which the lead receives nothing now; the lead keeps this
        self.now = 0.0  # of the last event
        self._roster = Roster(plan)
        self.tasks = self._roster.by_name
        self.incidents = Incidents(self.tasks, report_progress=plan.judge == "outcome")
        self.saving = Saving(self._roster.chief)
        self._checkpoint_problems = CheckpointProblems(self.incidents)
        self._watch = hang_detection.Watch(plan.frozen_s)
        self._gathering = Gathering(plan)
        self._formations = Formations(plan, self._roster, self.incidents, self.saving)
        self.departures = Departures(plan, self._roster, self._formations, resume)
        self._restarts = Restarts(plan, self._roster, self.incidents)
        self._lives = Lives()
        self._failed_gpus: Set[Tuple[str, str]] = set()  # (host, what)
        self._ending = Ending(plan, self.tasks)
        self._courses: Dict[Phase, Callable[[float], List[Order]]] = {
            Phase.GATHERING: self._gather,
            Phase.TRAINING: self._train,
            Phase.REFORMING: self._reform,
            Phase.CLOSING: self._shut,
            Phase.ENDED: lambda now: [],
        }
        self._rules: Dict[Type[Any], Callable[[Any, float], List[Order]]] = {
            Joined: self._on_joined,
            Lost: self._on_lost,
            Go: self._on_go,
            Started: self._on_started,
            Advanced: self._on_advanced,
            Measured: self._on_measured,
            Signs: self._on_signs,
            GpuFailed: self._on_gpu_failed,
            Exited: self._on_exited,
            Prepared: self._on_prepared,
            RestartRequested: self._on_restart,
            DrainRequested: self._on_drain,
            StopRequested: self._on_stop,
            Leaving: self._on_leaving,
            KillRequested: self._on_kill,
        }

    def handle(self, event: Event, now: float) -> List[Order]:
        """Process one event, and return the orders that follow from it."""
        self.now = now
        self.incidents.effective.begin(now)
        self._watch.record_event(event, now)
        rule = self._rules.get(type(event))
        orders = (rule(event, now) if rule else []) + self._let_leave(now)
        phase: Optional[Phase] = None
        while phase is not self.state.phase:  # one phase may end and the next take its course at once
            phase = self.state.phase
            orders += self._courses[phase](now)
        return orders

    # -- what each event means

    def _on_joined(self, event: Joined, now: float) -> List[Order]:
        self._gathering.discard(event.host)
        another = self._lives.record_join(event.host, event.incarnation, now)
        if self._formations.admit(event.host, now):
            return []
        if another:
            self._on_agent_ended(event.host, now, now - event.silent_s)
        return self._reconnect(event, another, now) if event.silent_s > LONG * self.plan.lost_after_s else []

    def _reconnect(self, event: Joined, is_another: bool, now: float) -> List[Order]:
        """Restart the tasks of all other hosts: they try less and less often to reach one that is long away."""
        if self.state.phase is not Phase.TRAINING:
            return []
        if not is_another:
            cause = f"no message for {event.silent_s:.0f} s (network cut, or host suspended)"
            self.incidents.begin("host", now - event.silent_s, host=event.host, cause=cause)
        others = [name for name, task in self.tasks.items() if task.plan.host != event.host]
        orders = self._on_restart(RestartRequested(others), now)
        self.incidents.expect_starts(others)
        self.incidents.record_action(f"{event.host} joined again; the tasks of all other hosts restart", now)
        return orders

    def _on_agent_ended(self, host: str, now: float, ended_at: float) -> None:
        """Record that a host's agent ended, with its tasks: another agent has joined."""
        gone = [task for task in self._roster.by_host[host] if task.process]
        self.incidents.begin("agent", ended_at, host=host, cause="its agent ended")
        for task in gone:
            if self.state.is_closing:
                self._roster.turn(task, "stopped", process=False)
            else:
                self._restarts.put(task, now)
            task.cause, task.samples = f"its agent on {host} ended", deque()
        self.incidents.record_action(
            f"another agent joined; started again: {', '.join(t.plan.name for t in gone) or 'none'}", now
        )
        too_many = self._lives.too_many(host, now)
        if too_many:
            self._close("failed", too_many, now)

    def _on_go(self, event: Go, now: float) -> List[Order]:
        self._gathering.record_go(now)
        return []

    def _on_lost(self, event: Lost, now: float) -> List[Order]:
        silence = f"no message for {event.silent_s:.0f} s (host down, network cut, or its agent ended)"
        cause = self.departures.as_cause(event.host) or silence
        return self._drop(event.host, "host", cause, now)

    def _drop(self, host: str, kind: str, cause: str, now: float) -> List[Order]:
        """Continue the run without a host, or fail it."""
        self._gathering.discard(host)
        failure = Failure(self.incidents.begin(kind, now, host=host, cause=cause), f"{host}: {cause}")
        return self._follow(self._formations.drop(host, failure, self.state.phase), now)

    def _follow(self, decision: Decision, now: float) -> List[Order]:
        """Carry out a decision on the formations; return its orders."""
        if decision.failure is not None:
            incident, cause = decision.failure
            self._close("failed", self.incidents.blame_incident(incident, cause), now)
        elif decision.phase is not None:
            self.state.turn(decision.phase)
        return list(decision.orders)

    def _on_started(self, event: Started, now: float) -> List[Order]:
        task = self._roster.find(event)
        if task is not None:
            if task.pid != event.pid:  # else a host that was lost has joined again, and names what it has killed since
                self.incidents.record_start(event.task, now)
            task.pid, task.gpus, task.log = event.pid, event.gpus, event.log
            if self.plan.judge == "exit":  # foreign programs report no progress
                self._roster.turn(task, "running", process=True)
        return []

    def _on_advanced(self, event: Advanced, now: float) -> List[Order]:
        task = self._roster.find(event)
        if task is not None:
            self._roster.turn(task, "running", process=True)
            task.record_progress(now, event.progress)
            if task.plan.chief:
                self._checkpoint_problems.record(event.task, event.progress, now)
            if not task.frozen:  # it may run for the moment in which it writes its stack
                self.incidents.record_progress(event.task, event.progress, now)
        return []

    def _on_measured(self, event: Measured, now: float) -> List[Order]:
        self._roster.record_usage(event)
        return []

    def _on_signs(self, event: Signs, now: float) -> List[Order]:
        """Return the orders that kill frozen tasks, which then fail."""
        self._roster.record_signs(event)
        if self.state.phase is not Phase.TRAINING:
            return []
        silent = [host for host in self.silent if any(task.process for task in self._roster.by_host[host])]
        culprits = self._watch.culprits(event, self.tasks, self._roster.process_count, silent)
        return [hang_detection.accuse(each, self.tasks[each.task], self.incidents, now) for each in culprits]

    def _on_gpu_failed(self, event: GpuFailed, now: float) -> List[Order]:
        """Record a GPU that has failed, once, and continue without its tasks where the run can."""
        host = self.tasks[event.tasks[0]].plan.host
        if self.state.is_closing or (host, event.what) in self._failed_gpus:
            return []
        self._failed_gpus.add((host, event.what))
        incident = self.incidents.begin("gpu", now, host=host, cause=event.what)
        failure = Failure(incident, f"{host}: {event.what}")
        decision = self._formations.leave_out(event.tasks, failure, self.state.phase)
        if decision is not NOTHING:
            without = ", ".join(event.tasks)
            self.incidents.record_action(f"continues without {without} until `launch drain --back`", now, incident)
        return self._follow(decision, now)

    def _on_exited(self, event: Exited, now: float) -> List[Order]:
        task = self._roster.find(event)
        if task is None:
            return []
        task.exit_code, task.samples = event.exit_code, deque()
        event, phase = self._formations.name_as_run(event), self.state.phase
        if self._ending.has_succeeded(task, event, restarts=task.recalled or phase is Phase.REFORMING):
            self._roster.turn(task, "succeeded", process=False)
            if task.plan.chief:
                self.outcome = event.outcome or {}
        elif phase is Phase.CLOSING:
            self._roster.turn(task, "stopped", process=False)
            self._record_late_exit(task, event, now)
        elif phase is Phase.REFORMING and event.exit_code is not None:
            self._roster.turn(task, "restarting", process=False)
        elif task.recalled and event.exit_code is not None:  # else a process of it hangs: no second one beside it
            self._restarts.put(task, now)
        else:
            failure = hang_detection.as_failure(event, task.frozen) if task.frozen else event
            cause = self._restarts.put_failed(task, failure, now)
            if cause is not None:
                self._close("failed", cause, now)
        return []

    def _record_late_exit(self, task: TaskRecord, event: Exited, now: float) -> None:
        """Record a task's end without success while the run was ending already."""
        missed = self._ending.missed_work(task, event, now)
        if missed is not None:
            task.cause = missed.cause
            self.incidents.record_exit(missed, now)
        elif self.state.result == "failed" and not self._ending.was_ordered(task):
            self.incidents.record_late_exit(event, now)

    def _on_restart(self, event: RestartRequested, now: float) -> List[Order]:
        """Order running tasks to end; restart waiting tasks, or a failed evaluator, at once."""
        if self.state.phase is not Phase.TRAINING:
            return []
        chosen = [self.tasks[name] for name in event.tasks if name in self.tasks]
        for task in chosen:
            if task.state in ("restarting", "failed"):
                self._restarts.put(task, now)
        running = [task for task in chosen if task.process and not task.recalled]
        for task in running:
            task.recalled = True
        return [Stop(task.plan.name, self.plan.grace_s, task.attempt) for task in running]

    def drain_refusals(self, request: DrainRequested) -> List[str]:
        """Return the reasons for which tasks cannot be drained now, or taken back; empty where they can."""
        return self._formations.refusals(request, self.state.phase)

    def restore_wishes(self, earlier: FormationStatus) -> None:
        """Leave out what an operator had drained in the status of an earlier agent, and add what was added."""
        self._formations.wishes.restore(earlier)

    def _on_drain(self, event: DrainRequested, now: float) -> List[Order]:
        if event.back:
            self.departures.discard(event.tasks)
        return self._follow(self._formations.drain(event, self.state.phase, now), now)

    def _on_prepared(self, event: Prepared, now: float) -> List[Order]:
        self._formations.record_prepared(event)
        return []

    def _on_stop(self, event: StopRequested, now: float) -> List[Order]:
        orders = self.saving.ask(now, HOLD) if self.state.phase is Phase.TRAINING else []
        self._close("stopped", event.reason, now)
        return orders

    def _on_leaving(self, event: Leaving, now: float) -> List[Order]:
        self.departures.add(event)
        return []

    def _let_leave(self, now: float) -> List[Order]:
        """Drain the tasks of a host that leaves, or stop a run that cannot train without them."""
        due = None if self.state.is_closing else self.departures.next(self.state.phase)
        if isinstance(due, StopRequested):
            return self._on_stop(due, now)
        if isinstance(due, DrainRequested):  # the machine may go before that is done, so the chief saves at once, too
            return self.saving.ask(now) + self._on_drain(due, now)
        return []

    def _on_kill(self, event: KillRequested, now: float) -> List[Order]:
        self._close("stopped", event.reason, now)
        self.saving.skip()
        return [Stop(task.plan.name, 0.0, task.attempt) for task in self._roster.live_tasks()]

    # -- what follows from the state

    def _close(self, result: str, cause: Optional[str], now: float) -> None:
        """Close the run with its result.

        The first result stands: a later one is its consequence.
        """
        if self.state.is_closing:
            return
        self.state.close(result, cause)
        self._ending.begin(result, now)
        for task in self._roster.pending_tasks():
            self._roster.turn(task, "stopped", process=False)

    def _gather(self, now: float) -> List[Order]:
        """Start the first formation once the launcher has sent go and every host has joined, or is out."""
        lacking = self._gathering.lacks_quorum(now)
        if lacking is not None:
            self._close("failed", lacking, now)
        for host in self._gathering.overdue_hosts(now):
            if self.state.phase is Phase.GATHERING:
                self._drop(host, "not-started", self._gathering.reason(host), now)
        if self.state.phase is not Phase.GATHERING or not self._gathering.is_complete:
            return []
        return self._follow(self._formations.start_first(now), now)

    def _reform(self, now: float) -> List[Order]:
        """Start the next formation once every process of the one before is gone."""
        if self._roster.have_succeeded:
            self._close("succeeded", None, now)
        elif not self._roster.process_count:
            return self._follow(self._formations.start_next(now), now)
        return []

    def _train(self, now: float) -> List[Order]:
        """Take hosts back, and restart the tasks whose time has come."""
        if not self.state.was_up and self._formations.is_up:
            self.state.mark_up()
        if self._roster.have_succeeded:
            self._close("succeeded", None, now)
            return []
        orders = self._follow(self._formations.take_back(now), now)
        if self.state.phase is not Phase.TRAINING:
            return orders
        due = self._restarts.pop_due(now)
        for task in due:
            task.attempt += 1
        orders += [self._formations.start_task(task) for task in due]
        if self.incidents.awaits_start and not self._roster.is_starting:
            self.incidents.go_on(now)
        return orders

    def _shut(self, now: float) -> List[Order]:
        """End the tasks in their order, then the run."""
        if self.state.result == "failed" and self.incidents.blame is not None:
            self.state.correct_cause(self.incidents.blame.line)
        if not self._roster.process_count:
            self.state.turn(Phase.ENDED)
            return [End(self.state.label)]
        if self.saving.is_pending(now):
            return []
        return self._ending.next_orders(self._roster.processes, now)

    # -- what is shown

    def status(self, **more: Any) -> RunStatus:
        """Return the run's status; ``more`` are fields that no supervisor knows."""
        formation = self._formations.status(self.state.phase)
        return run_status(
            plan=self.plan,
            state=self.state,
            tasks=self.tasks,
            incidents=self.incidents,
            formation=formation,
            outcome=self.outcome,
            silent=self.silent,
            now=self.now,
            checkpoint_step=self._checkpoint_problems.step,
            departed=self.departures.needed,
            **more,
        )
