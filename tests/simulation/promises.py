"""What must hold after every event of a history, whatever happens."""

import math
from typing import Any, Callable, Dict, List, Optional, Tuple

from launch.agent.service.keeping import LONGEST_PAUSE_S
from launch.agent.service.lead import FIRST_WORD_S
from launch.agent.service.recovery import ATTEMPTS
from launch.agent.supervision.agent_lives import MOST, WINDOW_S
from launch.agent.supervision.run_state import Phase
from launch.agent.wire.run_request import RunRequest
from launch.run.draft import DESERTED_S
from tests.simulation.unwritten import Unwritten

WAKING_S = 3.7  # after a machine with a slow clock wakes, for its agent to look twice and end what runs there
FROZEN_S = 2.2  # after an agent is stopped whose tasks must be gone, until its keeper has killed it, and they end
UNKEPT_S = 11.0  # after a keeper goes on that was stopped beside its agent, until that is killed or has its tasks end
LEASE_END_S = FIRST_WORD_S + 5.0  # after the launcher has gone; with a slow clock
GOES_ON_S = 6.0  # after an agent goes on that was stopped, until it has looked at its clocks; a call may block for 5 s
FENCED_S = 13.5  # after another lead begins, for what the one before had ordered to be gone
STATUS_S, BACK_STEPS = 10.0, 40  # between two looks at the status; a checkpoint is not older
WRITTEN_S = 1.0  # from a change of the run's state to its file
ANSWER_S = 60.0  # to a local caller
DIALS_S = 30.0  # between tries to reach the lead's host, and to end in order
BOUND_S = 150.0  # for a run to end, after it was asked to, once nothing is in its way
ADVANCE_S = 240.0  # for training to go on, once nothing is in its way: pauses between attempts are 60 s at most
SOME_ENDS_S = WINDOW_S - 2 * LONGEST_PAUSE_S  # in which all ends count together, whatever the clocks and pauses
FORGETS = {  # after these, an order may not be on record; after the last, it and the status
    "disk", "write full", "write fails", "write refused", "damaged off",
}  # fmt: skip
LOSES_FILES = {  # after these, what a lead had counted may be gone
    *FORGETS, "power", "reboot", "gone", "write unpowered", "write killed", "damaged",
}  # fmt: skip


class Broken(AssertionError):
    """A promise does not hold."""


