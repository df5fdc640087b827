"""Serve local callers of an agent over a Unix socket.

One JSON line comes in, and one or many go out.
The socket lies in the run's own folder (mode 0700), so only the user who started the
run can reach it. ``local_client`` is the other end.
"""

import asyncio
import contextlib
import json
import socket
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, Set

from launch.agent.protocol.local_client import inside

Answer = Callable[[Dict[str, Any]], AsyncIterator[Dict[str, Any]]]
LIMIT = 16 * 1024 * 1024  # bytes of one line


class Clients:
    """Serve local callers; ``answer`` turns a request into replies."""

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
        with contextlib.suppress(ConnectionError):  # the caller has gone
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
        """Wait for the replies under way, bounded in time, and remove the socket."""
        if self._open:
            await asyncio.wait(set(self._open), timeout=5.0)
        self._server.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
