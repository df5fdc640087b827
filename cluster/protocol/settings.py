"""The sections of a hosts file that its hosts receive as they are, in the requests to their agents and in plan.json.

Each is defined here once. Its fields are the keys of the section, and an agent of another version skips keys that it
does not know.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """The limits of a task, by the keys of ``limits:``; None for a limit that it does not have.

    Attributes:
      memory_gib: memory of all its processes together.
      processors: number of processors, which no other task with such a limit gets.
      numa_node: the node whose processors and memory it uses.
      nofile: number of files that each of its processes may have open.
      nice: its nice value; a higher value yields to others.
    """

    memory_gib: Optional[float] = None
    processors: Optional[int] = None
    numa_node: Optional[int] = None
    nofile: Optional[int] = None
    nice: Optional[int] = None

    @property
    def memory_bytes(self) -> Optional[int]:
        """Return the limit of memory in bytes."""
        return None if self.memory_gib is None else int(self.memory_gib * GIB)

    def given(self) -> Dict[str, Any]:
        """Return the limits that the task has, by their keys."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Restart:
    """The number of restarts of a failed task, and the delay after its first failure.

    ``frozen_s``: seconds without progress after which a task counts as frozen, at the least; None for never.
    """

    max: int = 3
    backoff_s: float = 1
    frozen_s: Optional[float] = 10


@dataclass(frozen=True)
class Elastic:
    """Training goes on without lost hosts while ``min_workers`` are left, the chief among them."""

    min_workers: int


@dataclass(frozen=True)
class Container:
    """The container in which each task runs.

    Attributes:
      image: a path on the hosts, which may begin with ``~``, or the name of an image.
      python: the Python in the image.
      runtime: apptainer, podman or docker; None for each host's choice.
      args: further options of the runtime.
    """

    image: str
    python: str = "python3"
    runtime: Optional[str] = None
    args: Tuple[str, ...] = ()


def is_image_file(image: str) -> bool:
    """Return whether an image is a path, which apptainer runs; else a name, which podman and docker look up."""
    return image.startswith(("/", "~"))


@dataclass(frozen=True)
class Hook:
    """A receiver of one kind of event: either a command, or a URL with headers.

    Attributes:
      event: one of ``launch.status.hook_event.EVENTS``.
      command: the program and its arguments; () for a receiver with a URL.
      url: where each event is posted, with names of secrets in braces; None for a command.
      headers: further HTTP headers, likewise.
    """

    event: str
    command: Tuple[str, ...] = ()
    url: Optional[str] = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """The command by which each host learns that its machine is to go.

    Attributes:
      command: the program and its arguments; exit code 0 is a notice.
      every_s: seconds between two runs of it.
    """

    command: Tuple[str, ...]
    every_s: float = 5


@dataclass(frozen=True)
class Keep:
    """The rule by which hosts remove past runs: the bounds of the runs of one name on a host; None for no bound.

    Attributes:
      runs: the number of newest runs that stay.
      days: the days after which a run goes that nobody has used.
      gib: the GiB that the runs of the name may take.
      spares_results: whether every run stays that has left more than logs and records; no key of a hosts file.
    """

    runs: Optional[int] = None
    days: Optional[float] = None
    gib: Optional[float] = None
    spares_results: bool = False


DEFAULT_KEEP = Keep(days=90.0, spares_results=True)  # where the file has no key ``keep``


@dataclass(frozen=True)
class HostSettings:
    """The keys that every host receives under the name and with the value that they have in the hosts file.

    A spec and a run's request to a host are both made of it, so that a key is added here alone.

    Attributes:
      guard: "nftables", which then lets only tasks of the cluster reach the run's ports; None for no guard.
      allow_public: whether tasks may have addresses that the internet can reach.
      notice: how a host learns that its machine is to go; None where it does not.
      container: the container in which each task runs; None for no container.
      after: shell commands that run on a host once its part of the run is over.
    """

    guard: Optional[str] = None
    allow_public: bool = False
    notice: Optional[Notice] = None
    container: Optional[Container] = None
    after: Tuple[str, ...] = ()
