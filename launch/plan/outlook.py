"""The object of ``plan --json``: the tasks as they would run, the placement of variables, and a step's traffic.

Tasks are written one at a time: the text of all tasks grows with the square of the cluster's size.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from cluster.protocol.command_template import STATE_FOLDER, fill
from cluster.protocol.outcome import WORK
from cluster.protocol.typed_json import to_values
from launch.agent.wire.run_request import TaskRequest
from launch.plan.plan import Plan


@dataclass(frozen=True)
class PsContent:
    """The variables of one ps.

    Attributes:
      task: Name of the ps.
      bytes: Bytes of the variables on the ps.
      variables: Names of the variables on the ps.
    """

    task: str
    bytes: int
    variables: List[str]


@dataclass(frozen=True)
class Variables:
    """The variables of the whole model.

    Attributes:
      bytes: Bytes of all variables.
      imbalance: Bytes on the fullest ps divided by the mean; 1.0 is even.
      tables: Tables from which a step moves only some rows: name, rows, rows_per_step, bytes, bytes_per_step. For an
        embedding table, which grows, rows and bytes are null.
    """

    bytes: int
    imbalance: float
    tables: List[Mapping[str, Any]]


@dataclass(frozen=True)
class Bound:
    """The network card that limits a step.

    ``direction`` is ``both`` if ``bytes`` move in each direction at the same time. Otherwise ``bytes`` move in one
    direction in the pull, ``out`` for a ps and ``in`` for a worker. The push then moves as many in the other direction.

    Attributes:
      host: Host of that network card.
      tasks: Tasks on that host that send or receive.
      direction: Direction of the pull: out for a ps, in for a worker; both if push and pull overlap.
      bytes: Bytes through that card in the pull, and again in the push.
    """

    host: str
    tasks: List[str]
    direction: str
    bytes: int


@dataclass(frozen=True)
class Balanced:
    """The smallest number of ps beyond which more ps do not shorten a step.

    Attributes:
      ps: Smallest number of ps with the shortest step.
      seconds_per_step: Shortest time of a step with that number of ps, in seconds.
    """

    ps: int
    seconds_per_step: float


@dataclass(frozen=True)
class TaskTraffic:
    """The bytes of one task in one phase of a step.

    Attributes:
      task: Name of a ps or worker.
      bytes_in: Bytes that the task receives in a pull or push.
      bytes_out: Bytes that the task sends in a pull or push.
    """

    task: str
    bytes_in: int
    bytes_out: int


@dataclass(frozen=True)
class Network:
    """The traffic of a step.

    Attributes:
      nic_gbps: Speed of a host's network card in each direction, in Gbit/s: the value of --nic-gbps.
      seconds_per_step: Shortest time of a step's transfers, in seconds.
      bound: Network card that limits a step; null where no traffic leaves a host.
    """

    nic_gbps: float
    seconds_per_step: float
    bound: Optional[Bound]
    balanced: Balanced
    tasks: List[TaskTraffic]


@dataclass(frozen=True)
class PlannedHook:
    """A receiver of events, by the key ``on``; the names of secrets are in braces.

    Attributes:
      event: Event that is sent to the receiver: one of the keys of on.
      command: Program and arguments that run on the host of the lead; null for a URL.
      url: URL to which the lead's host posts each event, without a password; null for a command.
    """

    event: str
    command: Optional[List[str]]
    url: Optional[str]


@dataclass(frozen=True)
class PlannedContainer:
    """The container in which each task would run.

    Attributes:
      image: Image: a path on the hosts, or a name.
      runtime: Program that runs the container; null where each host takes the first program that has the image.
      args: Further options of that program.
    """

    image: str
    runtime: Optional[str]
    args: List[str]


@dataclass(frozen=True)
class Outlook:
    """All of ``plan --json`` except its tasks, which are written one at a time.

    Attributes:
      name: Name of the run, without the time.
      lead: Host of the lead agent: the chief's host.
      control: Address of the lead agent for the other agents, host:port; null on a single host.
      placement: The ps and their variables; null for a command.
      variables: Variables of the whole model; null for a command.
      network: Network traffic of a step; null for a command, and where it is unknown.
      remarks: Further remarks, in words.
      container: Container in which each task would run; null for none.
    """

    name: str
    lead: str
    control: Optional[str]
    placement: Optional[List[PsContent]] = None
    variables: Optional[Variables] = None
    network: Optional[Network] = None
    remarks: List[str] = field(default_factory=list)
    hooks: List[PlannedHook] = field(default_factory=list)
    container: Optional[PlannedContainer] = None


@dataclass(frozen=True)
class PlannedTask:
    """A task as it would run; secrets are hidden.

    Attributes:
      role: Role of the task: ps, chief, worker or evaluator.
      index: Index of the task within its role, from 0.
      host: Host of the task, as the hosts file names it.
      address: Address of the task for the other tasks, host:port.
      gpus: Indices of the task's GPUs; or all; or share: an equal share of the host's GPUs.
      spare: True for a ps that starts only when the host of another ps is lost.
      argv: Program and arguments of the task.
      env: Environment variables that the task has beyond its agent's; each secret is (secret).
      limits: Limits of the task, by the keys of limits.
      log: Path of the first attempt's log, on the task's host.
    """

    role: str
    index: int
    host: str
    address: str
    gpus: Union[str, List[int]]
    spare: bool
    argv: List[str]
    env: Mapping[str, str]
    limits: Mapping[str, float]
    log: str


@dataclass(frozen=True)
class PlanAnswer(Outlook):
    """All of ``plan --json``."""

    tasks: List[PlannedTask] = field(default_factory=list)


def shown_tasks(plan: Plan, names: Collection[str]) -> Iterator[PlannedTask]:
    """Yield the items of ``tasks`` in ``plan --json`` for the tasks in ``names``, with secrets hidden.

    The function yields one task at a time, because the ``TF_CONFIG`` of each task has the whole cluster. The size of
    all of them grows with the square of the cluster's size.
    """
    return (_shown(plan, task) for task in plan.tasks if task.name in names)


def _shown(plan: Plan, task: TaskRequest) -> PlannedTask:
    run_folder = f"{plan.spec.workdir}/runs/{plan.run}"
    places = {
        "code": f"{run_folder}/{task.role}.{task.index}/{WORK}",
        "run_folder": run_folder,
        STATE_FOLDER: f"{plan.spec.workdir}/state/{plan.spec.name}",
    }
    env = {key: value.replace("{code}", places["code"]) for key, value in plan.environment(task).items()}
    return PlannedTask(
        task.role, task.index, task.host, task.address,
        gpus=task.gpus if isinstance(task.gpus, str) else list(task.gpus),
        spare=task.spare,
        argv=[fill(word, {**places, **_known(plan, task)}) for word in task.argv],
        env={**env, **dict.fromkeys(plan.spec.secrets, "(secret)")},
        limits={} if task.limits is None else task.limits.given(),
        log=f"{places['run_folder']}/{task.role}.{task.index}/attempt_0.log",
    )  # fmt: skip


def _known(plan: Plan, task: TaskRequest) -> Dict[str, str]:
    """Return the values of a host's placeholders that the launcher knows: {gpus}, {environment}."""
    known = {} if isinstance(task.gpus, str) else {"gpus": str(len(task.gpus))}
    if task.host in plan.environments:
        known["environment"] = f"{plan.spec.workdir}/envs/{plan.environments[task.host]}"
    return known


def write_json(outlook: Outlook, tasks: Iterable[PlannedTask], put: Callable[[str], Any]) -> None:
    """Write one JSON object with ``put``: the outlook with ``tasks`` at the end."""
    put(json.dumps(to_values(outlook))[:-1] + ', "tasks": [')
    for index, task in enumerate(tasks):
        put((", " if index else "") + json.dumps(to_values(task)))
    put("]}\n")
