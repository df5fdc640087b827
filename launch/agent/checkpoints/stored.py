"""Complete checkpoints on the disk: a file ``NAME-STEP.index`` and all of its files ``NAME-STEP.data-*``."""

import contextlib
import glob
import os
import re
from collections import Counter
from pathlib import Path
from typing import Iterable, List, NamedTuple, Optional, Set

from cluster.protocol import checkpoint_files
from cluster.protocol.checkpoint_files import belongs_to_one, indexed


class LocalCheckpoint(NamedTuple):
    """A complete checkpoint: its global step, the prefix of its files' names, and its folder."""

    step: int
    prefix: str
    folder: Path

    def files(self) -> List[Path]:
        """Return the files of the checkpoint, the index last."""
        data = self.folder.glob(f"{glob.escape(self.prefix)}.data-*-of-*")
        return [*sorted(path for path in data if belongs_to_one(path.name)), self.folder / f"{self.prefix}.index"]

    def size(self) -> int:
        """Return the size of all files of the checkpoint, in bytes."""
        return sum(os.path.getsize(str(path)) for path in self.files())

    def remove(self) -> None:
        """Remove the checkpoint's files, the index first.

        Without an index, the other files do not count as a checkpoint.
        """
        for path in reversed(self.files()):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def checkpoints(folder: Path) -> List[LocalCheckpoint]:
    """Return the complete checkpoints in a folder, newest last."""
    names = [path.name for path in folder.glob("*") if belongs_to_one(path.name)]
    whole = _with_all_data(names)
    return sorted(LocalCheckpoint(step, prefix, folder) for step, prefix in indexed(names) if prefix in whole)


def _with_all_data(names: Iterable[str]) -> Set[str]:
    """Return the prefixes that have as many data files as the files' names claim."""
    parts = Counter(tuple(re.split(r"\.data-\d+-of-", name)) for name in names)
    return {part[0] for part, found in parts.items() if len(part) == 2 and found == int(part[1])}


def of_step(folder: Path, step: int) -> Optional[LocalCheckpoint]:
    """Return the complete checkpoint of a step; None where no such checkpoint exists."""
    return next((each for each in checkpoints(folder) if each.step == step), None)


def write_list(folder: Path) -> None:
    """Write TensorFlow's file ``checkpoint``, from which other programs restore the newest checkpoint in ``folder``.

    Raises:
      OSError: the file cannot be written.
    """
    checkpoint_files.write_list(folder, [each.prefix for each in checkpoints(folder)])


def prune(folder: Path, keep: int) -> None:
    """Remove all checkpoints in a folder except the newest ``keep``."""
    for old in checkpoints(folder)[:-keep]:
        old.remove()
