"""The keeper of a simulated host: the product's decisions, on the machine's clocks and process table."""

import asyncio
import math
import signal
from dataclasses import replace
from typing import Any, List, Optional

from launch.agent.leftovers import GONE_S
from launch.agent.linux import processes
from launch.agent.service import beginning
from launch.agent.service.keeping import (
    BEGIN_S,
    FAILED,
    OVER,
    TAKEN,
    Keeping,
    Moment,
    PulseWatch,
    owns_records,
    patience_s,
)
from launch.agent.state import process_records
from launch.agent.wire.run_request import RunRequest
from tests.simulation.loops import AgentLoop

NOTICED_S = 0.3  # by the keeper, an end of its agent or of what that left
NOBODY = -1  # the parent of no process


class Keeper:
    """The process that ``launch.agent.service.keeper`` is: it reads, waits and sleeps on a loop of its own.

    Args:
      machine: where it begins agents.
      request: of its first agent, which is there as soon as it is.
      refused: the exit code of a first agent that cannot begin, as where another one has the name of the run.
    """

    def __init__(self, machine: Any, request: RunRequest, refused: Optional[int] = None):
        world = machine.world
        self._machine, self._request = machine, request
        self.pid = machine.new_keeper() if refused is None else NOBODY
        self.loop = AgentLoop(world.agenda, machine.clock, machine.host, world.network, world.fail)
        world.loops.append(self.loop)
        self._code = refused  # of the agent, once it has ended
        self._pulse, self._beats = self._new_pulse(), bytearray()  # what the agent has written, until it is read
        self._news: Any = None
        self._begun_at: List[float] = []  # next agents, also those that could not
        self._life: Any = None
        if refused is None:
            self._begin_life(request)
        self.loop.create_task(self._keep()).add_done_callback(self._ended)

    # -- what the machine asks

    @property
    def acts(self) -> bool:
        """Whether it is there, and is not stopped."""
        return not (self.loop.is_dead or self.loop.is_stopped)

    def write(self, what: int) -> None:
        """Take a byte of the pulse, and read it at once unless it is stopped."""
        self._beats.append(what)
        if self.acts:
            is_first = not self._pulse.begun
            self._read()
            if is_first and self._pulse.wait_s is None:
                self._look()

    def agent_ended(self, code: int) -> None:
        """The agent has ended."""
        self._code = code
        self._wake()

    # -- what ``keeper.keep`` does

    async def _keep(self) -> None:
        keeping = Keeping(self._request.detached)
        pause_s = keeping.ended(await self._watch(), self._pulse.begun, self.loop.time())
        while pause_s is not None:
            await asyncio.sleep(pause_s)
            self._begun_at.append(self._machine.world.agenda.now)
            self._machine.world.promises.begins_next(self._machine.host, self._life, self._begun_at)
            if not self._machine.keepers.have_memory:
                self._note("no agent begins for want of memory")
                pause_s = keeping.pause_s(self.loop.time())
                continue
            self._pulse, self._beats = self._new_pulse(BEGIN_S), bytearray()
            self._code = self._begin_next()
            pause_s = keeping.ended(await self._watch(), self._pulse.begun, self.loop.time())
        self._machine.keepers.ended(self, keeping.removes_unit)
        self.loop.is_dead = True

    async def _watch(self) -> int:
        """Wait for the end of the agent, clean up, and return its exit code."""
        self._look()
        while self._code is None:
            await self._wait()
            if self._pulse.is_missing:
                self._machine.end_agent("the agent is killed", FAILED)
        self._read()
        code = self._code
        await asyncio.sleep(NOTICED_S)
        await self._clean_up(owns_records(code))
        return code

    def _begin_next(self) -> Optional[int]:
        """Begin the next agent as ``beginning.serve_again`` does; return its exit code where it ends at once."""
        if not beginning.goes_on(self._machine.folder, self._request):
            return OVER
        if process_records.tasks_of(self._machine.folder):
            self._note("the next agent ends: something of the one before hangs")
            return TAKEN
        refusal: Optional[int] = self._machine.keepers.refusal
        if refusal is not None:
            self._note(f"the next agent ends: {refusal}")
            return refusal
        self._code = None
        self._begin_life(replace(self._request, again=True))
        return self._code

    def _begin_life(self, request: RunRequest) -> None:
        life = self._machine.begin_life(request, self)
        if life is None:
            self._code = FAILED
        else:
            self._life = life

    async def _clean_up(self, is_ours: bool) -> None:
        """Do what ``leftovers.end_as_keeper`` does: kill what is left, and wait for its end in bounded time."""
        if is_ours and self._machine.keepers.newest is not self:  # the records name those
            self._machine.keepers.kill()
            self._machine.kill_agent()
        until = self.loop.time() + (2 * GONE_S if is_ours else GONE_S)
        while self._left(is_ours) and self.loop.time() < until:
            for each in self._left(is_ours):
                processes.signal_process(each.pid, each.start, signal.SIGKILL)
            await asyncio.sleep(NOTICED_S)

    def _left(self, is_ours: bool) -> List[processes.Process]:
        own = processes.descendants(processes.table(), self.pid)
        return own + (process_records.tasks_of(self._machine.folder) if is_ours else [])

    # -- its edge

    def _new_pulse(self, first_s: Optional[float] = None) -> PulseWatch:
        return PulseWatch(patience_s(self._request.lost_after_s), self._moment(), first_s)

    def _moment(self) -> Moment:
        return Moment(self._machine.clock.monotonic(), self._machine.clock.boottime())

    def _look(self) -> None:
        """Read what there is, and look again after the wait, which a poll counts in milliseconds."""
        self._read()
        if not self._pulse.goes_on(self._moment()):
            self._wake()
        elif self._pulse.wait_s is not None:
            self.loop.call_later(math.ceil(1000 * self._pulse.wait_s) / 1000, self._look)

    def _read(self) -> None:
        if self._beats or self._code is not None:
            self._pulse.read(bytes(self._beats), self._moment())
            self._beats.clear()

    async def _wait(self) -> None:
        self._news = self.loop.create_future()
        await self._news

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _note(self, text: str) -> None:
        self._machine.world.note(self._machine.host, text)

    def _ended(self, keeping: Any) -> None:
        if not keeping.cancelled() and keeping.exception() is not None:
            self._machine.world.fail(f"I0: {self._machine.host}: the keeper ends: {keeping.exception()!r}")


