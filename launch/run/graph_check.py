"""Find a mistake in a job before any task starts: the chief's process builds its graph before its turn comes.

The processes of all tasks wait for their turn (``cluster.protocol.standby``) while the launcher starts the agents. If
the chief's process ends instead, the chief's host builds the graph once more (``jobs.describe``), to find the mistake.
The host builds the graph in any case with ``train.warm_start``, whose checkpoint the waiting process does not read, and
with ``train.replication: in-graph``, where the process waits before it builds.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Optional

from cluster.spec.model import Spec
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.typed_verbs import GRAPH
from launch.errors import Interrupted, LaunchError
from launch.fleet import Fleet

ANSWER_S = 60.0  # for the chief's host; the tasks check a graph that takes longer


def find_mistake(fleet: Fleet, request: RunRequest) -> Optional[LaunchError]:
    """Return the mistake that the chief's host finds; None without a mistake, or after a signal.

    Args:
      request: the request to the chief's host, whose agent is ready.
    """
    train = fleet.spec.train
    waits = train.warm_start is None and train.replication != "in-graph"
    chief = tuple(replace(task, waits=waits) for task in request.tasks if task.chief)
    with suppress(Interrupted):  # the caller checks for signals itself
        answers, _ = fleet.ask_for(GRAPH, {fleet.lead: replace(request, tasks=chief, run_plan=None)}, ANSWER_S)
        cause = answers[fleet.lead].cause if answers else None
        if cause is not None:
            return LaunchError(f"no task was started, because {fleet.lead} cannot build the job's graph: {cause}")
    return None


def is_useful(spec: Spec) -> bool:
    """Return whether the launcher waits for the chief's graph before the tasks start.

    Where all tasks run here, the chief's own report of a mistake arrives just as early.
    """
    away = not all(map(spec.is_here, spec.hosts))
    return away and spec.command is None and not spec.train.verify
