"""The exchange of ``launch check`` with a host, which opens its ports, sends its time, and collects facts."""

from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple, Union

from cluster.protocol.settings import Limits
from launch.agent.wire.host_facts import FactsRequest, HostFacts
from launch.agent.wire.verb_requests import RunReference


@dataclass(frozen=True)
class CheckRequest:
    """The request to listen on the ports of this host's tasks, and then to collect facts.

    Attributes:
      run: the run that may be up here.
      words: two secrets of this check: a caller sends the first, and a listener answers with the second.
      ports: the ports to open.
      here: every name that this machine has in the hosts file.
      facts: the request for the facts that other verbs collect, too.
      names: the names to resolve.
      targets: [address, host] of each task and agent to dial.
      knock_s: seconds within which one address must answer.
      programs: by program, the PATH on which to search for the program; None for this host's own PATH.
      guard: whether the run will have a guard, a set of firewall rules.
      limits: the limits of each task of this host that has limits.
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
      pid: the process that holds the port, where this user may see the process.
      run: the run of that process; None where the process belongs to no run.
    """

    why: str
    pid: Optional[int] = None
    run: Optional[str] = None


@dataclass(frozen=True)
class OpenedPorts:
    """The answer to ``CheckRequest``: for each port the reason why the host cannot open it, or None if it is open."""

    ports: Mapping[str, Optional[PortHolder]]


@dataclass(frozen=True)
class Unreached:
    """A target that this host cannot reach; ``kind`` is one of those in ``launch.agent.network.doors``."""

    address: str
    host: str
    kind: str
    detail: str


@dataclass(frozen=True)
class RunUp:
    """A live run on this host with the name that the request gives.

    ``pid`` is the pid of the run's agent, and ``code`` has the hash of each bundle of the run's code.
    """

    run: str
    pid: Optional[int]
    code: Mapping[str, str]

    def holds(self, holder: PortHolder) -> bool:
        """Return whether the holder of a port is a task or an agent of this run."""
        return holder.run == self.run or (self.pid is not None and holder.pid == self.pid)


@dataclass(frozen=True)
class LimitFacts:
    """Texts about the limits of a host's tasks.

    ``problems`` has the limits that the host cannot enforce, ``notes`` the limits that it enforces without the kernel.
    """

    problems: List[str]
    notes: List[str]


@dataclass(frozen=True)
class EphemeralPorts:
    """Ports of this run that the kernel may give to any outgoing connection.

    Attributes:
      first, last: the first and the last port of the kernel's range for outgoing connections.
      reserved: the ports that the kernel keeps out of this range now, as the kernel lists them.
    """

    ports: List[int]
    first: int
    last: int
    reserved: str


@dataclass(frozen=True)
class CheckFacts(HostFacts):
    """The facts of a host that only a check collects.

    Attributes:
      names: the addresses of each name on this host, or the reason why the name has no address.
      unreached: the targets that cannot be reached.
      unguarded: the reason why the host cannot have a guard, and the remedy; empty where the host can have a guard, or
        needs none.
      missing_programs: the programs that do not exist.
      limits: the limits that are not enforced, or not by the kernel; None where this is not known.
      container: the reason why tasks cannot run in their container, and the remedy; empty where tasks can run in it, or
        have no container.
      run: the live run of this name on this host.
      proxies: the environment variables of the host that name a proxy.
      ephemeral: the ports of this run that outgoing connections may get; None without such a port.
      ports: the ports of ``OpenedPorts``; the launcher adds this field.
    """

    names: Mapping[str, Union[str, List[str]]]
    unreached: List[Unreached]
    unguarded: List[str]
    missing_programs: List[str]
    limits: Optional[LimitFacts]
    container: List[str]
    run: Optional[RunUp]
    proxies: List[str]
    ephemeral: Optional[EphemeralPorts]
    ports: Mapping[str, Optional[PortHolder]]
