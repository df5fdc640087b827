"""The launcher's request with this host's paths in place of placeholders, and with each task's cluster."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Dict, Mapping

from cluster.protocol.command_template import STATE_FOLDER, fill
from cluster.protocol.env_values import literal, word_with_home
from cluster.protocol.outcome import WORK
from cluster.task import tf_config
from launch.agent.environments.environment import Environment
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.tasks import state_folder
from launch.agent.wire.run_request import RunRequest, TaskRequest


def folder_of(request: RunRequest) -> RunFolder:
    """Return the folder in which this host keeps the run's files."""
    return RunFolder(expand(request.workdir), request.run, request.host)


def located(request: RunRequest, folder: RunFolder) -> RunRequest:
    """Return a request with the placeholders of its tasks filled in, and with TF_CONFIG among their variables."""
    shared = {"run_folder": str(folder.path), STATE_FOLDER: str(state_folder.path(folder.workdir, request.name))}
    if request.environment is not None:
        shared["environment"] = str(Environment(folder.workdir, request.environment).path)
    return replace(request, tasks=tuple(_located(task, request, folder, shared) for task in request.tasks))


def _located(task: TaskRequest, request: RunRequest, folder: RunFolder, shared: Mapping[str, str]) -> TaskRequest:
    work = str(folder.task(task.name) / WORK)
    program, *arguments = [fill(word, {**shared, "code": work}) for word in task.argv]
    env: Dict[str, str] = {key: value.replace("{code}", literal(work)) for key, value in task.env.items()}
    return replace(
        task,
        argv=(os.path.expanduser(program), *map(word_with_home, arguments)),
        env={**env, "TF_CONFIG": literal(tf_config(request.cluster, task.role, task.index))},
        folder=str(folder.home(request.folder, task.name) / WORK)
        if task.folder == "job"
        else str(code_of(request, folder, "launcher")),
    )


def code_of(request: RunRequest, folder: RunFolder, kind: str) -> Path:
    """Return the folder on this host that has the request's bundle of code of this ``kind``."""
    return folder.workdir / "code" / request.code[kind]
