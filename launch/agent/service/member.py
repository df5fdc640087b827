"""A member: an agent that owns its host's tasks and takes orders from the lead."""

import asyncio
import math
from dataclasses import replace
from typing import Any, AsyncIterator, Dict, Optional, Set, Union

from launch.agent.checkpoints.replication import Copier
from launch.agent.linux.procfs import since_boot
from launch.agent.protocol import links
from launch.agent.protocol.links import now
from launch.agent.protocol.messages import (
    Advanced,
    Dismiss,
    End,
    Event,
    Exited,
    Fetch,
    GpuFailed,
    Leaving,
    Measured,
    Message,
    Prepare,
    Prepared,
    Save,
    Signs,
    Start,
    Started,
    Stop,
    Tick,
)
from launch.agent.protocol.silence import MARGIN_SHARE
from launch.agent.service.agent import Agent
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.wire.run_request import RunRequest

REDIAL_S = 0.5
DIAL_S = 3.0
IDLE_S = 2.0  # without a task, until a leaving host has left
LEAVE_S = 300.0  # for the lead to drain a leaving host
GONE_S = 0.05  # between two looks for the end of the last task


class Member(Agent):
    """The agent that keeps a link to the lead, and carries out the lead's orders.

    The member kills its tasks at once when the lead may have received nothing from the member for ``lost_after_s``.
    Time for which the member's machine was suspended counts, too. From then on tasks elsewhere may replace the member's
    tasks. The member continues to dial for ``stay_s``, so that the lead can take the host back, and then leaves. The
    member leaves earlier where the lead's host answers and no lead runs there. Before the member obeys another
    incarnation of the lead, it kills the tasks that the earlier incarnation ordered.

    Messages sent just before a link broke may be lost. So a new link begins with all messages that still count: the
    lead's orders and the newest events of each task. The member ignores orders that it has already obeyed, and the lead
    processes each event once.
    """

    def __init__(self, request: RunRequest, folder: RunFolder, tasks: HostTasks, events: "asyncio.Queue[Any]"):
        super().__init__(request, folder, tasks, events)
        self._lost_after_s = request.lost_after_s
        self._stay_s = request.stay_s
        self._news: Dict[str, Dict[str, Event]] = {}  # by task: the newest event of each kind
        self._obeyed: Set[Union[Start, Prepare, Dismiss, Stop, Save]] = set()
        self._link: Optional[links.Link] = None
        self._over = False
        self._serves = ""  # the incarnation of the lead that ordered the tasks here
        self._joined = False
        self._copier = Copier(request, folder)
        self._deserted_s = request.deserted_s
        self._deserted_at: Optional[float] = None  # since when the lead's host refuses connections
        self._received_at = 0.0  # since boot: the newest time at which the lead has certainly received from here
        self._alone_at = 0.0  # the same time, on a clock that stops while this machine is suspended
        self._silence = f"no message from the lead for {self._lost_after_s:.0f} s"
        self._fenced: Set[str] = set()  # tasks that were killed for this silence; their ends are not reported yet
        self._forgotten: Set[str] = set()  # tasks of an earlier lead: their events are not sent
        self._states: Dict[str, Dict[str, Any]] = {}
        self._leaving: Optional[Leaving] = None
        self._leave_by = self._idle_since = 0.0

    async def open(self) -> None:
        """Do nothing: a member dials the lead, and does not listen."""

    async def run(self) -> None:
        """Run until the lead, a local caller or a long silence ends this host's part."""
        self._note_received(since_boot())
        self._prepare_tasks()
        talking = asyncio.ensure_future(self._talk())
        try:
            while not (self._over and not self._tasks.running):
                event = await self._next()
                if self.is_away:
                    return
                if isinstance(event, Tick):
                    self._tasks.poll(now())
                self._send(event)
                self._check_silence()
                self._check_departure()
        finally:
            if self._link is not None:
                await self._link.close()
            talking.cancel()
            self._copier.close()

    def _check_silence(self) -> None:
        if self._link is not None and self._link.confirmed_at > self._received_at:
            self._note_received(self._link.confirmed_at)
        silent_s = since_boot() - self._received_at
        leave_after_s = self._lost_after_s + self._stay_s if self._was_in else self._request.join_s
        # Also while this host leaves: the lead starts the tasks elsewhere, and their grace may end later than that.
        if self._joined and silent_s > self._lost_after_s and set(self._tasks.running) - self._fenced:
            self._fenced = set(self._tasks.running)
            self._kill(self._silence)
            if self._link is not None:
                self._link.drop()  # new orders of the lead arrive only when these tasks have ended
        if not self._over and now() - self._alone_at > leave_after_s:
            self._leave(f"no message from the lead for {leave_after_s:.0f} s")

    def left_s(self) -> float:
        """Return the seconds until the lead may start this host's tasks elsewhere; infinite without a running task."""
        lost_at = self._received_at + self._lost_after_s * (1 + MARGIN_SHARE / 2)  # before the lead's own bound
        return lost_at - since_boot() if self._joined and self._tasks.running else math.inf

    def _note_received(self, at: float) -> None:
        self._received_at, self._alone_at = at, now() - (since_boot() - at)

    @property
    def _was_in(self) -> bool:
        """Return whether this agent, or the earlier agent that it replaces, has been a member of the run."""
        return self._joined or self._request.again

    def _check_departure(self) -> None:
        """Leave once the lead has drained the tasks here, or after ``LEAVE_S``."""
        if self._leaving is None or self._over:
            return
        moment = now()
        self._idle_since = moment if self._tasks.running else self._idle_since
        if moment - self._idle_since > IDLE_S or moment > self._leave_by:
            self._leave(self._leaving.why)

    def _kill(self, why: str) -> None:
        """Kill every task at once, also a task that was ordered to end and may still write."""
        say(f"killing {', '.join(sorted(self._tasks.running)) or 'nothing'}: {why}")
        self._tasks.stop_all(0.0, now())
        self._tasks.poll(now())

    def _send(self, event: Event) -> None:
        """Send an event to the lead; without a link, the next link begins with it."""
        if getattr(event, "task", None) in self._forgotten:
            if isinstance(event, Exited):
                self._forgotten, self._fenced = self._forgotten - {event.task}, self._fenced - {event.task}
                self._record(event)  # else the next lead would wait for the end of a task that has ended
            return
        if isinstance(event, Exited) and event.task in self._fenced:
            self._fenced.discard(event.task)
            event = replace(event, cause=f"its agent killed it: {self._silence}")
        if isinstance(event, (Started, Advanced, Exited, Prepared)):
            self._keep(event)
        elif not isinstance(event, (Measured, Signs, GpuFailed)):  # these are not kept: the next ones follow soon
            return
        if self._link is not None:
            self._link.send(event)

    def _keep(self, event: Union[Started, Advanced, Exited, Prepared]) -> None:
        if isinstance(event, Started):
            self._news[event.task] = {}
        self._news.setdefault(event.task, {})[type(event).__name__] = event
        if isinstance(event, (Started, Exited)):
            self._record(event)

    def _record(self, event: Union[Started, Exited]) -> None:
        self._states[event.task] = {"pid": getattr(event, "pid", None), "alive": isinstance(event, Started)}
        self._folder.note("status.json", {"run": self._request.run, "tasks": self._states})

    def _leave(self, why: str) -> None:
        say(f"leaving: {why}")
        self._over = True
        self._stop_all(self._request.grace_s)

    # -- the lead

    async def _talk(self) -> None:
        while not self._over:
            try:
                while self._fenced or self._tasks.is_hanging():  # else the lead may start a task a second time
                    await asyncio.sleep(GONE_S)
                me = links.Greeting(self._host, self.incarnation, self._serves)
                link = await links.dial(
                    self._request.lead.endpoint, me, self._request.token, min(DIAL_S, self._lost_after_s)
                )
                self._check_silence()  # a new link does not undo the silence before it, as after a suspension
                if self._fenced:
                    link.drop()
                elif self._serves in ("", link.peer.incarnation):
                    await self._obey(link)
                else:
                    link.drop()
                    await self._forget_lead()
            except links.LinkError as error:
                say(f"lead: {error}")
                self._link = None
                self._check_refusal(error)
                await asyncio.sleep(REDIAL_S)

    def _check_refusal(self, error: links.LinkError) -> None:
        refused = isinstance(error.__cause__, ConnectionRefusedError)
        self._deserted_at = (self._deserted_at or now()) if refused else None
        if self._was_in and self._deserted_at and now() - self._deserted_at > self._deserted_s:
            self._leave(f"no lead agent on {self._request.lead.host} for {self._deserted_s:.0f} s; leaving the run")

    async def _forget_lead(self) -> None:
        """Kill the tasks of an earlier lead, and forget its orders and events."""
        self._forgotten = {*self._tasks.running, *(task for task, state in self._states.items() if state["alive"])}
        self._kill("the lead agent restarted")
        while self._forgotten:
            await asyncio.sleep(GONE_S)
        self._news, self._obeyed, self._serves = {}, set(), ""

    async def _obey(self, link: links.Link) -> None:
        self._link, self._joined, self._serves = link, True, link.peer.incarnation
        if self._leaving is not None:
            link.send(self._leaving)
        for news in self._news.values():
            for event in news.values():
                link.send(event)
        beating = asyncio.ensure_future(link.keep_alive(self._lost_after_s * links.PING_SHARE))
        try:
            while not self._over:
                self._take(await link.receive(self._lost_after_s * links.QUIET_SHARE))
        except links.LinkError:
            link.drop()
            raise
        finally:
            beating.cancel()
            await link.close()

    def _take(self, message: Message) -> None:
        if self._over:
            return  # nothing would end a task that starts now
        if isinstance(message, (Start, Prepare, Dismiss, Stop, Save)):
            if message in self._obeyed:
                return
            self._obeyed.add(message)
            self._carry_out(message)
        elif isinstance(message, Fetch):
            self._copier.fetch()
        elif isinstance(message, End):
            self._leave(f"the run has {message.state}")

    # -- local callers

    async def answer(self, request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Carry out the request of a local caller, and yield the replies."""
        verb = request.get("do")
        if verb == "stop":
            self._leave(request["reason"])
        elif verb == "kill":
            self._over = True
            self._stop_all(0.0)
        elif verb == "status":
            yield {"run": self._request.run, "tasks": self._states}

    def leave(self, why: str) -> None:
        """Ask the lead to release this host; the second call ends the tasks without waiting for the lead."""
        if self._leaving is not None:
            self._leave(f"{why} again")
            return
        say(f"about to leave: {why}")
        self._leaving = Leaving(self._host, why)
        self._idle_since, self._leave_by = now(), now() + LEAVE_S
        if self._link is not None:
            self._link.send(self._leaving)

    def terminate(self, why: str) -> None:
        """End this host's tasks and then this agent itself, for the reason ``why``."""
        self._leave(f"the agent on {self._host} {why}")
