"""End runs with proof: for each host, report the ended processes and resources, and the leftovers.

``launch sweep`` and ``launch prune`` describe their hosts in the same words.
"""

from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import part_of, to_values
from launch.agent.wire.typed_verbs import DOWN, LOOK
from launch.agent.wire.verb_requests import DownRequest, LookRequest, RunReference
from launch.errors import HostProblem, ProblemKind, UsageError
from launch.fleet import Fleet
from launch.history import NamedRun, find_named, locate, runs
from launch.status.removals import GpuMemory, Leftovers, ProcessLeft, RunEnded, RunLeftovers
from launch.view.console import fold

STOP_S = 65.0  # the chief's last save, workers' grace, then the ps', then the members' leave
ANSWER_S = 2 * STOP_S + 60.0  # a request to stop, a request to kill, the kill
DOWN_S = 300.0  # for all hosts together
L = TypeVar("L", bound=Leftovers)
NOTHING_LEFT = "no process, port, GPU memory, lock, control group or container left"


@dataclass(frozen=True)
class AnyHost:
    """A host in the object that a verb prints with ``--json``; a host that could not be asked has only these fields.

    Attributes:
      host: Name of a host of the file.
      error: Problem that prevented an answer, so that the host has no other field; else null.
    """

    host: str
    error: Optional[str]


def unasked(problems: Sequence[HostProblem]) -> List[AnyHost]:
    """Return an ``AnyHost`` for each of ``problems``, whose hosts could not be asked."""
    return [AnyHost(problem.host, problem.reason) for problem in problems]


@dataclass(frozen=True)
class _HostBefore(AnyHost):
    """A host with the ended parts of a run; they precede the leftovers.

    Attributes:
      ended.*: Ended:
    """

    ended: Leftovers


# The fields of the last base class come first.
@dataclass(frozen=True)
class HostDown(RunEnded, _HostBefore):
    """A host that has answered. The reference puts the word of ``processes.*`` before the meaning of each item's field.

    Attributes:
      run: Full name of the run that was ended; null where no run of this name has existed.
      processes.*: Left:
      ports[]: Left: TCP port on which a process of the run listens.
      gpu_memory.*: Left:
      locks[]: Left: Path of a lock or socket of the run.
      groups[]: Left: Path of a control group of the run.
      containers[]: Left: Name of a container of the run.
    """


@dataclass(frozen=True)
class DownAnswer:
    """The object of ``down --json``.

    Attributes:
      clean: True if every host answered and nothing is left.
    """

    clean: bool
    hosts: List[Union[HostDown, AnyHost]]


class Left(NamedTuple):
    """The findings of ``down``: one report per host that answered, one problem per host that did not.

    ``before`` has the state of each host before ``down`` ended anything; empty where no host was searched.
    """

    reports: Dict[str, RunEnded]
    problems: List[HostProblem]
    before: Dict[str, RunLeftovers]

    @property
    def clean(self) -> bool:
        """Return whether every host answered and nothing of the run is left on any host."""
        return not self.problems and not any(remains(report) for report in self.reports.values())


def refuse_part(fleet: Fleet) -> None:
    """Refuse a ``fleet`` that lacks hosts of the run; the run's lead knows all its hosts.

    Raises:
      UsageError: no run exists, its lead is not in the fleet, or the run has other hosts too.
      CannotStart: the lead is out of reach.
    """
    status = locate(fleet).status
    advice = "give the same --include and --exclude as to `launch up`, or leave them out"
    if status is None:
        raise UsageError(f"{fold(fleet.hosts)}: expected a run named {fleet.spec.name}, found none; {advice}")
    others = {task.host for task in status.tasks} - set(fleet.hosts)
    if others:
        raise UsageError(f"{status.run}: expected all of its hosts, found {fold(others)} left out; {advice}")


def look_and_take_down(fleet: Fleet, reason: str) -> Left:
    """Look at every host of the file, then end the run there (``launch down``).

    The function does not end a live run whose lead the file does not name. Without its lead the run would lose steps,
    and its processes on the lead's host would continue. ``fleet.lead`` becomes the lead of the run that was ended.

    Raises:
      CannotStart, UsageError: no host knows the run that ``--run`` names.
    """
    with fleet.within(DOWN_S):
        return _look_and_take_down(fleet, reason)


