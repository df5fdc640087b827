"""``plan --json``: what would run where, as values, written a task at a time."""

import json
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, Mapping

from cluster.protocol.command_template import fill
from cluster.protocol.outcome import WORK
from launch.agent.wire.run_request import TaskRequest
from launch.plan.plan import Plan


def shown_tasks(plan: Plan, names: Collection[str]) -> Iterator[Dict[str, Any]]:
    """``tasks`` of ``plan --json`` with one of ``names``: as they would run, secrets hidden.

    One at a time, because each has the whole cluster in its ``TF_CONFIG``: all of a large
    cluster's together are as large as its square.
    """
    return (_shown(plan, task) for task in plan.tasks if task.name in names)


def _shown(plan: Plan, task: TaskRequest) -> Dict[str, Any]:
    run_folder = f"{plan.spec.workdir}/runs/{plan.run}"
    places = {"code": f"{run_folder}/{task.role}.{task.index}/{WORK}", "run_folder": run_folder}
    env = {key: value.replace("{code}", places["code"]) for key, value in plan.environment(task).items()}
    return {
        "role": task.role, "index": task.index, "host": task.host, "address": task.address,
        "gpus": task.gpus if isinstance(task.gpus, str) else list(task.gpus), "spare": task.spare,
        "argv": [fill(word, {**places, **_known(plan, task)}) for word in task.argv],
        "env": {**env, **dict.fromkeys(plan.spec.secrets, "(secret)")},
        "log": f"{places['run_folder']}/{task.role}.{task.index}/attempt_0.log",
    }  # fmt: skip


def _known(plan: Plan, task: TaskRequest) -> Dict[str, str]:
    """Return the placeholders of a host that the launcher can fill in: {gpus}, {environment}."""
    known = {} if isinstance(task.gpus, str) else {"gpus": str(len(task.gpus))}
    if task.host in plan.environments:
        known["environment"] = f"{plan.spec.workdir}/envs/{plan.environments[task.host]}"
    return known


def write(values: Mapping[str, Any], tasks: Iterable[Mapping[str, Any]], put: Callable[[str], Any]) -> None:
    """Write one JSON object with ``put``: ``values`` with ``tasks`` at the end."""
    put(json.dumps(values)[:-1] + ', "tasks": [')
    for index, task in enumerate(tasks):
        put((", " if index else "") + json.dumps(task))
    put("]}\n")
