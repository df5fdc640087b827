"""The files with rows of tables from which a delta goes on, beside the checkpoints.

A delta has all rows of its tables. The file system holds what checkpoints have in common once, by hard links. So each
checkpoint can be read, copied and removed without the others.
"""

import itertools
import os
import shutil
import uuid
from pathlib import Path
from typing import Any, Callable, List

from cluster.protocol.checkpoint_files import ROWS

_NUMBERS = itertools.count()  # of all pieces of this process: a save that was given up may still write one
_PROCESS = uuid.uuid4().hex  # another chief may take the folder meanwhile
_ENDINGS = (".index", ".data-00000-of-00001")


class RowFiles:
    """Make the folder of pieces beside a checkpoint, in place of one that is there. Raises OSError.

    Its length is the number of pieces.
    """

    def __init__(self, checkpoint: str):
        self._folder = Path(checkpoint).parent / ROWS
        self._pieces: List[str] = []
        shutil.rmtree(str(self._folder), ignore_errors=True)
        self._folder.mkdir()

    def __len__(self) -> int:
        return len(self._pieces)

    @property
    def bytes(self) -> int:
        """Return the bytes of all pieces. Raises OSError."""
        paths = (self._folder / (name + ending) for name in self._pieces for ending in _ENDINGS)
        return sum(path.stat().st_size for path in paths)

    def new_piece(self) -> str:
        """Return the path of one more piece, which the caller writes there, and then makes durable."""
        self._pieces.append(f"rows-{_PROCESS}-{next(_NUMBERS)}")
        return str(self._folder / self._pieces[-1])

    def add(self, piece: str) -> None:
        """Link the files of a piece, before they are merged. Raises OSError where there are no hard links."""
        _each(os.link, piece, self.new_piece())

    def link_into(self, folder: str) -> List[str]:
        """Link all pieces into another folder, and return their paths there. Raises OSError."""
        for name in self._pieces:
            _each(os.link, str(self._folder / name), os.path.join(folder, name))
        return [os.path.join(folder, name) for name in self._pieces]

    def move_into(self, folder: str) -> List[str]:
        """Move all pieces into another folder, and return their paths there: nothing is left here. Raises OSError."""
        for name in self._pieces:
            _each(os.replace, str(self._folder / name), os.path.join(folder, name))
        moved = [os.path.join(folder, name) for name in self._pieces]
        self.remove()
        return moved

    def remove(self) -> None:
        """Remove the folder and all pieces."""
        self._pieces = []
        shutil.rmtree(str(self._folder), ignore_errors=True)


def _each(change: Callable[[str, str], Any], piece: str, target: str) -> None:
    for ending in _ENDINGS:
        change(piece + ending, target + ending)
