"""Checkpoints as they lie in a folder, without TensorFlow.

A checkpoint is ``NAME-STEP.index`` and its ``NAME-STEP.data-*``. TensorFlow reads from a file
called ``checkpoint`` which of a folder's checkpoints there are; names in it are relative to the folder.
"""

import glob
import os
import re
from pathlib import Path
from typing import List, NamedTuple, Optional

_FILE = re.compile(r"[^/]+-(\d+)\.(index|data-\d+-of-\d+)$")
LIST = "checkpoint"


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
    indices = [path.stem for path in folder.glob("*.index") if belongs_to_one(path.name)]
    found = [Checkpoint(int(prefix.rpartition("-")[2]), prefix, folder) for prefix in indices]
    return sorted(each for each in found if len(each.files()) > 1)


def of_step(folder: Path, step: int) -> Optional[Checkpoint]:
    """The complete checkpoint of a step; None where there is none."""
    return next((each for each in checkpoints(folder) if each.step == step), None)


def belongs_to_one(name: str) -> bool:
    """Whether a file of this name is a part of a checkpoint."""
    return _FILE.match(name) is not None


def write_list(folder: Path) -> None:
    """Makes the list that TensorFlow reads say what is there, the newest as the one to restore."""
    prefixes = [each.prefix for each in checkpoints(folder)]
    lines = [
        f'model_checkpoint_path: "{prefixes[-1]}"',
        *(f'all_model_checkpoint_paths: "{each}"' for each in prefixes),
    ]
    partial = folder / f".{LIST}.partial"
    partial.write_text("\n".join(lines) + "\n")
    os.replace(str(partial), str(folder / LIST))


def prune(folder: Path, keep: int) -> None:
    """Removes all but the newest ``keep``, of each the index first, without which it is none."""
    for old in checkpoints(folder)[:-keep]:
        for path in reversed(old.files()):
            path.unlink()
