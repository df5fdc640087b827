"""The common part of lead and member: a queue of events and one loop."""

import asyncio
import math
import secrets
from abc import ABC, abstractmethod
from typing import Any, AsyncIterator, Dict, Optional, Union

from launch.agent.protocol.links import now
from launch.agent.protocol.messages import Dismiss, Event, Prepare, Save, Start, Stop, Tick
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.wire.run_request import RunRequest

POLL_S = 0.25  # a signal reports an exit at once; progress is reported once a second


class Agent(ABC):
    """One host's agent. Everything runs in one thread, so nothing needs a lock.

    Args:
      request: the launcher's request to this host.
      events: the events on this host; ``tasks`` puts them there.

    ``incarnation`` is a random text: a restarted agent has another one. ``is_away`` is True if this agent ends in the
    middle of the run, and the agent after a boot continues the run.
    """

    def __init__(self, request: RunRequest, folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]"):
        self._request, self._folder, self._tasks, self._events = request, folder, tasks, events
        self._host = request.host
        self.incarnation = secrets.token_hex(8)
        self.is_away = False
        self._next_tick: Optional[asyncio.TimerHandle] = None
        self._has_tick = False  # whether a Tick waits in the queue

    @abstractmethod
    async def open(self) -> None:
        """Listen for other agents, if this agent has to.

        Raises:
          OSError: the agent cannot listen.
        """

    @abstractmethod
    async def run(self) -> None:
        """Run until this host's part of the run is over, or until ``is_away`` is True."""

    @abstractmethod
    def answer(self, request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Carry out the request of a local caller, and yield the replies."""

    @abstractmethod
    def leave(self, why: str) -> None:
        """Start to leave the run in an orderly way, for the reason ``why``.

        The second call ends this host's part at once.
        """

    @abstractmethod
    def terminate(self, why: str) -> None:
        """End this agent itself, for the reason ``why``."""

    def left_s(self) -> float:
        """Return the seconds until the tasks of this host must be gone; infinite if no time limit applies."""
        return math.inf

    def go_away(self) -> None:
        """End this agent in the middle of the run: the next boot of this host starts another agent."""
        self.is_away = True
        self.wake()

    def _prepare_tasks(self) -> None:
        """Start the processes of this host's first attempts, which wait for their turn."""
        if not self._request.again:  # else an earlier agent has started them
            self._tasks.prepare_first()

    def _carry_out(self, order: Union[Start, Prepare, Dismiss, Save, Stop]) -> None:
        """Carry out an order about a task of this host now, not at the next Tick."""
        self._tasks.obey(order, now())
        self.wake()

    def _stop_all(self, grace_s: float) -> None:
        """Begin to end every task of this host now, not at the next Tick."""
        self._tasks.stop_all(grace_s, now())
        self.wake()

    def wake(self) -> None:
        """Let the loop check its tasks now, not at the next Tick."""
        if not self._has_tick:
            self._has_tick = True
            self._events.put_nowait(Tick())

    async def _next(self) -> Event:
        """Return the next event; other events do not delay a Tick, which is put into the queue every ``POLL_S``.

        A lead may receive hundreds of events in a second, and each look at tasks costs the same.
        """
        if self._next_tick is None:
            self._next_tick = asyncio.get_event_loop().call_later(POLL_S, self.wake)
        if not self._events.empty():
            await asyncio.sleep(0)  # ``get`` would not let sockets, timers and heartbeats have their turn
        event: Event = await self._events.get()
        if isinstance(event, Tick):
            self._has_tick = False
            self._next_tick.cancel()
            self._next_tick = None
        return event
