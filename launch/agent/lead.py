"""The lead: the agent on the chief's host, which supervises the whole run.

One queue takes what happens anywhere in the run; one loop hands it to the supervisor
and carries out the orders that come back.
"""

import asyncio
import time
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional

from cluster.addresses import port_of
from launch.agent import links
from launch.agent.agent import Agent, now
from launch.agent.agent_log import say
from launch.agent.folder import RunFolder
from launch.agent.messages import (
    End,
    Go,
    Joined,
    KillRequested,
    Lost,
    Message,
    Order,
    Ping,
    RestartRequested,
    RunPlan,
    Start,
    Stop,
    StopRequested,
    TaskPlan,
)
from launch.agent.supervise import Supervisor
from launch.agent.tasks import HostTasks

PUBLISH_S = 0.25
PUBLISH_SHARE = 0.1  # of a processor's time: the status of thousands of tasks is published less often
GOODBYE_S = 10.0
LEAVING_S = 0.05  # how soon it is noticed that the last member has left
START_S = 120.0  # how long the launcher may take to start the other hosts' agents, before it says go


class Lead(Agent):
    """Supervises a run; also owns the tasks of its own host."""

    def __init__(self, plan: Mapping[str, Any], folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]"):
        super().__init__(plan, folder, tasks, events)
        self._run = read_run_plan(plan["run_plan"])
        self._supervisor = Supervisor(self._run)
        self._links: Dict[str, links.Link] = {}
        self._silent_since: Dict[str, float] = {}
        self._given: Dict[str, List[Order]] = {}  # to each member, so that a new link can begin with them
        self._server: Any = None
        self._lease_s: Optional[float] = plan.get("lease_s")
        self._heard = 0.0
        self._told_to_go = False
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._published: Dict[str, Any] = {}
        self._publish_at = 0.0

    # -- the loop

    async def open(self) -> None:
        """Listens for the members, where there are any.

        Raises:
          OSError: the port is taken.
        """
        if len(self._run.hosts) > 1:
            port = port_of(self._plan["lead"]["address"])
            self._server = await asyncio.start_server(self._welcome, None, port, limit=links.LIMIT)

    async def run(self) -> None:
        """Until every task of the run is gone and every member has left."""
        self._heard = now()
        self._events.put_nowait(Joined(self._host))
        while self._supervisor.phase != "ended":
            event = await self._next()
            self._look_around()
            for order in self._supervisor.handle(event, now()):
                self._give(order)
            self._publish(final=False)
        await self._dismiss()
        self._publish(final=True)
        self._ended.set()

    def _look_around(self) -> None:
        moment = now()
        self._tasks.poll(moment)
        if self._lease_s is not None and moment - self._heard > (self._lease_s if self._told_to_go else START_S):
            self._lease_s = None
            self._events.put_nowait(StopRequested("the launcher was not heard from, so its lease on the run ended"))
        for host, since in list(self._silent_since.items()):
            if moment - since > self._run.lost_after_s:
                del self._silent_since[host]
                self._given.pop(host, None)
                self._events.put_nowait(Lost(host, moment - since))

    def _give(self, order: Order) -> None:
        if isinstance(order, End):
            return
        host = self._supervisor.tasks[order.task].plan.host
        if host != self._host:
            self._given.setdefault(host, []).append(order)
            if host in self._links:
                self._links[host].send(order)
        elif isinstance(order, Start):
            self._tasks.start(order.task, order.attempt)
        elif isinstance(order, Stop):
            self._tasks.stop(order.task, order.grace_s, now())

    # -- members

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            link = await links.answer(reader, writer, self._plan["token"])
        except links.LinkError as error:
            say(f"refused a caller: {error}")
            writer.close()
            return
        self._links[link.host] = link
        self._silent_since.pop(link.host, None)
        self._events.put_nowait(Joined(link.host))
        for order in self._given.get(link.host, []):  # the last of them may have been lost with the old link
            link.send(order)
        beating = asyncio.ensure_future(link.keep_alive(self._run.lost_after_s))
        try:
            await self._listen(link)
        finally:
            beating.cancel()
            await link.close()

    async def _listen(self, link: links.Link) -> None:
        while True:
            try:
                message: Message = await link.receive(self._run.lost_after_s)
            except links.LinkError as error:
                say(f"{link.host}: {error}")
                if self._links.get(link.host) is link:
                    del self._links[link.host]
                    self._silent_since.setdefault(link.host, link.heard_at)
                return
            if not isinstance(message, Ping):
                self._events.put_nowait(message)

    async def _dismiss(self) -> None:
        """Tells the members that the run is over and waits until they have left."""
        for link in self._links.values():
            link.send(End(self._supervisor.state))
        until = now() + GOODBYE_S
        while self._links and now() < until:
            await asyncio.sleep(LEAVING_S)
        if self._server is not None:
            self._server.close()

    # -- local callers

    async def answer(self, request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Replies to a local caller. Only the launcher that started the run beats, and so keeps its lease."""
        verb = request.get("do")
        if verb == "beat":
            self._heard = now()
            yield {"beat": True}
        elif verb == "ping":
            yield {"ping": True}
        elif verb == "go":
            self._told_to_go, self._heard = True, now()
            self._events.put_nowait(Go())
        elif verb == "detach":
            self._lease_s = None
            yield {"detached": True}
        elif verb == "restart":
            self._events.put_nowait(RestartRequested(request["tasks"]))
            yield {"asked": True}
        elif verb == "stop":
            self._events.put_nowait(StopRequested(request["reason"]))
        elif verb == "kill":
            self._events.put_nowait(KillRequested(request["reason"]))
        elif verb == "status":
            yield self.status()
        elif verb == "watch":
            async for change in self._watch():
                yield change

    async def _watch(self) -> AsyncIterator[Dict[str, Any]]:
        """The status, then what changed of it: {"run": …, "tasks": {name: …}}; last {"end": state}."""
        told: Dict[str, Any] = {}
        while True:
            over = self._ended.is_set()
            status = self.status()
            tasks = {f"{task['role']}:{task['index']}": task for task in status.pop("tasks")}
            yield {"run": status, "tasks": {name: task for name, task in tasks.items() if told.get(name) != task}}
            told = tasks
            if over:
                yield {"end": self._supervisor.state}
                return
            await _either(self._changed.wait(), self._ended.wait())

    def status(self) -> Dict[str, Any]:
        """``status --json``."""
        return self._supervisor.status()

    def terminate(self, why: str) -> None:
        """The agent itself has to end, and the run with it."""
        self._events.put_nowait(StopRequested(f"the agent on {self._host} {why}"))

    def _publish(self, final: bool) -> None:
        if not final and now() < self._publish_at:
            return
        began, status = time.process_time(), self.status()
        changed = final or status != self._published
        if changed:
            self._published = status
            self._folder.note("status.json", status)
            self._changed.set()
            self._changed.clear()
        pause_s = (time.process_time() - began) / PUBLISH_SHARE
        self._publish_at = now() + (max(PUBLISH_S, pause_s) if changed else pause_s)


async def _either(*waits: Any) -> None:
    """Until one of the waits is over."""
    pending = {asyncio.ensure_future(wait) for wait in waits}
    _, rest = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    for wait in rest:
        wait.cancel()


def read_run_plan(values: Mapping[str, Any]) -> RunPlan:
    """The run's plan out of its JSON form."""
    tasks: List[TaskPlan] = [TaskPlan(**task) for task in values["tasks"]]
    return RunPlan(**{**values, "tasks": tasks})
