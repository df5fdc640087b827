"""Formations: the tasks of a run that train together, and the cluster in their ``TF_CONFIG``.

A run begins with formation 0, all of its tasks but the spares. When a host is lost, or taken
back, or an operator drains tasks, the next formation replaces the current one. TensorFlow allows
no gaps in a role, so each formation has a cluster of its own, which numbers the tasks of each role
from 0. Everywhere else a task keeps the name that it has in the run.
"""

import json
import re
from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Match, Optional, Sequence, Tuple

from cluster.task import MEMBERS, TRAINERS
from launch.agent.wire.run_request import TaskPlan

_NAME = re.compile(r"\b(ps|chief|worker)((?:/replica:\d+/task)?:)(\d+)\b")  # as we write it, and as TensorFlow does


@dataclass(frozen=True)
class Formation:
    """The tasks that train together.

    ``cluster`` is the JSON text of the cluster in ``TF_CONFIG``, {role: addresses}. ``indices`` has each task's place
    in its role: {name in the run: index in the formation}. ``indices`` includes the evaluator.
    """

    number: int
    cluster: str
    indices: Mapping[str, int]

    @property
    def tasks(self) -> List[str]:
        """Return the names that the formation's tasks have in the run."""
        return list(self.indices)

    def name_as_run(self, text: str) -> str:
        """Replace the formation's task names in a text by their names in the run.

        For example, ``ps:0`` of the formation may be ``ps:1`` of the run.
        """
        names = {(name.partition(":")[0], index): name for name, index in self.indices.items()}

        def rename(found: Match[str]) -> str:
            name = names.get((found[1], int(found[3])))
            return f"{found[1]}{found[2]}{name.partition(':')[2]}" if name else found[0]

        return _NAME.sub(rename, text)


def form(
    number: int, tasks: Sequence[TaskPlan], out: Collection[str], wishes: Optional[Mapping[str, bool]] = None
) -> Formation:
    """Return the formation of the tasks whose hosts are not in ``out``.

    A spare takes the place of a ps that is not there.

    Args:
      wishes: an operator's, by the names of tasks: False for one that is to be left out, True for a spare that is to
        train beside all others.
    """
    by_role: Dict[str, List[TaskPlan]] = {}
    wishes = wishes or {}
    places = sum(task.role == "ps" and not task.spare for task in tasks)  # that spares may fill
    for task in tasks:
        there, wish = by_role.setdefault(task.role, []), wishes.get(task.name)
        if task.host in out or wish is False or (task.spare and not wish and not places):
            continue
        there.append(task)
        places -= task.role == "ps" and not wish
    addresses = {role: [task.address for task in by_role[role]] for role in MEMBERS if by_role.get(role)}
    indices = {task.name: index for there in by_role.values() for index, task in enumerate(there)}
    return Formation(number, json.dumps(addresses), indices)


def sizes(names: Collection[str]) -> Tuple[int, int]:
    """Count the workers, the chief included, and the ps among task names."""
    roles = [name.partition(":")[0] for name in names]
    return sum(role in TRAINERS for role in roles), roles.count("ps")


def full_sizes(tasks: Sequence[TaskPlan], wishes: Optional[Mapping[str, bool]] = None) -> Tuple[int, int]:
    """Return the numbers of workers and of ps that the run begins with, and of spares that an operator wants."""
    return sizes([task.name for task in tasks if not task.spare or (wishes or {}).get(task.name)])


def describe(formation: Formation, tasks: Sequence[TaskPlan], wishes: Optional[Mapping[str, bool]] = None) -> str:
    """Describe a formation as ``formation 2: 3 of 4 workers, 2 of 2 ps``."""
    (workers, servers), (all_workers, all_servers) = sizes(formation.indices), full_sizes(tasks, wishes)
    return f"formation {formation.number}: {workers} of {all_workers} workers, {servers} of {all_servers} ps"


def shortage(formation: Formation, tasks: Sequence[TaskPlan], min_workers: int) -> Optional[str]:
    """Return the reason why these tasks cannot train; None where they can."""
    (workers, servers), (all_workers, all_servers) = sizes(formation.indices), full_sizes(tasks)
    if workers < min_workers:
        return f"{workers} of {all_workers} workers are left, and elastic.min_workers is {min_workers}"
    if not servers:
        return f"none of {all_servers} ps is left, and no spare"
    return None
