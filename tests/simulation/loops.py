"""Virtual time: all that happens in the world in its order, and an event loop for each agent."""

import asyncio
import heapq
import itertools
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from launch.agent.state.runs import stamp
from tests.simulation.runs import RUN


class Agenda:
    """What will happen, by its time; ``now`` is that of what happens."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = itertools.count()
        self._due: List[Tuple[float, int, Callable[..., object], Tuple[Any, ...]]] = []

    def add(self, when: float, happen: Callable[..., object], *of: Any) -> None:
        """Let something happen at a time, or now if that is over; what is of one time keeps its order."""
        heapq.heappush(self._due, (when if when > self.now else self.now, next(self._numbers), happen, of))

    def after(self, seconds: float, happen: Callable[[], object]) -> None:
        """Let something happen later."""
        self.add(self.now + seconds, happen)

    def step(self) -> None:
        """Let the next thing happen; time jumps there."""
        self.now, _, happen, of = heapq.heappop(self._due)
        happen(*of)

    def left(self, happen: Callable[..., object]) -> List[Any]:
        """With what one thing is still to happen, in its order."""
        return [of[0] for _, _, each, of in sorted(self._due) if each == happen]


class Clock:
    """A host's clocks: one that never jumps, and the calendar's. Both stand still while the machine sleeps.

    Args:
      rate: seconds on this clock in one second of the world.
      wall: the calendar's time as the world begins, by default that in the first run's name.
    """

    def __init__(self, agenda: Agenda, rate: float = 1.0, wall: float = stamp(RUN)):
        self._agenda, self._rate, self._wall = agenda, rate, wall
        self._slept_s = 0.0
        self._asleep_at: Optional[float] = None

    @property
    def is_asleep(self) -> bool:
        """Whether the machine sleeps."""
        return self._asleep_at is not None

    def sleep(self) -> None:
        """The machine is suspended."""
        self._asleep_at = self._agenda.now

    def wake(self) -> None:
        """It goes on."""
        assert self._asleep_at is not None
        self._slept_s, self._asleep_at = self._slept_s + self._agenda.now - self._asleep_at, None

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC, which does not count sleep."""
        now = self._agenda.now if self._asleep_at is None else self._asleep_at
        return (now - self._slept_s) * self._rate

    def boottime(self) -> float:
        """CLOCK_BOOTTIME, which does."""
        return self._agenda.now * self._rate

    def wall(self) -> float:
        """The calendar's time, which jumps."""
        return self._wall + self._agenda.now * self._rate

    def jump(self, seconds: float) -> None:
        """Set the calendar's time."""
        self._wall += seconds

    def when(self, monotonic: float) -> float:
        """The world's time at which the clock shows this, if the machine does not sleep until then."""
        return monotonic / self._rate + self._slept_s


_FEW = 50  # tasks, before those that are done are left out
_CANCELS = 50  # of a task that goes on, before it is left
_Loop: Any = asyncio.AbstractEventLoop  # of which it has what agents use


class Gone(KeyboardInterrupt):
    """The agent that runs ends here, in the middle of a call; loops pass on no other exception of a callback."""


