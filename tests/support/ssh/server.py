"""SSH servers, in a process of their own: ``python -m tests.support.ssh.server``.

Each line of standard input, in JSON, asks for one more server, or for the end of one; the answer is a line with its
port. The process ends when its standard input does: with the tests, however they end.

``folder`` has the server's ``host_key`` and ``authorized_keys``, ``home`` for the programs that it runs, and ``log``,
where it writes a word for each event. ``drop``: how many connections it drops before the login. ``sessions`` and
``forwarding``: whether it permits them. ``close``: the port of the server to close.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any, Dict

import asyncssh

from tests.support.ssh import HOST

_CHUNK = 1 << 16
_GONE = (asyncssh.Error, OSError)


class Server:
    """All connections to one port."""

    def __init__(self, folder: str, drop: int = 0, sessions: bool = True, forwarding: bool = True):
        self.folder, self.drop, self.sessions, self.forwarding = Path(folder), drop, sessions, forwarding

    async def listen(self) -> Any:
        return await asyncssh.listen(
            HOST,
            0,
            server_factory=lambda: Connection(self),
            server_host_keys=[str(self.folder / "host_key")],
            authorized_client_keys=str(self.folder / "authorized_keys"),
            process_factory=self.run if self.sessions else None,
            encoding=None,
        )

    def log(self, event: str) -> None:
        with (self.folder / "log").open("a") as file:
            file.write(event + "\n")

    async def run(self, session: Any) -> None:
        """Run a command as sshd does: by a shell, in the user's home, in a session of its own."""
        home = str(self.folder / "home")
        child = await asyncio.create_subprocess_exec(
            "sh", "-c", session.command or "true", cwd=home, env={**os.environ, "HOME": home}, start_new_session=True,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        feeding = asyncio.ensure_future(feed(session.stdin, child.stdin))
        await asyncio.gather(copy(child.stdout, session.stdout), copy(child.stderr, session.stderr))
        session.exit(await child.wait())
        feeding.cancel()


async def copy(source: Any, to: Any) -> None:
    """Copy until the end of either."""
    with contextlib.suppress(*_GONE):
        while True:
            data = await source.read(_CHUNK)
            if not data:
                return
            to.write(data)
            await to.drain()


async def feed(source: Any, to: Any) -> None:
    """Copy, and pass the end on."""
    await copy(source, to)
    to.close()


class Connection(asyncssh.SSHServer):
    """One connection, from its first byte."""

    def __init__(self, server: Server):
        self._server = server

    def connection_made(self, conn: Any) -> None:
        """Drop it, where the server is to drop one."""
        if self._server.drop:
            self._server.drop -= 1
            self._server.log("drop")
            conn.abort()

    def auth_completed(self) -> None:
        """Log the login."""
        self._server.log("login")

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        """Return whether it forwards to another port; asyncssh then does so."""
        return self._server.forwarding


class Servers:
    """All servers of this process."""

    def __init__(self) -> None:
        self._listening: Dict[int, Any] = {}

    async def answer(self, request: Dict[str, Any]) -> int:
        """Start or close a server; return its port."""
        if "close" in request:
            listening = self._listening.pop(request["close"])
            listening.close()
            await listening.wait_closed()
            return int(request["close"])
        listening = await Server(**request).listen()
        port = int(listening.sockets[0].getsockname()[1])
        self._listening[port] = listening
        return port


def answer_all(loop: asyncio.AbstractEventLoop) -> None:
    """Answer standard input, line by line; at its end, end this process."""
    servers = Servers()
    for line in sys.stdin:
        print(asyncio.run_coroutine_threadsafe(servers.answer(json.loads(line)), loop).result(), flush=True)
    os._exit(0)


async def serve() -> None:
    """Serve until standard input ends. The loop stays in the main thread, where Python 3.7 sees its children end."""
    threading.Thread(target=answer_all, args=(asyncio.get_event_loop(),), daemon=True).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve())
