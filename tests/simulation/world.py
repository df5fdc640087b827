"""One history: a run on some hosts, from the launcher's go to its end, with the faults of a seed."""

import asyncio
import hashlib
import json
from functools import partial
from random import Random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from launch.agent.service.lead import Lead
from launch.agent.supervision.formation import form
from launch.agent.wire.run_plan import RunPlan, TaskPlan
from launch.agent.wire.run_request import Lead as LeadPlace
from launch.agent.wire.run_request import RunRequest, TaskRequest
from launch.run.boot_returns import DESERTED_S, ELASTIC_REJOIN_S, RETURN_S
from tests.simulation import faults as happenings
from tests.simulation import outcomes
from tests.simulation.faults import LONGEST_S, Fault
from tests.simulation.loops import Agenda, AgentLoop
from tests.simulation.machines import UP_S, Machine
from tests.simulation.network import Network
from tests.simulation.orders import Orders
from tests.simulation.processes import Process
from tests.simulation.promises import Broken, Promises
from tests.simulation.replaced import Stat, replaced
from tests.simulation.training import Training

RUN, LEASE_S, BEAT_S, TICK_S = "r-20260101-000000", 15.0, 3.0, 0.5
FAULTS_S, ALL_S, MOST_S = 480.0, 900.0, 1800.0  # faults come until then; the operator stops it; no history is longer
STEPS = 1500  # ten minutes, without a fault


class Shape(NamedTuple):
    """The hosts and settings of a run."""

    hosts: int
    ps: int
    workers: int
    elastic: bool
    detached: bool
    returns: bool  # boots start agents again
    spare: bool  # a ps that waits
    rates: Sequence[float]


class Entry(NamedTuple):
    """A line of a history: when, on which host, what."""

    at: float
    host: str
    text: str


def shape(random: Random) -> Shape:
    """The run of a seed."""
    hosts = random.randint(2, 5)
    rates = [random.choice([1.0, 1.0, 1.0, 0.97, 1.03]) for _ in range(hosts)]
    ps, workers = random.randint(1, 2), random.randint(2, 5)
    elastic, detached, returns, spare = (random.random() < share for share in (0.5, 0.6, 0.5, 0.3))
    return Shape(hosts, ps, workers, elastic, detached, detached and returns, elastic and spare, rates)


