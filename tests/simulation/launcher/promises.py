"""What must hold of launchers: they end in time, ``down`` proves what it reports, and ``up`` shows the run's end."""

import re
from typing import Any, Dict, List, Optional, Set

from launch.errors import FOUND_WRONG, SUCCEEDED
from launch.plan.agent_requests import LEASE_S
from launch.teardown import DOWN_S, NOTHING_LEFT, Left, remains
from tests.simulation.launcher.faults import UNPRINTED
from tests.simulation.outcomes import AGENTS, LEFT_S, UNSURE
from tests.simulation.promises import LOSES_FILES, Broken

EXIT_S = 30.0  # after its deadline, or the last thing that a launcher waits for
AFTER_S = LEASE_S + DOWN_S + 2 * EXIT_S  # from the end of the run to that of its launcher
WATCH_S = 2 * LEASE_S + 60.0 + EXIT_S  # from Ctrl-C to the end of a follower that waits for an answer
ASKS_S = 12.0  # from a verb's begin until it has asked the lead: a host may be out of reach
STOPS_S = LEASE_S + EXIT_S  # from Ctrl-C until a lead that can be reached knows of it
APART_S = 60.0  # between ends of agents that a launcher mends
TOGETHER = {"clock", "restart", "save", "drain", "back", "crash", "watch", "ctrl-z", "ctrl-c", "ctrl-c twice", "late"}
FOLLOWED = {
    *UNPRINTED,
    "damaged code",
    "clock",
    "restart",
    "save",
    "drain",
    "back",
    "reset",
    "watch",
    "ctrl-z",
    "agent",
    "half-open",
}
STOPPED = {"ctrl-z", "stopped launcher"}
END_AGENTS = {"agent", "exit", "stopped", "power", "reboot", "gone", "sleep", "busy"}
UNHINDERED = {*UNPRINTED, "damaged code", "stop", "clock", "restart", "save", "drain", "back", "crash", "watch"}
RESUMED = re.compile(r"continuing from the checkpoint of step (\d+) ")
DISKS = {"disk", "write full", "write fails", "write refused"}
EVERYWHERE = {"stop", "twice", "kill", "slow"}  # of the run or the network: the host that a seed draws says nothing
LEASE = "its lease on the run ended"
LOST = "the chief's host was lost"


class Down:
    """One ``launch down``, and what it has found left."""

    def __init__(self, program: Any, now: float):
        self.program, self.began = program, now
        self.left: Optional[Left] = None
        self.ended_at: Optional[float] = None

    def clean_hosts(self) -> Set[str]:
        """Return the hosts that have reported that nothing is left."""
        reports = self.left.reports if self.left is not None else {}
        return {host for host, report in reports.items() if not remains(report)}

    def came_first(self) -> bool:
        """Return whether it has ended no run, and said so: none had begun on any host."""
        return self.left is not None and not any(report.run for report in self.left.reports.values())


