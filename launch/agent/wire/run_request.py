"""The launcher's request to an agent: the JSON line of the verb ``start``, kept as plan.json."""

from dataclasses import dataclass, field
from typing import Iterator, List, Mapping, Optional, Tuple, Union

from cluster.protocol.addresses import host_of, port_of
from cluster.protocol.settings import Hook, HostSettings, Keep, Limits, Restart

Gpus = Union[str, Tuple[int, ...]]
LOST_S = 10.0  # of silence, and a margin for the lead (``protocol.silence``): then a host is lost
JOIN_S = 20.0  # for the members' agents to reach the lead's at the start
STAY_S = 20.0  # for a member's agent to wait for a lead that is silent
GRACE_S = 10.0  # between TERM and KILL


@dataclass(frozen=True)
class LeadAddress:
    """The host and the address of the agent that leads the run.

    Attributes:
      host: its host, by the name in the hosts file.
      address: ``host:port`` that the members' agents dial; None in a run of one host, where nobody dials.
    """

    host: str
    address: Optional[str] = None

    @property
    def endpoint(self) -> Tuple[str, int]:
        """The host and the port that members dial.

        Raises:
          ValueError: nobody dials.
        """
        if self.address is None:
            raise ValueError(f"lead.address: expected the address at which {self.host} leads, found null")
        return host_of(self.address), port_of(self.address)


@dataclass(frozen=True)
class TaskPlan:
    """A task of a run, as the lead knows it.

    Attributes:
      name: ``worker:1``.
      role: ps, chief, worker or evaluator.
      index: its number among the tasks of its role.
      host: its host, by the name in the hosts file.
      address: ``host:port`` at which other tasks reach it.
      chief: whether it initialises, saves and ends the run.
      spare: whether it is a ps that starts only when the host of another ps is lost.
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
    """One process that a host is to run.

    What travels has placeholders in ``argv`` and ``env``: ``{code}`` is the job's copy on the host, ``{run_folder}``
    the folder of the run, ``{environment}`` the Python environment, and ``{gpus}`` the number of GPUs.

    Attributes:
      argv: the program and its arguments.
      env: the variables that it gets beside the host's own; without TF_CONFIG until it is located.
      folder: the bundle that it starts in, "launcher" or "job"; a path once it is located.
      port: where it listens.
      gpus: indices; or "all" of the host's; or "share", an equal part with other tasks.
      saves: whether, as the chief, it ends with a checkpoint.
      limits: the limits that it has; None without any.
    """

    argv: Tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    port: int
    gpus: Gpus = ()
    saves: bool = True
    limits: Optional[Limits] = None


@dataclass(frozen=True)
class RunPlan:
    """The lead's knowledge of a run.

    Attributes:
      run: the name of this run, ``digits-20261120-155902``.
      name: the name that runs of one hosts file share.
      hosts: those that take part, the lead first.
      tasks: every task of the run.
      steps: global steps of the whole run; None for programs of others.
      judge: when the run has succeeded. By "outcome", when the chief reports success. By "exit", for programs that know
        nothing of this launcher, when the chief has left with exit code 0, or without a chief every worker.
      restart_max: how often a task that failed is started again.
      backoff_s: seconds before the first of these starts.
      control: ``host:port`` where members dial the lead; None in a run of one host.
      join_s: seconds that members have to dial the lead at the start.
      lost_after_s: seconds of silence after which a host is lost.
      grace_s: seconds between TERM and KILL.
      leave_s: seconds that the other tasks have to leave by themselves once the run has succeeded.
      min_workers: with so few a run goes on that has lost hosts; None if the loss of a host ends it.
      patience: by host, seconds of silence after which it is lost, where a boot brings it back.
      rejoin_s: seconds that members have to dial a lead whose host has booted; None for ``join_s``.
      quorum: with fewer hosts the run does not begin.
      frozen_s: seconds without progress after which a task is frozen, at the least; None for never.
    """

    run: str
    name: str
    hosts: List[str]
    tasks: List[TaskPlan]
    steps: Optional[int] = None
    judge: str = "outcome"
    restart_max: int = Restart.max
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
    """The checkpoint to go on from.

    Attributes:
      run: the run that left it; None for what lies in ``train.checkpoint.dir``.
      step: its global step.
    """

    run: Optional[str]
    step: int


@dataclass(frozen=True)
class RunPart:
    """The facts that every request to run one host's part of a run has.

    Attributes:
      run: the name of this run, ``digits-20261120-155902``.
      name: the name that runs of one hosts file share.
      host: this host, by the name in the hosts file.
      workdir: the working folder on this host; may begin with ``~``.
      code: the hash of each bundle that was sent, by its kind, "launcher" and "job".
      file: what other verbs about the run are asked with, as a shell takes it.
      cluster: JSON text of what TF_CONFIG has under "cluster", {role: addresses}.
      tasks: the tasks of this host.
      token: what agents of the run prove to each other that they know.
      lead: where the run is led.
      lost_after_s: seconds of silence after which a host is lost.
      join_s: seconds that a member's agent has to reach the lead's at the start.
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
      returns: whether a boot of this host starts its agent again; then there are no secrets.
      secrets: values of variables that every task gets; they are in no file.
      lease_s: seconds of silence of the launcher after which the run ends; None where no launcher need be there.
      detached: whether the launcher leaves once the run is up, so that the keepers start agents again.
      resume: whether the chief goes on from a checkpoint.
      resume_from: the checkpoint to go on from; None for the newest that is on this host.
      stay_s: seconds that a member's agent waits, without tasks, for a lead that is silent.
      deserted_s: seconds after which a member leaves whose lead's host answers that nobody listens.
      checkpoint_dir: where the chief saves; None for the run's own folder.
      keep: how many checkpoints stay, and copies of them.
      peers: the names and addresses of the cluster; None without a guard.
      environment: the hash of the Python environment that tasks run in; None for the host's own Python.
      setup: the command that builds the environment; None where there is none to build.
      run_plan: the whole run, for the lead; None for members.
      replicas: the hosts that keep copies of checkpoints, for the lead.
      generation: a number above those of the runs of this name before it; None if the launcher gives none.
      again: whether this agent takes the place of one that died.
      booted: whether that one ended with its host, which has booted since.
      retention: the rule by which hosts remove past runs of this name; None if the launcher gives none.
      user: who starts the run, and on which machine: ``anna@desk7``; None if the launcher does not report it.
      hooks: the receivers of the run's events, for the lead.
    """

    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    lease_s: Optional[float] = None
    detached: bool = False
    returns: bool = False
    resume: bool = False
    resume_from: Optional[Wanted] = None
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
        """Yield each key whose command this host may run beside the tasks, and the command's program."""
        for hook in self.hooks:
            if hook.command:
                yield f"on.{hook.event}", hook.command[0]
        if self.notice is not None:
            yield "notice", self.notice.command[0]
