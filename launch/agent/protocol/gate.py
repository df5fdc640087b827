"""A port that admits only callers who prove that they know the run's token.

Anybody can reach the port. Strangers can use only a bounded number of files and bytes of this process, for a bounded
time. The number of simultaneous callers without a proof is bounded (``MOST``); one address may have half of them. Each
caller may send one line of a few KB within ``HANDSHAKE_S``. Above the bound, the gate drops the longest waiting caller
of the address with the most callers.
"""

import asyncio
import os
import socket
from typing import Any, Awaitable, Callable, Dict, List

from launch.agent.linux.open_files import share_of_files
from launch.agent.protocol import links, sealed
from launch.agent.state.log import say_seldom

MOST = 1024  # simultaneous callers without a proof, beyond two for each host
AT_ONCE = 4  # callers accepted between two looks at all else: connected members must not wait for strangers
WAITING = 256  # callers that the kernel queues until the gate accepts them
FILES_SHARE = 0.25  # of the files that this process may have open


class Gate:
    """The port that members dial: it passes the link of each caller who proves the token to ``welcome``.

    Args:
      token: the run's token, which a caller must prove to know.
      incarnation: the incarnation of this side's agent.
      hosts: the number of hosts that may call simultaneously.
      welcome: the coroutine function that serves a link until the link ends.
    """

    def __init__(self, token: str, incarnation: str, hosts: int, welcome: Callable[[links.Link], Awaitable[None]]):
        self._token, self._incarnation, self._welcome = token, incarnation, welcome
        self._most = share_of_files(FILES_SHARE, MOST) + 2 * hosts
        self._unproven: Dict[str, List[asyncio.StreamWriter]] = {}  # by address, the longest waiting first
        self._count = 0
        self._server: Any = None

    async def open(self, port: int) -> None:
        """Listen on every address of this host.

        Raises:
          OSError: the port is taken.
        """
        self._server = await asyncio.start_server(self._meet, None, port, limit=sealed.PIECE, backlog=AT_ONCE)
        for listener in self._server.sockets:
            with socket.socket(fileno=os.dup(listener.fileno())) as same:
                same.listen(WAITING)

    def close(self) -> None:
        """Accept no more callers, and drop the callers without a proof."""
        if self._server is not None:
            self._server.close()
        for address in list(self._unproven):
            while address in self._unproven:
                self._drop_oldest(address)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = str((writer.get_extra_info("peername") or ("nowhere",))[0])
        self._enter(address, writer)
        try:
            link = await links.answer(reader, writer, self._token, self._incarnation)
        except links.LinkError as error:
            say_seldom("refused", f"refused a caller from {address}: {error}")
            writer.transport.abort()
            return
        finally:
            self._leave(address, writer)
        await self._welcome(link)

    def _enter(self, address: str, writer: asyncio.StreamWriter) -> None:
        if len(self._unproven.get(address, ())) >= self._most // 2:
            self._drop_oldest(address)
        elif self._count >= self._most:
            self._drop_oldest(max(self._unproven, key=lambda each: len(self._unproven[each])))
        self._unproven.setdefault(address, []).append(writer)
        self._count += 1

    def _drop_oldest(self, address: str) -> None:
        oldest = self._unproven[address][0]
        self._leave(address, oldest)
        oldest.transport.abort()

    def _leave(self, address: str, writer: asyncio.StreamWriter) -> None:
        """Forget a caller, unless it was dropped before."""
        callers = self._unproven.get(address, [])
        if writer in callers:
            callers.remove(writer)
            self._count -= 1
        if not callers:
            self._unproven.pop(address, None)
