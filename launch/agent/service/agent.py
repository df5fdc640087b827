"""The common part of lead and member: a queue of events and one loop, and the socket for local callers."""

import asyncio
import contextlib
import json
import math
import secrets
import socket
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, Optional, Set, Union

from launch.agent.protocol.links import now
from launch.agent.protocol.local_socket import inside
from launch.agent.protocol.messages import Dismiss, Event, Prepare, Save, Start, Stop, Tick
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.wire.run_request import RunRequest

POLL_S = 0.25  # a signal reports an exit at once; progress is reported once a second
LIMIT = 1 << 24  # bytes of one line of a local caller


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


class Clients:
    """Serve local callers on the socket at ``path`` (``local_socket``); ``answer`` turns a request into replies."""

    def __init__(self, path: Path, answer: Callable[[Dict[str, Any]], AsyncIterator[Dict[str, Any]]]):
        self._path, self._answer = path, answer
        self._server: Any = None
        self._open: Set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen on the socket."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with inside(self._path.parent):
            listener.bind(self._path.name)
        self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=LIMIT)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            while True:
                line = await reader.readline()
                if not line:
                    break
                reply = asyncio.ensure_future(self._reply(line, writer))
                self._open.add(reply)
                reply.add_done_callback(self._open.discard)

    async def _reply(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # the caller has disconnected
            async for values in self._replies(line):
                if writer.is_closing():
                    return
                writer.write(json.dumps(values).encode() + b"\n")
                await writer.drain()

    async def _replies(self, line: bytes) -> AsyncIterator[Dict[str, Any]]:
        try:
            async for values in self._answer(json.loads(line.decode())):
                yield values
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            yield {"error": f"the agent cannot answer {line[:200]!r}: {error!r}"}

    async def close(self) -> None:
        """Wait a bounded time for the replies in progress, and remove the socket."""
        if self._open:
            await asyncio.wait(set(self._open), timeout=5.0)
        self._server.close()
        with contextlib.suppress(OSError):  # a disk that fails must not end the agent by an exception
            self._path.unlink()
