"""The formations of a run: the tasks that train together, at the start and after hosts are lost or return.

A host counts as lost only when its agent has certainly killed the tasks there. The run then ends the other tasks
of the formation, with ``END_S`` seconds of grace. Then it starts the next formation on the remaining hosts, from the
last checkpoint. So processes of different formations never communicate.

A host that returns waits for a while (see ``Absence``), and until the current formation has trained for ``REST_S``
seconds. Then the chief saves, and the next formation includes the host.

A ``Handover`` carries out an operator's request to drain tasks, or to let drained tasks train again.
"""

import math
from typing import Collection, List, Optional, Sequence, Set

from cluster.protocol.save_request import HOLD
from launch.agent.protocol.messages import DrainRequested, Event, Order, Prepare, Prepared, Start, Stop
from launch.agent.supervision.formation import Absences, Formation, Wishes, describe, form, shortage
from launch.agent.supervision.handover import Handover
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.run_state import Phase, SupervisedRun, SupervisionRule
from launch.agent.supervision.task_records import DRAINED, SPARE, TaskRecord
from launch.status.run import ALIVE

END_S = 1.0
REST_S = 15.0


class Formations(SupervisionRule):
    """The successive formations of one run (the tasks that train together), and its absent hosts.

    ``current`` is the formation that trains, or that will train once every host has joined.
    """

    def __init__(self, run: SupervisedRun):
        super().__init__(run)
        self.current: Formation = form(0, run.plan.tasks, ())
        self._plan, self._roster, self._incidents, self._saving = run.plan, run.roster, run.incidents, run.saving
        self._absences = Absences()
        self._begun: Set[str] = set()  # tasks that have had a process
        self._rested_at = math.inf
        self._saves = False  # whether the chief saves before a host is taken back
        self.wishes = Wishes(run.plan, run.roster)
        self._handovers = 0
        self._handover: Optional[Handover] = None
        self.problem: Optional[str] = None  # of the newest handover
        self._first_loss: Optional[Incident] = None  # since the run last trained
        self._losses: List[Incident] = []  # since the newest formation

    def handle(self, event: Event, now: float) -> List[Order]:
        """Take back hosts while the run trains; start a new formation once all processes of the old one have ended."""
        if isinstance(event, Prepared) and self._handover is not None:
            self._handover.record(event)
        orders = self._take_back(now) if self._run.trains else []
        if self._run.state.phase is Phase.REFORMING and not self._roster.process_count:
            orders += self._start_next(now)
        return orders

    @property
    def is_elastic(self) -> bool:
        """Return whether the run continues without lost hosts."""
        return self._plan.min_workers is not None

    @property
    def is_up(self) -> bool:
        """Return whether every task of the formation is up.

        A task is up if it runs or has succeeded. An evaluator that failed counts as up, too: the run continues
        without it.
        """
        return self._roster.number("running", "succeeded", "failed") >= len(self.current.indices)

    @property
    def is_changing(self) -> bool:
        """Return whether a handover, a planned change of the tasks that train, is under way."""
        return self._handover is not None

    @property
    def out(self) -> Collection[str]:
        """Return the absent hosts: each is lost, or has returned and still waits to join the training."""
        return self._absences.out

    @property
    def can_change(self) -> bool:
        """Return whether the run may now prepare another formation while the current one trains."""
        return self._run.trains and self.is_up and not self.is_changing

    def start_task(self, task: TaskRecord) -> Start:
        """Return the order that starts a task's next attempt, with the task's index in the formation."""
        name = task.plan.name
        self._begun.add(name)
        self._roster.begin_attempt(task)
        is_as_planned = not (self.current.number or self.out or self.wishes.by_name)
        if is_as_planned:  # the launcher has sent this cluster to the task's agent
            return Start(name, task.attempt)
        return Start(name, task.attempt, self.current.cluster, self.current.indices[name])

    # -- the first formation, and the next ones

    def start_first(self, now: float) -> List[Order]:
        """Return the orders that start formation 0, without the hosts that are lost or late."""
        self._absences.end_of_returned()
        return self._start(0, now)

    def _start_next(self, now: float) -> List[Order]:
        self._take_in(now)
        return self._start(self.current.number + 1, now)

    def _form(self, number: int, out: Collection[str]) -> Formation:
        return form(number, self._plan.tasks, out, self.wishes.by_name)

    def _start(self, number: int, now: float) -> List[Order]:
        """Start a formation, or fail the run where too few hosts are left for one."""
        following = self._form(number, self.out)
        missing = shortage(following, self._plan.tasks, self._plan.min_workers or 0)
        if missing is not None and self._first_loss is not None:
            self._run.fail(self._first_loss, now, missing)
            return []
        self._run.state.turn(Phase.TRAINING)
        self.current, self._rested_at, self._handover = following, math.inf, None
        without = f"continues without {', '.join(self.out)}: " if self.out else ""
        for incident in self._losses:
            self._incidents.record_action(
                f"{without}{describe(following, self._plan.tasks, self.wishes.by_name)}", now, incident
            )
        self._losses = []
        self._leave_out_others()
        return [self._start_in_turn(name) for name in following.tasks]

    def _start_in_turn(self, name: str) -> Order:
        task = self._roster.by_name[name]
        task.attempt = self._next_attempt(name)
        return self.start_task(task)

    def _leave_out_others(self) -> None:
        """Let the run continue without the tasks outside the formation; an available one is a spare, or drained."""
        for name, task in self._roster.by_name.items():
            if name in self.current.indices:
                continue
            self._incidents.leave(name)
            if task.plan.host not in self.out:
                self._roster.turn(task, "stopped", process=False)
                task.cause = DRAINED if self.wishes.by_name.get(name) is False else SPARE
                task.samples.clear()

    # -- hosts that are lost

    def drop(self, host: str, kind: str, why: str, now: float) -> List[Order]:
        """Continue the run without a lost host, or fail the run; return the orders for that.

        Args:
          kind, why: the kind and the cause of the incident.
        """
        loss = self._incidents.begin(kind, now, host=host, cause=why)
        tasks, closing = self._roster.by_host[host], self._run.state.is_closing
        needed = any(task.state in ALIVE and task.plan.name in self.current.indices for task in tasks)
        self._show_lost(host, loss.line, closing)
        if closing:
            return []
        if not self.is_elastic:
            self._run.fail(loss, now)
            return []
        self._absences.begin(host, loss)
        self._losses.append(loss)
        orders = self._adapt() if self._run.trains and needed else []
        if not self._run.trains:
            self._first_loss = self._first_loss or loss
        return orders

    def _show_lost(self, host: str, cause: str, closing: bool) -> None:
        for task in self._roster.by_host[host]:
            if task.state in ALIVE or (task.state in ("stopped", "lost") and not closing):
                self._roster.turn(task, "lost", process=False)
                task.cause, task.progress = cause, {}
                task.samples.clear()  # the task no longer contributes to the run's rates

    def _adapt(self) -> List[Order]:
        """Return the orders that follow from a change of the available hosts."""
        following = self._form(self.current.number, self.out)
        if following.cluster != self.current.cluster:
            return self._end()
        # Only an evaluator, or a spare that still waits, has changed: the cluster is the same.
        came = [name for name in following.tasks if name not in self.current.indices]
        self.current = following
        self._leave_out_others()
        return [self._start_in_turn(name) for name in came]

    def _end(self) -> List[Order]:
        """End every process of the formation."""
        self._run.state.turn(Phase.REFORMING)
        self._saves, self._handover = False, None
        orders: List[Order] = []
        for name in self.current.tasks:
            task = self._roster.by_name[name]
            if task.process:
                orders.append(Stop(name, END_S, task.attempt))
            elif task.state in ALIVE:
                self._roster.turn(task, "restarting", process=False)
        return orders

    # -- GPUs that fail

    def leave_out(self, tasks: Sequence[str], loss: Incident) -> Optional[List[Order]]:
        """Continue the run without ``tasks``, whose GPU has failed, and return the orders for that.

        Unlike a drain, this change may lose the steps since the last checkpoint. The result is None where the run
        cannot train without the tasks. The run then keeps the tasks: they may still work, or fail.
        """
        request = DrainRequested(list(tasks))
        if not self.is_elastic or not self._run.trains or self.wishes.refusals(request, self.out):
            return None
        self.wishes.by_name = self.wishes.joined_by(request)
        self._losses.append(loss)
        self._first_loss = self._first_loss or loss
        return self._adapt()

    # -- hosts that return

    def admit(self, host: str, now: float) -> bool:
        """Record that a host's agent has connected; return whether the run had gone on without this host."""
        if host not in self.out:
            return False
        self._absences.out[host].end(now)
        for task in self._roster.by_host[host]:
            task.cause = f"{host} is back, and waits to join the run again"
        return True

    def _take_back(self, now: float) -> List[Order]:
        """Return the orders for the hosts that are out, while the formation trains."""
        if self._handover is not None:
            return self._hand_over(self._handover, now)
        if self._rested_at == math.inf and self.is_up:
            self._rested_at, self._first_loss = now + REST_S, None
        ready = self._absences.ready(now) if self.out and now >= self._rested_at else []
        if not ready or (self._saves and self._saving.is_pending(now)):
            return []
        asked = self._saving.ask(now, HOLD) if self._changes_cluster(ready) and not self._saves else []
        self._saves = bool(asked)
        if asked:
            return asked
        self._take_in(now)
        return self._adapt()

    def _changes_cluster(self, hosts: List[str]) -> bool:
        """Return whether the return of these hosts needs a new formation; an evaluator or a spare needs no new one."""
        out = [host for host in self.out if host not in hosts]
        return self._form(0, out).cluster != self.current.cluster

    def _take_in(self, now: float) -> None:
        """Remove the hosts that may be taken back from the hosts that are out."""
        for host in self._absences.ready(now):
            incident = self._absences.out.pop(host).incident
            self._incidents.record_action(f"{host} joined again", now, incident)
            if incident is not None:
                self._incidents.expect_restart(incident)

    # -- tasks that an operator drains or takes back

    def refusals(self, request: DrainRequested) -> List[str]:
        """Return the reasons why the run cannot carry out ``request`` now; the list is empty if it can."""
        if not self.is_elastic:
            return ["expected a run with the key elastic; set elastic: {min_workers: 1} and continue with up --resume"]
        if not self.can_change:
            return ["the run is still starting, or is changing its tasks; try again once it trains"]
        return self.wishes.refusals(request, self.out)

    def drain(self, request: DrainRequested, now: float) -> List[Order]:
        """Begin to drain tasks, or to take them back; return the first orders, or [] if the request is refused."""
        if self.refusals(request):
            return []
        before, self.problem = self.wishes.by_name, None
        self.wishes.by_name = self.wishes.joined_by(request)
        following = self._form(0, self.out)
        if following.cluster == self.current.cluster:
            return self._adapt()
        self._handovers += 1
        orders = [
            Prepare(name, self._next_attempt(name), following.cluster, index, self._handovers)
            for name, index in following.indices.items()
        ]
        self._handover = Handover(before, orders, self._saving, now)
        return list(orders)

    def _next_attempt(self, name: str) -> int:
        return self._roster.by_name[name].attempt + (name in self._begun)

    def _hand_over(self, handover: Handover, now: float) -> List[Order]:
        orders = handover.next_orders(now)
        if handover.problem is not None:
            self.wishes.by_name, self.problem, self._handover = handover.before, handover.problem, None
        return self._end() if handover.is_over else orders
