"""A simulated host: it boots, sleeps and loses power; on it an agent, its keeper, and its processes."""

import asyncio
from dataclasses import replace
from typing import Any, AsyncIterator, Dict, Optional

from launch.agent.service.lead import Lead
from launch.agent.service.member import Member
from launch.agent.supervision.agents import MOST
from launch.agent.wire.run_request import RunRequest
from tests.simulation.host_tasks import HostTasks
from tests.simulation.loops import AgentLoop, Clock
from tests.simulation.processes import Process
from tests.simulation.replaced import Files, Folder

NOTICED_S = 0.3  # by the keeper, an end of its agent
PAUSE_S = 0.5


class Life:
    """One life of a host's agent."""

    def __init__(self, machine: "Machine", request: RunRequest):
        world = machine.world
        self.machine, self.request = machine, request
        self.loop = AgentLoop(world.agenda, machine.clock, machine.host, world.network, world.fail)
        world.loops.append(self.loop)
        self.is_over = False
        self.agent: Any = None
        with self.loop.within():
            events: asyncio.Queue[Any] = asyncio.Queue()
            self.tasks = HostTasks(events.put_nowait, self._begin)
            kind: Any = Lead if request.run_plan is not None else Member
            folder = Folder(request.run, request.host, machine.files)
            more = [request.run_plan] if request.run_plan is not None else []
            self.agent = kind(request, *more, folder, self.tasks, events)
            self.loop.create_task(self._live())

    def _begin(self, task: str, attempt: int, formation: Optional[str]) -> Process:
        process = self.machine.begin(task, attempt, formation)
        process.end = lambda number: self.machine.end(process, number)
        return process

    async def _live(self) -> None:
        await self.agent.open()
        await self.agent.run()
        while self.tasks.running:  # as the daemon sweeps
            self.tasks.stop_all(0.0, self.loop.time())
            self.tasks.poll(self.loop.time())
            await asyncio.sleep(0.05)
        self.is_over = self.loop.is_dead = True
        self.machine.left(self)

    def ask(self, request: Dict[str, Any]) -> None:
        """Let a local caller ask the agent."""
        if not self.loop.is_dead:
            with self.loop.within():
                self.loop.create_task(_all(self.agent.answer(request)))


async def _all(answers: AsyncIterator[Any]) -> None:
    async for _ in answers:
        pass


class Machine:
    """A host with its clock, files and processes.

    Args:
      world: has agenda, network, training, and takes notes.
      request: of its agent.
    """

    def __init__(self, world: Any, request: RunRequest, rate: float):
        self.world, self.host, self._request = world, request.host, request
        self.clock = Clock(world.agenda, rate)
        self.files = Files(self.clock.wall)
        self.files.texts["plan.json"], self.files.changed["plan.json"] = "{}", self.clock.wall()
        self.has_power = True
        self._ends = 0
        self.life: Optional[Life] = Life(self, request)

    # -- processes

    def begin(self, task: str, attempt: int, formation: Optional[str]) -> Process:
        """Start a process."""
        process = self.world.new_process(task, attempt, self.host, formation)
        self.world.training.processes.append(process)
        self.world.note(self.host, f"starts {task} attempt {attempt}")
        return process  # type: ignore[no-any-return]

    def end(self, process: Process, code: int) -> None:
        """A process gets a signal, or ends by itself; it is gone some time later."""

        def gone() -> None:
            if process.code is None:
                process.code = code
                self.world.note(self.host, f"{process.task} attempt {process.attempt} ends: {code}")

        self.world.agenda.after(process.dies_after, gone)

    def living(self) -> Any:
        """Processes that have not ended."""
        return [each for each in self.world.training.processes if each.host == self.host and each.code is None]

    # -- the agent

    def kill_agent(self) -> None:
        """The agent is killed; its keeper ends what it left, and begins the next one where the run is detached."""
        life = self.life
        if life is None or life.loop.is_dead or not self.has_power or self.clock.is_asleep:
            return
        self.world.note(self.host, "the agent is killed")
        life.loop.is_dead = True
        self.world.network.died(life.loop)
        for process in self.living():
            self.end(process, -9)
        self._ends += 1
        if self._ends <= MOST and self.world.is_detached:
            self.world.agenda.after(NOTICED_S + PAUSE_S * 4 ** min(self._ends - 1, 2), self._again)
        else:
            self.life = None

    def _again(self, booted: bool = False) -> None:
        if self.has_power and not self.clock.is_asleep and not self.living():
            self.world.note(self.host, "the next agent begins")
            self.life = Life(self, replace(self._request, again=True, booted=booted))
        elif self.has_power:
            self.world.agenda.after(NOTICED_S, lambda: self._again(booted))

    def left(self, life: Life) -> None:
        """The agent has ended in order."""
        self.world.note(self.host, "the agent leaves")
        self.world.network.died(life.loop)
        if self.life is life:
            self.life = None

    # -- the machine

    def lose_power(self) -> None:
        """Everything here ends, and nobody is told."""
        if not self.has_power:
            return
        self.world.note(self.host, "loses power")
        self.has_power = False
        self.world.network.off.add(self.host)
        for process in self.living():
            process.code = -9
        if self.life is not None:
            self.life.loop.is_dead = True
            self.world.network.died(self.life.loop, has_power=False)
        self.life = None

    def boot(self) -> None:
        """The machine is there again; no agent begins, as the run asked for none."""
        if not self.has_power:
            self.world.note(self.host, "boots")
            self.has_power = True
            self.world.network.off.discard(self.host)

    def sleep(self) -> None:
        """The machine is suspended, with all that runs on it."""
        if self.has_power and not self.clock.is_asleep:
            self.world.note(self.host, "sleeps")
            self.clock.sleep()
            self.world.network.asleep.add(self.host)

    def wake(self) -> None:
        """It goes on."""
        if self.clock.is_asleep:
            self.world.note(self.host, "wakes")
            self.clock.wake()
            self.world.network.asleep.discard(self.host)
            self.world.woke(self.host)
            if self.life is not None:
                self.life.loop.woke()