class LauncherPromises:
    """The promises of the launchers of one history."""

    def __init__(self, world: Any):
        self._world = world
        self._over_at = 0.0  # since when nothing of the run lives
        self._is_up_looked_at = False
        self._unheard_at = 0.0  # since when the lead could know of Ctrl-C, and goes on

    def look(self, downs: List[Down], up: Any, watching: List[Any]) -> None:
        """Raise Broken where one does not hold now."""
        now, world = self._world.agenda.now, self._world
        for down in downs:
            if down.program.is_over and down.ended_at is None:
                down.ended_at = now
                self._nothing_is_left(down)
                if down.program.code == SUCCEEDED and down.came_first() and world.asked_at == down.began:
                    world.asked_at = None
            elif down.program.code == SUCCEEDED:
                self._nothing_begins(down, up)
            elif not down.program.is_over and now > down.began + DOWN_S + EXIT_S:
                raise Broken(f"I7: launch down takes {now - down.began:.0f} s")
            self._no_successor(down)
        for program, asked_at in watching:
            if not program.is_over and now > asked_at + WATCH_S:
                raise Broken(f"I7: launch status --watch goes on {now - asked_at:.0f} s after Ctrl-C")
        self._a_signal_stops_the_run(up)
        if up is not None and up.is_stopped and not world.kinds & STOPPED:
            raise Broken("I7: launch up has stopped itself, and nobody has asked for that")
        if up is not None and up.is_over and not self._is_up_looked_at:
            self._is_up_looked_at = True
            self._up_leaves_nothing(up)
        lives = bool(world.living()) or any(each.life is not None for each in world.machines.values())
        if lives or up is None or up.is_over or not up.can_run:
            self._over_at = max(now, world.healed_at)
        if now > self._over_at + AFTER_S:
            raise Broken(f"I7: launch up goes on {now - self._over_at:.0f} s after its run")

    def _a_signal_stops_the_run(self, up: Any) -> None:
        """I7: a run begins to end some time after Ctrl-C to its launcher, once nothing is between them."""
        world, lead = self._world, self._world.lead
        now, supervisor = world.agenda.now, world.supervisor()
        goes_on = supervisor is not None and not supervisor.state.is_closing and lead.has_agent and not lead.is_stopped
        if up is None or up.interrupted_at is None or up.is_over or not up.can_run or not goes_on:
            self._unheard_at = max(now, world.healed_at)
        if now > self._unheard_at + STOPS_S:
            raise Broken(f"I7: the run goes on {now - up.interrupted_at:.0f} s after Ctrl-C to its launcher")

    def _nothing_is_left(self, down: Down) -> None:
        """I8: nothing of the run is where ``down`` has found nothing, unless it began later; its exit code fits."""
        is_clean = down.left is not None and not down.left.problems and down.clean_hosts() == set(self._world.machines)
        if is_clean and down.program.code == FOUND_WRONG:
            raise Broken(f"I8: every host reports that nothing is left, and launch down ends with {FOUND_WRONG}")
        for host in sorted(self._world.machines if down.program.code == SUCCEEDED else down.clean_hosts()):
            machine = self._world.machines[host]
            left = [f"{each.task} attempt {each.attempt}" for each in machine.living() if each.began < down.began]
            left += ["an agent"] if machine.has_process and machine.agent_began < down.began else []
            if left:
                raise Broken(f"I8: launch down has found nothing left on {host}, and there is {', '.join(left)}")

    def _agents_end_apart(self) -> bool:
        """Return whether few agents end, each once the run is up and others have returned."""
        ends = [fault.at for fault in self._world.faults if fault.kind == "agent"]
        apart = [later - earlier for earlier, later in zip(ends, ends[1:])]
        return len(ends) <= AGENTS and min(ends, default=LEFT_S) >= LEFT_S and min(apart, default=APART_S) >= APART_S

    def _nothing_begins(self, down: Down, up: Any) -> None:
        """I8: after ``down`` with exit code 0 no agent begins, unless a launcher was there that restarts it."""
        is_alone = up is None or (up.is_over and up.ended_at <= down.began)
        for host, machine in self._world.machines.items():
            if is_alone and machine.has_process and down.ended_at is not None and machine.agent_began > down.ended_at:
                raise Broken(f"I8: launch down has ended the run, and an agent begins on {host}")

    def _no_successor(self, down: Down) -> None:
        """I8: no successor has a part where ``down`` has ended the run before, nor trains elsewhere; disks may fail.

        A host that ``down`` could not reach may begin an agent, which ends as soon as another host refuses.
        """
        world, successions = self._world, self._world.operators.successions
        follows = down.ended_at is not None and successions.began_at > down.ended_at
        if down.left is None or not follows or successions.run != world.run_name or world.kinds & DISKS:
            return
        ended = [host for host, report in down.left.reports.items() if report.run]  # else it came before the run
        found = {host: world.machines[host] for host in ended if host in world.plan.hosts}
        begun = [host for host, each in found.items() if each.has_process and each.folder.run == world.run_name]
        if begun:
            raise Broken(f"I8: launch down has ended the run on {', '.join(begun)}, and a successor begins there")
        if found and world.training.processes:
            started = world.training.processes[0]
            raise Broken(f"I8: launch down has ended the run, and {started.task} of a successor starts")

    def _up_leaves_nothing(self, up: Any) -> None:
        """I8: where a launcher ends by itself with its run, it names the hosts on which anything may be left.

        A request to restart an agent may arrive after a cut: that agent meets no lead, and leaves (see I7).
        """
        is_up = self._world.shape.detached and up.code == SUCCEEDED
        if up.code < 0 or is_up or up.unprinted is not None:
            return
        for host, machine in self._world.machines.items():
            lines = [line for text in up.shown for line in text.splitlines()]
            named = [line for line in lines if line.startswith(f"{host}: ") and NOTHING_LEFT not in line]
            is_late = any(f"{host}: its agent is silent; restarting it" in line for line in up.shown)
            left = [each.task for each in machine.living()]
            left += ["an agent"] if machine.has_process and not is_late else []
            if left and not named:
                raise Broken(f"I8: launch up ends with {up.code}, and has left {', '.join(left)} on {host}")

    def expected(self, cost: Any) -> Any:
        """Return what faults cost where a launcher follows: it restarts agents, and ``down`` takes a moment."""
        world = self._world
        if (
            cost is None
            or world.operators.successions.began_at
            or (not world.shape.detached and world.kinds & END_AGENTS)
        ):
            return None
        ends_s = cost.ends_s
        return cost if ends_s is None else cost._replace(ends_s=(ends_s[0], ends_s[1] + ASKS_S))

    def ended(self, downs: List[Down]) -> None:
        """I8: ``down`` has exit code 0 where every host answers, and nothing is left."""
        for down in downs:
            if self._world.kinds <= UNHINDERED and down.program.code != SUCCEEDED:
                raise Broken(f"I8: every host answers, and launch down ends with {down.program.code}")

    def resumed(self, up: Any, status: Dict[str, Any]) -> None:
        """I9: a run that resumes names the newest checkpoint, and begins there; an incident has what it passes over.

        Where the lead's host loses the status later, the incident is lost with it, as docs/faults.md says. So is a
        report that the lead's agent did not have in its status before it ended.
        """
        world = self._world
        training, resumes = world.training, world.operators.resumes
        expected, lost = resumes.expected, max(training.passed_over, resumes.damaged)
        shown = world.operators.successions.lines_of_present(up)
        said = [int(found.group(1)) for found in map(RESUMED.search, shown) if found]
        if expected and said and said[-1] != expected:
            raise Broken(f"I9: the newest checkpoint has step {expected}, and the run resumes from {said[-1]}")
        is_ignored = any(f"ignoring the checkpoint of step {resumes.ignored} of " in line for line in shown)
        if resumes.ignored and said and not is_ignored:
            raise Broken(f"I9: an older run has a checkpoint of step {resumes.ignored}, and launch up does not name it")
        begins = training.began_with
        if world.operators.successions.began_at and begins is not None and begins + training.passed_over < expected:
            raise Broken(f"I9: a host of the successor had step {expected}, and training begins with {begins}")
        if said and begins is not None and begins + training.passed_over < said[-1]:
            raise Broken(f"I9: launch up resumes from step {said[-1]}, and training begins with {begins}")
        if not lost or begins is None or (status.get("global_step") or 0) <= begins + UNSURE:
            return
        named = [each["lost_steps"] or 0 for each in status["incidents"] if each["kind"] == "checkpoint"]
        forgotten = resumes.forgotten
        if not (named or forgotten.incidents) or status["lost_steps"] + forgotten.steps < lost - UNSURE:
            found = f"{status['lost_steps']} are lost by the status, and {len(named)} incidents name checkpoints"
            raise Broken(f"I9: training has passed over {lost} steps; {found}")

    def _kinds(self) -> Set[str]:
        """Return the kinds of faults that may affect the present run: not those of hosts that have no part in it."""
        world = self._world
        others = set(world.machines) - set(world.plan.hosts)
        return {fault.kind for fault in world.faults if fault.kind in EVERYWHERE or fault.what not in others}

    def outcome(self, up: Any, status: Dict[str, Any]) -> None:
        """I11: the launcher that stays shows the run's last state, and has its exit code."""
        if up is None or up.code is None or up.code < 0:
            return
        if self._world.shape.detached:
            if up.code == SUCCEEDED and LEASE in (status.get("cause") or ""):
                raise Broken(f"I11: launch up -d has succeeded, and {status['cause']}")
            return
        run, lines = self._world.run_name, self._world.operators.successions.lines(up)
        shown = [line for line in lines if line.startswith(f"{run} ")]
        state, kinds = status.get("state"), self._kinds()
        if any(LOST in line for line in lines):
            if kinds <= TOGETHER:
                raise Broken("I11: nothing was between launch up and the lead, which it has lost")
            self._world.operators.successions.is_none_missing(up)
            return
        follows = FOLLOWED - {"agent"} if self._world.operators.successions.began_at else FOLLOWED
        if kinds <= follows and state != "succeeded" and self._agents_end_apart():
            raise Broken(f"I12: a run whose launcher could follow it is {state}: {status.get('cause')}")
        if up.unprinted is not None and state is not None and (up.code == 0) != (state == "succeeded"):
            raise Broken(f"I11: the run is {state}, and launch up, which cannot print, ends with {up.code}")
        if not shown or up.unprinted is not None or kinds & LOSES_FILES:
            return
        if not shown[-1].startswith(f"{run} {state}") or (up.code == 0) != (state == "succeeded"):
            raise Broken(f"I11: the run is {state}, and launch up shows '{shown[-1]}', and ends with {up.code}")
        if state != "succeeded" and not shown[-1].endswith(str(status.get("cause"))):
            raise Broken(f"I11: the cause is {status.get('cause')}, and launch up shows '{shown[-1]}'")
