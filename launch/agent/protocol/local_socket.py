"""The Unix socket of a run's agent on this host: the agent serves local callers, and a caller sends it requests.

A caller sends one JSON line, and the agent answers with one or many. The socket lies in the run's own folder (mode
0700), so only the user who started the run can reach the socket. Programs name the socket by a path relative to that
folder: the path of a Unix socket has at most 107 bytes, and a working folder may be deep.

``attach`` copies lines in both directions between the launcher and the agent until one of them ends.
"""

import asyncio
import contextlib
import json
import os
import select
import socket
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, Iterator, Set

from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.wire.verb_requests import RunReference


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Make ``folder`` the current working directory of this process within the context."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(str(folder))
        yield
    finally:
        os.fchdir(here)
        os.close(here)


def connect(folder: Path, timeout_s: float) -> socket.socket:
    """Return a connection to the agent whose socket lies in ``folder``.

    Raises:
      OSError: no agent answers there.
    """
    caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    caller.settimeout(timeout_s)
    try:
        with inside(folder):
            caller.connect("agent.sock")
    except OSError:
        caller.close()
        raise
    return caller


def ask_agent(folder: Path, request: Dict[str, Any], timeout_s: float = 10.0) -> Dict[str, Any]:
    """Send one request to the agent whose socket lies in ``folder``; return its first reply.

    Raises:
      OSError: no agent answers there in time.
    """
    for reply in replies(folder, request, timeout_s):
        return reply
    raise ConnectionResetError("the agent closed the connection")


def replies(folder: Path, request: Dict[str, Any], timeout_s: float = 10.0) -> Iterator[Dict[str, Any]]:
    """Send one request to the agent whose socket lies in ``folder``; yield its replies until the last one.

    Raises:
      OSError: no agent answers there, or no reply arrives for ``timeout_s``.
    """
    with connect(folder, timeout_s) as caller:
        caller.sendall(json.dumps(request).encode() + b"\n")
        with caller.makefile("rb") as lines:
            yield from map(json.loads, lines)


Answer = Callable[[Dict[str, Any]], AsyncIterator[Dict[str, Any]]]
LIMIT = 16 * 1024 * 1024  # bytes of one line


class Clients:
    """Serve local callers on the socket at ``path``; ``answer`` turns a request into replies."""

    def __init__(self, path: Path, answer: Answer):
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


CHUNK = 65536


def attach(reference: RunReference, send: Callable[[Dict[str, Any]], None]) -> None:
    """Copy lines in both directions between the launcher, on stdin and stdout, and the agent until either ends.

    ``send`` receives {"error"} where no agent of the run answers.
    """
    folder = RunFolder(expand(reference.workdir), reference.run or "", reference.host)
    try:
        agent = connect(folder.own, timeout_s=10.0)
    except OSError as error:
        send({"error": f"no agent of {reference.run} answers on this host: {error}"})
        return
    agent.settimeout(None)
    with agent:
        while True:
            for ready in select.select([0, agent], [], [])[0]:
                data = os.read(0, CHUNK) if ready == 0 else agent.recv(CHUNK)
                if not data:
                    return
                if ready == 0:
                    agent.sendall(data)
                else:
                    _write_all(data)


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
