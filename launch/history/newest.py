"""Find the newest run of a file's name, or the run that ``--run`` names, and the host that leads it.

The launcher asks the hosts, because the file may have changed since. The launcher asks the host of the file's
chief first. Where that host leads a run that lives, that run is the newest one. Otherwise the launcher asks all
hosts: another may lead a run that lives, or one that began later.
"""

from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from launch.errors import CannotStart, HostProblem, UsageError
from launch.fleet import LEAD_S, Fleet
from launch.history import named
from launch.hosts.conversation import as_run
from launch.status.run import RunStatus
from launch.view.console import fold

Told = Mapping[str, Mapping[str, Any]]  # by host, what ``find`` answers


class Run(NamedTuple):
    """A run that hosts know, and the host that leads the run. Of two runs, a verb means the greater."""

    lives: bool
    generation: int
    name: str
    lead: str


def runs(told: Told) -> List[Run]:
    """Return the runs that the hosts report, the newest last."""
    known = [(host, each) for host, each in told.items() if each.get("run")]
    return sorted({Run(each["lives"], each["generation"], each["run"], each["lead"] or host) for host, each in known})


def locate(fleet: Fleet) -> "Located":
    """Find the run that a verb means; ``fleet.lead`` is the host that leads it from then on.

    Where ``--run`` names it, ``fleet.tasks`` are its tasks from then on, because the file may have others by now.

    Raises:
      CannotStart: the host that leads it, or may, cannot be asked.
      UsageError: the file does not name the host that leads it, or there is no run of the name that ``--run`` has.
    """
    if fleet.run is not None:
        told, _ = named.find(fleet, fleet.run)
        status = _status_of(fleet, runs(told)[-1])
        fleet.tasks = status.tasks if status is not None else fleet.tasks
        return Located(status, [], fleet.run)
    first = fleet.lead
    answers, problems = fleet.ask("status", {first: fleet.reference(first)}, LEAD_S)
    own = answers.get(first, {})
    if own.get("lives") and own["lead"] == first:
        return Located(status_in(first, own), [], own["run"])
    others = {host: fleet.reference(host) for host in fleet.hosts if host != first}
    found, missed = fleet.ask("find", others, LEAD_S)
    known = runs({**answers, **found})
    if not known and problems:
        raise CannotStart(problems)
    if not known:
        return Located(None, missed, None)
    run = known[-1]
    missed = [] if run.lives else [*problems, *missed]
    if (run.name, run.lead) == (own.get("run"), first):
        return Located(status_in(first, own), missed, run.name)
    return Located(_status_of(fleet, run), missed, run.name)


def _status_of(fleet: Fleet, run: Run) -> Optional[RunStatus]:
    """Return the status of a run from the host that leads it, which is ``fleet.lead`` from then on.

    Raises:
      CannotStart: that host cannot be asked.
      UsageError: the file does not name it.
    """
    if run.lead not in fleet.hosts:
        raise UsageError(
            f"{fleet.spec.path}: expected {run.lead}, which leads {run.name}, among its hosts, found "
            f"{fold(fleet.hosts)}; put it back, and leave out --include and --exclude"
        )
    fleet.lead = run.lead
    return status_in(run.lead, fleet.ask_lead("status", fleet.reference(run.lead, run.name)))


def status_in(host: str, answer: Mapping[str, Any]) -> Optional[RunStatus]:
    """Return the status in a host's answer to ``status``.

    The result is None where there is no run, or another host leads it.

    Raises:
      HostProblem: the status is none of a run.
    """
    values: Optional[Dict[str, Any]] = answer["status"]
    return None if values is None or "state" not in values else as_run(host, values)


class Located(NamedTuple):
    """The run's status, None where its lead has none; hosts that may know a newer run; its name, None without a run."""

    status: Optional[RunStatus]
    missed: List[HostProblem]
    run: Optional[str]
