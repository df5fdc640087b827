"""Find the runs that the hosts of a file know: all of them, the one that ``--run`` names, and the newest of a name.

The launcher asks the hosts, because the file may have changed since. What each host remembers is merged into one
record for each run. For the newest run, the launcher asks the host of the file's chief first. Where that host leads
a run that lives, that run is the newest one. Otherwise the launcher asks all hosts: another may lead a run that
lives, or one that began later.
"""

import difflib
import shlex
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from launch.agent.wire.verb_requests import RunsRequest
from launch.errors import CannotStart, HostProblem, UsageError
from launch.fleet import LEAD_S, Fleet
from launch.hosts.conversation import as_run
from launch.status.run import KnownRun, RunRecord, RunsAnswer, RunStatus
from launch.status.values import to_values
from launch.view.console import fold

ANSWER_S = 60.0  # for a host to look through its runs


@dataclass(frozen=True)
class AskedHost:
    """A host that was asked for its runs.

    Attributes:
      host: Name of a host of the file.
      error: Problem that prevented an answer, so that runs may be missing; else null.
    """

    host: str
    error: Optional[str]


@dataclass(frozen=True)
class RunsReport:
    """The object of ``runs --json``."""

    runs: List[RunRecord]
    hosts: List[AskedHost]


class Listing(NamedTuple):
    """The runs that the hosts remember, the one that began last first; and the hosts that did not answer."""

    runs: List[RunRecord]
    problems: List[HostProblem]


def ask_for_runs(fleet: Fleet) -> Tuple[Dict[str, RunsAnswer], List[HostProblem]]:
    """Ask every host for the runs that it took part in."""
    requests = {host: RunsRequest(host, fleet.spec.workdir) for host in fleet.hosts}
    return fleet.ask_for(RunsAnswer, "runs", requests, ANSWER_S)


def list_runs(fleet: Fleet) -> Listing:
    """Return every run on the fleet's hosts."""
    answers, problems = ask_for_runs(fleet)
    return Listing(merged(answers), problems)


def merged(answers: Mapping[str, RunsAnswer]) -> List[RunRecord]:
    """Return one record for each run, the one that began last first.

    The record is the lead's where its host answered. Runs of one name are in the order of their generations, which no
    clock decides; those of several names are in the order in which their launchers' clocks began them.
    """
    found: Dict[str, KnownRun] = {}
    for host, answer in answers.items():
        for each in answer.runs:
            name, lead = each.record.run, each.record.lead
            if name not in found or lead == host or (lead is not None and found[name].record.lead is None):
                found[name] = each
    ordered = sorted(found.values(), key=lambda each: (each.generation, each.record.run), reverse=True)
    return [each.record for each in ordered]


def as_values(listing: Listing, hosts: Sequence[str]) -> Dict[str, Any]:
    """Return the object of ``runs --json``."""
    why = {problem.host: problem.reason for problem in listing.problems}
    asked = dict.fromkeys([*hosts, *why])  # a gateway is no host of the file
    return to_values(RunsReport(listing.runs, [AskedHost(host, why.get(host)) for host in asked]))


MOST_NAMES = 3  # names in an error


def find_named(fleet: Fleet, run: str) -> Tuple[Dict[str, Dict[str, Any]], List[HostProblem]]:
    """Return the answers of the hosts that took part in a run, as ``find`` gives them for the newest.

    Raises:
      CannotStart: no host knows the run, and some cannot be asked.
      UsageError: no host knows the run; the text has the names that are near.
    """
    answers, problems = ask_for_runs(fleet)
    told = {
        host: _described(each) for host, answer in answers.items() for each in answer.runs if each.record.run == run
    }
    # A host that only keeps copies of its checkpoints does not know who leads it.
    told = {host: each for host, each in told.items() if each["lead"] is not None} or told
    if not told and problems:
        raise CannotStart(problems)
    if not told:
        raise UsageError(unknown(fleet, run, answers))
    return told, problems


def _described(known: KnownRun) -> Dict[str, Any]:
    record = known.record
    return {
        "run": record.run, "generation": known.generation, "lives": known.lives, "lead": record.lead,
        "hosts": list(record.hosts),
    }  # fmt: skip


def unknown(fleet: Fleet, run: str, answers: Mapping[str, RunsAnswer]) -> str:
    """Return the message about a name that no run has."""
    near = nearest(run, [record.run for record in merged(answers)])
    known = f"the nearest names: {', '.join(near)}" if near else "no run has been there"
    listed = f"list every run with `launch runs {shlex.quote(str(fleet.spec.path))}`"
    return f"--run: expected a run on {fold(fleet.hosts)}, found '{run}'; {'; '.join([known, listed])}"


def nearest(run: str, names: Sequence[str]) -> List[str]:
    """Return the names that may be meant: those that have the text in them, else the alike, else the first."""
    having = [name for name in names if run and run in name]
    return (having or difflib.get_close_matches(run, names, MOST_NAMES) or list(names))[:MOST_NAMES]


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
        told, _ = find_named(fleet, fleet.run)
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


def newest_status(fleet: Fleet, asked: str, warn: Callable[[str], None] = lambda line: None) -> RunStatus:
    """Return the status of the newest run of ``asked``, or of the run that ``--run`` names.

    The status comes from the run's agent or, when that agent is gone, from its files.

    Args:
      warn: takes a line for each host that could not be asked and may know a newer run.

    Raises:
      CannotStart: the lead's host is out of reach; the text has the command that goes on without that host.
      HostProblem: the lead's answer is no run's status.
      UsageError: there has been no run, or the file does not name its lead any more.
    """
    try:
        found, missed, run = locate(fleet)
    except CannotStart as error:
        if len(fleet.hosts) == 1:
            raise
        advice = (
            f"if {fleet.lead} is lost, continue without it with `launch up --resume {asked} --exclude {fleet.lead}`"
        )
        raise CannotStart(error.problems, advice) from error
    if found is None and run is not None:
        raise UsageError(f"{run}: expected its lead's record on {fleet.lead}, found none; see `launch runs {asked}`")
    if found is None:
        raise UsageError(
            f"{asked}: no run of this name has been on {fold(fleet.hosts)}; start one with `launch up {asked}`"
        )
    for problem in missed:
        warn(f"{problem}; a newer run may be there")
    return found
