"""The checkpoints of a simulated chief as files, which ``up --resume`` and the product's agents read."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, List, NamedTuple, Union

from cluster.protocol.checkpoint_files import indexed
from launch.agent.checkpoints import stored

KEPT = 3
_DATA, _INDEX = ".data-00000-of-00001", ".index"


class Restored(NamedTuple):
    """The step that a chief begins with, and that of the newest checkpoint, which may lack a file."""

    step: int
    newest: int


def write(disk: Any, folder: Union[str, Path], step: int) -> None:
    """Write a checkpoint, and remove old ones. Raises OSError."""
    for end in (_DATA, _INDEX):
        disk.write(f"{folder}/model-{step}{end}", "values", durable=True)
    for old in sorted(set(steps(disk, folder)))[:-KEPT]:
        _forget(disk, folder, old)


def complete(disk: Any, folder: Union[str, Path]) -> List[int]:
    """Return the steps of the complete checkpoints in a folder, as the product finds them."""
    return [each.step for each in stored.checkpoints(disk.path(str(folder)))]


def steps(disk: Any, folder: Union[str, Path]) -> List[int]:
    """Return the steps of all checkpoints in a folder, also of those that lack a file."""
    names = [os.path.basename(each) for each in disk.names(f"{folder}/model-*")]
    return [step for step, _ in indexed(names)]


def restore(disk: Any, folder: Union[str, Path]) -> Restored:
    """Return what a chief begins with; the damaged checkpoints that it passes over are none any more."""
    found = look(disk, folder)
    for step in steps(disk, folder):
        if step > found.step:
            _forget(disk, folder, step)
    return found


def look(disk: Any, folder: Union[str, Path]) -> Restored:
    """Return what a chief would begin with."""
    whole = max(complete(disk, folder), default=0)
    return Restored(whole, max([whole, *steps(disk, folder)]))


def damage(disk: Any, folder: Union[str, Path]) -> None:
    """Let the newest checkpoint lack a file."""
    for step in complete(disk, folder)[-1:]:
        _remove(disk, f"{folder}/model-{step}{_DATA}")


def _forget(disk: Any, folder: Union[str, Path], step: int) -> None:
    for end in (_INDEX, _DATA):
        _remove(disk, f"{folder}/model-{step}{end}")


def _remove(disk: Any, path: str) -> None:
    with suppress(KeyError):
        disk.forget(path)
        disk.sync(os.path.dirname(path))