class Promises:
    """The promises of one history.

    Args:
      world: has machines, training, and the lead.
    """

    def __init__(self, world: Any):
        self._world = world
        self.unwritten = Unwritten(world)
        self._step, self._advanced_at = -1, 0.0
        self._deserted_at = self._read_at = world.agenda.now
        self._reported = 0  # the newest step that the lead knew at that time
        self._writer: Any = None  # the supervisor of that lead
        self._state, self._since = "", 0.0  # of the run, and since when
        self.closing_at: Optional[float] = None  # when the lead has begun to end the run

    def look(self) -> None:
        """Raise Broken where one does not hold now."""
        acting = [each for each in self._world.acting() if not self._world.operators.excuses(each)]
        self._note_the_end()
        self._note_the_unkept()
        self.unwritten.look()
        self._at_most_one("I1", "processes of one task", acting, lambda each: each.task, lambda each: each.leader)
        self._at_most_one("I1", "formations", acting, lambda each: "", lambda each: each.formation)
        self._at_most_one("I4", "leads on one host", acting, lambda each: each.host, lambda each: each.lead)
        self._one_lead(acting)
        self._events_count_once()
        self._training_goes_on()
        self._the_status_is_new()
        self._the_lease_ends()
        self._callers_are_answered()
        self._members_leave()
        self._the_run_ends()

    def _note_the_end(self) -> None:
        supervisor = self._world.supervisor()
        if self.closing_at is None and supervisor is not None and supervisor.state.is_closing:
            self.closing_at = self._world.agenda.now

    # -- who acts

    def _at_most_one(
        self, promise: str, what: str, acting: List[Any], key: Callable[[Any], Any], kind: Callable[[Any], Any]
    ) -> None:
        """I1, I4: of what acts at once and has one key, all is of one kind: a process, a formation, a lead's."""
        found: Dict[Any, Any] = {}
        for each in acting:
            if found.setdefault(key(each), kind(each)) != kind(each):
                those = [other for other in acting if key(other) == key(each)]
                if not self.is_excused(those):
                    raise Broken(f"{promise}: {len(set(map(kind, those)))} {what}: {_names(those)}")

    def _one_lead(self, acting: List[Any]) -> None:
        """I4: some seconds after a lead begins, nothing acts that another one has ordered."""
        world = self._world
        begun_at, life = world.lead.led_since, world.lead.life
        if begun_at is None or life is None or world.agenda.now < begun_at + FENCED_S:
            return
        late = [each for each in acting if each.lead != life.leads and not self.is_excused([each])]
        if late:
            raise Broken(f"I4: {FENCED_S} s after another lead began, {_names(late)} act for the one before")

    def is_excused(self, processes: List[Any]) -> bool:
        """Return whether the host of one was suspended until some seconds ago, or had neither agent nor keeper."""
        now, hosts = self._world.agenda.now, {each.host for each in processes}
        just_woke = any(now - self._world.woken_at.get(host, -math.inf) <= WAKING_S for host in hosts)
        return just_woke or any(now - self._world.unkept_at.get(host, -math.inf) <= UNKEPT_S for host in hosts)

    def _note_the_unkept(self) -> None:
        for host, machine in self._world.machines.items():
            if machine.is_unkept:
                self._world.unkept_at[host] = self._world.agenda.now

    def starts(self, process: Any) -> None:
        """I3: a task starts on a host only when nothing of its former attempt lives there."""
        former = [
            each for each in self._world.training.living(process.task) if each is not process and each.code is None
        ]
        if any(each.host == process.host for each in former):
            self._world.fail(f"I3: {process.task} starts on {process.host} while {_names(former)} lives")
        self._attempts_are_counted(process)

    def _attempts_are_counted(self, process: Any) -> None:
        """I5: no two processes have one attempt, unless a disk was full, or a power cut has taken their numbers.

        A lead that was suspended may start tasks of its own run until it has looked at its clocks, beside a successor.
        Where the record of attempts is damaged, the status has their numbers, and may lack those of the last moment.
        """
        damaged_at = self._world.damaged_at.get(ATTEMPTS, math.inf)
        others = [each for each in self._world.training.processes if each is not process]
        shown = [each for each in others if not damaged_at - WRITTEN_S <= each.turn_at <= damaged_at]
        again = [each for each in shown if _attempt(each) == _attempt(process)]
        if again and not (self._world.kinds & FORGETS or self._world.operators.forget_attempts):
            self._world.fail(f"I5: {process.task} starts on {process.host} as attempt {process.attempt} once more")

    def begins_next(self, host: str, life: Any, begun_at: List[float]) -> None:
        """I15: a keeper begins a next agent only after one that has failed, and few times."""
        recent = [at for at in begun_at if self._world.agenda.now - at < SOME_ENDS_S]
        if len(recent) > MOST:
            self._world.fail(f"I15: the keeper on {host} begins {len(recent)} agents in {SOME_ENDS_S} s")
        if life is not None and (life.is_over or not life.loop.is_dead):
            self._world.fail(f"I15: the keeper on {host} begins an agent after one that has not failed")

    def agent_begins(self, machine: Any) -> None:
        """I15: an agent begins on a host only when nothing of the one before lives there."""
        if machine.living():
            self._world.fail(f"I15: an agent begins on {machine.host} while {_names(machine.living())} lives")

    # -- what is counted

    def _events_count_once(self) -> None:
        """I5: no task has more attempts than processes, nor more failures than processes that have ended."""
        supervisor = self._world.supervisor()
        if supervisor is None:
            return
        for name, task in supervisor.tasks.items():
            own = [each for each in self._world.training.processes if each.task == name]
            share = task.plan.role if self._world.shape.together and task.plan.role == "worker" else name
            sharing = [each for each in self._world.training.processes if each.task.startswith(share)]
            ended = sum(each.code is not None for each in sharing)
            if task.attempt > len(own) + len(self._world.faults):  # an order may be lost with its link
                raise Broken(f"I5: {name} has attempt {task.attempt} after {len(own)} processes")
            if task.failures > ended:
                raise Broken(f"I5: {name} has {task.failures} failures after {ended} ends")
        lost, fell = supervisor.incidents.stalls.steps_lost, self._world.training.steps_lost
        if lost > fell:
            raise Broken(f"I5: {lost} steps are counted as lost, and training went back by {fell}")

    # -- what goes on

    def _training_goes_on(self) -> None:
        """I12: with a healed network and every host there, a run that has not ended takes steps."""
        world, supervisor = self._world, self._world.supervisor()
        now, step = world.agenda.now, int(world.training.step)
        calm = supervisor is not None and supervisor.state.phase is Phase.TRAINING and world.is_healthy
        if step != self._step or not calm or now < world.healed_at:
            self._step, self._advanced_at = step, max(now, world.healed_at)
        if now > self._advanced_at + ADVANCE_S:
            raise Broken(f"I12: nothing is in the way, and training stands at step {step} for {ADVANCE_S:.0f} s")

    def _the_status_is_new(self) -> None:
        """I14: what the lead has written of the run is not older than some seconds, and fits itself."""
        world, supervisor, lead = self._world, self._world.supervisor(), self._world.lead
        now, acts = world.agenda.now, lead.has_agent and not (lead.is_stopped or lead.life.is_over)
        is_new, self._writer = supervisor is not self._writer, supervisor
        if is_new or not acts or lead.disk.is_full or now < world.woken_at.get(world.lead_host, 0.0) + 2 * STATUS_S:
            self._read_at, self._reported = now, 0
        if supervisor is not None and supervisor.state.label != self._state:
            self._state, self._since = supervisor.state.label, now
        if supervisor is None or now < max(self._read_at + STATUS_S, self._since + WRITTEN_S):
            return
        self._read_at = now
        status = lead.folder.read_whole("status.json") or {}
        # With a full disk, a return goes back further than a checkpoint is old.
        known = min(self._reported, supervisor.incidents.stalls.present or 0)
        if status.get("state") != supervisor.state.label or (status["global_step"] or 0) < known - BACK_STEPS:
            found = f"{status.get('state')} at step {status.get('global_step')}"
            raise Broken(
                f"I14: the lead knows of {supervisor.state.label} at {self._reported}, and has written {found}"
            )
        self._reported = supervisor.incidents.stalls.newest or 0
        for task in status["tasks"]:
            if task["state"] == "running" and (task["pid"] is None or task["exit_code"] is not None or task["cause"]):
                raise Broken(f"I14: a task that runs is shown with the end of another: {task}")

    def _the_lease_ends(self) -> None:
        """I7: a run whose launcher is gone, and has not left it to itself, begins to end with its lease."""
        world, supervisor = self._world, self._world.supervisor()
        gone_at, lead = world.launcher_left_at, world.lead
        if gone_at is None or supervisor is None or not lead.has_agent or lead.life.agent._lease_s is None:
            return
        if math.isinf(lead.life.agent._launcher._heard_at):  # it was suspended by Ctrl-Z
            return
        since = max(gone_at, world.woken_at.get(world.lead_host, 0.0), lead.led_since or 0.0)
        due_at = max(since + LEASE_END_S, lead.went_on_at + GOES_ON_S)
        if world.agenda.now > due_at and not supervisor.state.is_closing and not lead.is_stopped:
            raise Broken(f"I7: the launcher has been gone for {world.agenda.now - gone_at:.0f} s, and the run goes on")

    def _callers_are_answered(self) -> None:
        """I7: who asks an agent has its last answer in bounded time."""
        for host, machine in self._world.machines.items():
            if machine.has_agent and not machine.is_stopped and host not in self._world.woken_at:
                late = machine.life.unanswered(ANSWER_S)
                if late:
                    raise Broken(f"I7: {host} has not answered {', '.join(late)} for {ANSWER_S:.0f} s")

    def _members_leave(self) -> None:
        """I7: agents leave a run whose lead's host answers, and has no agent any more."""
        world, lead = self._world, self._world.lead
        is_deserted = lead.life is None and lead.has_power and not lead.clock.is_asleep and not world.network.cut
        if not is_deserted or world.agenda.now < world.healed_at:
            self._deserted_at = world.agenda.now
        limit_s = (DESERTED_S if world.shape.returns else RunRequest.deserted_s) + DIALS_S
        there = {host: each for host, each in world.machines.items() if each.has_agent and not each.is_stopped}
        there = {host: each for host, each in there.items() if each.folder.run == world.run_name}
        served = {host: each for host, each in there.items() if not each.life.is_over}  # others tidy, without tasks
        since = {host: max(self._deserted_at, each.led_since or 0.0) for host, each in served.items()}
        late = [host for host, at in since.items() if world.agenda.now > at + limit_s]
        if late:
            raise Broken(f"I7: nobody leads any more for {limit_s:.0f} s, and there are agents on {late}")

    def _the_run_ends(self) -> None:
        """I7: a run that was asked to end does, in bounded time."""
        world = self._world
        bound_s = world.operators.bound_s
        if world.asked_at is not None and world.agenda.now > max(world.asked_at, world.healed_at) + bound_s:
            living: List[str] = [each.task for each in world.living()]
            agents = [host for host, each in world.machines.items() if each.life is not None]
            if living or agents:
                raise Broken(f"I7: {bound_s:.0f} s after its end was asked for, there are {living} and agents {agents}")


def _attempt(process: Any) -> Tuple[Optional[str], str, int]:
    """A run, a task of it, and one of its attempts."""
    return process.run, process.task, process.attempt


def _names(processes: List[Any]) -> str:
    return ", ".join(sorted(f"{each.task} attempt {each.attempt} on {each.host}" for each in processes))
