"""``launch up --resume`` by an operator: again and again, until another run has begun with the newest checkpoint."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from launch.agent.state import runs
from launch.agent.state.run_folder import RunFolder
from launch.errors import CANNOT_START, CannotStart, HostProblem, ProblemKind
from launch.verbs import up
from tests.simulation import outcomes, saved
from tests.simulation.launcher.baton import wait
from tests.simulation.launcher.faults import TERMINAL
from tests.simulation.launcher.programs import Program
from tests.simulation.promises import LOSES_FILES, WRITTEN_S, Broken
from tests.simulation.training import PassedOver

AGAIN_S, MOST = 15.0, 8  # between tries, and so many
HANDED_OVER_S = 1.0  # for a checkpoint to reach another host


class Counted(NamedTuple):
    """The lost steps of a run, and the number of incidents that name checkpoints."""

    steps: int
    incidents: int


class Resumes:
    """The runs of a history, of which each goes on from the checkpoint of one before.

    Attributes:
      expected: the newest complete checkpoint that any host had when the newest run began, but for those below.
      ignored: a newer one, whose run is older than one that has only a damaged checkpoint of its step; 0 without any.
      damaged: the steps from there to the newest checkpoint, which lacked a file.
      forgotten: what a lead of the newest run had counted, and its host has lost with its status; or what the chief had
        reported, and the lead's agent has ended before the status had it.
    """

    def __init__(self, world: Any, launchers: Any):
        self._world, self._launchers = world, launchers
        self.expected = self.ignored = self.damaged = 0
        self.forgotten = Counted(0, 0)
        self._supervisor: Any = None  # of the newest lead
        self._settled: Optional[PassedOver] = None  # in the status, or forgotten
        self._stood_at = 0.0  # when the lead's agent could last do nothing
        self._tries, self._is_trying = 0, False
        self._program: Optional[Program] = None

    def ask(self) -> None:
        """Let an operator resume the run."""
        if not self._is_trying:
            self._is_trying, self._tries = True, 0
            self._try()

    @property
    def is_pending(self) -> bool:
        """Return whether another run is to begin."""
        now = self._world.agenda.now
        return self._is_trying or any(each.kind == "resume" and each.at > now for each in self._world.faults)

    def _try(self) -> None:
        world, launchers, program = self._world, self._launchers, self._program
        was_refused = program is None or program is not launchers.up or program.code == CANNOT_START
        is_done = world.training.step >= world.plan.steps or self._tries > MOST
        if is_done or (program is not None and program.is_over and not was_refused):
            self._is_trying = False
            return
        if launchers.up is not None and all(each.is_over for each in launchers.programs):
            self._tries += 1
            target, detach = launchers.target(), world.shape.detached
            self._program = launchers.program(
                TERMINAL, "launch up --resume", lambda: up.train(target, detach, resume=True)
            )
        world.agenda.after(AGAIN_S, self._try)

    def begins(self, run: str) -> None:
        """A host begins an agent of a run; the first of another run ends the one before."""
        world = self._world
        if run == world.run_name:
            return
        program, plan = self._launchers.drafts[run]
        if program is self._launchers.up:
            self._launchers.successions.begins(program, plan)
        elif not world.living() and not any(each.life is not None for each in world.machines.values()):
            try:
                outcomes.look(world)
            except Broken as error:
                world.fail(str(error))
        self.expected, self.ignored = _newest([world.machines[host] for host in plan.hosts])
        newest = saved.look(world.lead.disk, world.lead.folder.checkpoint).newest
        self.damaged = max(0, newest - self.expected) if world.lead_host in plan.hosts else 0
        self._launchers.up, self.forgotten, self._supervisor = program, Counted(0, 0), None
        self._settled, self._stood_at = None, 0.0
        world.begin_anew(run, plan)

    def look(self) -> None:
        """Note what a next lead does not find in the status of the one before."""
        self._look_at_reports()
        before, supervisor = self._supervisor, self._world.supervisor()
        if supervisor is before or supervisor is None or not supervisor.now:  # until its first event it may not know
            return
        self._supervisor = supervisor
        if before is not None and may_lose_files(self._world):
            pairs = zip(self.forgotten, _counted(before), _counted(supervisor))
            self.forgotten = Counted(*(known + max(0, old - new) for known, old, new in pairs))

    def _look_at_reports(self) -> None:
        """Note a damaged checkpoint whose report the lead's agent had no time to read and publish before it ended."""
        lead, now, passed = self._world.lead, self._world.agenda.now, self._world.training.newest_passed
        if passed is None or passed is self._settled:
            return
        is_late = now > max(passed.at, self._stood_at) + WRITTEN_S
        if lead.has_process and lead.life.loop.stands:
            self._stood_at = now
        elif is_late or not lead.has_process:
            self._settled = passed
            if not (is_late or _is_named(passed, lead.folder)):
                steps, incidents = self.forgotten
                self.forgotten = Counted(steps + passed.unknown, incidents + 1)


