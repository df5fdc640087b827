"""A member: an agent that owns its host's tasks and takes orders from the lead."""

import asyncio
from typing import Any, AsyncIterator, Dict, Mapping, Optional, Set, Union

from cluster.addresses import host_of, port_of
from launch.agent import links
from launch.agent.agent import Agent, now
from launch.agent.agent_log import say
from launch.agent.folder import RunFolder
from launch.agent.messages import Advanced, End, Event, Exited, Measured, Message, Start, Started, Stop
from launch.agent.tasks import HostTasks

REDIAL_S = 0.5


class Member(Agent):
    """Keeps a link to the lead, and without one for too long ends its tasks and leaves.

    What was said just before a link broke may be lost. So a new link begins with all that
    still counts: the lead's orders, of which those are passed over that were obeyed, and
    the newest events of each task, which the lead takes in once.
    """

    def __init__(self, plan: Mapping[str, Any], folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]"):
        super().__init__(plan, folder, tasks, events)
        self._lost_after_s: float = plan["lost_after_s"]
        self._news: Dict[str, Dict[str, Event]] = {}  # of each task, the newest event of each kind
        self._obeyed: Set[Union[Start, Stop]] = set()
        self._link: Optional[links.Link] = None
        self._over = False
        self._joined = False
        self._heard = 0.0
        self._states: Dict[str, Dict[str, Any]] = {}

    async def open(self) -> None:
        """Nothing to open: a member dials."""

    async def run(self) -> None:
        """Until the lead, a local caller or a long silence ends this host's part."""
        self._heard = now()
        talking = asyncio.ensure_future(self._talk())
        try:
            while not (self._over and not self._tasks.running):
                event = await self._next()
                self._tasks.poll(now())
                self._tell(event)
                patience_s = self._lost_after_s if self._joined else self._plan["join_s"]
                if not self._over and now() - self._heard > patience_s:
                    self._leave(f"the lead was not heard from for {patience_s:.0f} s")
        finally:
            if self._link is not None:
                await self._link.close()
            talking.cancel()

    def _tell(self, event: Event) -> None:
        """Sends an event to the lead; without a link, the next one begins with it."""
        if isinstance(event, (Started, Advanced, Exited)):
            self._keep(event)
        elif not isinstance(event, Measured):  # which is not kept: the next one comes soon
            return
        if self._link is not None:
            self._link.send(event)

    def _keep(self, event: Union[Started, Advanced, Exited]) -> None:
        if isinstance(event, Started):
            self._news[event.task] = {}
        self._news.setdefault(event.task, {})[type(event).__name__] = event
        if not isinstance(event, Advanced):
            self._record(event)

    def _record(self, event: Union[Started, Exited]) -> None:
        self._states[event.task] = {"pid": getattr(event, "pid", None), "alive": isinstance(event, Started)}
        self._folder.note("status.json", {"run": self._plan["run"], "tasks": self._states})

    def _leave(self, why: str) -> None:
        say(f"leaving: {why}")
        self._over = True
        self._tasks.stop_all(self._plan["grace_s"], now())

    # -- the lead

    async def _talk(self) -> None:
        lead = self._plan["lead"]["address"]
        address = host_of(lead), port_of(lead)
        while not self._over:
            try:
                link = await links.dial(address, self._host, self._plan["token"], self._lost_after_s)
                await self._obey(link)
            except links.LinkError as error:
                say(f"lead: {error}")
                self._link = None
                await asyncio.sleep(REDIAL_S)

    async def _obey(self, link: links.Link) -> None:
        self._link, self._joined = link, True
        for news in self._news.values():
            for event in news.values():
                link.send(event)
        beating = asyncio.ensure_future(link.keep_alive(self._lost_after_s))
        try:
            while not self._over:
                self._take(await link.receive(self._lost_after_s))
        finally:
            beating.cancel()
            await link.close()

    def _take(self, message: Message) -> None:
        self._heard = now()
        if isinstance(message, (Start, Stop)):
            if message in self._obeyed:
                return
            self._obeyed.add(message)
        if isinstance(message, Start):
            self._tasks.start(message.task, message.attempt)
        elif isinstance(message, Stop):
            self._tasks.stop(message.task, message.grace_s, now())
        elif isinstance(message, End):
            self._leave(f"the run has {message.state}")

    # -- local callers

    async def answer(self, request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Replies to a local caller."""
        verb = request.get("do")
        if verb == "stop":
            self._leave(request["reason"])
        elif verb == "kill":
            self._over = True
            self._tasks.stop_all(0.0, now())
        elif verb == "status":
            yield {"run": self._plan["run"], "tasks": self._states}

    def terminate(self, why: str) -> None:
        """The agent itself has to end, and its tasks with it."""
        self._leave(f"the agent on {self._host} {why}")
