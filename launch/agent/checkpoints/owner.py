"""The run that owns a checkpoint folder which several runs may use: ``train.checkpoint.dir``.

Somebody may continue a run elsewhere while the host of its chief is off. When that host boots, the earlier run must not
save into the folder of the later one.
"""

from typing import Optional

from launch.agent.checkpoints.resume import chief_folder
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

OWNER = ".launch-run"


def claim(folder: RunFolder, directory: Optional[str]) -> None:
    """Make the run the owner of its checkpoint folder, where that is not its own anyway.

    A folder that cannot be written is the chief's to report.
    """
    if directory is None:
        return
    target = chief_folder(folder, directory)
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / OWNER).write_text(folder.run)
    except OSError as error:
        say(f"cannot write {target / OWNER}: {error.strerror}")


def other(folder: RunFolder, request: RunRequest) -> Optional[str]:
    """Return a text about the later owner of the checkpoint folder of the chief here; None where the run owns it."""
    if request.checkpoint_dir is None or not any(task.chief for task in request.tasks):
        return None
    path = chief_folder(folder, request.checkpoint_dir) / OWNER
    if not path.exists() or path.read_text() == folder.run:
        return None
    return f"{path.read_text()} has taken over {path.parent}"
