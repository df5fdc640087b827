"""The copies of new checkpoints to further hosts, and the copy of an old one to the host of a resumed run's chief.

When the chief reports a new checkpoint, the agent on its host, the lead, sends ``Fetch`` to the hosts that keep copies.
Each of these fetches the checkpoint over a separate connection, with a ``Copier``. A host that was cut off receives
``Fetch`` again when it reconnects.

Before a resumed run starts, the launcher calls ``take`` on the chief's host, which then listens at the address of the
run's future lead. The launcher calls ``give`` on a host that has the checkpoint: this host connects, and both prove
that they know a token that the launcher created for this copy. The bytes go from host to host; the launcher receives
only their number.
"""

import asyncio
import time
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

from cluster.protocol.addresses import host_of, port_of
from launch.agent.checkpoints import resume, stored, transfer
from launch.agent.checkpoints.resume import chief_folder
from launch.agent.network import firewall
from launch.agent.protocol import links
from launch.agent.protocol.gate import Gate
from launch.agent.protocol.messages import Fetch
from launch.agent.state.log import say_once
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import HandoverRequest

LOOK_S = 0.1


class Replicas:
    """The hosts that keep copies. ``steps`` has the step of each host's newest copy, None before the first copy.

    Args:
      hosts: the hosts that keep copies.
      directory: the folder that the chief saves into; None for the run's own folder.
      problem: called with a host that cannot receive a checkpoint, and the reason. A repeated reason is reported again
        only after a copy has succeeded.
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
        """Send ``Fetch`` for ``step`` to each connected host that keeps copies, once over each connection.

        ``step`` is the step of the newest checkpoint. If it is None, the method sends nothing.
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
        """Send the newest checkpoint to a host that has connected to fetch it."""
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

        Other checkpoints in the folder may be unreadable for the chief.
        """
        there = stored.checkpoints(self._folder)
        told = [each for each in there if each.step == self._newest]
        if not there:
            raise ValueError(f"no checkpoint in {self._folder}")
        return (told or there)[-1]

    def _note(self, moved: int) -> None:
        self._moved_at = links.now()

    async def settle(self, members: Mapping[str, links.Link], limit_s: float) -> None:
        """Wait at most ``limit_s`` for copies in progress; stop waiting after ``transfer.STALL_S`` without a byte."""
        self._moved_at = links.now()
        until = links.now() + limit_s
        while self._behind(members) and not self._hurried and links.now() < until:
            if links.now() - self._moved_at > transfer.STALL_S:
                return
            await asyncio.sleep(LOOK_S)

    def hurry(self) -> None:
        """End the wait in ``settle``, and make later calls of it return at once."""
        self._hurried = True

    def _behind(self, members: Mapping[str, links.Link]) -> bool:
        behind = [host for host, step in self.steps.items() if step != self._newest and host not in self._failing]
        return any(host in members for host in behind)


FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0  # before a failed fetch is repeated


class Copier:
    """A client that fetches checkpoints from the lead, one at a time, always the newest."""

    def __init__(self, request: RunRequest, folder: RunFolder):
        self._request, self._folder = request, folder.replica
        self._fetching: Optional[asyncio.Future[None]] = None
        self._due = False

    def fetch(self) -> None:
        """Fetch the newest checkpoint, now or after the fetch in progress."""
        self._due = True
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.ensure_future(self._fetch_all())

    def close(self) -> None:
        """Cancel the fetch in progress, and remove the files it has received."""
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


TELL_S = 2.0  # between two reports of progress
DIAL_S = 10.0
CALL_S = 60.0  # for the holder to dial

Tell = Callable[[Dict[str, Any]], None]


def take(request: HandoverRequest, tell: Tell) -> None:
    """Receive a checkpoint from a host that has it, and that connects to this host.

    ``tell`` gets {"listening": True}, then {"bytes": received so far} at most every ``TELL_S``, and last {"taken":
    step} or {"error": reason}.
    """
    try:
        peers = None if request.guard is None else request.peers
        with firewall.standing(request.run.run or "", [port_of(request.address)], peers):
            asyncio.run(_reported(_take(request, tell), tell))
    except firewall.Unguarded as error:
        tell({"error": str(error)})


def give(request: HandoverRequest, tell: Tell) -> None:
    """Send a checkpoint to another host, and report the result with ``tell``.

    ``tell`` gets {"bytes": sent so far} at most every ``TELL_S``, and last {"given": step} or {"error": reason}.
    """
    asyncio.run(_reported(_give(request, tell), tell))


async def _reported(work: Any, tell: Tell) -> None:
    try:
        await work
    except (OSError, ValueError, links.LinkError, transfer.CopyError) as error:
        tell({"error": str(error)})


async def _take(request: HandoverRequest, tell: Tell) -> None:
    calls: asyncio.Queue[Any] = asyncio.Queue()
    gate = Gate(request.token, "", 1, calls.put)
    await gate.open(port_of(request.address))
    tell({"listening": True})
    try:
        link = await asyncio.wait_for(calls.get(), CALL_S)
    except asyncio.TimeoutError:
        raise ValueError(f"the host with the checkpoint has not reached {request.address} in {CALL_S:.0f} s") from None
    finally:
        gate.close()
    place, moved = resume.receive(request), _Moved(tell)
    try:
        step = await transfer.receive(link.streams, place, request.keep, moved)
    finally:
        await link.close()
    tell({"taken": step})


async def _give(request: HandoverRequest, tell: Tell) -> None:
    checkpoint = resume.source(request)
    address = host_of(request.address), port_of(request.address)
    me = links.Greeting(request.run.host, "", purpose=links.COPIES)
    link = await links.dial(address, me, request.token, DIAL_S)
    try:
        await transfer.send(link.streams, checkpoint, _Moved(tell))
    finally:
        await link.close()
    tell({"given": checkpoint.step})


class _Moved:
    """Report the number of moved bytes, as a sign that the copy continues."""

    def __init__(self, tell: Tell):
        self._tell, self._bytes, self._sent_at = tell, 0, time.monotonic()

    def __call__(self, moved: int) -> None:
        self._bytes += moved
        if time.monotonic() - self._sent_at > TELL_S:
            self._sent_at = time.monotonic()
            self._tell({"bytes": self._bytes})
