"""Removals on a host: leftovers of a run, past runs and code. A host's answers to look, down, sweep and prune.

The JSON of these verbs contains parts of the answers.
"""

from dataclasses import dataclass
from typing import List, Optional, Union


@dataclass(frozen=True)
class ProcessLeft:
    """A process of a run.

    Attributes:
      pid: Process id.
      group: Process group: the process id of its leader.
      start: Start in clock ticks since the host booted; unique together with the process id.
      argv: Command line of the process.
      waits_in: Kernel function in which the process hangs, if no signal can end the process; else null.
    """

    pid: int
    group: int
    start: int
    argv: str
    waits_in: Optional[str]


@dataclass(frozen=True)
class GpuMemory:
    """The memory of a GPU that a process of a run holds.

    Attributes:
      gpu: Index of the GPU; a text where the index is not known.
      pid: Process id of a holder of GPU memory.
      mib: Memory in MiB; null where the driver does not report it.
    """

    gpu: Union[int, str]
    pid: int
    mib: Optional[int]


@dataclass(frozen=True)
class Leftovers:
    """The processes, ports, GPU memory, locks, control groups and containers of a run on one host.

    Attributes:
      ports[]: TCP port on which a process of the run listens.
      locks[]: Path of a lock or socket of the run.
      groups[]: Path of a control group of the run.
      containers[]: Name of a container of the run.
    """

    processes: List[ProcessLeft]
    ports: List[int]
    gpu_memory: List[GpuMemory]
    locks: List[str]
    groups: List[str]
    containers: List[str]


@dataclass(frozen=True)
class _OfARun:
    """The first field of every answer about a run.

    Attributes:
      run: Full name of the run; null where no run is known.
    """

    run: Optional[str]


# The fields of the last base class come first.
@dataclass(frozen=True)
class RunLeftovers(Leftovers, _OfARun):
    """A host's answer to the verbs ``look`` and ``down``; ``run`` is None where no run of the name has existed."""


@dataclass(frozen=True)
class RunEnded(RunLeftovers):
    """A host's answer to down.

    Attributes:
      after: Commands of the key `after` that have failed, with the reason; null where no command has failed.
    """

    after: Optional[str]


@dataclass(frozen=True)
class SweepFinding(RunLeftovers):
    """Leftovers of an earlier run; where ``run`` is None, leftovers that belong to no run.

    Attributes:
      folders[]: Path of an unfinished folder.
    """

    folders: List[str]


@dataclass(frozen=True)
class RunningAgent:
    """A live run.

    Attributes:
      run: Full name of a live run, which sweep does not touch.
      pid: Process id of the run's agent.
    """

    run: str
    pid: int


@dataclass(frozen=True)
class SweepAnswer:
    """A host's answer to sweep."""

    running: List[RunningAgent]
    found: List[SweepFinding]
    left: List[SweepFinding]


def nothing() -> Leftovers:
    """Return empty leftovers, for a run that has left nothing on a host."""
    return Leftovers([], [], [], [], [], [])


@dataclass(frozen=True)
class Removable:
    """A folder that a host removes.

    Attributes:
      what: Kind of the folder: run, code, or rest for the remains of an interrupted removal.
      name: Full name of the run, hash of the code, or name of the rest.
      bytes: Disk space of the folder, in bytes. A file that several runs share counts for each in equal parts.
      why: Bound that the folder exceeds, in words.
    """

    what: str
    name: str
    bytes: int
    why: str


@dataclass(frozen=True)
class Spared:
    """A run that exceeds a bound and stays.

    Attributes:
      run: Full name of a run that exceeds a bound and stays.
      why: Bound that the run exceeds, in words.
      needed: Reason why the run stays, in words.
    """

    run: str
    why: str
    needed: str


@dataclass(frozen=True)
class NotRemoved:
    """A folder that could not be removed completely.

    Attributes:
      name: Name of the folder, as in the items of going.
      why: Path that could not be removed, and the reason.
    """

    name: str
    why: str


@dataclass(frozen=True)
class PruneAnswer:
    """A host's answer to prune.

    Attributes:
      runs: Number of runs on the host, before the removal.
      bytes: Disk space of these runs, in bytes.
    """

    runs: int
    bytes: int
    going: List[Removable]
    spared: List[Spared]
    failed: List[NotRemoved]
