"""The simulated network: connections between agents, with delays, cuts of one direction or both, and resets."""

import asyncio
from collections import deque
from random import Random
from typing import Any, Callable, Deque, Dict, List, Optional, Set, Tuple

from tests.simulation.loops import Agenda, AgentLoop

Item = Tuple[str, bytes]  # "data", "end" or "reset"
_HIGH, _LOW = 65536, 16384
LOCAL_S = 0.0001  # of a piece that stays on its host


class Transport(asyncio.Transport):
    """One end of a connection. ``peer`` is the other end, until that is gone."""

    def __init__(self, network: "Network", loop: AgentLoop, to: str):
        super().__init__({"peername": (to, 0)})
        self._network, self.loop, self.to = network, loop, to
        self.peer: Optional[Transport] = None
        self.protocol: Any = None
        self._early: List[Item] = []  # before the protocol
        self.is_over = self._closing = self._paused = False
        self.is_lost = False  # a box on the way has forgotten the connection, and tells nobody
        self.under_way: Deque[Item] = deque()
        self.is_moving = False

    def begin(self, protocol: Any) -> None:
        """Give the protocol its transport, in its loop."""
        self.protocol = protocol
        protocol.connection_made(self)
        for item in self._early:
            self.take(item)

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes) -> None:
        if self._closing or self.is_over:
            return
        self.under_way.append(("data", bytes(data)))
        if self.get_write_buffer_size() > _HIGH and not self._paused:
            self._paused = True
            self.protocol.pause_writing()
        self._network.move(self)

    def get_write_buffer_size(self) -> int:
        return sum(len(data) for _, data in self.under_way)

    def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.under_way.append(("end", b""))
            self._network.move(self)
            self.loop.call_soon(self.lose, None)

    def abort(self) -> None:
        if not self.is_over:
            self._closing = True
            self.under_way.clear()
            self.under_way.append(("reset", b""))
            self._network.move(self)
            self.loop.call_soon(self.lose, None)

    def lose(self, error: Optional[Exception]) -> None:
        """The connection is over, at this end."""
        if not self.is_over:
            self.is_over = self._closing = True
            self.protocol.connection_lost(error)

    def take(self, item: Item) -> None:
        """Take what has arrived, in this end's loop."""
        kind, data = item
        if self.is_over:
            return
        if self.protocol is None:  # its machine has woken, and first takes what came in between
            self._early.append(item)
        elif kind == "data":
            self.protocol.data_received(data)
        elif kind == "end":
            if not self.protocol.eof_received():
                self.close()
        else:
            self.lose(ConnectionResetError(104, "Connection reset by peer"))

    def drained(self) -> None:
        """Let the protocol write again."""
        if self._paused and self.get_write_buffer_size() < _LOW and not self.is_over:
            self._paused = False
            self.loop.call_soon(self.protocol.resume_writing)


class Listener:
    """A port of an agent; ``sockets`` has no file of this machine."""

    def __init__(self, network: "Network", loop: AgentLoop, port: int, factory: Callable[[], Any]):
        self._network, self.loop, self._port, self.factory = network, loop, port, factory
        self.sockets: List[Any] = []

    def close(self) -> None:
        self._network.close(self.loop.host, self._port, self)


