"""Rows that a checkpoint has in addition to variables, such as rows of embedding tables.

Rows may be written ahead of their checkpoint, or linked from the files of an earlier one. A package whose rows change a
few at a time during training implements ``SavedRows``.

A delta is a checkpoint that writes only changed rows. It takes all other rows from files next to the checkpoints, by
hard links. So a delta has all rows, and the file system stores the rows that checkpoints share only once. Each
checkpoint can be read, copied and removed without the others.
"""

import itertools
import os
import shutil
import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from cluster.checkpoints.pieces_of_variables import Fed, Step, Write
from cluster.protocol.checkpoint_files import ROWS, make_durable

_NUMBERS = itertools.count()  # of all pieces of this process: a save that was given up may still write a piece
_PROCESS = uuid.uuid4().hex  # another chief may take the folder meanwhile
_ENDINGS = (".index", ".data-00000-of-00001")


class LastRows(NamedTuple):
    """The operations that write the remaining changed rows, all in one ``session.run``.

    ``endings``: the ending that each piece appends to the path; the first piece has no rows.
    """

    operations: Any
    feed: Dict[Any, Any]
    endings: List[str]


class SavedRows(ABC):
    """Rows that a checkpoint has in addition to variables. Create the object on the device of the writing process.

    The operation ``read_last`` reads, on the servers, all rows that have changed since the last call of ``rows``.
    """

    read_last: Any

    @abstractmethod
    def rows(self, session: Any, piece_bytes: int, is_delta: bool, between_steps: bool = True) -> Iterator[Write]:
        """Yield a ``Write`` for each piece of the rows.

        Args:
          is_delta: whether to write, as further pieces, only rows that have changed since the last complete call.
          between_steps: whether this process takes no step during the call. Otherwise, rows that change during the call
            are left out, or written with old values; the next call writes all of these rows.
        """

    @abstractmethod
    def counts(self) -> Iterator[Write]:
        """Yield a ``Write`` for each piece of the counts that servers keep for ids without a row."""

    @abstractmethod
    def head(self) -> Write:
        """Return the ``Write`` of all other values that belong to the rows; call this once the rows are written."""

    @abstractmethod
    def bytes(self, session: Any) -> int:
        """Return an upper bound on the bytes of all rows."""

    @abstractmethod
    def make_last_writes(self) -> None:
        """Create the operations that write the values of ``read_last``."""

    @abstractmethod
    def last(self, is_rehearsal: bool = False) -> LastRows:
        """Return the operations that write all rows that have changed since the last call of ``rows``.

        A rehearsal only prepares the operations: no row counts as changed.
        """

    @abstractmethod
    def note_last(self, ran: Any) -> None:
        """Note that the operations that ``last`` returned have run, with the result ``ran``."""

    @abstractmethod
    def loads(self, reader: Any) -> Iterator[Step]:
        """Yield the operations that replace the servers' rows by the rows of a checkpoint.

        Each operation comes with all its feeds except the path.
        """

    @abstractmethod
    def refuse_others(self, reader: Any) -> None:
        """Refuse a checkpoint that has other rows, or lacks rows.

        Raises:
          tf.errors.NotFoundError, tf.errors.InvalidArgumentError: the rows of the checkpoint do not fit.
        """


RowsOf = Callable[[Fed], Sequence[SavedRows]]  # creates the saved rows of a model


