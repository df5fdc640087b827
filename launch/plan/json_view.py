"""``plan --json``: what would run where, as values, written a task at a time."""

import json
from typing import Any, Callable, Collection, Dict, Iterable, Iterator

from cluster.protocol.command_template import fill
from cluster.protocol.outcome import WORK
from launch.agent.wire.run_request import TaskRequest
from launch.plan.outlook import Outlook, PlannedTask
from launch.plan.plan import Plan
from launch.status.values import to_values


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
    """Return the placeholders of a host that the launcher can fill in: {gpus}, {environment}."""
    known = {} if isinstance(task.gpus, str) else {"gpus": str(len(task.gpus))}
    if task.host in plan.environments:
        known["environment"] = f"{plan.spec.workdir}/envs/{plan.environments[task.host]}"
    return known


def write(outlook: Outlook, tasks: Iterable[PlannedTask], put: Callable[[str], Any]) -> None:
    """Write one JSON object with ``put``: the outlook with ``tasks`` at the end."""
    put(json.dumps(to_values(outlook))[:-1] + ', "tasks": [')
    for index, task in enumerate(tasks):
        put((", " if index else "") + json.dumps(to_values(task)))
    put("]}\n")
