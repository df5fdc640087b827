"""Where the chief's checkpoints come from when a run starts.

A chief restores the newest checkpoint of its folder, if there is one. So a new run needs
an empty folder, and a resumed one needs the checkpoint of the run before it.
"""

import os
import shutil
from pathlib import Path
from typing import List, Optional, Tuple

from launch.agent.folder import RunFolder, runs


def checkpoints(folder: Path) -> List[Tuple[int, str]]:
    """The complete checkpoints in a folder as (global step, prefix), newest last."""
    found = []
    for index in folder.glob("*.index"):
        step = index.stem.rsplit("-", 1)[-1]
        if step.isdigit() and list(folder.glob(index.stem + ".data-*")):
            found.append((int(step), index.stem))
    return sorted(found)


def prepare(folder: RunFolder, name: str, directory: Optional[str], resume: bool) -> None:
    """Makes the chief's checkpoint folder what this run needs it to be.

    Raises:
      ValueError: there is nothing to resume, or something that a new run would overwrite.
    """
    if directory is None:
        if resume:
            _carry_over(folder, name)
        return
    held = checkpoints(Path(os.path.expanduser(directory)))
    if held and not resume:
        raise ValueError(
            f"train.checkpoint.dir {directory} holds a checkpoint of step {held[-1][0]}; "
            "go on from it with --resume, or name another folder"
        )
    if resume and not held:
        raise ValueError(f"nothing to resume: train.checkpoint.dir {directory} holds no complete checkpoint")


def _carry_over(folder: RunFolder, name: str) -> None:
    for earlier in runs(folder.workdir, name, folder.host):
        held = checkpoints(earlier.checkpoint) if earlier.run != folder.run else []
        if held:
            _copy(earlier.checkpoint, folder.checkpoint, held[-1][1])
            return
    raise ValueError(f"nothing to resume: no earlier run of {name} left a checkpoint on this host")


def _copy(source: Path, target: Path, prefix: str) -> None:
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in source.glob(prefix + ".*"):
        shutil.copy2(str(file), str(target / file.name))
    # The list that TensorFlow reads; names in it are relative to the folder.
    listed = f'model_checkpoint_path: "{prefix}"\nall_model_checkpoint_paths: "{prefix}"\n'
    (target / "checkpoint").write_text(listed)
