"""Ending a run, with proof: per host, what was there and what is left."""

from typing import Any, Dict, List, Mapping, NamedTuple, Sized

from launch.display import fold
from launch.errors import HostProblem
from launch.fleet import Fleet

STOP_S = 45.0  # workers' grace, then the ps', then the members' leave
ANSWER_S = 2 * STOP_S + 60.0  # asked to stop, asked to kill, killed
KINDS = ("processes", "ports", "gpu_memory", "locks")
NOTHING_LEFT = "no process, port, GPU memory or lock left"


class Left(NamedTuple):
    """What ``down`` found: one report per host that answered, one problem per host that did not.

    ``before`` has what was on each host when we came; empty where nobody looked.
    """

    reports: Dict[str, Dict[str, Any]]
    problems: List[HostProblem]
    before: Dict[str, Dict[str, Any]]

    @property
    def clean(self) -> bool:
        """Whether every host answered and nothing of the run is left on any."""
        return not self.problems and not any(remains(report) for report in self.reports.values())


def remains(report: Mapping[str, Any]) -> List[str]:
    """What is left on a host, in words."""
    return [
        *(f"process {process['pid']} ({process['argv'][:60]}){_hangs(process)}" for process in report["processes"]),
        *(f"port {port}" for port in report["ports"]),
        *(memory(held) for held in report["gpu_memory"]),
        *(f"lock {path}" for path in report["locks"]),
    ]


def _hangs(process: Mapping[str, Any]) -> str:
    return f", which hangs in {process['waits_in']}" if process["waits_in"] else ""


def memory(held: Mapping[str, Any]) -> str:
    """``1536 MiB of GPU 0``"""
    return f"{'memory' if held['mib'] is None else str(held['mib']) + ' MiB'} of GPU {held['gpu']}"


def look_and_take_down(fleet: Fleet, reason: str) -> Left:
    """``launch down``: what is there, then its end, on every host of the file."""
    requests = {host: fleet.request(host) for host in fleet.hosts}
    before, _ = fleet.ask("look", requests, ANSWER_S)  # a host that cannot be reached is told of below
    for host, report in before.items():
        requests[host]["was"] = [process["pid"] for process in report["processes"]]
    return take_down(fleet, requests, reason)._replace(before=before)


def take_down(fleet: Fleet, requests: Mapping[str, Mapping[str, Any]], reason: str, heed: bool = True) -> Left:
    """Ends a run on its hosts: through the lead in order, then each host by itself.

    ``requests`` has the lead first; of each only run, name, host and workdir count.
    """
    kept = ("run", "name", "host", "workdir", "was")
    asked = {
        host: {**{key: request[key] for key in kept if key in request}, "timeout_s": STOP_S, "reason": reason}
        for host, request in requests.items()
    }
    lead = dict(list(asked.items())[:1])
    reports, problems = fleet.ask("down", lead, ANSWER_S, heed)
    others = {host: request for host, request in asked.items() if host not in lead}
    more, further = fleet.ask("down", others, ANSWER_S, heed)
    return Left({**reports, **more}, [*problems, *further], {})


def ended(before: Mapping[str, Any], report: Mapping[str, Any]) -> Dict[str, List[Any]]:
    """What was there before and is gone."""
    return {kind: [each for each in before[kind] if not _is_among(each, report[kind])] for kind in KINDS}


def _is_among(each: Any, left: List[Any]) -> bool:
    """Whether it is still there; a process is the same by pid and start time, whatever it does meanwhile."""
    if isinstance(each, dict) and "start" in each:
        return any((other["pid"], other["start"]) == (each["pid"], each["start"]) for other in left)
    return each in left


def as_values(left: Left) -> Dict[str, Any]:
    """``down --json``: per host what was there and is gone (``ended``), and what is left."""
    hosts = [
        {"host": host, "error": None, "ended": ended(left.before.get(host, report), report), **report}
        for host, report in left.reports.items()
    ]
    hosts += [{"host": problem.host, "error": problem.reason} for problem in left.problems]
    return {"clean": left.clean, "hosts": hosts}


def told(left: Left) -> List[str]:
    """A line per host; hosts of which the same is to be said share one."""
    lines: Dict[str, List[str]] = {}
    for host, report in left.reports.items():
        lines.setdefault(_told(report, left.before.get(host, report)), []).append(host)
    return [*(f"{fold(hosts)}: {text}" for text, hosts in lines.items()), *(str(problem) for problem in left.problems)]


def _told(report: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    if report["run"] is None:
        return "no run of this name has been here"
    left = remains(report)
    was = in_words(ended(before, report)) or "nothing was there"
    return f"{report['run']}: {was}; {'LEFT: ' + ', '.join(left) if left else NOTHING_LEFT}"


def in_words(gone: Mapping[str, List[Any]]) -> str:
    """``ended 3 processes in 2 groups (pids 42, 43, 57), port 2222, 1536 MiB of GPU 0, 2 locks``; else nothing."""
    processes = gone["processes"]
    groups = {process["group"] for process in processes}
    pids = ", ".join(str(process["pid"]) for process in processes)
    parts = [f"{_count(processes, 'process', 'processes')} in {_count(groups, 'group')} (pids {pids})"] * bool(
        processes
    )
    parts += [f"port {port}" for port in gone["ports"]] + [memory(held) for held in gone["gpu_memory"]]
    parts += [_count(gone["locks"], "lock")] * bool(gone["locks"])
    return f"ended {', '.join(parts)}" if parts else ""


def _count(things: Sized, one: str, many: str = "") -> str:
    return f"{len(things)} {one if len(things) == 1 else many or one + 's'}"
