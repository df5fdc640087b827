"""``launch sweep``: find the leftovers of earlier runs of any name on the hosts of a file, and end them."""

from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Union

import click

from cluster.protocol.typed_json import to_values
from launch.agent.wire.typed_verbs import SWEEP
from launch.agent.wire.verb_requests import SweepRequest
from launch.errors import FOUND_WRONG, SUCCEEDED, HostProblem
from launch.fleet import Fleet
from launch.status.removals import RunningAgent, SweepAnswer, SweepFinding, nothing
from launch.target import Target
from launch.teardown import NOTHING_LEFT, AnyHost, by_host, ended, in_words, remains, unasked
from launch.verbs.options import JSON, tell, with_hosts_file

ANSWER_S = 120.0


@dataclass(frozen=True)
class HostSwept(AnyHost):
    """A host that has answered ``sweep``.

    The reference puts the word of ``found.*`` before the meaning of each field of the items in ``found``.

    Attributes:
      found.*: Found:
      ended.*: Ended:
      left.*: Left:
    """

    running: List[RunningAgent]
    found: List[SweepFinding]
    ended: List[SweepFinding]
    left: List[SweepFinding]


@dataclass(frozen=True)
class SweepReport:
    """The object of ``sweep --json``.

    Attributes:
      clean: True if every host answered and nothing of an earlier run is left.
    """

    clean: bool
    hosts: List[Union[HostSwept, AnyHost]]


class Swept(NamedTuple):
    """One answer per host that answered; one problem per host that did not."""

    answers: Dict[str, SweepAnswer]
    problems: List[HostProblem]

    @property
    def clean(self) -> bool:
        """Return whether every host answered and nothing of an earlier run is left on any host."""
        return not self.problems and not any(answer.left for answer in self.answers.values())


def look_for_leftovers(fleet: Fleet, kill: bool) -> Swept:
    """Find the leftovers of earlier runs on every host; with ``kill``, end them."""
    asked_first = dict.fromkeys([*fleet.hosts, *fleet.spec.hosts])
    here = tuple(host for host in asked_first if fleet.spec.is_here(host))
    requests = {
        host: SweepRequest(host, fleet.spec.workdir, kill, here if host in here else ()) for host in fleet.hosts
    }
    with fleet.within(ANSWER_S):
        return Swept(*fleet.ask_for(SWEEP, requests, ANSWER_S))


def as_values(swept: Swept) -> Dict[str, Any]:
    """Return the object of ``sweep --json``."""
    hosts = [_of_host(host, answer) for host, answer in swept.answers.items()]
    return to_values(SweepReport(swept.clean, [*hosts, *unasked(swept.problems)]))


def _of_host(host: str, answer: SweepAnswer) -> HostSwept:
    gone = [ended(entry, _left(entry, answer)) for entry in answer.found]
    return HostSwept(host, None, answer.running, answer.found, gone, answer.left)


def _left(entry: SweepFinding, answer: SweepAnswer) -> SweepFinding:
    nothing_left = SweepFinding(entry.run, **vars(nothing()), folders=[])
    return next((left for left in answer.left if left.run == entry.run), nothing_left)


def in_lines(swept: Swept) -> List[str]:
    """Return a line per finding and host; hosts with equal lines share one."""
    return by_host(((host, line) for host, answer in swept.answers.items() for line in _lines(answer)), swept.problems)


def _lines(answer: SweepAnswer) -> List[str]:
    lines = [f"{run.run} is running (agent pid {run.pid}): left alone" for run in answer.running]
    lines += [_line(entry, _left(entry, answer)) for entry in answer.found]
    return lines if answer.found else [*lines, "nothing is left by earlier runs"]


def _line(entry: SweepFinding, remaining: SweepFinding) -> str:
    left = remains(remaining)
    parts = [in_words(ended(entry, remaining)), f"LEFT: {', '.join(left)}" if left else NOTHING_LEFT]
    return f"{entry.run or 'of no run'}: {'; '.join(filter(None, parts))}"


@click.command()
@with_hosts_file
@JSON
@click.option("--kill", is_flag=True, help="End the processes and remove the files that were found.")
def sweep(target: Target, as_json: bool, kill: bool) -> int:
    """Find leftovers of earlier runs on the hosts of FILE.

    Earlier runs of any name count; live runs are not touched. Without --kill the command only
    reports. Logs and checkpoints always stay.

    \b
    Example:  launch sweep hosts.yaml --kill
    """
    with target.reach_hosts() as fleet:
        swept = look_for_leftovers(fleet, kill)
    found = not kill and any(answer.left for answer in swept.answers.values())
    advice = [f"end it with `launch sweep {target} --kill`"] if found else []
    tell(as_json, as_values(swept), [*in_lines(swept), *advice])
    return SUCCEEDED if swept.clean else FOUND_WRONG
