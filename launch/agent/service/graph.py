"""Build the graph of a job on this host before its tasks start, as the chief would, and report its mistake.

The chief's command builds the graph in a working folder of its own, with the chief's Python, environment and GPUs. It
trains nothing and opens no port.
"""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import List

from cluster.protocol.outcome import GRAPH_MISTAKE, read_outcome
from launch.agent.gpus import nvidia_smi
from launch.agent.linux.processes import die_with
from launch.agent.service.located import code_of, folder_of, located
from launch.agent.tasks import task_env, work_folder
from launch.agent.text.redaction import Redaction
from launch.agent.wire.graph_answer import GraphAnswer
from launch.agent.wire.run_request import Gpus, RunRequest, TaskRequest

NAME = "graph:0"  # of its folder, beside those of the run's tasks
PATIENCE_S = 45.0


def mistake(request: RunRequest) -> GraphAnswer:
    """Return the reason why the graph of the request's only task, the chief, cannot be built."""
    folder = folder_of(request)
    chief = located(replace(request, tasks=(replace(request.tasks[0], name=NAME),)), folder).tasks[0]
    own = folder.task(NAME)
    try:
        work_folder.fill(own, code_of(request, folder, "job") if "job" in request.code else None)
        is_mistake = _build(chief, request, own) == GRAPH_MISTAKE
        outcome = read_outcome(own) if is_mistake else None
    except (OSError, ValueError, nvidia_smi.DriverHangs, subprocess.TimeoutExpired):
        return GraphAnswer()  # the tasks find out
    finally:
        shutil.rmtree(str(own), ignore_errors=True)
    if outcome is None or outcome.cause is None:
        return GraphAnswer()
    return GraphAnswer(Redaction(request.secrets.values(), [chief.env], request.secrets).text(outcome.cause))


def _build(chief: TaskRequest, request: RunRequest, own: Path) -> int:
    """Return the exit code of ``jobs.describe``."""
    argv = ["jobs.describe" if word == "jobs.main" else word for word in chief.argv]
    env = task_env.task_environment(chief.env, request.secrets, 0, own, _gpus(chief.gpus))
    return subprocess.run(
        argv, cwd=chief.folder, env=env, timeout=PATIENCE_S, start_new_session=True, preexec_fn=die_with(os.getpid()),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    ).returncode  # fmt: skip


def _gpus(wish: Gpus) -> List[int]:
    # A job may look for GPUs while it builds its graph. How many a share is matters to no mistake: it gets all.
    return list(range(len(nvidia_smi.list_gpus()))) if isinstance(wish, str) else list(wish)
