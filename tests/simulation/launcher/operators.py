"""The launchers of a history, as processes on machines of their own: the product's code, from ``up`` to its exit."""

import signal
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, ContextManager, Dict, Iterator, List, Optional, Sequence, Tuple

from launch.errors import FOUND_WRONG, SUCCEEDED, LaunchError
from launch.fleet import Fleet
from launch.history import newest_status
from launch.plan.plan import run_name
from launch.run.draft import Draft
from launch.run.follower import Follower
from launch.signals import Interrupts
from launch.status.run import ENDED
from launch.teardown import DOWN_S, in_lines, look_and_take_down
from launch.verbs import up
from launch.view import live_view
from tests.simulation.faults import Fault
from tests.simulation.launcher import faults, resumes
from tests.simulation.launcher.code import CODE
from tests.simulation.launcher.drafts import Drafted, Target, drafted, pythons, spec_of
from tests.simulation.launcher.faults import OTHER, TERMINAL
from tests.simulation.launcher.machines import LaunchedMachine
from tests.simulation.launcher.programs import Program, me
from tests.simulation.launcher.promises import Down, LauncherPromises
from tests.simulation.launcher.replaced import replaced
from tests.simulation.launcher.resumes import Resumes
from tests.simulation.launcher.successions import Successions
from tests.simulation.loops import Clock
from tests.simulation.promises import BOUND_S
from tests.simulation.runs import RUN

AGAIN_S = 10.0  # after a ``launch down`` that has not ended all, before the next


