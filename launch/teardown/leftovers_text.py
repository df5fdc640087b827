"""Describe in words what was on a host and is gone, and what is left."""

from dataclasses import dataclass, fields, replace
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, TypeVar

from cluster.protocol.quantity import quantity
from launch.errors import HostProblem
from launch.status.removals import GpuMemory, Leftovers, ProcessLeft
from launch.view.console import fold

L = TypeVar("L", bound=Leftovers)
NOTHING_LEFT = "no process, port, GPU memory, lock, control group or container left"


@dataclass(frozen=True)
class AnyHost:
    """A host as ``--json`` has it; one that could not be asked has no more fields.

    Attributes:
      host: Name of a host of the file.
      error: Problem that prevented an answer; then the host has no other field. Else null.
    """

    host: str
    error: Optional[str]


def unasked(problems: Sequence[HostProblem]) -> List[AnyHost]:
    """Return the hosts that could not be asked."""
    return [AnyHost(problem.host, problem.reason) for problem in problems]


def remains(left: Leftovers) -> List[str]:
    """Return in words what is left on a host."""
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
    """Return the unfinished folders of a finding; other leftovers have none."""
    return getattr(left, "folders", [])


def memory(held: GpuMemory) -> str:
    """Return ``1536 MiB of GPU 0``."""
    return f"{'memory' if held.mib is None else str(held.mib) + ' MiB'} of GPU {held.gpu}"


def ended(before: L, left: Leftovers) -> L:
    """Return what was there before and is gone, by kind."""
    kinds = [each.name for each in fields(before) if isinstance(getattr(before, each.name), list)]
    return replace(before, **{kind: _gone(getattr(before, kind), getattr(left, kind)) for kind in kinds})


def _gone(before: List[Any], left: List[Any]) -> List[Any]:
    identities = [_identity(each) for each in left]
    return [each for each in before if _identity(each) not in identities]


def _identity(each: Any) -> Any:
    """Return what makes an item the same: of a process, whatever it does meanwhile, its pid and start time."""
    return (each.pid, each.start) if isinstance(each, ProcessLeft) else each


def in_words(gone: Leftovers) -> str:
    """Return in words what has ended; empty where nothing has.

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
    """Return (host, line) pairs as lines, then the problems of the other hosts.

    Hosts with equal lines share one.
    """
    hosts: Dict[str, List[str]] = {}
    for host, line in lines:
        hosts.setdefault(line, []).append(host)
    return [*(f"{fold(where)}: {line}" for line, where in hosts.items()), *map(str, problems)]
