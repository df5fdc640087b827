"""Describe in words what was on a host and is gone, and what is left.

A *report* is what a host reports of a run: {"processes", "ports", "gpu_memory", "locks"}, and of a sweep
{"folders"}. Every kind is a list, empty where there is nothing.
"""

from typing import Any, Dict, Iterable, List, Mapping, Sequence, Sized, Tuple

from launch.errors import HostProblem
from launch.view.console import fold

KINDS = ("processes", "ports", "gpu_memory", "locks", "folders")
NOTHING_LEFT = "no process, port, GPU memory or lock left"


def remains(report: Mapping[str, Any]) -> List[str]:
    """Return in words what is left on a host."""
    return [
        *(f"process {process['pid']} ({process['argv'][:60]}){_hangs(process)}" for process in report["processes"]),
        *(f"port {port}" for port in report["ports"]),
        *(memory(held) for held in report["gpu_memory"]),
        *(f"lock {path}" for path in report["locks"]),
        *(f"unfinished folder {path}" for path in report.get("folders", [])),
    ]


def _hangs(process: Mapping[str, Any]) -> str:
    return f", which hangs in {process['waits_in']}" if process["waits_in"] else ""


def memory(held: Mapping[str, Any]) -> str:
    """Return ``1536 MiB of GPU 0``."""
    return f"{'memory' if held['mib'] is None else str(held['mib']) + ' MiB'} of GPU {held['gpu']}"


def ended(before: Mapping[str, Any], report: Mapping[str, Any]) -> Dict[str, List[Any]]:
    """Return what was there before and is gone, by kind."""
    kinds = [kind for kind in KINDS if kind in before]
    return {kind: [each for each in before[kind] if not _is_among(each, report[kind])] for kind in kinds}


def _is_among(each: Any, left: List[Any]) -> bool:
    """Return whether an item is still there.

    A process is the same by pid and start time, whatever the process does meanwhile.
    """
    if isinstance(each, dict) and "start" in each:
        return any((other["pid"], other["start"]) == (each["pid"], each["start"]) for other in left)
    return each in left


def in_words(gone: Mapping[str, List[Any]]) -> str:
    """Return in words what has ended; empty where nothing has.

    Example: ``ended 3 processes in 2 groups (pids 42, 43, 57), port 2222, 1536 MiB of GPU 0, 2 locks``.
    """
    parts = [_processes(gone["processes"])] if gone["processes"] else []
    parts += [f"port {port}" for port in gone["ports"]]
    parts += [memory(held) for held in gone["gpu_memory"]]
    parts += [_count(things, what) for what, things in _counted(gone) if things]
    return f"ended {', '.join(parts)}" if parts else ""


def _processes(ended: List[Mapping[str, Any]]) -> str:
    groups, pids = {each["group"] for each in ended}, ", ".join(str(each["pid"]) for each in ended)
    return f"{_count(ended, 'process', 'processes')} in {_count(groups, 'group')} (pids {pids})"


def _counted(gone: Mapping[str, List[Any]]) -> List[Tuple[str, List[Any]]]:
    return [("lock", gone["locks"]), ("unfinished folder", gone.get("folders", []))]


def _count(things: Sized, one: str, many: str = "") -> str:
    return f"{len(things)} {one if len(things) == 1 else many or one + 's'}"


def by_host(lines: Iterable[Tuple[str, str]], problems: Sequence[HostProblem]) -> List[str]:
    """Return (host, line) pairs as lines, then the problems of the other hosts.

    Hosts with equal lines share one.
    """
    hosts: Dict[str, List[str]] = {}
    for host, line in lines:
        hosts.setdefault(line, []).append(host)
    return [*(f"{fold(where)}: {line}" for line, where in hosts.items()), *map(str, problems)]


def unasked(problems: Sequence[HostProblem]) -> List[Dict[str, Any]]:
    """Return the hosts that could not be asked, as ``--json`` has them."""
    return [{"host": problem.host, "error": problem.reason} for problem in problems]