class Launchers:
    """The launchers of one history.

    Attributes:
      up: the launcher that has started the run.
      drafts: the runs that were to begin, by name.
    """

    drafts: Dict[str, Drafted]
    machine = LaunchedMachine
    bound_s = BOUND_S + DOWN_S + AGAIN_S  # for a run to end: one ``down`` may wait in vain for what was out of reach

    def __init__(self, world: Any):
        self._world = world
        self.clocks = {TERMINAL: Clock(world.agenda), OTHER: Clock(world.agenda)}
        self.programs: List[Program] = []
        self.up: Optional[Program] = None
        self._downs: List[Down] = []
        self._watching: List[Tuple[Program, float]] = []  # when each gets Ctrl-C
        self._promises = LauncherPromises(world)
        self.resumes = Resumes(world, self)
        self.successions, self.drafts = Successions(world), {}
        self._spec = spec_of(world)

    def replaced(self) -> ContextManager[None]:
        """Replace the names of the product that launchers and verbs ask for."""
        return replaced(self._world)

    @property
    def places(self) -> Sequence[str]:
        """The machines of the world."""
        return [*self._world.machines, *self.clocks]

    @property
    def is_over(self) -> bool:
        """Whether the run was begun, and no launcher is there any more."""
        is_pending = self.resumes.is_pending
        return self.up is not None and all(each.is_over for each in self.programs) and not is_pending

    def excuses(self, process: Any) -> bool:
        """Return whether a process may act beside the present run."""
        return self.successions.excuses(process)

    @property
    def forgotten_steps(self) -> int:
        """Return the steps of passed-over checkpoints that no status can have."""
        return self.resumes.forgotten.steps

    @property
    def forget_attempts(self) -> bool:
        """Whether a launcher may restart a lead whose record of attempts is not on disk."""
        return resumes.may_lose_files(self._world) and not self._world.shape.returns

    def forget(self) -> None:
        """End the threads that are left."""
        for program in [*self.programs, *(each for m in self._world.machines.values() for each in m.programs)]:
            program.forget()

    # -- what happens to launchers

    def meet(self, fault: Fault, world: Any) -> Any:
        """Let a fault of launchers begin."""
        begin = resumes.BEGIN.get(fault.kind)
        return faults.begin(fault, world) if begin is None else begin(fault, world)

    def lose(self) -> None:
        """The launcher that has started the run is killed."""
        if self.up is not None:
            self.up.take(signal.SIGKILL)

    def sleep(self) -> Any:
        """Suspend the machine of the launcher; return what wakes it."""
        clock, asleep = self.clocks[TERMINAL], self._world.network.asleep
        if clock.is_asleep or self.up is None:
            return None
        clock.sleep()
        asleep.add(TERMINAL)

        def wake() -> None:
            clock.wake()
            asleep.discard(TERMINAL)
            for program in self.programs:
                program.woke()

        return wake

    def restarts(self, machine: Any) -> bool:
        """Return whether to restart the agent of a lead: the product's launcher does."""
        return False

    def look(self) -> None:
        """Raise Broken where a promise of launchers does not hold now."""
        if self.up is not None and self.up.is_over and self._world.launcher_left_at is None:
            self._world.launcher_left_at = self._world.agenda.now
        self._promises.look(self._downs, self.up, self._watching)
        self.successions.look()
        self.resumes.look()

    def outcome(self, status: Dict[str, Any]) -> None:
        """Raise Broken where the launcher has not shown the run as it was, once all is over."""
        self._promises.ended(self._downs)
        self._promises.resumed(self.up, status)
        self._promises.outcome(self.up, status)

    def expected(self, cost: Any) -> Any:
        """Return what the faults of the history may cost with launchers."""
        return self._promises.expected(cost)

    # -- launchers

    def begin(self) -> None:
        """Let ``launch up`` start the run."""
        detach = self._world.shape.detached
        target: Any = Target(self._spec)
        self.up = self.program(TERMINAL, "launch up", lambda: up.train(target, detach))

    def target(self) -> Any:
        """Return the file, for a run that resumes: its tasks are of a job."""
        return Target(replace(self._spec, command=None))

    def end(self, request: Dict[str, Any]) -> None:
        """Let ``launch down`` end the run from another terminal, again and again until nothing is left."""
        run = self._world.run_name
        program = self.program(OTHER, "launch down", lambda: self._down(request.get("reason", "launch down")))
        self._downs.append(Down(program, self._world.agenda.now))

        def look() -> None:
            if not program.is_over:
                self._world.agenda.after(AGAIN_S, look)
            elif program.code != SUCCEEDED and self._world.run_name == run:
                self.end(request)

        self._world.agenda.after(AGAIN_S, look)

    def _down(self, reason: str) -> int:
        down = next(each for each in self._downs if each.program is me())
        with self._reach() as fleet:
            down.left = left = look_and_take_down(fleet, reason)
        for line in in_lines(left):
            me().show(line)
        return SUCCEEDED if left.clean else FOUND_WRONG

    def watch(self, seconds: float) -> None:
        """Let ``launch status --watch`` follow the run, until Ctrl-C after so long."""
        program = self.program(OTHER, "launch status --watch", self._watch)
        self._watching.append((program, self._world.agenda.now + seconds))
        self._world.agenda.after(seconds, lambda: program.take(signal.SIGINT))

    def _watch(self) -> int:
        with self._reach() as fleet:
            found = newest_status(fleet, "r.yaml", warn=me().show)
            if found.state not in ENDED:
                Follower(fleet, found, live_view.for_terminal()).follow()
            return fleet.interrupts.exit_code(otherwise=SUCCEEDED)

    @contextmanager
    def _reach(self) -> Iterator[Fleet]:
        """Open the fleet of the file's hosts, as ``launch.target`` does."""
        with Interrupts() as interrupts, Fleet(self._spec, pythons(self._spec), CODE, interrupts) as fleet:
            yield fleet

    def program(self, host: str, name: str, verb: Any) -> Program:
        """Begin a program of a launcher."""

        def main() -> int:
            try:
                return int(verb())
            except LaunchError as error:
                me().show(str(error))
                return error.exit_code

        program = Program(self._world, name, host, self.clocks[host], main)
        self.programs.append(program)
        return program

    # -- the run that they start

    def draft(self, target: Any, start: Any, begins: datetime) -> Draft:
        """Return the world's run, in the place of ``launch.run.draft.draft``."""
        name = run_name("r", begins) if self.drafts else RUN
        of_lead, plan, requests = drafted(self._world, start, name)
        self.drafts[name] = Drafted(me(), of_lead)
        return Draft(plan, requests, CODE, begins, lambda begins: self.draft(target, start, begins))
