"""The lead: the agent on the chief's host, which supervises the whole run.

One queue takes the events from anywhere in the run. One loop passes each event to the supervisor
and carries out the orders that the supervisor returns.
"""

import asyncio
import math
from typing import Any, AsyncIterator, Dict, Optional

from cluster.protocol.typed_json import to_values
from launch.agent.checkpoints import resume
from launch.agent.checkpoints.replication import Replicas
from launch.agent.hooks.hooks import Hooks
from launch.agent.linux.procfs import since_boot
from launch.agent.protocol.links import now
from launch.agent.protocol.messages import (
    DrainRequested,
    End,
    Go,
    Joined,
    KillRequested,
    Leaving,
    Lost,
    Order,
    RestartRequested,
    StopRequested,
    Tick,
)
from launch.agent.protocol.silence import LauncherSilence, Moment, Silences
from launch.agent.service import recovery
from launch.agent.service.agent import Agent
from launch.agent.service.member_links import Members
from launch.agent.service.publication import Publication
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.run_state import Phase
from launch.agent.supervision.supervisor import Supervisor
from launch.agent.tasks.host_tasks import HostTasks
from launch.agent.tasks.standbys import LOADS
from launch.agent.wire.run_request import RunPlan, RunRequest

LOOK_S = 0.1  # between two looks at all hosts: events arrive more often
COPIES_S, LAST_COPIES_S = 300.0, 20.0  # for copies of the last checkpoint, after a success and otherwise
FIRST_WORD_S = 30.0  # for the launcher's first line; from then on its lease counts


