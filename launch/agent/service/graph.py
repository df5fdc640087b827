"""Build the graph of a job on this host before its tasks start, as the chief would, and report its mistake.

``jobs.describe`` builds the graph with the chief's GPUs. It trains nothing and opens no port.
"""

import os
import subprocess
from typing import List

from cluster.protocol.outcome import GRAPH_MISTAKE
from launch.agent.containers.runtimes import Lacking
from launch.agent.gpus import assignment, nvidia_smi
from launch.agent.service.chief_command import ChiefCommand, chief_command
from launch.agent.wire.graph_answer import GraphAnswer
from launch.agent.wire.run_request import Gpus, RunRequest

NAME = "graph:0"  # of its folder, beside those of the run's tasks
PATIENCE_S = 45.0


def mistake(request: RunRequest) -> GraphAnswer:
    """Return the reason why the graph of the request's only task, the chief, cannot be built."""
    try:
        with chief_command(request, NAME) as command:
            return GraphAnswer(command.cause() if _build(command) == GRAPH_MISTAKE else None)
    except (OSError, ValueError, nvidia_smi.NoAnswer, Lacking, subprocess.TimeoutExpired):
        return GraphAnswer()  # the tasks find out


def _build(command: ChiefCommand) -> int:
    """Return the exit code of ``jobs.describe``."""
    building = command.start("jobs.describe", ["--warm-start"], gpus=_gpus(command.task.gpus))
    try:
        return building.wait(PATIENCE_S)
    finally:
        building.kill()
        building.wait()


def _gpus(wish: Gpus) -> List[int]:
    # A job may look for GPUs while it builds its graph. How many a share is matters to no mistake: it gets all.
    usable = assignment.allotted(nvidia_smi.list_gpus(), os.environ) if wish else []
    return usable if isinstance(wish, str) else [usable[number] for number in wish if number < len(usable)]
