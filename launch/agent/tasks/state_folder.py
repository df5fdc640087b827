"""The folder in which programs keep files from run to run, one for each ``name``: placeholder ``{state_folder}``.

    WORKDIR/state/NAME

Only the program knows the files there, such as checkpoints. So no verb removes the folder. A run starts with files of
an earlier run there only with ``--resume``: otherwise a new run would continue an old one unnoticed.
"""

import os
from pathlib import Path
from typing import Iterator, List

from cluster.protocol.command_template import STATE_FOLDER, names_in
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest, TaskRequest


def path(workdir: Path, name: str) -> Path:
    """Return the folder in which the programs of runs with this name keep files."""
    return workdir / "state" / name


def create(asked: RunRequest, folder: RunFolder) -> List[str]:
    """Create the state folder if a task of this host uses it; return notes for the user.

    Args:
      asked: the request, with placeholders not yet replaced.

    Raises:
      ValueError: the folder has files of an earlier run, and the run is started without ``--resume``.
      OSError: the folder cannot be created or read.
    """
    users = list(_users(asked))
    if not users:
        return []
    own = path(folder.workdir, asked.name)
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_empty = not os.listdir(str(own))
    if asked.again:
        return []
    if not (is_empty or asked.resume):
        raise ValueError(
            f"{{{STATE_FOLDER}}}: expected no files of an earlier run in {own}, found some; continue from them with "
            f"`launch up --resume {asked.file}`, move them away, or choose another name"
        )
    if is_empty and asked.resume and any(task.chief for task in users):
        return [f"{{{STATE_FOLDER}}}: no files of an earlier run in {own}; the program begins without them"]
    return []


def _users(asked: RunRequest) -> Iterator[TaskRequest]:
    """Yield the tasks whose command names the folder."""
    return (task for task in asked.tasks if any(STATE_FOLDER in names_in(word) for word in task.argv))
