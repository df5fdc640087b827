"""The data classes of a hosts file. A spec is one cluster, and the job that it trains."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from cluster.protocol.addresses import LOCAL_NAMES
from cluster.protocol.command_template import STATE_FOLDER, names_in
from cluster.protocol.settings import DEFAULT_KEEP, Elastic, Hook, HostSettings, Keep, Limits, Restart
from cluster.task import Train

ROLE_ORDER = ("ps", "chief", "worker", "evaluator")

# Indices; "all" GPUs of the host; or "share", an equal share with the host's other tasks without the key.
Gpus = Union[Tuple[int, ...], str]
# The arguments of every task; or the arguments of each role, with None for a role without arguments.
Command = Union[Tuple[str, ...], Mapping[str, Optional[Tuple[str, ...]]]]


def is_local(host: str) -> bool:
    """Return whether ``host`` is one of the names that mean this machine."""
    return host.lower() in LOCAL_NAMES


@dataclass(frozen=True)
class TaskSpec:
    """One task as the hosts file describes it, with all settings that can be resolved without a connection to a host.

    SSH connects to the name ``host``; the other tasks connect to ``address`` (``host:port``). ``gpus`` are indices,
    ``"all"`` GPUs of the host, or ``"share"``: an equal share of the host's GPUs among its tasks without a setting
    ``gpus``. ``env`` merges the variables of all tasks, of the role and of the entry. ``limits`` are merged, too; None
    where the task has no limits. ``python`` comes from the entry, or else from the file. ``line`` is the first line of
    the entry; None for an entry from ``--set``. A ``spare`` is a ps that waits until the host of another ps is lost.
    """

    role: str
    index: int
    host: str
    address: str
    port: int
    gpus: Gpus = ()
    python: Optional[str] = None
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Optional[Limits] = None
    line: Optional[int] = None
    spare: bool = False

    @property
    def name(self) -> str:
        """Return the name of the task, such as ``worker:1``."""
        return f"{self.role}:{self.index}"


@dataclass(frozen=True)
class Ssh:
    """The SSH settings with which the launcher reaches the hosts."""

    transport: str = "fabric"
    user: Optional[str] = None
    port: Optional[int] = None
    key: Optional[str] = None
    gateway: Optional[str] = None
    config: Optional[str] = "~/.ssh/config"
    known_hosts: str = "~/.ssh/known_hosts"
    connect_timeout_s: float = 10
    fanout: int = 32


@dataclass(frozen=True)
class Setup:
    """The sources from which ``launch setup`` builds the environment on the hosts.

    If ``lock`` is None, the project's own lock file for the host's runtime applies. ``lock`` and ``wheels`` are paths
    on the launcher's machine, relative to the hosts file. If ``index_url`` is None, each host uses its own index.
    """

    lock: Optional[str] = None
    wheels: Optional[str] = None
    index_url: Optional[str] = None


@dataclass(frozen=True)
class NamedTasks:
    """The hosts file of a spec, the name of its runs, and its tasks.

    The tasks are in the order ps, spares, chief, worker, evaluator.
    """

    path: Path
    name: str
    tasks: Tuple[TaskSpec, ...]


@dataclass(frozen=True)
class Spec(HostSettings, NamedTasks):
    """A valid hosts file. Exactly one of ``job`` and ``command`` is set.

    A field with the name of a key has the key's value, or its default; ``hooks`` has the receivers of the key ``on``.
    ``elastic`` is None when a lost host ends the run. ``python`` is None when the file does not name one. ``setup`` is
    None when the hosts' Python is used without changes. ``job_at`` is the place of the job's name, such as
    ``hosts.yaml:3:6: job``. ``before`` has commands for the shell that starts the launcher's program on a host.
    ``transport`` is ``ssh`` or ``slurm``. In a ``local`` spec every host is this machine, whatever its name.
    ``lead_ports`` has the port of the lead's agent for each host that may lead. For a host that is not in it, the
    agent takes the first port above the ports of its tasks. ``master_port`` is MASTER_PORT of the tasks; None where the
    launcher chooses. ``chief_name`` is ``master`` where the programs know the chief under this name.
    """

    job: Optional[str] = None
    command: Optional[Command] = None
    args: Dict[str, Any] = field(default_factory=dict)
    train: Train = field(default_factory=Train)
    restart: Restart = field(default_factory=Restart)
    elastic: Optional[Elastic] = None
    keep: Keep = DEFAULT_KEEP
    success: Optional[str] = None
    deadline_s: Optional[float] = None
    leave_s: float = 10
    python: Optional[str] = None
    before: Tuple[str, ...] = ()
    workdir: str = "~/.launch"
    secrets: Tuple[str, ...] = ()
    hooks: Tuple[Hook, ...] = ()
    transport: str = "ssh"
    ssh: Ssh = field(default_factory=Ssh)
    setup: Optional[Setup] = None
    job_at: str = "job"
    local: bool = False
    lead_ports: Mapping[str, int] = field(default_factory=dict)
    master_port: Optional[int] = None
    chief_name: str = "chief"

    @property
    def local_workdir(self) -> str:
        """Return the working folder of runs with ``--local``: a folder below the file's working folder."""
        return self.workdir if self.local else f"{self.workdir.rstrip('/')}/local"

    def is_here(self, host: str) -> bool:
        """Return whether ``host`` is this machine."""
        return self.local or is_local(host)

    @property
    def hosts(self) -> Tuple[str, ...]:
        """Return every host once, in the order of its first task."""
        return tuple(dict.fromkeys(task.host for task in self.tasks))

    def tasks_of(self, role: str) -> Tuple[TaskSpec, ...]:
        """Return the tasks of ``role`` at the start of a run, by index; spares are not among them."""
        return tuple(task for task in self.tasks if task.role == role and not task.spare)

    def command_of(self, role: str) -> Tuple[str, ...]:
        """Return the arguments of the tasks of ``role``, () for a role without arguments.

        The result has a meaning only if the spec has a ``command``.
        """
        given = self.command.get(role) if isinstance(self.command, Mapping) else self.command
        return given or ()

    def known_as(self, role: str) -> str:
        """Return the name under which programs know ``role``: ``chief_name`` for the chief."""
        return self.chief_name if role == "chief" else role

    @property
    def keeps_state(self) -> bool:
        """Return whether ``command`` has the placeholder of the folder that is kept between runs."""
        words = (word for role in ROLE_ORDER for word in self.command_of(role))
        return any(STATE_FOLDER in names_in(word) for word in words)

    @property
    def chief(self) -> TaskSpec:
        """Return the task that initialises, saves and ends the run."""
        return (self.tasks_of("chief") or self.tasks_of("worker"))[0]
