"""The lead's links to its members, and the orders given to each member.

An order may be lost with the link that carried it, so a new link begins with all orders to the host's agent. Another
incarnation of the agent has no tasks of the earlier one, so the lead forgets the orders to the earlier incarnation.

The lead uses a new link only once its loop has processed the event ``Joined`` (``admit``), not already after the
handshake. Orders that were given in between were meant for the earlier agent.
"""

import asyncio
from typing import Awaitable, Callable, Dict, List, Mapping

from launch.agent.protocol import links
from launch.agent.protocol.gate import Gate
from launch.agent.protocol.links import now
from launch.agent.protocol.messages import End, Joined, Lost, Message, Order, Ping
from launch.agent.protocol.silence import Silences
from launch.agent.state.log import say

GOODBYE_S = 10.0
LEAVING_S = 0.05  # between two looks for the last member's departure


class Members:
    """The lead's connections to its members: it answers members that dial, and exchanges messages with them.

    Args:
      silences: the silences of the members.
      token: the run's token, which a member must prove to know.
      incarnation: the incarnation of the lead.
      handle: receives a ``Joined`` for each new link of a member, then the member's messages.
      serve: sends the newest checkpoint over a link that a member opened for copies.
    """

    def __init__(
        self,
        silences: Silences,
        token: str,
        incarnation: str,
        handle: Callable[[Message], None],
        serve: Callable[[links.Link], Awaitable[None]],
    ):
        self._incarnation, self._handle, self._serve = incarnation, handle, serve
        self._silences, self._quiet_s = silences, silences.lost_after_s * links.QUIET_SHARE
        self._arrived: Dict[str, links.Link] = {}  # not admitted yet
        self._links: Dict[str, links.Link] = {}
        self._known: Dict[str, str] = {}  # {host: its newest incarnation}
        self._given: Dict[str, List[Order]] = {}
        self._gate = Gate(token, incarnation, len(silences.hosts), self._welcome)

    async def open(self, port: int) -> None:
        """Listen for members.

        Raises:
          OSError: the port is taken.
        """
        await self._gate.open(port)

    async def _welcome(self, link: links.Link) -> None:
        if link.peer.purpose == links.COPIES:
            await self._serve(link)
            return
        if link.peer.serves not in ("", self._incarnation):
            # This handshake shows the member that another agent leads; it kills its old tasks, and dials again.
            say(f"{link.peer.host}: its tasks still belong to an earlier lead agent on this host")
            await link.close()
            return
        self._arrived[link.peer.host] = link
        silent_s = self._silences.length_s(link.peer.host, now())
        self._handle(Joined(link.peer.host, link.peer.incarnation, silent_s))
        await self._listen(link)

    async def _listen(self, link: links.Link) -> None:
        host = link.peer.host
        while True:
            try:
                message = await link.receive(self._quiet_s)
            except links.LinkError as error:
                say(f"{host}: {error}")
                link.drop()
                if self._links.get(host) is link:
                    del self._links[host]
                    self._silences.begin(host, link.heard_at)
                return
            if link.over:  # a newer link has replaced this one, and begins with all messages that count
                return
            if not isinstance(message, Ping):
                self._handle(message)

    def admit(self, joined: Joined) -> None:
        """Make the newest link of ``joined.host`` the host's current link, and send all orders for the host over it."""
        link = self._arrived.get(joined.host)
        if link is not None and link.peer.incarnation == joined.incarnation:
            del self._arrived[joined.host]
        else:
            link = None  # that of a later agent, which its own event admits
        if self._known.get(joined.host) != joined.incarnation:
            self._known[joined.host] = joined.incarnation
            self._given.pop(joined.host, None)
        if link is None:  # the lead's own host, or a link that an even newer one has replaced
            return
        before = self._links.pop(joined.host, None)
        if before is not None:
            before.drop()
        self._silences.end(joined.host)
        if link.over:
            self._silences.begin(joined.host, link.heard_at)
            return
        self._links[joined.host] = link
        for order in self._given.get(joined.host, []):
            link.send(order)

    @property
    def linked(self) -> Mapping[str, links.Link]:
        """Return the current links, by host."""
        return self._links

    def heard_lately(self) -> List[str]:
        """Return the hosts that are linked, and whose last message is younger than one and a half pings."""
        young_s = 1.5 * links.PING_SHARE * self._silences.lost_after_s
        return sorted(host for host, link in self._links.items() if now() - link.heard_at <= young_s)

    def give(self, host: str, order: Order) -> None:
        """Give a member an order, now or when the member has a link again."""
        self._given.setdefault(host, []).append(order)
        if host in self._links:
            self._links[host].send(order)

    def newly_lost(self, awaits_boots: bool) -> List[Lost]:
        """Return the newly lost hosts, each once; the caller calls ``forget`` as it handles each loss.

        If ``awaits_boots`` is False, no host gets extra time for a boot.
        """
        return self._silences.newly_lost(now(), self._arrived, awaits_boots)

    def forget(self, host: str) -> None:
        """Forget the orders to a lost host, also those that were given before the loop processed the loss."""
        self._given.pop(host, None)

    def silent(self) -> List[str]:
        """Return the hosts from which the lead receives nothing right now."""
        return self._silences.silent(now())

    async def dismiss(self, state: str) -> None:
        """Send the members the end of the run, with the result ``state``; wait until they have left, or time is up."""
        for link in self._links.values():
            link.send(End(state))
        until = now() + GOODBYE_S
        while self._links and now() < until:
            await asyncio.sleep(LEAVING_S)
        self._gate.close()
