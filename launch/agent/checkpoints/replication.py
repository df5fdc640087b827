"""Copies of the chief's checkpoints on further hosts, directed by the lead, and fetched by the members.

When the chief has reported a new checkpoint, the lead sends ``Fetch`` to the hosts that keep copies. Each of these
hosts fetches the checkpoint over a connection of its own, with a ``Copier``. A host that was cut off receives ``Fetch``
again when it is back.
"""

import asyncio
from typing import Callable, Dict, Mapping, Optional, Sequence, Tuple

from launch.agent.checkpoints import stored, transfer
from launch.agent.checkpoints.resume import chief_folder
from launch.agent.protocol import links
from launch.agent.protocol.messages import Fetch
from launch.agent.state.log import say_once
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

LOOK_S = 0.1


class Replicas:
    """The hosts that keep copies, and the step of each host's newest copy: ``steps``, None before a host's first.

    Args:
      hosts: those that keep copies.
      directory: the folder that the chief saves into; None for the run's own folder.
      problem: called with a host that cannot take a checkpoint, and why; once for each reason until the host can.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        folder: RunFolder,
        directory: Optional[str],
        problem: Callable[[str, str], None],
    ):
        self.steps: Dict[str, Optional[int]] = dict.fromkeys(hosts)
        self._folder = chief_folder(folder, directory)
        self._problem = problem
        self._failing: Dict[str, str] = {}
        self._newest: Optional[int] = None
        self._told: Dict[str, Tuple[links.Link, int]] = {}
        self._moved_at = 0.0
        self._hurried = False

    def look(self, step: Optional[int], members: Mapping[str, links.Link]) -> None:
        """Send ``Fetch`` to each host that has not received it for ``step`` yet.

        ``step`` is that of the newest checkpoint.
        """
        if step is None:
            return
        self._newest = step
        for host in self.steps:
            link = members.get(host)
            if link is not None and self._told.get(host) != (link, step):
                self._told[host] = (link, step)
                link.send(Fetch(step))

    async def serve(self, link: links.Link) -> None:
        """Sends the newest checkpoint to a host that has dialled for it."""
        host = link.peer.host
        try:
            checkpoint = await asyncio.get_event_loop().run_in_executor(None, self._newest_stored)
            await transfer.send(link.streams, checkpoint, self._note)
        except (transfer.CopyError, ValueError) as error:
            why = f"cannot copy the checkpoint to {host}: {error}"
            say_once(why)
            if self._failing.get(host) != why and host in self.steps:
                self._problem(host, why)
            self._failing[host] = why
        else:
            self._failing.pop(host, None)
            if host in self.steps:
                self.steps[host] = checkpoint.step
        finally:
            await link.close()

    def _newest_stored(self) -> stored.LocalCheckpoint:
        """Return the checkpoint that the chief reported, or else the newest in its folder.

        Other checkpoints in the folder may be ones that the chief could not read.
        """
        there = stored.checkpoints(self._folder)
        told = [each for each in there if each.step == self._newest]
        if not there:
            raise ValueError(f"no checkpoint in {self._folder}")
        return (told or there)[-1]

    def _note(self, moved: int) -> None:
        self._moved_at = links.now()

    async def settle(self, members: Mapping[str, links.Link], limit_s: float) -> None:
        """Waits for copies that are under way, while they move, ``limit_s`` at most."""
        self._moved_at = links.now()
        until = links.now() + limit_s
        while self._behind(members) and not self._hurried and links.now() < until:
            if links.now() - self._moved_at > transfer.STALL_S:
                return
            await asyncio.sleep(LOOK_S)

    def hurry(self) -> None:
        """End the wait of ``settle``, and prevent later waits."""
        self._hurried = True

    def _behind(self, members: Mapping[str, links.Link]) -> bool:
        behind = [host for host, step in self.steps.items() if step != self._newest and host not in self._failing]
        return any(host in members for host in behind)


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
