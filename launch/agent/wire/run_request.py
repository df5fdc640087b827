"""The launcher's request to an agent: the JSON line of the verb ``start``, stored as plan.json."""

from dataclasses import dataclass, field
from typing import Iterator, List, Mapping, Optional, Tuple, Union

from cluster.protocol.addresses import host_of, port_of
from cluster.protocol.settings import Hook, HostSettings, Keep, Limits, Restart
from launch.status.run_history import RunHistory

Gpus = Union[str, Tuple[int, ...]]
LOST_S = 10.0  # of silence, plus a margin for the lead (``protocol.silence``), after which a host is lost
JOIN_S = 20.0  # for the members' agents to reach the lead at the start
STAY_S = 20.0  # for a member's agent to wait for a silent lead
GRACE_S = 10.0  # between TERM and KILL


@dataclass(frozen=True)
class LeadAddress:
    """The host and the address of the agent that leads the run.

    Attributes:
      host: the host of this agent, by the name in the hosts file.
      address: ``host:port`` that the members' agents dial; None in a run of one host, which has no members.
    """

    host: str
    address: Optional[str] = None

    @property
    def endpoint(self) -> Tuple[str, int]:
        """Return the host and the port that members dial.

        Raises:
          ValueError: the run has no members.
        """
        if self.address is None:
            raise ValueError(f"lead.address: expected the address of the lead agent on {self.host}, found null")
        return host_of(self.address), port_of(self.address)


@dataclass(frozen=True)
class TaskPlan:
    """A task of a run, as the lead's plan describes the task.

    Attributes:
      name: the name of the task, such as ``worker:1``.
      role: ps, chief, worker or evaluator.
      index: the number of the task within its role.
      host: the host of the task, by the name in the hosts file.
      address: ``host:port`` at which other tasks reach the task.
      chief: whether the task initialises, saves and ends the run.
      spare: whether the task is a ps that starts only when the host of another ps is lost.
    """

    name: str
    role: str
    index: int
    host: str
    address: str
    chief: bool
    spare: bool


@dataclass(frozen=True)
class TaskRequest(TaskPlan):
    """One process that a host must run.

    The request contains placeholders in ``argv`` and ``env``: ``{code}`` is the job's copy on the host,
    ``{run_folder}`` the folder of the run, ``{environment}`` the Python environment, and ``{gpus}`` the number of GPUs.

    Attributes:
      argv: the program and its arguments.
      env: the variables of the task in addition to the host's; TF_CONFIG is added on the host.
      folder: the bundle in whose folder the task starts, "launcher" or "job"; the host replaces it by the path of this
        folder.
      port: the port on which the task listens.
      gpus: the indices of GPUs; or "all" for all GPUs of the host; or "share" for an equal part with other tasks.
      saves: whether the task, as the chief, ends with a checkpoint.
      waits: whether the task's process can start before its turn, and wait for it (``cluster.protocol.standby``).
      limits: the limits of the task; None without limits.
    """

    argv: Tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    port: int
    gpus: Gpus = ()
    saves: bool = True
    waits: bool = False
    limits: Optional[Limits] = None


@dataclass(frozen=True)
class RunPlan:
    """The lead's plan of a run.

    Attributes:
      run: the name of this run, ``digits-20261120-155902``.
      name: the name that runs of one hosts file share.
      hosts: the hosts of the run, the lead first.
      tasks: every task of the run.
      steps: global steps of the whole run; None for foreign programs.
      judge: the criterion of success. With "outcome", the chief reports success. With "exit", for foreign programs, the
        chief must exit with code 0; without a chief, every worker must.
      success: with "exit", the tasks that must succeed: "chief", "all" or the name of a worker; None for the tasks that
        ``judge`` names.
      keeps_state: whether a foreign program keeps its state in ``{state_folder}``, with which ``--resume`` continues.
      deadline_s: seconds since the run's start after which the run stops; None for no deadline.
      restart_max: the largest number of restarts of a failed task, or of all workers that restart together.
      restart_window_s: seconds after which a failure is forgiven; None for never.
      restart_together: whether all workers restart where one of them restarts.
      backoff_s: seconds before the first restart.
      control: ``host:port`` where members dial the lead; None in a run of one host.
      join_s: seconds that members have to dial the lead at the start.
      lost_after_s: seconds of silence after which a host is lost.
      grace_s: seconds between TERM and KILL.
      leave_s: seconds that the other tasks have to leave by themselves once the run has succeeded.
      min_workers: the fewest workers with which a run continues after losing hosts; None if a lost host ends the run.
      patience: seconds of silence after which a host is lost, by host, if a boot of the host restarts its agent.
      rejoin_s: seconds that members have to dial a lead whose host has booted; None means ``join_s``.
      quorum: the fewest hosts with which the run begins.
      frozen_s: the least seconds without progress after which a task counts as frozen; None for never.
    """

    run: str
    name: str
    hosts: List[str]
    tasks: List[TaskPlan]
    steps: Optional[int] = None
    judge: str = "outcome"
    success: Optional[str] = None
    keeps_state: bool = False
    deadline_s: Optional[float] = None
    restart_max: int = Restart.max
    restart_window_s: Optional[float] = Restart.window_s
    restart_together: bool = False
    backoff_s: float = Restart.backoff_s
    control: Optional[str] = None
    join_s: float = JOIN_S
    lost_after_s: float = LOST_S
    grace_s: float = GRACE_S
    leave_s: float = 10.0
    min_workers: Optional[int] = None
    frozen_s: Optional[float] = Restart.frozen_s
    patience: Mapping[str, float] = field(default_factory=dict)
    rejoin_s: Optional[float] = None
    quorum: int = 0


