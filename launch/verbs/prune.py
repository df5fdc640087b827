"""``launch prune``: remove past runs and unused code on the hosts of a file, or show what a removal would delete."""

import time
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Union

import click

from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import to_values
from launch.agent.wire.typed_verbs import PRUNE
from launch.agent.wire.verb_requests import PruneRequest
from launch.errors import FOUND_WRONG, SUCCEEDED, CannotStart, HostProblem
from launch.fleet import Fleet
from launch.status.removals import PruneAnswer, Removable
from launch.target import Target
from launch.teardown import AnyHost, by_host, unasked
from launch.verbs.options import JSON, tell, with_hosts_file
from launch.view.console import of_bytes

ANSWER_S = 600.0  # for a host to look through its runs, and to remove some


# The fields of the last base class come first.
@dataclass(frozen=True)
class HostPruned(PruneAnswer, AnyHost):
    """A host that has answered ``prune``.

    The reference puts the words of ``going.*`` before the meaning of each field of the items in ``going``.

    Attributes:
      going.*: Goes:
      failed.*: Not removed:
    """


@dataclass(frozen=True)
class PruneReport:
    """The object of ``prune --json``.

    Attributes:
      removed: True with --yes: everything in going was removed, except for the folders in failed.
    """

    removed: bool
    hosts: List[Union[HostPruned, AnyHost]]


class Pruned(NamedTuple):
    """One answer per host that answered; one problem per host that did not."""

    answers: Dict[str, PruneAnswer]
    problems: List[HostProblem]

    @property
    def has_failed(self) -> bool:
        """Return whether a folder could not be removed."""
        return any(answer.failed for answer in self.answers.values())

    @property
    def is_empty(self) -> bool:
        """Return whether no host has a folder to remove."""
        return not any(answer.going for answer in self.answers.values())


def prune_hosts(fleet: Fleet, remove: bool) -> Pruned:
    """Ask every host for the folders that exceed a bound; with ``remove``, the hosts remove these folders.

    Hosts that are this machine share one folder, and receive one request.
    """
    here = tuple(host for host in fleet.hosts if fleet.spec.is_here(host))
    names = {host: here if host in here else (host,) for host in fleet.hosts if host not in here[1:]}
    now = time.time()
    requests = {
        host: PruneRequest(alike, fleet.spec.workdir, fleet.spec.name, fleet.spec.keep, now, remove)
        for host, alike in names.items()
    }
    with fleet.within(ANSWER_S):
        return Pruned(*fleet.ask_for(PRUNE, requests, ANSWER_S))


def as_values(pruned: Pruned, remove: bool) -> Dict[str, Any]:
    """Return the object of ``prune --json``."""
    hosts = [HostPruned(host, None, **vars(answer)) for host, answer in pruned.answers.items()]
    return to_values(PruneReport(remove, [*hosts, *unasked(pruned.problems)]))


def in_lines(pruned: Pruned, remove: bool) -> List[str]:
    """Return lines about the folders that each host removes, and about the runs that stay.

    Hosts with equal lines share a line.
    """
    return by_host(((host, line) for host, answer in pruned.answers.items() for line in _lines(answer, remove)), [])


def _lines(answer: PruneAnswer, remove: bool) -> List[str]:
    failed = {each.name for each in answer.failed}
    lines = [
        f"{'removed' if remove else 'would remove'} {_named(each)}: {of_bytes(each.bytes)}; {each.why}"
        for each in answer.going
        if each.name not in failed
    ]
    lines += [f"keeps {each.run}: {each.needed}; {each.why}" for each in answer.spared]
    lines += [f"NOT REMOVED: {each.name}: {each.why}" for each in answer.failed]
    freed = sum(each.bytes for each in answer.going if each.name not in failed)
    total = f"{quantity(answer.runs, 'run')}, {of_bytes(answer.bytes)}"
    return [*lines, f"{of_bytes(freed)} {'removed' if remove else 'to remove'}; there {_were(remove)} {total}"]


def _named(each: Removable) -> str:
    return each.name if each.what == "run" else f"{each.what} {each.name}"


def _were(remove: bool) -> str:
    return "were" if remove else "are"


@click.command()
@with_hosts_file
@JSON
@click.option("--yes", "remove", is_flag=True, help="Remove what is listed; without --yes, the command only lists.")
def prune(target: Target, as_json: bool, remove: bool) -> int:
    """Show past runs and code that exceed the bounds of the key keep.

    The key keep of FILE has the bounds for runs of FILE's name. For runs of another name, the bounds of the newest
    run of that name apply. Live runs, runs that another run needs, and the newest run of each name always
    stay. Hosts also apply the bounds by themselves, whenever a run starts.

    \b
    Example:  launch prune hosts.yaml
              launch prune hosts.yaml --yes
    """
    with target.reach_hosts() as fleet:
        found = prune_hosts(fleet, remove)
    advice = [] if remove or found.is_empty else [f"remove them with `launch prune {target.as_started} --yes`"]
    tell(as_json, as_values(found, remove), [*in_lines(found, remove), *advice])
    if found.problems:
        raise CannotStart(found.problems)
    return FOUND_WRONG if found.has_failed else SUCCEEDED