def _look_and_take_down(fleet: Fleet, reason: str) -> Left:
    references = {host: fleet.reference(host) for host in fleet.hosts}
    if fleet.run is None:
        with fleet.asking():
            found, _ = fleet.ask("find", references, ANSWER_S, stay_s=ANSWER_S)
    else:
        found, _ = find_named(fleet, fleet.run)
    meant = [run for run in runs(found) if run.lives] or runs(found)[-1:]
    astray = [_astray(fleet, run) for run in meant if run.lead not in fleet.hosts]
    if astray and meant[0].lives:
        return Left({}, astray, {})
    # A host that cannot be reached is reported below. The others are asked again when the lead has ended the run.
    with fleet.asking():
        looks = {host: LookRequest(**vars(each), ended_by=reason) for host, each in references.items()}
        before, _ = fleet.ask_for(LOOK, looks, ANSWER_S, stay_s=ANSWER_S)
    pids = {host: tuple(process.pid for process in report.processes) for host, report in before.items()}
    leads = [run.lead for run in meant if run.lead in fleet.hosts]
    left = take_down(fleet, references, reason, leads=leads, was=pids, for_good=True)
    if {report.run for report in left.reports.values()} - {None, *(run.name for run in runs(found))}:
        return _look_and_take_down(fleet, reason)  # a run has begun meanwhile, perhaps last on the host that leads it
    fleet.lead = leads[-1] if leads else fleet.lead
    removed = [
        _unnamed(fleet, host, f"it took part in {run.name}", "that host was not searched")
        for run in meant
        for host in found.get(run.lead, {}).get("hosts", [])
        if host not in fleet.hosts
    ]
    return left._replace(before=before, problems=[*left.problems, *astray, *removed])


def _astray(fleet: Fleet, run: NamedRun) -> HostProblem:
    """Return the problem of a run whose lead the file does not name."""
    so = "nothing was ended" if run.lives else "that host was not searched"
    return _unnamed(fleet, run.lead, f"it leads {run.name}", so)


def _unnamed(fleet: Fleet, host: str, part: str, so: str) -> HostProblem:
    """Return the problem of a host that the file no longer names: its ``part`` in a run, and the consequence."""
    what = f"{part}, but {fleet.spec.path} does not name it, so {so}"
    return HostProblem(host, ProblemKind.UNNAMED, what, advice="add it again, then run `launch down` again")


def take_down(
    fleet: Fleet,
    references: Mapping[str, RunReference],
    reason: str,
    interruptible: bool = True,
    leads: Collection[str] = (),
    was: Mapping[str, Tuple[int, ...]] = MappingProxyType({}),
    for_good: bool = False,
    state: str = "stopped",
) -> Left:
    """End a run on its hosts: first cleanly through the lead, then on every other host directly.

    ``was`` has the pids of the run that were seen on each host. Without ``leads``, the first host of ``references`` is
    the lead. ``DownRequest`` describes the other arguments.
    """
    asked = {at: DownRequest(run, STOP_S, reason, was.get(at, ()), for_good, state) for at, run in references.items()}
    lead = {host: asked[host] for host in leads or list(asked)[:1]}
    others = {host: request for host, request in asked.items() if host not in lead}
    with fleet.within(DOWN_S):
        reports, problems = fleet.ask_for(DOWN, lead, ANSWER_S, interruptible)
        more, further = fleet.ask_for(DOWN, others, ANSWER_S, interruptible)
    return Left({**reports, **more}, [*problems, *further], {})


def as_values(left: Left) -> Dict[str, Any]:
    """Return the object of ``down --json``."""
    hosts = [_of_host(host, left.before.get(host, report), report) for host, report in left.reports.items()]
    return to_values(DownAnswer(left.clean, [*hosts, *unasked(left.problems)]))


def _of_host(host: str, before: RunLeftovers, left: RunEnded) -> HostDown:
    return part_of(HostDown, left, host=host, error=None, ended=part_of(Leftovers, ended(before, left)))