class Keepers:
    """The keepers of one host, one after another.

    ``was_kept`` is whether none of them was stopped or killed. What hinders next agents: ``have_memory`` is whether a
    keeper can fork, and ``refusal`` is their exit code while they cannot begin.
    """

    def __init__(self, machine: Any):
        self._machine = machine
        self.newest: Optional[Keeper] = None
        self.was_kept = self.have_memory = True
        self.refusal: Optional[int] = None

    def begin(self, request: RunRequest) -> None:
        """A keeper begins, with its first agent."""
        self.newest = Keeper(self._machine, request)
        if not self._machine.has_power:  # its first agent has met the end of that
            self.lose_power()

    def agent_ended(self, code: int) -> None:
        """The agent has ended; without a keeper, no other begins."""
        if self.newest is not None:
            self.newest.agent_ended(code)
        else:
            self._machine.life = None

    def kill(self) -> None:
        """The keeper is killed: nobody watches the agent any more, nor begins another one."""
        if self.newest is not None and not self._machine.clock.is_asleep:
            self._note("the keeper is killed")
            self.newest.loop.is_dead, self.newest, self.was_kept = True, None, False
            if self._machine.life is not None and self._machine.life.loop.is_dead:
                self._machine.life = None

    def stop(self) -> None:
        """The keeper's process is stopped."""
        if self.newest is not None and not self._machine.clock.is_asleep:
            self._note("the keeper is stopped")
            self.newest.loop.is_stopped, self.was_kept = True, False

    def go_on(self) -> None:
        """It goes on, if it is there yet."""
        if self.newest is not None and self.newest.loop.is_stopped:
            self.newest.loop.go_on()

    def begin_rival(self) -> None:
        """Somebody starts the agent once more, and finds that the run's name is taken here."""
        if self._machine.has_agent:
            self._note("another agent begins, and finds the name taken")
            Keeper(self._machine, self._machine.request, refused=TAKEN)

    def lose_power(self) -> None:
        """Nothing is left of it."""
        if self.newest is not None:
            self.newest.loop.is_dead, self.newest = True, None

    def ended(self, keeper: Keeper, removes_unit: bool) -> None:
        """A keeper ends after its agents."""
        if removes_unit:
            self._machine.has_unit = False
        if self.newest is keeper:
            self.newest = self._machine.life = None
            if removes_unit and self._machine.world.operators.restarts(self._machine):
                self.begin(replace(self._machine.request, again=True))

    def _note(self, text: str) -> None:
        self._machine.world.note(self._machine.host, text)
