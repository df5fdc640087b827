"""One history: a run on some hosts, from the launcher's go to its end, with the faults of a seed."""

import asyncio
import hashlib
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set

from launch.agent.service.lead import Lead
from launch.agent.supervision.formation import form
from launch.agent.wire.run_request import RunPlan
from tests.simulation import faults as happenings
from tests.simulation import outcomes, saved
from tests.simulation.dense import HEALS_S, dense
from tests.simulation.faults import LONGEST_S, Fault
from tests.simulation.loops import Agenda, AgentLoop
from tests.simulation.machines import OFF_S, UP_S, Machine
from tests.simulation.network import Network
from tests.simulation.operators import further_faults, operators_of
from tests.simulation.orders import Orders
from tests.simulation.processes import Process
from tests.simulation.promises import FROZEN_S, WAKING_S, Broken, Promises
from tests.simulation.replaced import replaced
from tests.simulation.runs import FURTHER_FROM, RUN, has_later_faults, is_dense, lead_of, plan_of, request_of, run_of
from tests.simulation.training import STEP_S, Training

TICK_S, LOOK_S = 0.5, 0.5
FAULTS_S, ALL_S, MOST_S = 480.0, 900.0, 1800.0  # faults come until then; the operator stops it; no history is longer


class Entry(NamedTuple):
    """A line of a history: when, on which host, what."""

    at: float
    host: str
    text: str