def in_lines(left: Left) -> List[str]:
    """Return a line for each host, about the run's ended parts and leftovers; hosts with equal lines share one."""
    lines = ((host, _line(report, left.before.get(host, report))) for host, report in left.reports.items())
    return by_host(lines, left.problems)


def _line(report: RunEnded, before: RunLeftovers) -> str:
    if report.run is None:
        return "no run of this name has been here"
    left = remains(report)
    was = in_words(ended(before, report)) or "nothing was there"
    after = f"; {_failed(report)}" if report.after else ""
    return f"{report.run}: {was}; {'LEFT: ' + ', '.join(left) if left else NOTHING_LEFT}{after}"


def failures(left: Left) -> List[str]:
    """Return a line for each host on which commands of the key ``after`` have failed; equal lines share one."""
    return by_host(((host, _failed(report)) for host, report in left.reports.items() if report.after), [])


def _failed(report: RunEnded) -> str:
    return f"failed commands of the key after: {report.after}"


def remains(left: Leftovers) -> List[str]:
    """Return the leftovers on a host in words."""
    return [
        *(f"process {process.pid} ({process.argv[:60]}){_hangs(process)}" for process in left.processes),
        *(f"port {port}" for port in left.ports),
        *(memory(held) for held in left.gpu_memory),
        *(f"lock {path}" for path in left.locks),
        *(f"control group {path}" for path in left.groups),
        *(f"container {name}" for name in left.containers),
        *(f"unfinished folder {path}" for path in _folders(left)),
    ]


def _hangs(process: ProcessLeft) -> str:
    return f", which hangs in {process.waits_in}" if process.waits_in else ""


def _folders(left: Leftovers) -> List[str]:
    """Return the unfinished folders of a finding; empty for other leftovers."""
    return getattr(left, "folders", [])


def memory(held: GpuMemory) -> str:
    """Return held GPU memory in words: ``1536 MiB of GPU 0``."""
    return f"{'memory' if held.mib is None else str(held.mib) + ' MiB'} of GPU {held.gpu}"


def ended(before: L, left: Leftovers) -> L:
    """Return the parts of ``before`` that are no longer in ``left``, by kind."""
    kinds = [each.name for each in fields(before) if isinstance(getattr(before, each.name), list)]
    return replace(before, **{kind: _gone(getattr(before, kind), getattr(left, kind)) for kind in kinds})


def _gone(before: List[Any], left: List[Any]) -> List[Any]:
    identities = [_identity(each) for each in left]
    return [each for each in before if _identity(each) not in identities]


def _identity(each: Any) -> Any:
    """Return the identity of an item: the pid and start time of a process, the item itself otherwise."""
    return (each.pid, each.start) if isinstance(each, ProcessLeft) else each


def in_words(gone: Leftovers) -> str:
    """Return the ended parts of a run in words; empty without any.

    Example: ``ended 3 processes in 2 groups (pids 42, 43, 57), port 2222, 1536 MiB of GPU 0, 2 locks``.
    """
    parts = [_processes(gone.processes)] if gone.processes else []
    parts += [f"port {port}" for port in gone.ports]
    parts += [memory(held) for held in gone.gpu_memory]
    parts += [quantity(len(things), what) for what, things in _counted(gone) if things]
    return f"ended {', '.join(parts)}" if parts else ""


def _processes(ended: List[ProcessLeft]) -> str:
    groups, pids = {each.group for each in ended}, ", ".join(str(each.pid) for each in ended)
    return f"{quantity(len(ended), 'process', 'processes')} in {quantity(len(groups), 'group')} (pids {pids})"


def _counted(gone: Leftovers) -> List[Tuple[str, List[str]]]:
    counted = [("lock", gone.locks), ("control group", gone.groups), ("container", gone.containers)]
    return [*counted, ("unfinished folder", _folders(gone))]


def by_host(lines: Iterable[Tuple[str, str]], problems: Sequence[HostProblem]) -> List[str]:
    """Return (host, line) pairs as lines, of which equal ones are one, then the problems of the other hosts."""
    hosts: Dict[str, List[str]] = {}
    for host, line in lines:
        hosts.setdefault(line, []).append(host)
    return [*(f"{fold(where)}: {line}" for line, where in hosts.items()), *map(str, problems)]