@dataclass(frozen=True)
class Wanted:
    """The checkpoint to continue from.

    Attributes:
      run: the run that wrote the checkpoint; None for a checkpoint in ``train.checkpoint.dir``.
      step: the global step of the checkpoint.
    """

    run: Optional[str]
    step: int


@dataclass(frozen=True)
class RunPart:
    """The fields of every request to run one host's part of a run.

    Attributes:
      run: the name of this run, ``digits-20261120-155902``.
      name: the name that runs of one hosts file share.
      host: this host, by the name in the hosts file.
      workdir: the working folder on this host; may begin with ``~``.
      code: the hash of each sent bundle, by its kind, "launcher" and "job".
      file: the argument that names the run in other verbs, as a user types it in a shell.
      cluster: the "cluster" of TF_CONFIG as JSON text, {role: addresses}.
      tasks: the tasks of this host.
      token: the token that each agent of the run must prove to know.
      lead: the host and address of the lead.
      lost_after_s: seconds of silence after which a host is lost.
      join_s: seconds that a member's agent has to reach the lead at the start.
      grace_s: seconds between TERM and KILL.
    """

    run: str
    name: str
    host: str
    workdir: str
    code: Mapping[str, str]
    file: str
    cluster: str
    tasks: Tuple[TaskRequest, ...]
    token: str = field(repr=False)
    lead: LeadAddress
    lost_after_s: float
    join_s: float
    grace_s: float


@dataclass(frozen=True)
class RunRequest(HostSettings, RunPart):
    """One host's part of a run.

    Attributes:
      returns: whether a boot of this host restarts the run's agent; a request with True has no secrets.
      secrets: variables of every task; their values are in no file.
      lease_s: seconds of silence of the launcher after which the run ends; None where the run needs no launcher.
      detached: whether the launcher leaves once the run is up, so that the keepers restart agents.
      resume: whether the chief continues from a checkpoint.
      resume_from: the checkpoint to continue from; None for the newest on this host.
      follows: the run without its chief's host that this run succeeds; None where a user has started the run.
      history: the learning curve that the run continues, for the lead; None where the launcher knows none.
      stay_s: seconds that a member's agent waits, without tasks, for a silent lead.
      deserted_s: seconds after which a member leaves a lead whose host refuses connections.
      checkpoint_dir: the folder in which the chief saves; None for the run's own folder.
      keep: the number of checkpoints to keep, and of their copies.
      peers: the names and addresses of the cluster; None without a guard.
      environment: the hash of the tasks' Python environment; None for the host's own Python.
      setup: the command that builds the environment; None where no environment is needed.
      run_plan: the whole run, for the lead; None for members.
      replicas: the hosts that keep copies of checkpoints, for the lead.
      generation: a number above the numbers of all earlier runs of this name; None if the launcher sends none.
      again: whether this agent replaces a dead one.
      booted: whether the dead agent ended with its host, which has booted since.
      retention: the rule by which hosts remove past runs of this name; None if the launcher sends none.
      user: the user and the machine that start the run, ``anna@desk7``; None if the launcher sends none.
      hooks: the receivers of the run's events, for the lead.
    """

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    lease_s: Optional[float] = None
    detached: bool = False
    returns: bool = False
    resume: bool = False
    resume_from: Optional[Wanted] = None
    follows: Optional[str] = None
    history: Optional[RunHistory] = None
    stay_s: float = STAY_S
    deserted_s: float = 60.0
    checkpoint_dir: Optional[str] = None
    keep: int = 5
    peers: Optional[Tuple[str, ...]] = None
    environment: Optional[str] = None
    setup: Optional[str] = None
    run_plan: Optional[RunPlan] = None
    replicas: Tuple[str, ...] = ()
    generation: Optional[int] = None
    again: bool = False
    booted: bool = False
    retention: Optional[Keep] = None
    user: Optional[str] = None
    hooks: Tuple[Hook, ...] = ()

    def programs_beside_tasks(self) -> Iterator[Tuple[str, str]]:
        """Yield keys of the hosts file, each with the program that this host may run for it besides the tasks."""
        for hook in self.hooks:
            if hook.command:
                yield f"on.{hook.event}", hook.command[0]
        if self.notice is not None:
            yield "notice", self.notice.command[0]
