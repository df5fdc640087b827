"""Formations: the tasks of a run that train together, without lost hosts and the tasks that an operator has drained.

A run begins with formation 0, which has all tasks except spare ps. When a host is lost or taken back, or an operator
drains tasks, the next formation replaces the current one. TensorFlow allows no gaps in the indices of a role, so each
formation has its own cluster. The cluster numbers the tasks of each role from 0. Everywhere else a task keeps the name
that it has in the run.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Match, Optional, Sequence, Tuple

from cluster.protocol.quantity import quantity
from cluster.task import MEMBERS, TRAINERS
from launch.agent.protocol.messages import DrainRequested
from launch.agent.supervision.incident import Incident
from launch.agent.supervision.task_records import Roster
from launch.agent.wire.run_request import RunPlan, TaskPlan
from launch.status.run import FormationStatus

SETTLE_S = 3.0
PATIENCE_S = 30.0
LONGEST_PATIENCE_S = 900.0
_NAME = re.compile(r"\b(ps|chief|worker)((?:/replica:\d+/task)?:)(\d+)\b")  # names of the launcher and of TensorFlow


@dataclass(frozen=True)
class Formation:
    """The tasks that train together.

    ``cluster`` is the JSON text of the cluster in ``TF_CONFIG``, {role: addresses}. ``indices`` maps each task's name
    in the run to the task's index within its role in this formation. ``indices`` includes the evaluator.
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
    """Return the formation of the tasks whose hosts are not in ``out``, the absent hosts.

    A spare ps takes the place of a missing ps.

    Args:
      number: the number of the formation.
      wishes: what an operator wants, by task name: False leaves a task out; True lets a spare ps train in addition to
        all others.
    """
    by_role: Dict[str, List[TaskPlan]] = {}
    wishes = wishes or {}
    places = sum(task.role == "ps" and not task.spare for task in tasks)  # of ps that spares may take
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
    """Return how many of the tasks ``names`` are workers, the chief included, and how many are ps."""
    roles = [name.partition(":")[0] for name in names]
    return sum(role in TRAINERS for role in roles), roles.count("ps")


def full_sizes(tasks: Sequence[TaskPlan], wishes: Optional[Mapping[str, bool]] = None) -> Tuple[int, int]:
    """Return the numbers of workers and ps at the start of the run, plus the spares that an operator wants."""
    return sizes([task.name for task in tasks if not task.spare or (wishes or {}).get(task.name)])


def describe(formation: Formation, tasks: Sequence[TaskPlan], wishes: Optional[Mapping[str, bool]] = None) -> str:
    """Describe a formation as ``formation 2: 3 of 4 workers, 2 of 2 ps``."""
    (workers, servers), (all_workers, all_servers) = sizes(formation.indices), full_sizes(tasks, wishes)
    return f"formation {formation.number}: {workers} of {all_workers} workers, {servers} of {all_servers} ps"


def shortage(formation: Formation, tasks: Sequence[TaskPlan], min_workers: int) -> Optional[str]:
    """Return the reason why the tasks of a formation cannot train; None where they can train."""
    (workers, servers), (all_workers, all_servers) = sizes(formation.indices), full_sizes(tasks)
    if workers < min_workers:
        least = quantity(min_workers, "worker")
        return f"expected at least {least} (elastic.min_workers), found {workers} of {all_workers}"
    if not servers:
        return f"none of {all_servers} ps is left, and no spare ps"
    return None


@dataclass
class Absence:
    """The absence of a host, and the number of times that the host was lost.

    A host that returns waits for ``SETTLE_S``, so the run does not at once take back a host with an unstable network.
    After the second loss the host waits for ``PATIENCE_S``, and after each further loss twice as long as before.

    ``ready_at`` is the time from which the run may take the host back; infinite while the host is silent.
    """

    losses: int = 0
    ready_at: float = math.inf
    incident: Optional[Incident] = None  # of the host's newest loss

    def begin(self, incident: Incident) -> None:
        """Record a loss of the host, which is silent from now on."""
        self.losses, self.ready_at, self.incident = self.losses + 1, math.inf, incident

    def end(self, now: float) -> None:
        """Record the return of the host."""
        again = self.losses - 1
        patience_s = min(LONGEST_PATIENCE_S, PATIENCE_S * 2 ** (again - 1)) if again else 0.0
        self.ready_at = min(self.ready_at, now + max(SETTLE_S, patience_s))


class Absences:
    """The absences of all hosts that were ever lost; ``out`` has the hosts that do not train now."""

    def __init__(self) -> None:
        self.out: Dict[str, Absence] = {}
        self._known: Dict[str, Absence] = {}

    def begin(self, host: str, incident: Incident) -> None:
        """Record the loss of a host."""
        self.out[host] = self._known.setdefault(host, Absence())
        self.out[host].begin(incident)

    def ready(self, now: float) -> List[str]:
        """Return the hosts that the run may take back now."""
        return [host for host, absence in self.out.items() if now >= absence.ready_at]

    def end_of_returned(self) -> None:
        """End the absence of every host that has returned, without its usual wait, since no training has begun."""
        self.out = {host: absence for host, absence in self.out.items() if absence.ready_at == math.inf}


class Wishes:
    """An operator's wishes for the tasks of one run; ``by_name`` is the argument ``wishes`` of ``form``.

    A wish is about a task that must not train, or a spare ps that must train in addition to all others. A wish is valid
    until the operator takes it back, whatever happens to hosts. A new run has no wishes.
    """

    def __init__(self, plan: RunPlan, roster: Roster):
        self.by_name: Dict[str, bool] = {}
        self._plan, self._roster = plan, roster

    def restore(self, earlier: FormationStatus) -> None:
        """Restore the wishes from the status of an earlier agent."""
        self.by_name = {**dict.fromkeys(earlier.drained, False), **dict.fromkeys(earlier.added, True)}

    def named(self, wish: bool) -> List[str]:
        """Return the tasks that an operator wants to leave out (``wish`` False), or the spares to add (True)."""
        return sorted(name for name, wished in self.by_name.items() if wished is wish)

    def joined_by(self, request: DrainRequested) -> Dict[str, bool]:
        """Return the value of ``by_name`` after ``request`` is added to the current wishes."""
        others = {name: wish for name, wish in self.by_name.items() if name not in request.tasks}
        spares = [name for name in request.tasks if self._roster.by_name[name].plan.spare]
        return {**others, **dict.fromkeys(spares if request.back else request.tasks, request.back)}

    def refusals(self, request: DrainRequested, out: Collection[str]) -> List[str]:
        """Return the reasons why a request to drain or take back tasks is refused; empty where the request is possible.

        Args:
          out: the absent hosts.
        """
        tasks = [self._roster.by_name[name].plan for name in request.tasks]
        wrong = [f"{each.name} is the chief, which leads the run; choose other tasks" for each in tasks if each.chief]
        wrong += [f"{each.name}: expected a ps or a worker" for each in tasks if each.role == "evaluator"]
        wished = self.joined_by(request)
        if wrong or wished == self.by_name:
            state = "trains already" if request.back else "is drained already"
            return wrong or [f"{each.name} {state}" for each in tasks]
        missing = self.shortage_after(request, out)
        return [] if missing is None else [f"refused, because the run could not train after this change: {missing}"]

    def shortage_after(self, request: DrainRequested, out: Collection[str]) -> Optional[str]:
        """Return the reason why the run could not train once ``request`` is carried out; None where it could."""
        left = form(0, self._plan.tasks, out, self.joined_by(request))
        return shortage(left, self._plan.tasks, self._plan.min_workers or 0)
