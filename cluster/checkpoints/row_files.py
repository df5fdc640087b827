"""The files with rows of tables in the newest checkpoint, as links beside it, from which a delta goes on.

A delta has all rows of its tables. The file system holds what checkpoints have in common once, by hard links. So each
checkpoint can be read, copied and removed without the others.
"""

import os
import shutil
from pathlib import Path
from typing import List

from cluster.protocol.checkpoint_files import ROWS


class RowFiles:
    """Make the folder of links beside a checkpoint, in place of one that is there. Raises OSError.

    Its length is the number of pieces.
    """

    def __init__(self, checkpoint: str):
        self._folder = Path(checkpoint).parent / ROWS
        self._pieces: List[str] = []
        shutil.rmtree(str(self._folder), ignore_errors=True)
        self._folder.mkdir()

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, piece: str) -> None:
        """Link the files of a piece, before they are merged. Raises OSError where there are no hard links."""
        name = f"piece-{len(self)}"
        _link(piece, str(self._folder / name))
        self._pieces.append(name)

    def link_into(self, folder: str) -> List[str]:
        """Link all pieces into another folder, and return their paths there. Raises OSError."""
        for name in self._pieces:
            _link(str(self._folder / name), os.path.join(folder, f"old-{name}"))
        return [os.path.join(folder, f"old-{name}") for name in self._pieces]


def _link(piece: str, target: str) -> None:
    for ending in (".index", ".data-00000-of-00001"):
        os.link(piece + ending, target + ending)
