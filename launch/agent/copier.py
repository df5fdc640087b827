"""A member's copies of the chief's checkpoints: fetched from the lead as soon as it tells of a new one."""

import asyncio
from typing import Any, Mapping, Optional

from cluster.addresses import host_of, port_of
from launch.agent import copying, links
from launch.agent.agent_log import say_once
from launch.agent.folder import RunFolder

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0  # before what did not arrive is fetched again


class Copier:
    """Fetches checkpoints, one at a time; the newest that there is by then."""

    def __init__(self, plan: Mapping[str, Any], folder: RunFolder):
        self._plan, self._folder = plan, folder.replica
        self._fetching: Optional[asyncio.Future[None]] = None
        self._due = False

    def heed(self) -> None:
        """There is a checkpoint to fetch."""
        self._due = True
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.ensure_future(self._fetch())

    def close(self) -> None:
        """Leaves what is under way; nothing of it stays."""
        if self._fetching is not None:
            self._fetching.cancel()

    async def _fetch(self) -> None:
        pause_s = FIRST_PAUSE_S
        while self._due:
            self._due = False
            try:
                await self._fetch_newest()
            except (links.LinkError, copying.CopyError) as error:
                say_once(f"no copy of the newest checkpoint: {error}")
                await asyncio.sleep(pause_s)
                self._due, pause_s = True, min(2 * pause_s, LONGEST_PAUSE_S)

    async def _fetch_newest(self) -> None:
        plan, lead = self._plan, self._plan["lead"]["address"]
        address = host_of(lead), port_of(lead)
        me = links.Greeting(plan["host"], "", purpose=links.COPIES)
        link = await links.dial(address, me, plan["token"], plan["lost_after_s"])
        try:
            await copying.receive(link.streams, self._folder, plan["keep"], plan["token"], lambda moved: None)
        finally:
            await link.close()
