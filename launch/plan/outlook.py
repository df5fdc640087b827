"""The object of ``plan --json``: the tasks as they would run, the placement of variables, and a step's traffic.

Tasks are written one at a time, since those of a large cluster together are as large as its square.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, Mapping, Optional, Union

from cluster.protocol.command_template import fill
from cluster.protocol.outcome import WORK
from cluster.protocol.typed_json import part_of, to_values
from launch.agent.wire.run_request import TaskRequest
from launch.plan.plan import Plan
from launch.status.meanings import means, means_list, means_parts


@dataclass(frozen=True)
class PsContent:
    """The variables of one ps."""

    task: str = field(metadata=means("Name of the ps."))
    bytes: int = field(metadata=means("Bytes of the variables on the ps."))
    variables: List[str] = field(metadata=means("Names of the variables on the ps."))


@dataclass(frozen=True)
class Variables:
    """The variables of the whole model."""

    bytes: int = field(metadata=means("Bytes of all variables."))
    imbalance: float = field(metadata=means("Bytes on the fullest ps divided by the mean; 1.0 is even."))
    tables: List[Mapping[str, Any]] = field(
        metadata=means(
            "Tables of which a step moves some rows: name, rows, rows_per_step, bytes, bytes_per_step. Of an embedding"
            " table, which grows, rows and bytes are null."
        )
    )


@dataclass(frozen=True)
class Bound:
    """The card that a step waits for.

    ``direction`` is ``both`` where ``bytes`` go each way at the same time. Else so many go one way in the pull, ``out``
    for a ps and ``in`` for a worker, and then as many the other way in the push.
    """

    host: str = field(metadata=means("Host of that network card."))
    tasks: List[str] = field(metadata=means("Tasks on that host that send or receive."))
    direction: str = field(
        metadata=means("Direction of the pull: out for a ps, in for a worker; both if push and pull overlap.")
    )
    bytes: int = field(metadata=means("Bytes through that card in the pull, and again in the push."))


@dataclass(frozen=True)
class Balanced:
    """The smallest number of ps with which a step is as short as with more."""

    ps: int = field(metadata=means("Smallest number of ps with the shortest step."))
    seconds_per_step: float = field(metadata=means("Shortest time of a step with that number of ps, in seconds."))


@dataclass(frozen=True)
class TaskTraffic:
    """The bytes of one task in one phase of a step."""

    task: str = field(metadata=means("Name of a ps or worker."))
    bytes_in: int = field(metadata=means("Bytes that the task receives in a pull or push."))
    bytes_out: int = field(metadata=means("Bytes that the task sends in a pull or push."))


@dataclass(frozen=True)
class Network:
    """The traffic of a step."""

    nic_gbps: float = field(
        metadata=means("Speed of a host's network card in each direction, in Gbit/s: the value of --nic-gbps.")
    )
    seconds_per_step: float = field(metadata=means("Shortest time of a step's transfers, in seconds."))
    bound: Optional[Bound] = field(
        metadata=means("Network card that limits a step; null where no traffic leaves a host.")
    )
    balanced: Balanced = field(metadata=means_parts())
    tasks: List[TaskTraffic] = field(metadata=means_parts())


@dataclass(frozen=True)
class PlannedHook:
    """A receiver of events, by the key ``on``; names of secrets stand in braces."""

    event: str = field(metadata=means("Event that the receiver gets: one of the keys of on."))
    command: Optional[List[str]] = field(
        metadata=means("Program and arguments that run on the host of the lead; null for a URL.")
    )
    url: Optional[str] = field(
        metadata=means("URL to which the lead's host posts each event, without a password; null for a command.")
    )


@dataclass(frozen=True)
class PlannedContainer:
    """The container in which each task would run."""

    image: str = field(metadata=means("Image: a path on the hosts, or a name."))
    runtime: Optional[str] = field(
        metadata=means("Program that runs the container; null where each host takes the first that has the image.")
    )
    args: List[str] = field(metadata=means("Further options of that program."))


@dataclass(frozen=True)
class Outlook:
    """All of ``plan --json`` but its tasks, which are written one at a time."""

    name: str = field(metadata=means("Name of the run, without the time."))
    lead: str = field(metadata=means("Host of the lead agent: the chief's host."))
    control: Optional[str] = field(
        metadata=means("Address of the lead agent for the other agents, host:port; null on a single host.")
    )
    placement: Optional[List[PsContent]] = field(
        default=None, metadata=means_list("The ps and their variables; null for a command.")
    )
    variables: Optional[Variables] = field(
        default=None, metadata=means("Variables of the whole model; null for a command.")
    )
    network: Optional[Network] = field(
        default=None, metadata=means("Network traffic of a step; null for a command, and where it is unknown.")
    )
    remarks: List[str] = field(default_factory=list, metadata=means("Further remarks, in words."))
    hooks: List[PlannedHook] = field(default_factory=list, metadata=means_parts())
    container: Optional[PlannedContainer] = field(
        default=None, metadata=means("Container in which each task would run; null for none.")
    )


@dataclass(frozen=True)
class PlannedTask:
    """A task as it would run; secrets are hidden."""

    role: str = field(metadata=means("Role of the task: ps, chief, worker or evaluator."))
    index: int = field(metadata=means("Index of the task within its role, from 0."))
    host: str = field(metadata=means("Host of the task, as the hosts file names it."))
    address: str = field(metadata=means("Address of the task for the other tasks, host:port."))
    gpus: Union[str, List[int]] = field(
        metadata=means("Indices of the task's GPUs; or all; or share: an equal share of the host's GPUs.")
    )
    spare: bool = field(metadata=means("True for a ps that starts only when the host of another ps is lost."))
    argv: List[str] = field(metadata=means("Program and arguments of the task."))
    env: Mapping[str, str] = field(
        metadata=means("Environment variables that the task has beyond its agent's; each secret is (secret).")
    )
    limits: Mapping[str, float] = field(metadata=means("Limits of the task, by the keys of limits."))
    log: str = field(metadata=means("Path of the first attempt's log, on the task's host."))


@dataclass(frozen=True)
class PlanAnswer(Outlook):
    """All of ``plan --json``."""

    tasks: List[PlannedTask] = field(default_factory=list, metadata=means_parts())


def shown_tasks(plan: Plan, names: Collection[str]) -> Iterator[PlannedTask]:
    """``tasks`` of ``plan --json`` with one of ``names``: as they would run, secrets hidden.

    One at a time, because each has the whole cluster in its ``TF_CONFIG``: all of a large
    cluster's together are as large as its square.
    """
    return (_shown(plan, task) for task in plan.tasks if task.name in names)


def _shown(plan: Plan, task: TaskRequest) -> PlannedTask:
    run_folder = f"{plan.spec.workdir}/runs/{plan.run}"
    places = {"code": f"{run_folder}/{task.role}.{task.index}/{WORK}", "run_folder": run_folder}
    env = {key: value.replace("{code}", places["code"]) for key, value in plan.environment(task).items()}
    return part_of(
        PlannedTask,
        task,
        gpus=task.gpus if isinstance(task.gpus, str) else list(task.gpus),
        argv=[fill(word, {**places, **_known(plan, task)}) for word in task.argv],
        env={**env, **dict.fromkeys(plan.spec.secrets, "(secret)")},
        limits={} if task.limits is None else task.limits.given(),
        log=f"{places['run_folder']}/{task.role}.{task.index}/attempt_0.log",
    )


def _known(plan: Plan, task: TaskRequest) -> Dict[str, str]:
    """Return the placeholders of a host that the launcher can fill in: {gpus}, {environment}."""
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
