"""The exchange of ``launch diagnose`` with a host, which sends its time and then one piece after the other."""

from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple

from launch.agent.wire.host_facts import HostFacts
from launch.agent.wire.verb_requests import RunReference

SPANS = "spans.json"  # the file of a task's ``Flight``


@dataclass(frozen=True)
class DiagnoseRequest:
    """The request for every piece of information that may explain the state of a run.

    Attributes:
      run: the run.
      python: the tasks' Python.
      secrets: the names of variables that are secrets.
      bytes: the largest number of bytes to send.
      within_s: the seconds in which to send the pieces.
    """

    run: RunReference
    python: str
    secrets: Tuple[str, ...]
    bytes: int
    within_s: float


@dataclass(frozen=True)
class LiveProcess:
    """A living process of the run; ``task`` is None for the agent and its keeper."""

    pid: int
    task: Optional[str]
    state: str
    waits_in: Optional[str]
    swapped_bytes: float


@dataclass(frozen=True)
class Live:
    """The run's living processes on a host; ``agent`` is the pid of the run's agent, None where the agent has ended."""

    agent: Optional[int]
    processes: List[LiveProcess]


@dataclass(frozen=True)
class KernelMessage:
    """A message of the kernel about trouble of one ``kind``; ``time`` is in seconds since 1970."""

    time: float
    kind: str
    text: str


@dataclass(frozen=True)
class HangingConnection:
    """A connection with unacknowledged sent bytes, or a connection that only one side has closed."""

    remote: str
    state: str


@dataclass(frozen=True)
class Connections:
    """The TCP connections of the run's processes: how many there are, how many hang, and the first that hang."""

    count: int
    hanging: int
    first: List[HangingConnection]


@dataclass(frozen=True)
class Machine:
    """The resources of a machine: its memory in bytes by the names of /proc/meminfo, cores, and loads."""

    memory: Mapping[str, float]
    cores: Optional[int]
    load: List[float]


@dataclass(frozen=True)
class Report:
    """The lead's report of the run, as text."""

    words: Optional[List[str]] = None


@dataclass(frozen=True)
class DiagnosisFacts(HostFacts):
    """The facts of a host that the rules of a diagnosis read.

    Each fact is a file of the diagnosis's archive, and None until this file has arrived.
    """

    machine: Optional[Machine] = None
    live: Optional[Live] = None
    kernel: Optional[List[KernelMessage]] = None
    connections: Optional[Connections] = None
    report: Optional[Report] = None
