"""The sections of a hosts file that its hosts receive unchanged, in the requests to their agents and in plan.json.

Each section is defined here once. Its fields are the keys of the section, and an agent of another version skips unknown
keys.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Mapping, Optional, Tuple

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """The limits of a task, by the keys of ``limits:``; None for a limit that the task does not have.

    Attributes:
      memory_gib: memory of all processes of the task together.
      processors: number of processors; no other task with such a limit gets the same processors.
      numa_node: the node whose processors and memory the task uses.
      nofile: number of files that each process of the task may have open.
      nice: the nice value of the task; a higher value yields to others.
    """

    memory_gib: Optional[float] = None
    processors: Optional[int] = None
    numa_node: Optional[int] = None
    nofile: Optional[int] = None
    nice: Optional[int] = None

    @property
    def memory_bytes(self) -> Optional[int]:
        """Return the memory limit in bytes."""
        return None if self.memory_gib is None else int(self.memory_gib * GIB)

    def given(self) -> Dict[str, Any]:
        """Return the limits of the task that are not None, by their keys."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Restart:
    """The restarts of failed tasks.

    Attributes:
      max: the number of restarts of a task within ``window_s``.
      backoff_s: seconds before the restart after the first failure.
      frozen_s: the minimum time without progress, in seconds, after which a task counts as frozen; None for never.
      window_s: seconds after which a failure is forgiven; None for never.
      together: whether all workers restart when one of them does; None if this depends on the program.
    """

    max: int = 3
    backoff_s: float = 1
    frozen_s: Optional[float] = 10
    window_s: Optional[float] = 86400
    together: Optional[bool] = None


@dataclass(frozen=True)
class Elastic:
    """The setting by which training continues without lost hosts while at least ``min_workers`` workers remain.

    The chief counts as a worker.
    """

    min_workers: int


@dataclass(frozen=True)
class Container:
    """The container in which each task runs.

    Attributes:
      image: a path on the hosts, which may begin with ``~``, or the name of an image.
      python: the Python in the image.
      runtime: apptainer, podman or docker; None if each host chooses.
      args: further options of the runtime.
    """

    image: str
    python: str = "python3"
    runtime: Optional[str] = None
    args: Tuple[str, ...] = ()


def is_image_file(image: str) -> bool:
    """Return whether ``image`` is a path, for apptainer; otherwise it is a name, for podman and docker."""
    return image.startswith(("/", "~"))


@dataclass(frozen=True)
class Hook:
    """A receiver of one kind of event: either a command, or a URL with headers.

    Attributes:
      event: one of ``launch.status.hook_event.EVENTS``.
      command: the program and its arguments; () for a receiver with a URL.
      url: the address to which each event is posted, with names of secrets in braces; None for a command.
      headers: further HTTP headers, also with names of secrets in braces.
    """

    event: str
    command: Tuple[str, ...] = ()
    url: Optional[str] = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Notice:
    """The command by which each host learns that its machine will be taken away.

    Attributes:
      command: the program and its arguments; exit code 0 is a notice.
      every_s: seconds between two runs of the command.
    """

    command: Tuple[str, ...]
    every_s: float = 5


@dataclass(frozen=True)
class Keep:
    """The rule by which hosts remove past runs: bounds on the runs of one ``name`` on a host; None for no bound.

    Attributes:
      runs: the number of newest runs that are kept.
      days: the number of days without use after which a run is removed.
      gib: the GiB that the runs of the name may occupy.
      spares_results: whether the host keeps every run that has left more than logs and records; not a key of a hosts
        file.
    """

    runs: Optional[int] = None
    days: Optional[float] = None
    gib: Optional[float] = None
    spares_results: bool = False


RUN_FOLDER, TASK_FOLDER = "run", "task"  # values of the key ``folder``

DEFAULT_KEEP = Keep(days=90.0, spares_results=True)  # where the file has no key ``keep``


@dataclass(frozen=True)
class HostSettings:
    """The keys that every host receives under the same name and with the same value as in the hosts file.

    Both a spec and a run's request to a host derive from this class, so a new key is added only here.

    Attributes:
      guard: "nftables", which then lets only tasks of the cluster reach the run's ports; None for no guard.
      allow_public: whether tasks may have addresses that the internet can reach.
      notice: the command by which a host learns that its machine will be taken away; None for no command.
      container: the container in which each task runs; None for no container.
      after: shell commands that run on a host after the run has ended there.
      quiet_s: seconds without activity after which a task is reported as quiet; None for never.
      progress: the regular expression that finds the progress of a program in its log; None for none.
      folder: "run" if the tasks of a host share one working folder, "task" if each task has its own folder.
    """

    guard: Optional[str] = None
    allow_public: bool = False
    notice: Optional[Notice] = None
    container: Optional[Container] = None
    after: Tuple[str, ...] = ()
    quiet_s: Optional[float] = 300
    progress: Optional[str] = None
    folder: str = TASK_FOLDER