class Network:
    """All connections. Whoever cannot be reached is in ``cut``, a set of (from, to)."""

    def __init__(self, agenda: Agenda, random: Random, slow_s: float = 0.002):
        self._agenda, self._random, self.slow_s = agenda, random, slow_s
        self.cut: Set[Tuple[str, str]] = set()
        self.off: Set[str] = set()  # hosts without power
        self.asleep: Set[str] = set()
        self.full: Set[str] = set()  # hosts whose queue of new connections is full
        self._listeners: Dict[Tuple[str, int], Listener] = {}
        self._ends: List[Transport] = []

    # -- connections

    def listen(self, loop: AgentLoop, port: int, factory: Callable[[], Any]) -> Listener:
        """Answer callers at a port. Raises OSError where another life still does."""
        there = self._listeners.get((loop.host, port))
        if there is not None and not there.loop.is_dead:
            raise OSError(98, "Address already in use")
        self._listeners[loop.host, port] = Listener(self, loop, port, factory)
        return self._listeners[loop.host, port]

    def close(self, host: str, port: int, listener: Listener) -> None:
        """Answer no more callers."""
        if self._listeners.get((host, port)) is listener:
            del self._listeners[host, port]

    async def connect(self, loop: AgentLoop, to: str, port: int, factory: Callable[[], Any]) -> Any:
        """A connection to a port of a host, tried until it is there or the caller gives up."""
        waiting = loop.create_future()
        self._try(loop, to, port, factory, waiting)
        return await waiting

    def _try(self, loop: AgentLoop, to: str, port: int, factory: Callable[[], Any], waiting: Any) -> None:
        if waiting.done() or loop.is_dead:
            return
        if to in self.full or not self._passes(loop.host, to) or not self._passes(to, loop.host):
            self._agenda.after(1.0, lambda: self._try(loop, to, port, factory, waiting))  # TCP tries again
            return
        self._agenda.after(self._delay_s(loop.host, to), lambda: self._met(loop, to, port, factory, waiting))

    def _met(self, loop: AgentLoop, to: str, port: int, factory: Callable[[], Any], waiting: Any) -> None:
        listener = self._listeners.get((to, port))
        if listener is None or listener.loop.is_dead:
            error = ConnectionRefusedError(111, f"Connect call failed ('{to}', {port})")
            loop.call_soon(lambda: waiting.done() or waiting.set_exception(error))
            return
        here, there = Transport(self, loop, to), Transport(self, listener.loop, loop.host)
        here.peer, there.peer = there, here
        self._ends += [here, there]
        listener.loop.call_soon(lambda: there.begin(listener.factory()))

        def connected() -> None:
            if waiting.done():
                here.protocol = asyncio.Protocol()
                here.abort()
                return
            protocol = factory()
            here.begin(protocol)
            waiting.set_result((here, protocol))

        loop.call_soon(connected)

    # -- what travels

    def move(self, end: Transport) -> None:
        """Let what an end has sent travel, piece by piece in its order."""
        if not end.is_moving and end.under_way:
            end.is_moving = True
            self._agenda.after(self._delay_s(end.loop.host, end.to), lambda: self._arrive(end))

    def _arrive(self, end: Transport) -> None:
        peer = end.peer
        assert peer is not None
        if end.is_lost:
            return
        if not self._passes(end.loop.host, end.to):
            if end.under_way and end.under_way[-1][0] == "reset":  # is sent once
                end.under_way.clear()
                end.is_moving = False
                return
            self._agenda.after(self._random.uniform(0.2, 1.5), lambda: self._arrive(end))  # TCP sends it again
            return
        end.is_moving = False
        if not end.under_way:
            return
        item = end.under_way.popleft()
        if peer.loop.is_dead and item[0] != "reset":
            self._reset(end)
            return
        peer.loop.call_soon(peer.take, item)
        end.drained()
        self.move(end)

    def _reset(self, end: Transport) -> None:
        """The host there knows no such connection."""
        if self._passes(end.to, end.loop.host):
            end.loop.call_soon(end.lose, ConnectionResetError(104, "Connection reset by peer"))

    def _passes(self, source: str, to: str) -> bool:
        return (source, to) not in self.cut and not {source, to} & (self.off | self.asleep)

    def _delay_s(self, source: str, to: str) -> float:
        return (LOCAL_S if source == to else self.slow_s) * self._random.uniform(0.5, 3.0)

    # -- ends of agents and hosts

    def died(self, loop: AgentLoop, has_power: bool = True) -> None:
        """An agent's life is over: the kernel ends its connections, unless the host is off."""
        for end in [each for each in self._ends if each.loop is loop]:
            self._ends.remove(end)
            end._closing = True  # nobody is there to write
            if not has_power:
                end.under_way.clear()
            if has_power and not end.is_over:
                end.is_over = True
                end.under_way.append(("end", b""))
                self.move(end)

    def lose_connections(self, one: str, other: str) -> None:
        """A box on the way forgets the connections between two machines: neither end learns it."""
        for end in self._ends:
            if {end.loop.host, end.to} == {one, other}:
                end.is_lost = True

    def break_connections(self, host: str) -> None:
        """A box on the way forgets the connections of a host: both ends learn it."""
        for end in self._ends:
            if host in (end.loop.host, end.to) and not end.is_over and not end.loop.is_dead:
                end.loop.call_soon(end.lose, ConnectionResetError(104, "Connection reset by peer"))
