"""The lead's knowledge of its whole run: a part of the request to run it."""

from dataclasses import dataclass, field
from typing import List, Mapping, Optional


@dataclass(frozen=True)
class TaskPlan:
    """The lead's knowledge of a task.

    Attributes:
      name: ``worker:1``.
      role: ps, chief, worker or evaluator.
      index: its number among the tasks of its role.
      host: its host, by the name in the hosts file.
      address: ``host:port`` at which other tasks reach it.
      chief: whether it initialises, saves and ends the run.
      spare: whether it is a ps that waits until another's host is lost.
    """

    name: str
    role: str
    index: int
    host: str
    address: str
    chief: bool
    spare: bool = False


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
    restart_max: int = 3
    backoff_s: float = 1.0
    control: Optional[str] = None
    join_s: float = 20.0
    lost_after_s: float = 10.0
    grace_s: float = 10.0
    leave_s: float = 10.0
    min_workers: Optional[int] = None
    frozen_s: Optional[float] = 10.0
    patience: Mapping[str, float] = field(default_factory=dict)
    rejoin_s: Optional[float] = None
    quorum: int = 0
