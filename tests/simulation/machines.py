"""A simulated host: it boots, sleeps and loses power; on it an agent, its keeper, and its processes."""

import asyncio
from dataclasses import replace
from typing import Any, AsyncIterator, Dict, Optional

from launch.agent.service import recovery
from launch.agent.service.lead import Lead
from launch.agent.service.liveness_pipe import CHANCE_S, granted_s, patience_s
from launch.agent.service.member import Member
from launch.agent.supervision.agents import MOST
from launch.agent.wire.run_request import RunRequest
from tests.simulation.host_tasks import HostTasks
from tests.simulation.loops import AgentLoop, Clock
from tests.simulation.processes import Process
from tests.simulation.replaced import Files, Folder

NOTICED_S = 0.3  # by the keeper, an end of its agent
PAUSE_S = 0.5
UP_S = 20.0  # after a boot, until its unit starts the agent
OFF_S = 2.0  # after the agent has gone away, until the machine is off


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
            more = [request.run_plan] if request.run_plan is not None else []
            self.agent = kind(request, *more, machine.folder, self.tasks, events)
            world.orders.watch(self)
            self.loop.create_task(self._live()).add_done_callback(self._ended)

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
        self.machine.left(self, self.agent.is_away)

    def _ended(self, living: Any) -> None:
        if not living.cancelled() and living.exception() is not None:
            self.machine.world.fail(f"I0: {self.machine.host}: the agent ends: {living.exception()!r}")

    @property
    def leads(self) -> str:
        """Return the incarnation of the lead that orders what this life starts."""
        return str(self.agent.incarnation if isinstance(self.agent, Lead) else self.agent._serves)

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
        self.folder = Folder(request.run, request.host, self.files)
        self.folder.write("plan.json", {}, durable=True)
        self.has_power = True
        self._ends = 0
        self._has_unit = request.returns  # which starts the agent after a boot
        self.led_since: Optional[float] = None  # since when the newest agent has been there, but for the first
        self.life: Optional[Life] = Life(self, request)

    # -- processes

    def begin(self, task: str, attempt: int, formation: Optional[str]) -> Process:
        """Start a process."""
        process = self.world.new_process(task, attempt, self.host, formation)
        process.lead = self.life.leads if self.life is not None else ""
        self.world.training.processes.append(process)
        self.world.promises.starts(process)
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

    @property
    def has_agent(self) -> bool:
        """Return whether an agent is there to do anything."""
        life = self.life
        return life is not None and not life.loop.is_dead and self.has_power and not self.clock.is_asleep

    def stop_agent(self) -> None:
        """The agent's process is stopped; its keeper kills one without a pulse."""
        if self.has_agent and self.life is not None:
            life = self.life
            with life.loop.within():
                patience = granted_s(patience_s(self._request.lost_after_s), life.agent.left_s()) + CHANCE_S
            self.world.note(self.host, "the agent is stopped")
            life.loop.stop()

            def missed() -> None:
                if life.loop.is_stopped and not self.clock.is_asleep and self.life is life:
                    self.kill_agent()

            self.world.agenda.after(patience, missed)

    def continue_agent(self) -> None:
        """It goes on, if it is there yet."""
        if self.life is not None and self.life.loop.is_stopped:
            self.life.loop.woke()

    def kill_agent(self) -> None:
        """The agent is killed; its keeper ends what it left, and begins the next one where the run is detached."""
        life = self.life
        if life is None or not self.has_agent:
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
            self.life, self._has_unit = None, False

    def leave(self, why: str) -> None:
        """The agent learns that its machine is to go."""
        if self.has_agent and self.life is not None:
            with self.life.loop.within():
                self.life.agent.leave(why)

    def _again(self, booted: bool = False) -> None:
        if self.has_power and not self.clock.is_asleep and not self.living():
            self.world.note(self.host, "the next agent begins")
            self.led_since = self.world.agenda.now
            self.life = Life(self, replace(self._request, again=True, booted=booted))
        elif self.has_power:
            self.world.agenda.after(NOTICED_S, lambda: self._again(booted))

    def left(self, life: Life, is_away: bool) -> None:
        """The agent has ended in order, perhaps until a boot."""
        self.world.note(self.host, "the agent is away" if is_away else "the agent leaves")
        self.world.network.died(life.loop)
        self._has_unit = self._has_unit and is_away
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
        self.files.lose(self.world.random_of_disks)
        for process in self.living():
            process.code = -9
        if self.life is not None:
            self.life.loop.is_dead = True
            self.world.network.died(self.life.loop, has_power=False)
        self.life = None

    def boot(self) -> None:
        """The machine is there again; a unit starts the next agent where the run has asked for one."""
        if not self.has_power:
            self.world.note(self.host, "boots")
            self.has_power = True
            self.world.network.off.discard(self.host)
            self.world.agenda.after(UP_S, self._return)

    def _return(self) -> None:
        """Do what ``launch.agent.service.boot_return`` does."""
        if not self._has_unit or not self.world.is_detached or self.life is not None:
            return
        if recovery.goes_on(self.folder, self._request):
            self._again(booted=True)
        else:
            self._has_unit = False

    def reboot(self) -> None:
        """The machine goes down in order, and boots later."""
        if not self.has_agent or self.life is None:
            return
        with self.life.loop.within():
            if self._has_unit and self.world.is_detached:
                self.life.agent.go_away()
            else:
                self.life.agent.leave("its agent received SIGTERM")
        self.world.agenda.after(OFF_S, self.lose_power)

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