class Lead(Agent):
    """The agent that supervises a run, and owns the tasks of its own host."""

    def __init__(
        self,
        request: RunRequest,
        run: RunPlan,
        folder: RunFolder,
        tasks: HostTasks,
        events: "asyncio.Queue[Any]",
    ):
        super().__init__(request, folder, tasks, events)
        is_detached = request.again and folder.has(recovery.DETACHED)
        self._run = recovery.rejoined(run, request.booted) if is_detached else run
        keeps = self._run.judge == "outcome" or self._run.keeps_state
        self._supervisor = Supervisor(self._run, f"launch up {'--resume ' * keeps}{request.file}")
        if request.resume:
            history = request.history
            if history is None:
                history = resume.continued(folder, request.name, request.checkpoint_dir, request.resume_from)
            self._supervisor.curve.restore(history)
        others = [host for host in self._run.hosts if host != self._host]
        silences = Silences(others, self._run.lost_after_s, now(), self._run.patience)
        self._replicas = Replicas(request.replicas, folder, request.checkpoint_dir, self._cannot_copy)
        serve = self._replicas.serve
        self._members = Members(silences, request.token, self.incarnation, events.put_nowait, serve)
        self._hooks = Hooks(request, folder, tasks.restore_code)
        self._chief = next(task.name for task in self._run.tasks if task.chief)
        self._lease_s = None if is_detached else request.lease_s
        self._launcher = LauncherSilence(now(), since_boot())
        self._is_attended = False  # whether the launcher has sent a line
        self._has_given_up = False  # whether the lease of a launcher has ended the run
        self._has_go = False
        self._publication = Publication(self._supervisor, folder, self._replicas, self._hooks, request.returns)
        self._attempts = recovery.Attempts(folder)
        self._look_at = 0.0

    # -- the loop

    async def open(self) -> None:
        """Listen for the members, where the run has members.

        Raises:
          OSError: the port is taken.
        """
        if len(self._run.hosts) > 1:
            await self._members.open(self._request.lead.endpoint[1])

    async def run(self) -> None:
        """Run until every task of the run has ended and every member has left."""
        self._launcher.renew(now(), since_boot())
        self._prepare_tasks()
        self._events.put_nowait(Joined(self._host, self.incarnation))
        if self._request.again:
            self._take_over()
        while self._supervisor.state.phase is not Phase.ENDED:
            event = await self._next()
            if self.is_away:
                return
            if isinstance(event, Tick):
                self._tasks.poll(now())
            self._look_around()
            if isinstance(event, Joined):
                self._members.admit(event)
            elif isinstance(event, Lost):
                self._members.forget(event.host)
            orders = self._supervisor.handle(event, now())
            self._attempts.note(orders)
            for order in orders:
                self._give(order)
            if orders or not isinstance(event, Tick):
                self._publication.note_news()
            self._publication.look()
        self._publication.complete()  # this sends the last event; copies and receivers may still take seconds
        self._hooks.finish()
        await self._copy_the_last()
        await self._members.dismiss(self._supervisor.state.label)
        await self._hooks.settle()
        self._publication.end()

    def _take_over(self) -> None:
        """Continue the run of a dead agent: at once where that run needs no launcher, else once the launcher answers.

        The request to start this agent may arrive late: the launcher may have given the run up, and begun a successor.
        """
        before = recovery.read(self._folder)
        self._attempts.continue_in(self._supervisor, None if before is None else before.status)
        if before is not None:
            recovery.continue_run(self._supervisor, before, self._host, now())
        self._note_launcher(None)
        if self._lease_s is None:
            self._go()

    def _go(self) -> None:
        """Start the run; a launcher that connects again sends go again, which has no effect."""
        if not self._has_go:
            self._has_go = True
            self._events.put_nowait(Go())

    def _note_launcher(self, heard: Optional[Moment]) -> None:
        """Record a line of the launcher, and the moment of the newest answer that the launcher had received by then.

        Only that moment renews the lease: a connection may deliver a line long after the launcher has given up.
        """
        if self._is_attended:
            self._launcher.confirm(heard, now(), since_boot())
        else:
            self._is_attended = True
            self._launcher.renew(now(), since_boot())

    def left_s(self) -> float:
        """Return the seconds until a successor of the run may begin elsewhere; infinite where none may."""
        if self._lease_s is None or self._run.min_workers is None or not self._is_attended:
            return math.inf
        return self._lease_s - self._launcher.elsewhere_s(now(), since_boot())

    def _look_around(self) -> None:
        moment = now()
        self._replicas.look(self._checkpoint_step(), self._members.linked)
        silent_s = self._launcher.length_s(moment, since_boot())
        if self._lease_s is not None and silent_s > (self._lease_s if self._is_attended else FIRST_WORD_S):
            # After a long suspension, a successor may save into the same folder: the chief must not save any more.
            ending = KillRequested if self._launcher.slept_s > self._lease_s else StopRequested
            self._lease_s, self._has_given_up = None, True
            cause = f"no message from the launcher for {silent_s:.0f} s, so its lease on the run ended"
            self._events.put_nowait(ending(cause))
        if moment >= self._look_at:
            self._look_at = moment + LOOK_S
            self._look_for_silence()

    def _look_for_silence(self) -> None:
        closing = self._supervisor.state.is_closing  # no host can return any more
        silent = [] if closing else self._members.silent()
        self._supervisor.silent = [host for host in silent if host not in self._supervisor.departures.reasons]
        for lost in self._members.newly_lost(awaits_boots=not closing):
            self._events.put_nowait(lost)

    def _give(self, order: Order) -> None:
        if isinstance(order, End):
            return
        host = self._supervisor.tasks[order.task].plan.host
        if host != self._host:
            self._members.give(host, order)
        else:
            self._carry_out(order)

    # -- copies of checkpoints

    def _checkpoint_step(self) -> Optional[int]:
        """Return the step of the newest checkpoint that the chief has reported."""
        reported = self._supervisor.tasks[self._chief].progress.get("checkpoint_step")
        step: Optional[int] = self._supervisor.outcome.get("checkpoint_step", reported)
        return step

    def _cannot_copy(self, host: str, why: str) -> None:
        self._supervisor.incidents.begin("checkpoint", now(), host=host, cause=why)

    async def _copy_the_last(self) -> None:
        """Wait until the members have copied the last checkpoint of the finished run."""
        self._replicas.look(self._checkpoint_step(), self._members.linked)
        succeeded = self._supervisor.state.result == "succeeded"
        await self._replicas.settle(self._members.linked, COPIES_S if succeeded else LAST_COPIES_S)

    # -- local callers

    async def answer(self, request: Dict[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Carry out the request of a local caller, and yield the replies.

        Only the launcher that started the run sends heartbeats, which renew its lease on the run.
        """
        verb = request.get("do")
        if verb == "kill":
            self._hooks.hurry()
        if verb == "beat":
            heard = request.get("heard")
            self._note_launcher(heard)
            if self._request.again and heard is not None:
                self._go()
            yield {"beat": (now(), since_boot())}
        elif verb == "pause":  # the lease does not count until the launcher's next beat
            self._is_attended = True
            self._launcher.renew(now(), since_boot(), pauses=True)
            self._go()  # no beat may have come yet
            yield {"paused": True}
        elif verb == "ping":
            yield {"ping": True}
        elif verb == "go":
            self._note_launcher(None)
            if not self._request.again:  # else a beat shows that the launcher is there yet
                self._go()
        elif verb == "detach":
            if self._has_given_up or self._supervisor.state.is_closing:
                return  # the launcher shows how the run ends
            if self._folder.note(recovery.DETACHED, {}, durable=True):  # else the next lead would wait for its launcher
                self._lease_s = None
                yield {"detached": True}
        elif verb == "restart":
            self._events.put_nowait(RestartRequested(request["tasks"]))
            yield {"asked": True}
        elif verb == "prepared":
            while self._tasks.prepared(self._chief) == LOADS:
                await asyncio.sleep(LOOK_S)
            yield {"prepared": self._tasks.prepared(self._chief)}
        elif verb == "linked":
            leaving = self._supervisor.departures.reasons
            yield {"hosts": [host for host in [self._host, *self._members.heard_lately()] if host not in leaving]}
        elif verb == "drain":
            yield self._drain(DrainRequested(request["tasks"], request["back"]))
        elif verb in ("stop", "kill") and self._supervisor.state.phase is Phase.ENDED:
            self._replicas.hurry()
        elif verb == "stop":
            self._events.put_nowait(StopRequested(request["reason"]))
        elif verb == "kill":
            self._events.put_nowait(KillRequested(request["reason"]))
        elif verb == "save":
            async for answer in self._save():
                yield answer
        elif verb == "status":
            yield to_values(self._publication.status())
        elif verb == "watch":
            async for change in self._publication.watch():
                yield change

    def _drain(self, request: DrainRequested) -> Dict[str, Any]:
        """Start the drain at once, so the next status shows the drain; return the reasons against it, if any."""
        wrong = self._supervisor.formations.refusals(request)
        for order in self._supervisor.handle(request, now()) if not wrong else []:
            self._give(order)
        self._publication.note_news()
        return {"wrong": wrong}

    async def _save(self) -> AsyncIterator[Dict[str, Any]]:
        """Let the chief save while training continues; yield repeatedly whether it is done, with ``last`` at last."""
        saving, state = self._supervisor.saving, self._supervisor.state
        while state.phase is Phase.TRAINING and saving.is_pending(now()):
            yield {"done": False}
            await asyncio.sleep(LOOK_S)
        orders, request = saving.ask_live(now()) if state.phase is Phase.TRAINING else ([], None)
        for order in orders:
            self._give(order)
        while request is not None and saving.awaits(request, now()):
            yield {"done": False}
            await asyncio.sleep(LOOK_S)
        yield {"done": request is not None and saving.is_done(request), "last": True}

    def leave(self, why: str) -> None:
        """Let the run save and stop, since the run needs its lead; the second call kills every task."""
        again = self._host in self._supervisor.departures.reasons
        self._events.put_nowait(KillRequested(f"{self._host}: {why} again") if again else Leaving(self._host, why))

    def terminate(self, why: str) -> None:
        """Stop the run, since this agent itself must end for the reason ``why``."""
        self._events.put_nowait(StopRequested(f"the agent on {self._host} {why}"))
