"""Find the runs that the hosts of a file know: all runs, the run that ``--run`` names, and the newest run of a name.

The launcher asks the hosts, because the file may have changed since a run's start. The launcher merges the hosts'
records into one record for each run. For the newest run, the launcher first asks the host of the file's chief. If that
host leads a live run, that run is the newest one. Otherwise the launcher asks all hosts, because another host may lead
a live run or a later one.
"""

import difflib
import re
import shlex
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.typed_json import to_values
from launch.agent.wire.typed_verbs import RUNS
from launch.agent.wire.verb_requests import RunsRequest
from launch.errors import CannotStart, HostProblem, ProblemKind, UsageError
from launch.fleet import LEAD_S, Fleet
from launch.hosts.conversation import as_run
from launch.status.run import KnownRun, RunRecord, RunsAnswer, RunStatus
from launch.view.console import fold

ANSWER_S = 60.0  # for a host to look through its runs
LOST = (  # the problems of a host that may be lost; another problem is one to mend there
    ProblemKind.UNREACHABLE, ProblemKind.UNKNOWN_NAME, ProblemKind.SSHD, ProblemKind.SLOW, ProblemKind.SILENT,
    ProblemKind.BROKEN,
)  # fmt: skip


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
    """The runs that the hosts remember, newest first; and the problems of the hosts that did not answer."""

    runs: List[RunRecord]
    problems: List[HostProblem]


def ask_for_runs(fleet: Fleet) -> Tuple[Dict[str, RunsAnswer], List[HostProblem]]:
    """Return each host's answer with the runs that the host took part in, and the problems of all other hosts."""
    requests = {host: RunsRequest(host, fleet.spec.workdir) for host in fleet.hosts}
    with fleet.within(ANSWER_S):
        return fleet.ask_for(RUNS, requests, ANSWER_S)


def list_runs(fleet: Fleet) -> Listing:
    """Return every run on the fleet's hosts."""
    answers, problems = ask_for_runs(fleet)
    return Listing(merged(answers), problems)


