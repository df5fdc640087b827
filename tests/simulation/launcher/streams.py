"""Connections and pipes, as a program that blocks has them."""

import math
import socket
from concurrent.futures import Future
from typing import Any, Callable, Iterator, List, Optional, Tuple

from tests.simulation.launcher.baton import Bell, wait
from tests.simulation.launcher.programs import me

SEND_S = 20.0  # for a connection to take what is sent


class Stream:
    """One end of a connection: in the place of an asyncio protocol, with methods that block.

    Args:
      accepted: is called once the connection is there.
    """

    def __init__(self, accepted: Callable[["Stream"], None] = lambda stream: None):
        self._accepted = accepted
        self.data, self.bell = bytearray(), Bell()
        self.is_over = self._is_full = False
        self.error: Optional[Exception] = None
        self.timeout_s: Optional[float] = None
        self.transport: Any = None

    # -- what the network does

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._accepted(self)

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.bell.ring()

    def eof_received(self) -> bool:
        self.is_over = True
        self.bell.ring()
        return True

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.is_over, self.error = True, error or self.error
        self.bell.ring()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self.bell.ring()

    # -- what a program does

    @property
    def is_readable(self) -> bool:
        """Whether there are bytes, or there will be none any more."""
        return bool(self.data) or self.is_over

    def wait(self, seconds: float) -> bool:
        """Wait until there is something to read."""
        return self.is_readable or wait(seconds, lambda: self.is_readable, self.bell)

    def read(self, size: int) -> bytes:
        """Return bytes that are there, b"" at the end. Raises the error that has ended the connection."""
        if not self.data and self.error is not None:
            raise self.error
        data = bytes(self.data[:size])
        del self.data[:size]
        return data

    def write(self, data: bytes) -> None:
        """Send all. Raises OSError."""
        if self._is_full and not wait(SEND_S, lambda: self.is_over or not self._is_full, self.bell):
            raise socket.timeout("timed out")
        if self.error is not None or self.transport.is_closing():
            raise BrokenPipeError(32, "Broken pipe")
        self.transport.write(data)

    def close(self) -> None:
        """Close both directions; whoever waits here goes on."""
        self.is_over = True
        if self.transport is not None:
            self.transport.close()
        self.bell.ring()

    # -- the same, as a socket

    def settimeout(self, seconds: Optional[float]) -> None:
        self.timeout_s = seconds

    def sendall(self, data: bytes) -> None:
        self.write(data)

    def recv(self, size: int) -> bytes:
        if not self.wait(math.inf if self.timeout_s is None else self.timeout_s):
            raise socket.timeout("timed out")
        return self.read(size)

    def makefile(self, mode: str) -> "Lines":
        return Lines(self)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class Lines:
    """The lines of a stream, as a file has them."""

    def __init__(self, stream: Stream):
        self._stream, self._data = stream, b""

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __iter__(self) -> Iterator[bytes]:
        line = self.readline()
        while line:
            yield line
            line = self.readline()

    def readline(self) -> bytes:
        while b"\n" not in self._data:
            data = self._stream.recv(1 << 16)
            if not data:
                line, self._data = self._data, b""
                return line
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return line + b"\n"


def dial(network: Any, to: str, port: Any, timeout_s: float) -> Stream:
    """Return a connection of the program that runs now. Raises OSError."""
    program, bell = me(), Bell()
    waiting: Future[Tuple[Any, Stream]] = Future()
    waiting.add_done_callback(lambda _: bell.ring())
    network._try(program.loop, to, port, Stream, waiting)
    if not wait(timeout_s, waiting.done, bell):
        waiting.cancel()
        raise socket.timeout("timed out")
    return waiting.result()[1]


class Pipe:
    """A pipe; both of its ends are this."""

    def __init__(self) -> None:
        self.data, self.bell, self.is_over = bytearray(), Bell(), False

    def write(self, data: bytes) -> None:
        self.data += data
        self.bell.ring()

    def close(self) -> None:
        """Nobody writes any more."""
        self.is_over = True
        self.bell.ring()

    def wait(self, seconds: float) -> bool:
        return wait(seconds, lambda: bool(self.data) or self.is_over, self.bell)

    def readline(self) -> bytes:
        self.wait(math.inf)
        line = bytes(self.data)
        self.data.clear()
        return line

    def __enter__(self) -> "Pipe":
        return self

    def __exit__(self, *error: Any) -> None:
        pass


def select(reading: List[Any], writing: List[Any], others: List[Any]) -> Tuple[List[Any], List[Any], List[Any]]:
    """Wait until one of some files is readable, as ``select.select`` does."""
    streams = {each: me().files[each] if isinstance(each, int) else each for each in reading}
    wait(math.inf, lambda: any(each.is_readable for each in streams.values()), *(s.bell for s in streams.values()))
    return [each for each, stream in streams.items() if stream.is_readable], [], []
