"""What the lead and a member have in common: a queue of events and one loop."""

import asyncio
import secrets
from abc import ABC, abstractmethod
from typing import Any, AsyncIterator, Dict

from launch.agent.protocol.messages import Event, Tick
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.wire.run_request import RunRequest

POLL_S = 0.25  # an exit is noticed at once, by its signal; progress is told once a second


class Agent(ABC):
    """One host's agent. Everything runs in one thread, so nothing needs a lock.

    Args:
      request: what the launcher asked this host to run.
      events: what happens on this host; ``tasks`` puts it there.

    ``incarnation`` names this life of it: an agent that is started again on its host has another.
    """

    def __init__(self, request: RunRequest, folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]"):
        self._request, self._folder, self._tasks, self._events = request, folder, tasks, events
        self._host = request.host
        self.incarnation = secrets.token_hex(8)

    @abstractmethod
    async def open(self) -> None:
        """Listens, where it has to. Raises OSError."""

    @abstractmethod
    async def run(self) -> None:
        """Until this host's part of the run is over."""

    @abstractmethod
    def answer(self, request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Replies to a local caller."""

    @abstractmethod
    def terminate(self, why: str) -> None:
        """The agent itself has to end."""

    def wake(self) -> None:
        """A child has ended: look now, not at the next poll."""
        self._events.put_nowait(Tick())

    async def _next(self) -> Event:
        """What happened next, or a Tick when nothing did for a while."""
        try:
            event: Event = await asyncio.wait_for(self._events.get(), POLL_S)
        except asyncio.TimeoutError:
            return Tick()
        return event


def now() -> float:
    """Seconds on a clock that does not jump."""
    return asyncio.get_event_loop().time()
