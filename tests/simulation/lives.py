"""One life of a simulated host's agent, from its start until it leaves, dies, or its machine does."""

import asyncio
from functools import partial
from typing import Any, AsyncIterator, Callable, Dict, List, Tuple

from launch.agent.service.daemon import leave_nothing
from launch.agent.service.keeping import beat, patience_s
from launch.agent.service.lead import Lead
from launch.agent.service.located import located
from launch.agent.service.member import Member
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.tasks.spawning import TaskShare
from launch.agent.wire.run_request import RunRequest
from tests.simulation.loops import AgentLoop, Gone


class Life:
    """One life of a host's agent.

    Args:
      write: writes a byte of its pulse to its keeper.
    """

    def __init__(self, machine: Any, request: RunRequest, write: Callable[[int], None]):
        world = machine.world
        self.machine = machine
        self.loop = AgentLoop(world.agenda, machine.clock, machine.host, world.network, world.fail)
        world.loops.append(self.loop)
        self.is_over = False
        self._asked: List[Tuple[float, str, Any]] = []  # when, for what, and its answering
        self.agent: Any = None
        with self.loop.within():
            events: asyncio.Queue[Any] = asyncio.Queue()
            own = located(request, machine.folder)
            gpus: Dict[str, List[int]] = {task.name: [] for task in own.tasks}
            self.tasks = HostTasks(own.tasks, machine.folder, TaskShare(gpus), events.put_nowait, {})
            kind: Any = Lead if own.run_plan is not None else Member
            more = [own.run_plan] if own.run_plan is not None else []
            self.agent = kind(own, *more, machine.folder, self.tasks, events)
            world.orders.watch(self)
            self._beat = partial(beat, write, patience_s(request.lost_after_s), self.agent.left_s)
            self.loop.create_task(self._live()).add_done_callback(self._ended)

    async def _live(self) -> None:
        if not await self._opened():
            return
        pulse = self.loop.create_task(self._beat())
        await self.agent.run()
        await leave_nothing(self.tasks, [])
        await self._close()
        pulse.cancel()
        await asyncio.wait([pulse])  # a call may block until then: only the last byte tells the keeper that it is over
        self.is_over = True
        await asyncio.sleep(self.machine.tidies_s)
        self.machine.left(self, self.agent.is_away)

    async def _opened(self) -> bool:
        """Return whether the agent can listen."""
        await self.agent.open()
        return True

    async def _close(self) -> None:
        """Close what local callers have asked."""

    def _ended(self, living: Any) -> None:
        if not living.cancelled() and not isinstance(living.exception(), (Gone, type(None))):
            self.machine.world.fail(f"I0: {self.machine.host}: the agent ends: {living.exception()!r}")

    @property
    def leads(self) -> str:
        """Return the incarnation of the lead that orders what this life starts."""
        return str(self.agent.incarnation if isinstance(self.agent, Lead) else self.agent._serves)

    def wake(self) -> None:
        """Let the agent know of the end of a child."""
        if not self.loop.is_dead:
            with self.loop.within():
                self.loop.call_soon(self.agent.wake)

    def ask(self, request: Dict[str, Any]) -> None:
        """Let a local caller ask the agent."""
        if not self.loop.is_dead:
            with self.loop.within():
                answered = self.loop.create_task(_all(self.agent.answer(request)))
            self._asked.append((self.machine.world.agenda.now, request["do"], answered))

    def unanswered(self, seconds: float) -> List[str]:
        """Return what local callers have asked for that has had no last answer for so long, but for a stop."""
        self._asked = [each for each in self._asked if not each[2].done()]
        now, went_on_at = self.machine.world.agenda.now, self.machine.went_on_at
        return [what for at, what, _ in self._asked if now - max(at, went_on_at) > seconds]


async def _all(answers: AsyncIterator[Any]) -> None:
    async for _ in answers:
        pass
