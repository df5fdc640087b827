"""Every run on the hosts of a file, of any name: what each host remembers, merged into one record for each run."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from launch.agent.wire.verb_requests import RunsRequest
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.status.meanings import means, means_parts
from launch.status.run_record import KnownRun, RunRecord, RunsAnswer
from launch.status.values import to_values

ANSWER_S = 60.0  # for a host to look through its runs


@dataclass(frozen=True)
class AskedHost:
    """A host that was asked for its runs."""

    host: str = field(metadata=means("Name of a host of the file."))
    error: Optional[str] = field(
        metadata=means("Problem that prevented an answer, so that runs may be missing; else null.")
    )


@dataclass(frozen=True)
class RunsReport:
    """The object of ``runs --json``."""

    runs: List[RunRecord] = field(metadata=means_parts())
    hosts: List[AskedHost] = field(metadata=means_parts())


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