class RowFiles:
    """The folder with pieces of rows, next to the checkpoint at the path ``checkpoint``.

    A new object removes the pieces of an earlier one. ``len`` of the object is the number of pieces.

    Raises:
      OSError: the folder cannot be created.
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
        """Return the path of one more piece. The caller writes the piece, and then makes it durable."""
        self._pieces.append(f"rows-{_PROCESS}-{next(_NUMBERS)}")
        return str(self._folder / self._pieces[-1])

    def add(self, piece: str) -> None:
        """Link the files of the piece at the path ``piece`` into the folder. Raises OSError without hard links.

        Call this method before the files are merged into a checkpoint.
        """
        _each(os.link, piece, self.new_piece())

    def link_into(self, folder: str) -> List[str]:
        """Link all pieces into another folder, and return the new paths. Raises OSError."""
        for name in self._pieces:
            _each(os.link, str(self._folder / name), os.path.join(folder, name))
        return [os.path.join(folder, name) for name in self._pieces]

    def move_into(self, folder: str) -> List[str]:
        """Move all pieces into another folder, and return the new paths. Raises OSError."""
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


MOST_PIECES = 256  # each is a file, and a reader may hold all files open; larger models have larger pieces
_PIECES_AHEAD = MOST_PIECES // 2  # of all rows, once
MOST_ROUNDS = 8  # of rows ahead of their checkpoint


class RowPieces:
    """The files of rows that are already written, from which a delta continues.

    Attributes:
      saved: one ``SavedRows`` for each kind of rows.
      deltas: whether deltas may be saved; False once the file system turns out to have no hard links.
      base: the pieces from which the next delta continues; None if the next checkpoint writes all rows.
      are_few_left: whether the last round of ``write_ahead`` wrote at most one piece, so that few changed rows remain.
    """

    def __init__(self, saved: Sequence[SavedRows], fed: Fed, deltas: bool):
        self.saved, self._fed, self.deltas = list(saved), fed, deltas
        self.base: Optional[RowFiles] = None
        self.are_few_left = False

    @property
    def has_base(self) -> bool:
        """Return whether a delta can be saved: this process has pieces, and fewer than ``MOST_PIECES``."""
        return self.base is not None and len(self.base) < MOST_PIECES

    @property
    def are_ahead(self) -> bool:
        """Return whether all rows have been written at least once, so that a save can write only the changed rows.

        Unlike for ``has_base``, the number of pieces does not matter.
        """
        return self.base is not None

    def forget(self) -> None:
        """Forget the written rows, so that the next checkpoint writes all rows.

        Call this method when the session changes, and after another chief has used the folder.
        """
        self.base = None

    def take_base(self) -> Optional[RowFiles]:
        """Return ``base``, and set it to None until a save succeeds: after a failure, the next save writes all rows."""
        base, self.base, self.are_few_left = self.base, None, False
        return base

    def pieces_of(self, base: RowFiles, folder: str) -> List[str]:
        """Link the pieces of ``base`` into ``folder``; return the new paths. Raises OSError.

        If ``deltas`` is False, or the file system has no hard links, the method moves the pieces instead.
        """
        if self.deltas:
            try:
                return base.link_into(folder)
            except FileNotFoundError:
                raise  # the pieces have been removed
            except OSError:
                self.deltas = False
        return base.move_into(folder)

    def base_with(self, path: str, base: Optional[RowFiles], pieces: Sequence[str]) -> Optional[RowFiles]:
        """Link ``pieces`` into ``base``, before they are merged into the checkpoint at ``path``; return the base.

        If ``base`` is None, the method creates a new one. It returns None if ``deltas`` is False or hard links fail.
        """
        if not self.deltas:
            return None
        try:
            base = base or RowFiles(path)
            for piece in pieces:
                base.add(piece)
        except OSError:
            self.deltas = False
            if base is not None:
                base.remove()
            return None
        return base

    def write_ahead(
        self, session: Any, path: str, piece_bytes: int, is_delta: bool, goes_on: Callable[[], bool]
    ) -> None:
        """Write rows while training continues, so that few rows remain for the delta of ``path``.

        Each round writes the rows that changed during the round before; the first may write all rows. The rounds end
        once a round writes at least half as many bytes as the round before. They also end after ``MOST_ROUNDS`` rounds,
        at ``MOST_PIECES`` pieces, and when ``goes_on`` returns False.
        """
        piece_bytes = max(piece_bytes, sum(each.bytes(session) for each in self.saved) // _PIECES_AHEAD)
        old = self.take_base()
        base = old if old and is_delta else RowFiles(path)
        is_complete = base is old  # whether a delta may continue from these pieces
        try:
            rounds: List[int] = []  # the bytes of each round
            while len(rounds) < MOST_ROUNDS and len(base) < MOST_PIECES:
                before = base.bytes
                if not self._write_round(session, base, piece_bytes, is_complete, goes_on):
                    rounds.clear()
                    break
                is_complete = True
                rounds.append(base.bytes - before)
                if len(rounds) > 1 and 2 * rounds[-1] >= rounds[-2]:
                    break
            self.base = base if is_complete else None
            self.are_few_left = bool(rounds) and rounds[-1] <= piece_bytes
        finally:
            if self.base is None:
                base.remove()

    def _write_round(
        self, session: Any, base: RowFiles, piece_bytes: int, is_delta: bool, goes_on: Callable[[], bool]
    ) -> bool:
        """Write all rows; return whether the round is complete. Raises as ``StreamedSaver.save``."""
        for saved in self.saved:
            for write in saved.rows(session, piece_bytes, is_delta, between_steps=False):
                if not goes_on():
                    return False
                piece = base.new_piece()
                session.run(write.operation, {**write.feed, self._fed.path: piece})
                make_durable(piece)  # otherwise the disk would have to write all of them at once, while training waits
        return True