class World:
    """A world by its seed; ``faults`` are those of the seed, or others in their place. Training takes ``steps``."""

    def __init__(self, seed: int, faults: Optional[Sequence[Fault]] = None, steps: Optional[int] = None):
        self.seed, self._random = seed, Random(seed)
        self.shape = run_of(seed, self._random)
        self.agenda = Agenda()
        self.network = Network(self.agenda, Random(seed + 1), self.shape.delay_s)
        self.history: List[Entry] = []
        self.run_name = RUN
        self.errors: List[str] = []
        self.is_detached = self.shape.detached
        self.asked_at: Optional[float] = None
        self.is_killing = False
        self.healed_at = 0.0
        self.woken_at: Dict[str, float] = {}
        self.damaged_at: Dict[str, float] = {}  # the newest moment of each record's damage
        self.unkept_at: Dict[str, float] = {}  # when a host last had neither an agent nor a keeper that acts
        self._tokens, self.random_of_disks = Random(seed + 2), Random(seed + 3)
        self._pids = 0
        self.is_news = False
        self.launcher_left_at: Optional[float] = None
        self.plan = plan_of(self.shape, steps)
        self.lead_host = lead_of(self.plan)
        self.cluster = form(0, self.plan.tasks, ()).cluster
        hosts_of = {task.name: task.host for task in self.plan.tasks}
        if is_dense(seed):
            drawn = dense(seed, self.plan.hosts, hosts_of)
            self.plan = plan_of(self.shape, steps or int((drawn[-1].at + HEALS_S) / STEP_S))
        else:
            drawn = happenings.drawn(self._random, self.plan.hosts, hosts_of, FAULTS_S)
            drawn += further_faults(seed, self.plan.hosts, FAULTS_S)
        if has_later_faults(seed):
            drawn += happenings.second_leaves(seed, drawn)
        drawn.sort()
        self.faults = drawn if faults is None else list(faults)
        self.machines: Dict[str, Machine] = {}
        self.training = Training(self.plan, lambda: self.agenda.now, self.network._passes, self._is_awake)
        self.training.known, self.training.on_disk = self._known_step, seed >= FURTHER_FROM
        self.training.copy, self.training.counted = self._copy, self._counted_steps
        self.loops: List[AgentLoop] = []
        self.promises, self.orders = Promises(self), Orders(self)
        self.operators: Any = operators_of(self)

    # -- the run

    def run(self) -> "World":
        """Let the history happen.

        Raises:
          Broken: a promise does not hold.
        """
        with replaced(self), self.operators.replaced():
            for host, rate in zip(self.plan.hosts, self.shape.rates):
                self.operators.machine(self, request_of(self.shape, self.plan, host), rate)
            self.agenda.after(1.0, self.operators.begin)
            self.agenda.after(TICK_S, self._tick)
            self.agenda.add(ALL_S, lambda: self.end({"do": "stop", "reason": "the night is over"}))
            for fault in self.faults:
                self.agenda.add(fault.at, partial(happenings.begin, fault, self))
                self.healed_at = max(self.healed_at, fault.at + min(fault.seconds, LONGEST_S) + OFF_S + UP_S)
            try:
                self._happen()
                outcomes.look(self)
            finally:
                for machine in self.machines.values():
                    machine.disk.due.clear()
                self._forget()
        return self

    def _forget(self) -> None:
        """End what is left of every life; what that writes is no part of the history."""
        happened, errors = len(self.history), len(self.errors)
        self.operators.forget()
        for loop in self.loops:
            loop.forget()
        del self.history[happened:], self.errors[errors:]

    def _happen(self) -> None:
        looked_at = 0.0
        while self.agenda.now < MOST_S:
            self.agenda.step()
            if self.errors:
                raise Broken(self.errors[0])
            if self.is_news or self.agenda.now > looked_at + LOOK_S:
                looked_at, self.is_news = self.agenda.now, False
                self.promises.look()
                self.operators.look()
                if self.is_over:
                    return

    @property
    def kinds(self) -> Set[str]:
        """The kinds of its faults."""
        return {fault.kind for fault in self.faults}

    @property
    def is_over(self) -> bool:
        """Whether no agent, no keeper and no process is left."""
        gone = all(machine.life is None and machine.keepers.newest is None for machine in self.machines.values())
        return gone and not self.living() and self.agenda.now > 5.0 and bool(self.operators.is_over)

    # -- the launcher and the operator

    def lose_launcher(self) -> None:
        """The launcher is gone."""
        self.operators.lose()

    def ask(self, request: Dict[str, Any]) -> None:
        """Ask the lead; no operator names a task that a successor does not have."""
        life, tasks = self.lead.life, {task.name for task in self.plan.tasks}
        if life is not None and self._is_awake(self.lead_host) and tasks.issuperset(request.get("tasks", [])):
            life.ask(request)

    def end(self, request: Dict[str, Any]) -> None:
        """Let the operator end the run."""
        self.note("-", f"the operator: {request['do']}")
        self.asked_at = self.agenda.now if self.asked_at is None else self.asked_at
        self.operators.end(request)

    def begin_anew(self, run: str, plan: RunPlan) -> None:
        """Another run begins, to which the promises apply from now on."""
        self.run_name, self.plan, self.lead_host = run, plan, lead_of(plan)
        self.cluster = form(0, plan.tasks, ()).cluster
        self.training.begin_anew(plan)
        self.asked_at, self.launcher_left_at, self.is_killing = None, None, False
        self.promises, self.lead.led_since = Promises(self), self.agenda.now

    def _copy(self, step: int) -> None:
        """Copy a checkpoint to other hosts, which may be out of reach."""
        source, members = self.lead, [host for host in self.plan.hosts if host != self.lead_host]
        is_there = step in saved.complete(source.disk, source.folder.checkpoint)
        for target in map(self.machines.__getitem__, members[: max(1, self.shape.replicas)]):
            passes = self.network._passes(source.host, target.host)
            if is_there and passes and source.folder.run == target.folder.run:
                with suppress(OSError):
                    saved.write(target.disk, target.folder.replica, step)

    # -- what the parts of the world ask

    @property
    def lead(self) -> Machine:
        """The host of the present run's chief, which its lead is on."""
        return self.machines[self.lead_host]

    def supervisor(self) -> Any:
        """The lead's, if there is a lead."""
        life, is_current = self.lead.life, self.lead.folder.run == self.run_name
        return life.agent._supervisor if life is not None and isinstance(life.agent, Lead) and is_current else None

    def new_pid(self) -> int:
        """A number that no other process has."""
        self._pids += 1
        return self._pids

    def living(self) -> List[Process]:
        """Processes that have not ended, of every host."""
        return [each for machine in self.machines.values() for each in machine.living()]

    def acting(self) -> List[Process]:
        """The processes that can do anything now; a child acts for its leader, also when that has ended."""
        return [each for each in self.living() if not (each.is_dying or each.waits) and self._is_awake(each.host)]

    @property
    def is_healthy(self) -> bool:
        """Whether every host that the run needs is there with its agent, and no process is frozen."""
        there = {host for host, machine in self.machines.items() if machine.has_agent}
        roles = [task.role for task in self.plan.tasks if task.host in there]
        is_enough = "ps" in roles and "worker" in roles if self.shape.elastic else len(there) == len(self.machines)
        return self.lead_host in there and is_enough and not any(each.is_frozen for each in self.acting())

    def _known_step(self) -> int:
        supervisor = self.supervisor()
        return 0 if supervisor is None else supervisor.incidents.stalls.newest or 0

    def _counted_steps(self) -> int:
        supervisor = self.supervisor()
        return int(supervisor.incidents.stalls.steps_lost) if supervisor is not None else 0

    def woken_lately(self) -> Set[str]:
        """Return the hosts whose agents may not have looked at their clocks since they woke."""
        return {host for host, at in self.woken_at.items() if self.agenda.now - at <= WAKING_S}

    def woke(self, host: str) -> None:
        """A machine has woken."""
        self.woken_at[host] = self.agenda.now

    def froze(self, host: str) -> None:
        """An agent is stopped; where it may not have looked at its clocks yet, its keeper ends what runs there."""
        if host in self.woken_lately():
            self.woken_at[host] = max(self.woken_at[host], self.agenda.now + FROZEN_S - WAKING_S)

    def note(self, host: str, text: str) -> None:
        """Add a line to the history: something has happened, after which promises must hold."""
        self.is_news = True
        self.history.append(Entry(self.agenda.now, host, text))

    def fail(self, text: str) -> None:
        """Note a promise that is broken in the middle of a step of an agent, which goes on."""
        self.errors.append(text)

    @property
    def digest(self) -> str:
        """A number of the whole history, with the last status."""
        status = self.lead.folder.read_whole("status.json") if self.machines else None
        return hashlib.sha256("\n".join(map(str, [*self.history, status])).encode()).hexdigest()[:16]

    def _is_awake(self, host: str) -> bool:
        machine = self.machines[host]
        return machine.has_power and not machine.clock.is_asleep

    def _tick(self) -> None:
        self.training.look(TICK_S)
        self.agenda.after(TICK_S, self._tick)

    # -- what agents ask: see ``replaced``

    def _here(self) -> Optional[AgentLoop]:
        loop = asyncio._get_running_loop()
        return loop if isinstance(loop, AgentLoop) else None

    def here(self) -> Machine:
        """The machine whose agent runs now."""
        loop: Any = asyncio._get_running_loop()
        machine: Machine = self.machines[loop.host]
        return machine

    def wall(self) -> float:
        """The calendar's time of the host whose agent runs now."""
        loop = self._here()
        return self.agenda.now if loop is None else loop.clock.wall()

    def since_boot(self) -> float:
        """The time since its boot."""
        loop = self._here()
        return self.agenda.now if loop is None else loop.clock.boottime()

    def token(self, size: int) -> str:
        """Random text, by the seed."""
        return f"{self._tokens.getrandbits(8 * size):0{2 * size}x}"

    def say(self, text: str) -> None:
        """Note a line of an agent's log."""
        loop = self._here()
        self.note("-" if loop is None else loop.host, text)