class AgentLoop(_Loop):  # type: ignore[misc]
    """The event loop of one life of an agent, or of a keeper.

    Args:
      network: makes its connections, as ``host``.
      fail: receives what no coroutine has handled.
    """

    def __init__(self, agenda: Agenda, clock: Clock, host: str, network: Any, fail: Callable[[str], None]):
        self._agenda, self.clock, self.host, self._network, self._fail = agenda, clock, host, network, fail
        self.is_dead = self.is_stopped = False
        self._stands_until = 0.0
        self._held: List[Any] = []  # handles that are due meanwhile, or after this life
        self._tasks: List[Any] = []  # all that are not done, in the order of their begin, and some that are
        self._many = _FEW
        self._last: Optional[List[Any]] = None  # handles, once the world is over

    # -- what coroutines ask

    def time(self) -> float:
        return self.clock.monotonic()

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        return self._put(asyncio.Handle(callback, list(args), self, context), self._agenda.now)

    call_soon_threadsafe = call_soon

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        return self._put(asyncio.TimerHandle(when, callback, list(args), self, context), self.clock.when(when))

    def _timer_handle_cancelled(self, handle: Any) -> None:
        pass

    def create_future(self) -> Any:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **more: Any) -> Any:
        if len(self._tasks) > self._many:
            self._tasks = [each for each in self._tasks if not each.done()]
            self._many = 2 * len(self._tasks) + _FEW
        task: Any = asyncio.Task(coro, loop=self)
        self._tasks.append(task)
        return task

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def set_exception_handler(self, handler: Any) -> None:
        pass

    def default_exception_handler(self, context: Dict[str, Any]) -> None:
        self.call_exception_handler(context)

    def call_exception_handler(self, context: Dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), Gone):
            self._fail(f"I0: {self.host}: {context.get('message')}: {context.get('exception')!r}")

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **more: Any) -> Any:
        transport, protocol = await self._network.connect(self, str(host), int(port), factory)
        return transport, protocol

    async def create_server(self, factory: Any, host: Any = None, port: Any = None, **more: Any) -> Any:
        return self._network.listen(self, int(port), factory)

    async def create_unix_server(self, factory: Any, path: Any = None, *, sock: Any, **more: Any) -> Any:
        return self._network.listen(self, sock.path, factory)

    # -- what the world does

    @contextmanager
    def within(self) -> Iterator[None]:
        """Be the running loop inside."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            yield
        finally:
            asyncio._set_running_loop(before)

    def _put(self, handle: Any, when: float) -> Any:
        if self._last is not None:
            self._last.append(handle)
            return handle
        self._agenda.add(when, self._happen, handle)
        return handle

    def _happen(self, handle: Any) -> None:
        if handle._cancelled:
            return
        if self.is_dead or self.is_stopped or self.clock.is_asleep:
            self._held.append(handle)
            return
        if self._agenda.now < self._stands_until:
            self._put(handle, self._stands_until)
            return
        if isinstance(handle, asyncio.TimerHandle) and self.clock.monotonic() < handle._when - 1e-9:  # type: ignore[attr-defined]
            self._put(handle, self.clock.when(handle.when()))  # it slept meanwhile
            return
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)  # not ``within``: this is done for every event
        try:
            handle._run()
        except Gone:
            pass
        finally:
            asyncio._set_running_loop(before)

    @property
    def stands(self) -> bool:
        """Whether nothing happens now: the process is stopped, the machine sleeps, or a call blocks."""
        return self.is_stopped or self.clock.is_asleep or self._agenda.now < self._stands_until

    def stand_still(self, seconds: float) -> None:
        """Let nothing happen for so long, as a call that blocks does."""
        self._stands_until = self._agenda.now + seconds

    def forget(self) -> None:
        """End what this life has left, once the world is over: else Python does so at some moment of a later one.

        A task goes on only by the handle that is due for it, so those that a dead life has not taken are run, too.
        """
        self._network.died(self, has_power=False)
        due = [*self._held, *self._agenda.left(self._happen)]
        self._last = [each for each in due if not isinstance(each, asyncio.TimerHandle)]
        with self.within():
            for _ in range(_CANCELS):
                if not self._cancelled():
                    break
                last, self._last = self._last, []
                for handle in last:
                    if not handle.cancelled():
                        handle._run()
        self._tasks.clear()

    def _cancelled(self) -> int:
        """How many tasks were not done yet, and are cancelled."""
        return sum([task.cancel() for task in self._tasks if not task.done()])

    def go_on(self) -> None:
        """A process that was stopped goes on."""
        self.is_stopped = False
        self.let_happen()

    def let_happen(self) -> None:
        """Let happen what was due while the machine slept, or the process was stopped."""
        held, self._held = self._held, []
        for handle in held:
            self._put(handle, self._agenda.now)