class World:
    """A world by its seed; ``faults`` are those of the seed, or others in their place."""

    def __init__(self, seed: int, faults: Optional[Sequence[Fault]] = None):
        self.seed, self._random = seed, Random(seed)
        self.shape = shape(self._random)
        self.agenda = Agenda()
        self.network = Network(self.agenda, Random(seed + 1))
        self.history: List[Entry] = []
        self.errors: List[str] = []
        self.is_detached = self.shape.detached
        self.asked_at: Optional[float] = None
        self.is_killing = False
        self.healed_at = 0.0
        self.woken_at: Dict[str, float] = {}
        self._tokens, self.random_of_disks = Random(seed + 2), Random(seed + 3)
        self._pids = 0
        self._has_launcher, self.is_news = True, False
        self.plan = self._plan()
        self._cluster = form(0, self.plan.tasks, ()).cluster
        self.names = [task.name for task in self.plan.tasks]
        drawn = happenings.drawn(self._random, self.plan.hosts, self.names, FAULTS_S)
        self.faults = drawn if faults is None else list(faults)
        self.machines: Dict[str, Machine] = {}
        self.training = Training(self.plan, lambda: self.agenda.now, self.network._passes, self._is_awake)
        self.training.known = self._known_step
        self.loops: List[AgentLoop] = []
        self.promises, self.orders = Promises(self), Orders(self)

    # -- the run

    def _plan(self) -> RunPlan:
        of = self.shape
        hosts = [f"h{index}" for index in range(of.hosts)]
        roles = [("ps", of.ps), ("worker", of.workers)]
        tasks: List[TaskPlan] = []
        for role, number in roles:
            for index in range(number):
                host = hosts[(index + (role == "ps")) % of.hosts]  # the chief is on the lead's
                chief = role == "worker" and index == 0
                tasks.append(TaskPlan(f"{role}:{index}", role, index, host, f"{host}:{3000 + len(tasks)}", chief))
        if of.spare:
            tasks.append(TaskPlan(f"ps:{of.ps}", "ps", of.ps, hosts[-1], f"{hosts[-1]}:4000", False, spare=True))
        patient = dict.fromkeys(hosts[1:], RETURN_S) if of.returns and not of.elastic else {}
        rejoin_s = (ELASTIC_REJOIN_S if of.elastic else RETURN_S) if of.returns else None
        return RunPlan(
            RUN, "r", hosts, tasks, steps=STEPS, restart_max=4, control="h0:2000", frozen_s=None,
            min_workers=1 if of.elastic else None, patience=patient, rejoin_s=rejoin_s,
        )  # fmt: skip

    def _request(self, host: str) -> RunRequest:
        tasks = [
            TaskRequest(
                t.name, ("true",), {}, "job", t.role, t.index, host, t.address, 2222, chief=t.chief, spare=t.spare
            )
            for t in self.plan.tasks
            if t.host == host
        ]
        cluster: Dict[str, List[str]] = {}
        for task in self.plan.tasks:
            cluster.setdefault(task.role, []).append(task.address)
        return RunRequest(
            RUN, "r", host, "~/w", {}, "r.yaml", json.dumps(cluster), tuple(tasks), "token",
            LeadPlace("h0", "h0:2000"), lost_after_s=10.0, join_s=20.0, grace_s=10.0, lease_s=LEASE_S,
            detached=self.is_detached, run_plan=self.plan if host == "h0" else None, returns=self.shape.returns,
            stay_s=RETURN_S if self.shape.returns else 20.0, deserted_s=DESERTED_S if self.shape.returns else 60.0,
        )  # fmt: skip

    def run(self) -> "World":
        """Let the history happen.

        Raises:
          Broken: a promise does not hold.
        """
        with replaced(self._wall, self._since_boot, self._token, self._say, self._stat):
            for host, rate in zip(self.plan.hosts, self.shape.rates):
                self.machines[host] = Machine(self, self._request(host), rate)
            self.agenda.after(1.0, self._launch)
            self.agenda.after(TICK_S, self._tick)
            self.agenda.add(ALL_S, lambda: self.end({"do": "stop", "reason": "the night is over"}))
            for fault in self.faults:
                self.agenda.add(fault.at, partial(happenings.begin, fault, self))
                self.healed_at = max(self.healed_at, fault.at + min(fault.seconds, LONGEST_S) + UP_S)
            try:
                self._happen()
                outcomes.look(self)
            finally:
                self._forget()
        return self

    def _forget(self) -> None:
        """End what is left of every life; what that writes is no part of the history."""
        happened, errors = len(self.history), len(self.errors)
        for loop in self.loops:
            loop.forget()
        del self.history[happened:], self.errors[errors:]

    def _happen(self) -> None:
        looked_at = 0.0
        while self.agenda.now < MOST_S and not self.is_over:
            self.agenda.step()
            if self.errors:
                raise Broken(self.errors[0])
            if self.is_news or self.agenda.now > looked_at + 0.1:
                looked_at, self.is_news = self.agenda.now, False
                self.promises.look()

    @property
    def is_over(self) -> bool:
        """Whether no agent and no process is left."""
        for machine in self.machines.values():  # asked after every event, so without a generator
            if machine.life is not None:
                return False
        return self.agenda.now > 5.0 and all(each.code is not None for each in self.training.processes)

    # -- the launcher and the operator

    def _launch(self) -> None:
        self.ask({"do": "go"})
        if self.is_detached:
            self.agenda.after(10.0, lambda: self.ask({"do": "detach"}))
        self._beat()

    def _beat(self) -> None:
        if self._has_launcher and self.agenda.now < MOST_S:
            self.ask({"do": "beat"})
            self.agenda.after(BEAT_S, self._beat)

    def lose_launcher(self) -> None:
        """The launcher is gone."""
        self._has_launcher = False

    def ask(self, request: Dict[str, Any]) -> None:
        """Ask the lead."""
        life = self.machines["h0"].life
        if life is not None and self._is_awake("h0"):
            life.ask(request)

    def end(self, request: Dict[str, Any]) -> None:
        """Let the operator end the run on every host, again and again as ``down`` does."""
        self.note("-", f"the operator: {request['do']}")
        self.asked_at = self.agenda.now if self.asked_at is None else self.asked_at
        self._down(request, 0)

    def _down(self, request: Dict[str, Any], again: int) -> None:
        hosts = ["h0"] if again < 4 else list(self.machines)
        for host in hosts:
            life = self.machines[host].life
            asked = request if again < 8 else {"do": "kill", "reason": "the operator"}
            self.is_killing = self.is_killing or asked["do"] == "kill"
            if life is not None and self._is_awake(host):
                life.ask(asked)
        if not self.is_over and self.agenda.now < MOST_S:
            self.agenda.after(10.0, lambda: self._down(request, again + 1))

    # -- what the parts of the world ask

    def supervisor(self) -> Any:
        """The lead's, if there is a lead."""
        life = self.machines["h0"].life
        return life.agent._supervisor if life is not None and isinstance(life.agent, Lead) else None

    def new_process(self, task: str, attempt: int, host: str, formation: Optional[str]) -> Process:
        """A process with a pid of its own."""
        self._pids += 1
        return Process(task, attempt, host, self._pids, self.agenda.now, formation or self._cluster)

    def new_life_of(self, task: str, host: str) -> None:
        """Let a process of a task begin that nobody has ordered."""
        self.machines[host].begin(task, 9, None)

    def acting(self) -> List[Process]:
        """The processes that can do anything now."""
        return [
            each
            for each in self.training.processes
            if each.code is None and not each.is_dying and self._is_awake(each.host)
        ]

    @property
    def is_healthy(self) -> bool:
        """Whether every host that the run needs is there with its agent, and no process is frozen."""
        there = {host for host, machine in self.machines.items() if machine.has_agent}
        roles = [task.role for task in self.plan.tasks if task.host in there]
        is_enough = "ps" in roles and "worker" in roles if self.shape.elastic else len(there) == len(self.machines)
        return "h0" in there and is_enough and not any(each.is_frozen for each in self.acting())

    def _known_step(self) -> int:
        supervisor = self.supervisor()
        return 0 if supervisor is None else supervisor.incidents.stalls.newest or 0

    def woke(self, host: str) -> None:
        """A machine has woken."""
        self.woken_at[host] = self.agenda.now

    def note(self, host: str, text: str) -> None:
        """Add a line to the history: something has happened, after which promises must hold."""
        self.is_news = True
        self.history.append(Entry(self.agenda.now, host, text))

    def fail(self, text: str) -> None:
        """Note a promise that is broken in the middle of a step of an agent, which goes on."""
        self.errors.append(text)

    @property
    def digest(self) -> str:
        """A number of the whole history."""
        return hashlib.sha256("\n".join(map(str, self.history)).encode()).hexdigest()[:16]

    def _is_awake(self, host: str) -> bool:
        machine = self.machines[host]
        return machine.has_power and not machine.clock.is_asleep

    def _tick(self) -> None:
        self.training.look(TICK_S)
        self.agenda.after(TICK_S, self._tick)

    def _here(self) -> Optional[AgentLoop]:
        loop = asyncio._get_running_loop()
        return loop if isinstance(loop, AgentLoop) else None

    def _wall(self) -> float:
        loop = self._here()
        return self.agenda.now if loop is None else loop.clock.wall()

    def _since_boot(self) -> float:
        loop = self._here()
        return self.agenda.now if loop is None else loop.clock.boottime()

    def _token(self, size: int) -> str:
        return f"{self._tokens.getrandbits(8 * size):0{2 * size}x}"

    def _say(self, text: str) -> None:
        loop = self._here()
        self.note("-" if loop is None else loop.host, text)

    def _stat(self, path: str) -> Stat:
        _, _, host, *_, name = path.split("/")
        return Stat(self.machines[host].files.changed[name])