def merged(answers: Mapping[str, RunsAnswer]) -> List[RunRecord]:
    """Return one record for each run, newest first.

    If the lead's host answered, its record is used. Runs of one name are sorted by generation, which depends on no
    clock. Runs of different names are sorted by their starts, by the launchers' clocks.
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
    asked = dict.fromkeys([*hosts, *why])  # a gateway is not a host of the file
    return to_values(RunsReport(listing.runs, [AskedHost(host, why.get(host)) for host in asked]))


MOST_NAMES = 3  # names in an error


def find_named(fleet: Fleet, run: str) -> Tuple[Dict[str, Dict[str, Any]], List[HostProblem]]:
    """Return the answers of the hosts that took part in a run, in the form of the answers to ``find``.

    Raises:
      CannotStart: no host knows the run, and some hosts cannot be asked.
      UsageError: no host knows the run; the text has similar names.
    """
    answers, problems = ask_for_runs(fleet)
    told = {
        host: _described(each) for host, answer in answers.items() for each in answer.runs if each.record.run == run
    }
    # A host that only keeps copies of the run's checkpoints does not know the run's lead.
    told = {host: each for host, each in told.items() if each["lead"] is not None} or told
    if not told and problems:
        raise CannotStart(problems)
    if not told:
        raise UsageError(unknown(fleet, run, [record.run for record in merged(answers)]))
    return told, problems


def _described(known: KnownRun) -> Dict[str, Any]:
    record = known.record
    return {
        "run": record.run, "generation": known.generation, "lives": known.lives, "lead": record.lead,
        "hosts": list(record.hosts),
    }  # fmt: skip


def unknown(fleet: Fleet, run: str, names: Sequence[str], option: str = "--run") -> str:
    """Return the message that no run has the name ``run``, which the user gave with the option ``option``."""
    near = nearest(run, names)
    known = f"the nearest names: {', '.join(near)}" if near else "no run has been on these hosts"
    listed = f"list every run with `launch runs {shlex.quote(str(fleet.spec.path))}`"
    return f"{option}: expected a run on {fold(fleet.hosts)}, found '{run}'; {'; '.join([known, listed])}"


def nearest(run: str, names: Sequence[str]) -> List[str]:
    """Return the most likely names: the names that contain ``run``, else similar names, else the first names."""
    having = [name for name in names if run and run in name]
    return (having or difflib.get_close_matches(run, names, MOST_NAMES) or list(names))[:MOST_NAMES]


Told = Mapping[str, Mapping[str, Any]]  # by host, the answer to ``find``


class NamedRun(NamedTuple):
    """A run that hosts know, and the host that leads the run. Of several such tuples, verbs act on the greatest."""

    lives: bool
    generation: int
    name: str
    lead: str


def runs(told: Told) -> List[NamedRun]:
    """Return the runs that the hosts report, the newest last."""
    known = [(host, each) for host, each in told.items() if each.get("run")]
    return sorted(
        {NamedRun(each["lives"], each["generation"], each["run"], each["lead"] or host) for host, each in known}
    )


def locate(fleet: Fleet) -> "Located":
    """Find the run that a verb acts on, and set ``fleet.lead`` to the host that leads the run.

    If ``--run`` names the run, the function also sets ``fleet.tasks`` to the run's tasks, because the file's may
    differ.

    Raises:
      CannotStart: the host that leads the run, or may lead it, cannot be asked.
      UsageError: the file does not name the host that leads the run, or no run has the name given by ``--run``.
    """
    with fleet.asking():
        return _locate(fleet)


def _locate(fleet: Fleet) -> "Located":
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


def _status_of(fleet: Fleet, run: NamedRun) -> Optional[RunStatus]:
    """Return the status of a run from the host that leads it, and set ``fleet.lead`` to that host.

    Raises:
      CannotStart: that host cannot be asked.
      UsageError: the file does not name that host.
    """
    if run.lead not in fleet.hosts:
        raise UsageError(
            f"{fleet.spec.path}: expected {run.lead}, which leads {run.name}, among its hosts, found "
            f"{fold(fleet.hosts)}; add it again, and leave out --include and --exclude"
        )
    fleet.lead = run.lead
    return status_in(run.lead, fleet.ask_lead("status", fleet.reference(run.lead, run.name)))


def status_of(fleet: Fleet, record: RunRecord) -> RunStatus:
    """Return the status of a run by its record.

    Raises:
      CannotStart: the run's lead cannot be asked.
      UsageError: the file does not name that host, or the host has no record.
    """
    found = _status_of(fleet, NamedRun(False, 0, record.run, record.lead or "its host"))
    if found is None:
        raise UsageError(f"{record.run}: expected its lead's record on {record.lead}, found none")
    return found


def status_in(host: str, answer: Mapping[str, Any]) -> Optional[RunStatus]:
    """Return the status in a host's answer to ``status``.

    The result is None where no run exists, or another host leads the run.

    Raises:
      HostProblem: the answer is not the status of a run.
    """
    values: Optional[Dict[str, Any]] = answer["status"]
    return None if values is None or "state" not in values else as_run(host, values)


class Located(NamedTuple):
    """The status and the name of a run, each None if not found; problems of hosts that may know a newer run."""

    status: Optional[RunStatus]
    missed: List[HostProblem]
    run: Optional[str]


def newest_status(fleet: Fleet, asked: str, warn: Callable[[str], None] = lambda line: None) -> RunStatus:
    """Return the status of the newest run of a file, or of the run that ``--run`` names.

    The status comes from the run's agent or, when that agent is gone, from the agent's files.

    Args:
      asked: the arguments with which another verb finds the run, for messages.
      warn: called with a line for each host that could not be asked and may know a newer run.

    Raises:
      CannotStart: the lead's host is out of reach; the text has the command that continues without that host.
      HostProblem: the lead's answer is not the status of a run.
      UsageError: no run exists, or the file no longer names the run's lead.
    """
    try:
        found, missed, run = locate(fleet)
    except CannotStart as error:
        if len(fleet.hosts) == 1 or not any(each.host == fleet.lead and each.kind in LOST for each in error.problems):
            raise
        advice = (
            f"if {fleet.lead} is lost, continue without it with `launch up --resume {asked} --exclude {fleet.lead}`"
        )
        raise CannotStart(error.problems, advice) from error
    if found is None and run is not None:
        raise UsageError(f"{run}: expected its lead's record on {fleet.lead}, found none; see `launch runs {asked}`")
    if found is None:
        raise UsageError(
            f"{asked}: no run of this name has been on {fold(fleet.hosts)}; {_without_a_run(fleet, asked)}"
        )
    for problem in missed:
        warn(f"{problem}; a newer run may be there")
    return found


def _without_a_run(fleet: Fleet, asked: str) -> str:
    """Return the next step where no run has the file's name: the runs of its grid to choose from, else a start."""
    name = re.compile(rf"{re.escape(fleet.name)}\.[0-9]+")  # of a point
    of_grid = [each.run for each in merged(ask_for_runs(fleet)[0]) if name.fullmatch(each.name)]
    if of_grid:
        return f"choose a run of its grid with --run: {', '.join(of_grid[:MOST_NAMES])}"
    return f"start one with `launch up {asked}`"
