"""Rows that a checkpoint has beside variables, such as those of embedding tables: written ahead of it, or linked.

``SavedRows`` is what a package offers whose rows change a few at a time while training goes on.

Rows that a checkpoint need not write again lie in files beside the checkpoints, from which a delta goes on. A delta has
all rows. The file system holds what checkpoints have in common once, by hard links. So each checkpoint can be read,
copied and removed without the others.
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

_NUMBERS = itertools.count()  # of all pieces of this process: a save that was given up may still write one
_PROCESS = uuid.uuid4().hex  # another chief may take the folder meanwhile
_ENDINGS = (".index", ".data-00000-of-00001")


class LastRows(NamedTuple):
    """The operations that write the rows that have changed last, all at once.

    ``endings``: what each piece adds to the path; the first is no piece with rows.
    """

    operations: Any
    feed: Dict[Any, Any]
    endings: List[str]


class SavedRows(ABC):
    """Rows of a model that a checkpoint has beside its variables. Make it on the device of the process that writes.

    ``read_last`` reads all rows that have changed since ``rows``, on the servers.
    """

    read_last: Any

    @abstractmethod
    def rows(self, session: Any, piece_bytes: int, is_delta: bool, between_steps: bool = True) -> Iterator[Write]:
        """Yield what writes each piece of the rows.

        Args:
          is_delta: whether to write only rows that have changed since the last call that came to its end, as further
            pieces.
          between_steps: whether this process takes no step meanwhile. Else rows that change meanwhile are left out, or
            written with old values; the next call writes all of these.
        """

    @abstractmethod
    def counts(self) -> Iterator[Write]:
        """Yield what writes the counts of what has no row yet."""

    @abstractmethod
    def head(self) -> Write:
        """Return what writes all else that belongs to the rows, once these are written."""

    @abstractmethod
    def bytes(self, session: Any) -> int:
        """Return the bytes of all rows, at most."""

    @abstractmethod
    def make_last_writes(self) -> None:
        """Make the operations that write what ``read_last`` reads."""

    @abstractmethod
    def last(self, is_rehearsal: bool = False) -> LastRows:
        """Return what writes all rows that have changed since ``rows``; in a rehearsal none has."""

    @abstractmethod
    def note_last(self, ran: Any) -> None:
        """Note that the operations of ``last`` were run, and returned this."""

    @abstractmethod
    def loads(self, reader: Any) -> Iterator[Step]:
        """Yield the operations that give the servers the rows of a checkpoint, in place of theirs."""

    @abstractmethod
    def refuse_others(self, reader: Any) -> None:
        """Refuse a checkpoint that has other rows, or lacks some.

        Raises:
          tf.errors.NotFoundError, tf.errors.InvalidArgumentError: it is such a checkpoint.
        """


RowsOf = Callable[[Fed], Sequence[SavedRows]]  # makes all of a model


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


MOST_PIECES = 256  # each is a file, and whoever reads the checkpoint may hold all open; larger models: larger pieces
_PIECES_AHEAD = MOST_PIECES // 2  # of all rows, once
MOST_ROUNDS = 8  # of rows ahead of their checkpoint


class RowPieces:
    """Keep the pieces of rows from which a delta goes on.

    Attributes:
      saved: what saves each kind of rows.
      deltas: whether a delta follows a checkpoint; False once the file system turns out to have no hard links.
      base: the pieces from which the next delta goes on; None if the next checkpoint writes all rows.
      are_few_left: whether the last rows that were written ahead are fewer than a piece, so that as few have changed.
    """

    def __init__(self, saved: Sequence[SavedRows], fed: Fed, deltas: bool):
        self.saved, self._fed, self.deltas = list(saved), fed, deltas
        self.base: Optional[RowFiles] = None
        self.are_few_left = False

    @property
    def has_base(self) -> bool:
        """Return whether a delta can be saved: there are pieces of this process, and not too many."""
        return self.base is not None and len(self.base) < MOST_PIECES

    @property
    def are_ahead(self) -> bool:
        """Return whether all rows are written that a delta does not write, however many pieces they are."""
        return self.base is not None

    def forget(self) -> None:
        """Forget what was written: in another session, or after others had the folder, a checkpoint is whole."""
        self.base = None

    def take_base(self) -> Optional[RowFiles]:
        """Return the pieces, which only a save that succeeds gives back: after another one, the next is whole."""
        base, self.base, self.are_few_left = self.base, None, False
        return base

    def pieces_of(self, base: RowFiles, folder: str) -> List[str]:
        """Let the folder of a checkpoint have the pieces; return their paths there. Raises OSError."""
        if self.deltas:
            try:
                return base.link_into(folder)
            except FileNotFoundError:
                raise  # somebody has removed them
            except OSError:
                self.deltas = False
        return base.move_into(folder)

    def base_with(self, path: str, base: Optional[RowFiles], pieces: Sequence[str]) -> Optional[RowFiles]:
        """Return links to these pieces too, before they are merged; None without deltas or hard links."""
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
        """Write rows while training goes on, so that few are left for the delta of ``path``.

        Each round writes what has changed during the one before. The last is one that is not half as large.
        """
        piece_bytes = max(piece_bytes, sum(each.bytes(session) for each in self.saved) // _PIECES_AHEAD)
        old = self.take_base()
        base = old if old and is_delta else RowFiles(path)
        is_complete = base is old  # whether a delta may go on from these pieces
        try:
            rounds: List[int] = []  # the bytes of each
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
        """Write all rows; return whether that has come to its end. Raises as ``StreamedSaver.save``."""
        for saved in self.saved:
            for write in saved.rows(session, piece_bytes, is_delta, between_steps=False):
                if not goes_on():
                    return False
                piece = base.new_piece()
                session.run(write.operation, {**write.feed, self._fed.path: piece})
                make_durable(piece)  # else the disk would have all of it to write at once, while training waits
        return True
