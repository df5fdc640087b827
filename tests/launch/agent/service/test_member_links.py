"""Which link of a host is admitted, and which orders it is given."""

import asyncio
from typing import Any, List

from launch.agent.protocol.links import Greeting
from launch.agent.protocol.messages import Start
from launch.agent.protocol.silence import Silences
from launch.agent.service.member_links import Members


class Link:
    """A link of an agent on h1 that sends nothing."""

    def __init__(self, incarnation: str):
        self.peer, self.over, self.heard_at = Greeting("h1", incarnation), False, 0.0
        self.sent: List[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)

    def drop(self) -> None:
        self.over = True

    async def receive(self, within_s: float) -> None:
        await asyncio.sleep(within_s)


async def _unasked(link: Any) -> None:
    """Serves nothing."""


async def dialled(members: Any, *links: Link) -> List["asyncio.Task[None]"]:
    """Each link arrives, before the lead handles the event of any."""
    welcomed = [asyncio.ensure_future(members._welcome(link)) for link in links]
    await asyncio.sleep(0)
    return welcomed


def test_an_agent_that_dials_before_the_lead_has_handled_its_predecessor_s_link_gets_none_of_its_orders() -> None:
    async def orders() -> List[Any]:
        events: List[Any] = []
        members: Any = Members(Silences(["h1"], 10.0, 0.0), "token", "lead", events.append, serve=_unasked)
        first, again, other = Link("a"), Link("a"), Link("b")
        welcomed = await dialled(members, first)
        members.admit(events.pop())
        members.give("h1", Start("ps:0", 0))
        welcomed += await dialled(members, again, other)
        for joined in events:
            members.admit(joined)
        assert first.sent == [Start("ps:0", 0)] and first.over and members.linked["h1"] is other
        for each in welcomed:
            each.cancel()
        return other.sent

    assert asyncio.run(orders()) == []
