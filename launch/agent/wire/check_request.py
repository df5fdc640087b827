"""The conversation of ``launch check`` with a host: it opens its ports, sends its time, and looks around."""

from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple, Union

from cluster.protocol.settings import Limits
from launch.agent.wire.host_facts import FactsRequest, HostFacts
from launch.agent.wire.verb_requests import RunReference


@dataclass(frozen=True)
class CheckRequest:
    """The request to listen on the ports of this host's tasks, and to look around later.

    Attributes:
      run: the run that may be up here.
      words: two secrets of this check: the one that a caller sends, and the one with which a listener answers.
      ports: the ports to open.
      here: every name that this machine has in the hosts file.
      facts: the facts that other verbs collect too.
      names: the names to resolve.
      targets: [address, host] of each task and agent to dial.
      knock_s: seconds for one address to answer.
      programs: the PATH to look on for each program; None for this host's own.
      guard: whether the run is to have a guard.
      limits: the limits of each task of this host that has some.
      within_s: seconds after which the host ends its part by itself.
    """

    run: RunReference
    words: Tuple[str, ...]
    ports: Tuple[int, ...]
    here: Tuple[str, ...]
    facts: FactsRequest
    names: Tuple[str, ...]
    targets: Tuple[Tuple[str, ...], ...]
    knock_s: float
    programs: Mapping[str, Optional[str]]
    guard: bool
    limits: Mapping[str, Limits]
    within_s: float


@dataclass(frozen=True)
class PortHolder:
    """The reason why a port cannot be opened.

    Attributes:
      why: the reason, in words.
      pid: the process that holds the port, where this user may see it.
      run: the run of that process; None where it is of no run.
    """

    why: str
    pid: Optional[int] = None
    run: Optional[str] = None


@dataclass(frozen=True)
class OpenedPorts:
    """The answer to ``CheckRequest``: who holds each port; None where it is open now."""

    ports: Mapping[str, Optional[PortHolder]]


@dataclass(frozen=True)
class Unreached:
    """A target that cannot be reached from this host; ``kind`` is one of ``launch.agent.network.doors``."""

    address: str
    host: str
    kind: str
    detail: str


@dataclass(frozen=True)
class RunUp:
    """A run of the name that is up on this host, with the hash of each bundle of its code."""

    run: str
    pid: Optional[int]
    code: Mapping[str, str]

    def holds(self, holder: PortHolder) -> bool:
        """Return whether who holds a port is of this run: a task, or its agent."""
        return holder.run == self.run or (self.pid is not None and holder.pid == self.pid)


@dataclass(frozen=True)
class LimitFacts:
    """The limits of the tasks that a host cannot enforce, and those that it enforces by looking, in words."""

    problems: List[str]
    notes: List[str]


@dataclass(frozen=True)
class CheckFacts(HostFacts):
    """The facts of a host that only a check collects.

    Attributes:
      names: the addresses of each name on this host, or why it has none.
      unreached: the targets that cannot be reached.
      unguarded: why the host cannot have a guard, and what to do; empty where it can, or need not.
      missing_programs: the programs that are not there.
      limits: the limits that are not enforced, or not by the kernel; None where it is not known.
      container: why tasks cannot run in their container, and what to do; empty where they can, or need not.
      run: the run of this name that is up here.
      proxies: the variables of the host that name a proxy.
      ports: those of ``OpenedPorts``, which the launcher adds.
    """

    names: Mapping[str, Union[str, List[str]]]
    unreached: List[Unreached]
    unguarded: List[str]
    missing_programs: List[str]
    limits: Optional[LimitFacts]
    container: List[str]
    run: Optional[RunUp]
    proxies: List[str]
    ports: Mapping[str, Optional[PortHolder]]
