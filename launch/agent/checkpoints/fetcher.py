"""A member's copies of the chief's checkpoints: fetched from the lead as soon as it announces a new one."""

import asyncio
from typing import Optional

from launch.agent.checkpoints import transfer
from launch.agent.protocol import links
from launch.agent.state.log import say_once
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0  # before what did not arrive is fetched again


class Copier:
    """Fetch checkpoints, one at a time, and always the newest."""

    def __init__(self, request: RunRequest, folder: RunFolder):
        self._request, self._folder = request, folder.replica
        self._fetching: Optional[asyncio.Future[None]] = None
        self._due = False

    def fetch(self) -> None:
        """Fetch the newest checkpoint, now or after the fetch under way."""
        self._due = True
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.ensure_future(self._fetch_all())

    def close(self) -> None:
        """Cancel the fetch under way; nothing of its checkpoint stays."""
        if self._fetching is not None:
            self._fetching.cancel()

    async def _fetch_all(self) -> None:
        pause_s = FIRST_PAUSE_S
        while self._due:
            self._due = False
            try:
                await self._fetch_newest()
            except (links.LinkError, transfer.CopyError) as error:
                say_once(f"cannot copy the newest checkpoint: {error}")
                await asyncio.sleep(pause_s)
                self._due, pause_s = True, min(2 * pause_s, LONGEST_PAUSE_S)

    async def _fetch_newest(self) -> None:
        asked = self._request
        me = links.Greeting(asked.host, "", purpose=links.COPIES)
        link = await links.dial(asked.lead.endpoint, me, asked.token, asked.lost_after_s)
        try:
            await transfer.receive(link.streams, self._folder, asked.keep, lambda moved: None)
        finally:
            await link.close()
