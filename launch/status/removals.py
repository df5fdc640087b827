"""Removals on a host: leftovers of a run, and past runs and code: answers to look, down, sweep and prune.

Parts of them stand in the JSON of these verbs.
"""

from dataclasses import dataclass, field
from typing import List, Optional, Union

from launch.status.meanings import means, means_each, means_parts

FAILED_AFTER = means("Commands of the key `after` that have failed, with the reason; null where none has.")


@dataclass(frozen=True)
class ProcessLeft:
    """A process of a run."""

    pid: int = field(metadata=means("Process id."))
    group: int = field(metadata=means("Process group: the process id of its leader."))
    start: int = field(
        metadata=means("Start in clock ticks since the host booted; unique together with the process id.")
    )
    argv: str = field(metadata=means("Command line of the process."))
    waits_in: Optional[str] = field(
        metadata=means("Kernel function in which the process hangs, if nothing can end it; else null.")
    )


@dataclass(frozen=True)
class GpuMemory:
    """The memory of a GPU that a process of a run holds."""

    gpu: Union[int, str] = field(metadata=means("Index of the GPU; a text where it is not known."))
    pid: int = field(metadata=means("Process id of a holder of GPU memory."))
    mib: Optional[int] = field(metadata=means("Memory in MiB; null where the driver does not report it."))


@dataclass(frozen=True)
class Leftovers:
    """The processes, ports, GPU memory, locks, control groups and containers of a run on one host."""

    processes: List[ProcessLeft] = field(metadata=means_parts())
    ports: List[int] = field(metadata=means_each("TCP port on which a process of the run listens."))
    gpu_memory: List[GpuMemory] = field(metadata=means_parts())
    locks: List[str] = field(metadata=means_each("Path of a lock or socket of the run."))
    groups: List[str] = field(metadata=means_each("Path of a control group of the run."))
    containers: List[str] = field(metadata=means_each("Name of a container of the run."))


@dataclass(frozen=True)
class _OfARun:
    run: Optional[str] = field(metadata=means("Full name of the run; null where no run is known."))


# The fields of the last base come first.
@dataclass(frozen=True)
class RunLeftovers(Leftovers, _OfARun):
    """Answer to look and down; ``run`` is None where no run of the name has been."""


@dataclass(frozen=True)
class RunEnded(RunLeftovers):
    """Answer to down."""

    after: Optional[str] = field(metadata=FAILED_AFTER)


@dataclass(frozen=True)
class SweepFinding(RunLeftovers):
    """Leftovers of an earlier run, or, where ``run`` is None, of no run."""

    folders: List[str] = field(metadata=means_each("Path of an unfinished folder."))


@dataclass(frozen=True)
class RunningAgent:
    """A run that lives."""

    run: str = field(metadata=means("Full name of a live run, which sweep does not touch."))
    pid: int = field(metadata=means("Process id of its agent."))


@dataclass(frozen=True)
class SweepAnswer:
    """The answer to sweep."""

    running: List[RunningAgent]
    found: List[SweepFinding]
    left: List[SweepFinding]


def nothing() -> Leftovers:
    """Return the leftovers of a run that has nothing on a host."""
    return Leftovers([], [], [], [], [], [])


@dataclass(frozen=True)
class Removable:
    """A folder that goes."""

    what: str = field(
        metadata=means("Kind of the folder: run, code, or rest for what an interrupted removal has left.")
    )
    name: str = field(metadata=means("Full name of the run, hash of the code, or name of the rest."))
    bytes: int = field(
        metadata=means("Room that it takes, in bytes. A file that several runs share counts for each in equal parts.")
    )
    why: str = field(metadata=means("Bound that it is beyond, in words."))


@dataclass(frozen=True)
class Spared:
    """A run that is beyond a bound and stays."""

    run: str = field(metadata=means("Full name of a run that is beyond a bound and stays."))
    why: str = field(metadata=means("Bound that it is beyond, in words."))
    needed: str = field(metadata=means("Reason for which it stays, in words."))


@dataclass(frozen=True)
class NotRemoved:
    """A folder of which something could not be removed."""

    name: str = field(metadata=means("Name of the run, the code or the rest, as in going."))
    why: str = field(metadata=means("Path that could not be removed, and the reason."))


@dataclass(frozen=True)
class PruneAnswer:
    """The answer to prune."""

    runs: int = field(metadata=means("Number of runs on the host, before the removal."))
    bytes: int = field(metadata=means("Room that these runs take, in bytes."))
    going: List[Removable] = field(metadata=means_parts())
    spared: List[Spared] = field(metadata=means_parts())
    failed: List[NotRemoved] = field(metadata=means_parts())
