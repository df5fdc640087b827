"""Find what earlier runs of any name left on the hosts of a file, and end it."""

from typing import Any, Dict, List, Mapping, NamedTuple

from launch.agent.wire.verb_requests import SweepRequest
from launch.errors import HostProblem
from launch.fleet import Fleet
from launch.teardown.leftovers import NOTHING_LEFT, by_host, ended, in_words, remains, unasked

ANSWER_S = 120.0


class Swept(NamedTuple):
    """One report per host that answered, {"running", "found", "left"}; one problem per host that did not."""

    reports: Dict[str, Dict[str, Any]]
    problems: List[HostProblem]

    @property
    def clean(self) -> bool:
        """Return whether every host answered and nothing of an earlier run is left on any."""
        return not self.problems and not any(report["left"] for report in self.reports.values())


def look_for_leftovers(fleet: Fleet, kill: bool) -> Swept:
    """Find what earlier runs left on every host; with ``kill``, end it."""
    requests = {host: SweepRequest(host, fleet.spec.workdir, kill) for host in fleet.hosts}
    return Swept(*fleet.ask("sweep", requests, ANSWER_S))


def as_values(swept: Swept) -> Dict[str, Any]:
    """Return the object of ``sweep --json``.

    For each host, the object has the runs that live, what was found, what of that was ended, and what is left.
    """
    hosts = [
        {"host": host, "error": None, "running": report["running"], "found": report["found"],
         "ended": [{"run": entry["run"], **_ended(entry, report)} for entry in report["found"]], "left": report["left"]}
        for host, report in swept.reports.items()
    ]  # fmt: skip
    return {"clean": swept.clean, "hosts": hosts + unasked(swept.problems)}


def _ended(entry: Mapping[str, Any], report: Mapping[str, Any]) -> Dict[str, List[Any]]:
    """Return the part of a finding that is gone."""
    return ended(entry, _left(entry, report))


def _left(entry: Mapping[str, Any], report: Mapping[str, Any]) -> Mapping[str, Any]:
    nothing: Dict[str, List[Any]] = {key: [] for key in entry if key != "run"}
    return next((left for left in report["left"] if left["run"] == entry["run"]), nothing)


def told(swept: Swept) -> List[str]:
    """Return a line per finding and host; hosts with equal lines share one."""
    return by_host(((host, line) for host, report in swept.reports.items() for line in _told(report)), swept.problems)


def _told(report: Mapping[str, Any]) -> List[str]:
    lines = [f"{run['run']} is running (agent pid {run['pid']}): left alone" for run in report["running"]]
    lines += [_finding(entry, report) for entry in report["found"]]
    return lines if report["found"] else [*lines, "nothing is left by earlier runs"]


def _finding(entry: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    left = remains(_left(entry, report))
    parts = [in_words(_ended(entry, report)), f"LEFT: {', '.join(left)}" if left else NOTHING_LEFT]
    return f"{entry['run'] or 'of no run'}: {'; '.join(filter(None, parts))}"