def _counted(supervisor: Any) -> Counted:
    incidents = supervisor.incidents
    return Counted(incidents.stalls.steps_lost, sum(each.kind == "checkpoint" for each in incidents.statuses()))


def _is_named(passed: PassedOver, folder: RunFolder) -> bool:
    """Return whether an incident in the status names the checkpoint."""
    incidents = (folder.read_whole("status.json") or {}).get("incidents", ())
    return any(f"model-{passed.newest} " in (each["cause"] or "") for each in incidents)


def may_lose_files(world: Any) -> bool:
    """Return whether the lead's host has had a fault that may lose files."""
    begun = [fault for fault in world.faults if fault.at <= world.agenda.now and fault.what == world.lead_host]
    return any(fault.kind in LOSES_FILES for fault in begun)


def _newest(machines: Sequence[Any]) -> Tuple[int, int]:
    """Return the step to resume from, and a higher one of an older run, which is ignored; 0 for none.

    A run continues from the checkpoints of the one before. If its own are damaged, those of the older run stay whole.
    """
    expected = highest = 0
    damaged: Set[int] = set()
    for run in sorted({run for machine in machines for run in _runs(machine)}, reverse=True):
        whole, lacking = _held(machines, run)
        expected, highest = max([expected, *(whole - damaged)]), max([highest, *whole])
        damaged |= lacking if whole else set()
    return expected, highest if highest > expected else 0


def _held(machines: Sequence[Any], run: str) -> Tuple[Set[int], Set[int]]:
    """Return the steps of a run's complete checkpoints on these hosts, and of those that are complete nowhere."""
    whole: Set[int] = set()
    every: Set[int] = set()
    for machine in machines:
        folder = RunFolder(machine.folder.workdir, run, machine.host)
        for place in (folder.checkpoint, folder.replica):
            whole.update(saved.complete(machine.disk, place))
            every.update(saved.steps(machine.disk, place))
    return whole, every - whole


def _runs(machine: Any) -> List[str]:
    below = f"{machine.folder.workdir}/runs/"
    return sorted({each[len(below) :].split("/")[0] for each in machine.disk.names(f"{below}*")})


def damage(world: Any) -> None:
    """The newest checkpoint on the chief's host lacks a file, where its run has the one before: no copy is newer."""
    lead, other = world.lead, world.machines["h1"]
    steps, copies = saved.complete(lead.disk, lead.folder.checkpoint), saved.complete(other.disk, other.folder.replica)
    if (
        len(steps) > 1
        and steps[-2] >= max(copies, default=0)
        and saved.look(lead.disk, lead.folder.checkpoint).newest == steps[-1]
    ):
        saved.damage(lead.disk, lead.folder.checkpoint)


def hand_over(world: Any, fleet: Any, plan: Any, found: Any) -> None:
    """Bring a checkpoint to the chief's host, in the place of the verbs ``take`` and ``give``. Raises CannotStart."""
    wait(HANDED_OVER_S)
    lead = world.machines[plan.lead]
    folder = RunFolder(lead.folder.workdir, found.run, lead.host)
    try:
        if not all(world.network._passes(*pair) for pair in [(found.host, lead.host), (lead.host, found.host)]):
            raise OSError("the checkpoint did not arrive")
        with lead._spot().within():  # on that host
            runs.note_generation(folder, found.generation)
        saved.write(lead.disk, folder.replica, found.step)
    except OSError as error:
        raise CannotStart([HostProblem(lead.host, ProblemKind.SILENT, str(error))]) from error


BEGIN: Dict[str, Callable[[Any, Any], None]] = {
    "resume": lambda fault, world: world.operators.resumes.ask(),
    "damaged checkpoint": lambda fault, world: damage(world),
}
