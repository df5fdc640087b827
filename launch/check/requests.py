"""The questions to each host: how to open its ports, and what to look at."""

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.protocol.addresses import host_of, port_of
from cluster.spec.model import is_local
from launch.agent.wire.run_request import TaskRequest
from launch.check.targets import dials
from launch.plan.plan import Plan

KNOCK_S = 5.0  # for one address to answer: time for two packets that were lost


@dataclass(frozen=True)
class Question:
    """The questions to one host.

    ``opening`` is the request to listen, ``look`` the request that follows once all hosts listen.
    """

    opening: Mapping[str, Any]
    look: Mapping[str, Any]


def questions(plan: Plan, words: Sequence[str], deadline_s: float) -> Dict[str, Question]:
    """The questions to every host of a plan.

    Args:
      words: two secrets of this check: one that a caller sends, and one with which our listener answers.
      deadline_s: after so many seconds a host ends its part by itself.
    """
    tasks: Dict[str, List[TaskRequest]] = defaultdict(list)
    for task in plan.tasks:
        tasks[task.host].append(task)
    local = [host for host in plan.hosts if is_local(host)]
    targets = dials(plan)
    names = {id(shared): _names(shared) for shared in {id(each): each for each in targets.values()}.values()}
    opening = {"words": list(words), "within_s": deadline_s}
    return {
        host: Question(
            {**opening, "host": host, "ports": _ports(plan, host, tasks[host])},
            {
                "do": "look", "name": plan.spec.name, "host": host, "workdir": plan.spec.workdir, "words": list(words),
                "here": local if host in local else [host], "knock_s": min(KNOCK_S, deadline_s / 4),
                "targets": targets[host], "names": names[id(targets[host])], **_needs(plan, host, tasks[host]),
            },
        )
        for host in plan.hosts
    }  # fmt: skip


def _ports(plan: Plan, host: str, tasks: Sequence[TaskRequest]) -> List[int]:
    control = [port_of(plan.control)] if plan.control is not None and host == plan.lead else []
    return [*(task.port for task in tasks), *control]


def _names(targets: Sequence[Tuple[str, str]]) -> List[str]:
    return list(dict.fromkeys(host_of(address) for address, _ in targets))


def _needs(plan: Plan, host: str, tasks: Sequence[TaskRequest]) -> Dict[str, Any]:
    """Return the needs of the host's tasks: Python with environment, GPUs, folders, programs."""
    asked = next((task for task in tasks if task.role != "ps"), tasks[0])
    checkpoints = plan.spec.train.checkpoint.dir
    return {
        "python": plan.python[host], "environment": plan.environments.get(host), "env": _own_variables(asked),
        "guard": plan.spec.guard is not None, "wishes": {task.name: task.gpus for task in tasks},
        "folders": [plan.spec.workdir, *([checkpoints] if checkpoints and host == plan.lead else [])],
        "programs": {task.argv[0]: task.env.get("PATH") for task in tasks if _is_looked_for(task.argv[0])},
    }  # fmt: skip


def _own_variables(task: TaskRequest) -> Dict[str, str]:
    """Return the variables of a task that may affect an import."""
    return {name: value for name, value in task.env.items() if not name.startswith(("LAUNCH_", "CUDA_"))}


def _is_looked_for(program: str) -> bool:
    """Return whether a program is the host's own.

    A path within the job's folder is shipped with that folder.
    """
    return not os.path.dirname(program) or program.startswith(("/", "~"))


def shipped_program(plan: Plan) -> Optional[str]:
    """Return the program of ``command:`` that is shipped in the job's folder, or None."""
    program = plan.tasks[0].argv[0]
    return None if _is_looked_for(program) else program
