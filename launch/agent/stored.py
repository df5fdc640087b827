"""Checkpoints that are there as a whole, as agents copy them: ``NAME-STEP.index`` and its ``NAME-STEP.data-*``."""

import glob
import os
from pathlib import Path
from typing import List, NamedTuple, Optional

from cluster import checkpoint_files
from cluster.checkpoint_files import belongs_to_one, indexed


class Checkpoint(NamedTuple):
    """A complete checkpoint: its global step and where it lies."""

    step: int
    prefix: str
    folder: Path

    def files(self) -> List[Path]:
        """What it consists of, the index last."""
        data = self.folder.glob(f"{glob.escape(self.prefix)}.data-*-of-*")
        return [*sorted(path for path in data if belongs_to_one(path.name)), self.folder / f"{self.prefix}.index"]

    def size(self) -> int:
        """Bytes of all its files."""
        return sum(os.path.getsize(str(path)) for path in self.files())


def checkpoints(folder: Path) -> List[Checkpoint]:
    """The complete checkpoints in a folder, newest last."""
    indices = indexed(path.name for path in folder.glob("*.index"))
    found = [Checkpoint(step, prefix, folder) for step, prefix in indices]
    return sorted(each for each in found if len(each.files()) > 1)


def of_step(folder: Path, step: int) -> Optional[Checkpoint]:
    """The complete checkpoint of a step; None where there is none."""
    return next((each for each in checkpoints(folder) if each.step == step), None)


def write_list(folder: Path) -> None:
    """Tells other programs what is there, the newest as the one to restore. Raises OSError."""
    checkpoint_files.write_list(folder, [each.prefix for each in checkpoints(folder)])


def prune(folder: Path, keep: int) -> None:
    """Removes all but the newest ``keep``, of each the index first, without which it is none."""
    for old in checkpoints(folder)[:-keep]:
        for path in reversed(old.files()):
            path.unlink()
